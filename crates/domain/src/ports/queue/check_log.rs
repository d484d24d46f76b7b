//! The output of checks.

use async_trait::async_trait;

use crate::ids::{OrgId, RunId};
use crate::ports::StoreError;
use crate::time::Timestamp;

/// The most bytes of one check's output that are kept.
pub const MAX_CHECK_OUTPUT: usize = 256 * 1024;

/// The output of a check; while the check runs, the end of what it has printed so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckOutput {
    /// The organization.
    pub org: OrgId,
    /// The run.
    pub run: RunId,
    /// The check's name.
    pub check: String,
    /// The text, at most [`MAX_CHECK_OUTPUT`] bytes; a note in it marks an omission.
    pub text: String,
    /// When it was written.
    pub at: Timestamp,
}

/// Stores the output of checks.
#[async_trait]
pub trait CheckLog: Send + Sync {
    /// Writes an output; it replaces an earlier one of the same run and check.
    async fn write(&self, output: &CheckOutput) -> Result<(), StoreError>;

    /// Writes an output in place of one that was written at that time; returns whether it did.
    async fn replace(&self, output: &CheckOutput, written: Timestamp) -> Result<bool, StoreError>;

    /// The output of a check of a run.
    async fn read(
        &self,
        org: OrgId,
        run: RunId,
        check: &str,
    ) -> Result<Option<CheckOutput>, StoreError>;

    /// When an output of a run was last written.
    async fn written(&self, org: OrgId, run: RunId) -> Result<Option<Timestamp>, StoreError>;

    /// Deletes outputs from before a time, at most `limit`; returns the number of deleted outputs.
    async fn prune(&self, before: Timestamp, limit: u32) -> Result<u64, StoreError>;
}
