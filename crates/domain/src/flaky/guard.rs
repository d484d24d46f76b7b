//! Which uploads feed monitors: the infrastructure guard, and the rule for unauthenticated uploads.

use crate::words::words;

use super::Refusal;
use super::monitor::bound;

/// When an upload looks like a broken machine rather than like tests that fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct InfrastructureGuard {
    /// Whether uploads are checked at all, and incidents recognized.
    pub enabled: bool,
    /// An upload is set aside when more than that share of its tests failed, in percent, 1 to 99.
    pub failed_percent: u32,
    /// The fewest tests that an upload must have to be set aside, 1 to 100,000.
    pub min_tests: u32,
    /// When at least that many tests of an upload fail with the same fingerprint, these failures
    /// are one incident and are set aside, 2 to 100,000. `None`: they count.
    pub same_failure_tests: Option<u32>,
}

impl Default for InfrastructureGuard {
    fn default() -> Self {
        Self { enabled: true, failed_percent: 80, min_tests: 20, same_failure_tests: None }
    }
}

impl InfrastructureGuard {
    pub(super) fn check(self) -> Result<(), Refusal> {
        bound("infrastructureFailedPercent", self.failed_percent, 1, 99)?;
        bound("infrastructureMinTests", self.min_tests, 1, 100_000)?;
        let same = self.same_failure_tests.unwrap_or(2);
        bound("infrastructureSameFailureTests", same, 2, 100_000)
    }

    /// The fewest tests of an upload that count for nothing when they fail alike; `None` when any
    /// number counts.
    pub(super) fn alike_tests(self) -> Option<u32> {
        self.same_failure_tests.filter(|_| self.enabled)
    }
}

words!(
    /// Who vouches for an upload.
    Trust {
        /// It came with a token.
        Token = "token",
        /// It came with the repository's public id only, without authentication.
        Public = "public",
    }
);

/// The facts about an upload that decide whether it counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UploadCounts {
    /// Tests that ran; skipped ones are not counted.
    pub tests: u32,
    /// Those of them that failed in the end.
    pub failed: u32,
    /// Who vouches for it.
    pub trust: Trust,
}

words!(
    /// Whether an upload feeds monitors and rates. Every upload is kept and shown.
    Admission {
        /// It does.
        Counts = "counts",
        /// It does not: so much failed that the machine is to blame.
        Infrastructure = "infrastructure_error",
        /// It does not: it is unauthenticated.
        Untrusted = "untrusted",
    }
);

/// Decides whether an upload counts.
pub fn admit(
    guard: InfrastructureGuard,
    count_public_uploads: bool,
    upload: UploadCounts,
) -> Admission {
    let failed = u64::from(upload.failed) * 100;
    let limit = u64::from(guard.failed_percent) * u64::from(upload.tests);
    if upload.trust == Trust::Public && !count_public_uploads {
        Admission::Untrusted
    } else if guard.enabled && upload.tests >= guard.min_tests && failed > limit {
        Admission::Infrastructure
    } else {
        Admission::Counts
    }
}
