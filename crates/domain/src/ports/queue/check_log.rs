//! The output of checks.

use async_trait::async_trait;

use crate::ids::{OrgId, RunId};
use crate::ports::StoreError;
use crate::time::Timestamp;

/// The most bytes of one check's output that are kept.
pub const MAX_CHECK_OUTPUT: usize = 256 * 1024;

/// The line that stands for a part of an output that is not kept.
pub fn omission(bytes: usize) -> String {
    format!("[{bytes} bytes omitted]")
}

/// Whether a line of an output looks like an [`omission`]; a check may print such a line, too.
pub fn is_omission(line: &str) -> bool {
    let number = line.strip_prefix('[').and_then(|line| line.strip_suffix(" bytes omitted]"));
    number.is_some_and(|number| number.parse::<usize>().is_ok())
}

/// The output of a check; while the check runs, the end of what it has printed so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckOutput {
    /// The organization.
    pub org: OrgId,
    /// The run.
    pub run: RunId,
    /// The check's name.
    pub check: String,
    /// The text, at most [`MAX_CHECK_OUTPUT`] bytes; an [`omission`] in it marks what is not kept.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_omission_is_recognized() {
        assert!(is_omission(&omission(12)));
        for line in ["12 bytes omitted", "[many bytes omitted]", " [12 bytes omitted]", ""] {
            assert!(!is_omission(line), "{line}");
        }
    }
}
