//! What checks printed.

use async_trait::async_trait;

use crate::ids::{OrgId, RunId};
use crate::ports::StoreError;
use crate::time::Timestamp;

/// The most bytes of one check's output that are kept.
pub const MAX_CHECK_OUTPUT: usize = 256 * 1024;

/// A check's output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckOutput {
    /// Whose.
    pub org: OrgId,
    /// Of which run.
    pub run: RunId,
    /// The check's name.
    pub check: String,
    /// The text, at most [`MAX_CHECK_OUTPUT`] bytes; what is left out is said in it.
    pub text: String,
    /// When it was written.
    pub at: Timestamp,
}

/// Keeps the output of checks.
#[async_trait]
pub trait CheckLog: Send + Sync {
    /// Writes an output; a second one of the same run and check replaces the first.
    async fn write(&self, output: &CheckOutput) -> Result<(), StoreError>;

    /// The output of a check of a run.
    async fn read(
        &self,
        org: OrgId,
        run: RunId,
        check: &str,
    ) -> Result<Option<CheckOutput>, StoreError>;

    /// Deletes what was written before a time, at most `limit`; returns how many.
    async fn prune(&self, before: Timestamp, limit: u32) -> Result<u64, StoreError>;
}
