//! A generated year of a repository with ground truth, replayed through the production judge.
//!
//! A seed determines everything: the tests and their faults, the commits, the jobs of CI,
//! incidents, noise. [`replay`] moves the clock, uploads what each job reports, and compares what the
//! judge says every 6 hours with the truth. `just replay-year` prints the result, `docs/domain/flaky.md`
//! lists it.

mod ci;
mod failures;
mod plan;
mod replay;
mod score;
mod tests_of;

pub use failures::Cause;
pub use plan::Kind;
pub use replay::replay;
pub use score::{Delays, Findings, Quality};

use std::time::Duration;

/// Which failures are run again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retries {
    /// None.
    Never,
    /// Most failed jobs, by a person: another upload of the same commit and job.
    Jobs,
    /// Every failed test, once in its job; and most failed jobs.
    Tests,
}

/// What is generated.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// The same seed gives the same year.
    pub seed: u64,
    /// Days that are planned, 10 to 730.
    pub days: u32,
    /// The day after which the replay ends, if that is earlier than its last.
    pub last_day: u32,
    /// Tests on the first day, 100 to 10,000.
    pub tests: u32,
    /// Pull requests that are opened on a workday, 1 to 100; a tenth of it on a weekend.
    pub pull_requests: u32,
    /// Which failures are run again.
    pub retries: Retries,
    /// Whether each platform is a variant of its own, so that its tests are separate tests.
    pub variants: bool,
    /// Whether the infrastructure guard is on.
    pub guard: bool,
}

impl Shape {
    /// A year of 400 tests.
    pub const fn year(seed: u64) -> Self {
        Self {
            seed,
            days: 365,
            last_day: 365,
            tests: 400,
            pull_requests: 6,
            retries: Retries::Jobs,
            variants: false,
            guard: true,
        }
    }

    /// A month of 150 tests: small enough for a test.
    pub const fn month(seed: u64) -> Self {
        Self { days: 30, last_day: 30, tests: 150, pull_requests: 3, ..Self::year(seed) }
    }
}

/// What a day cost.
#[derive(Clone, Copy, Debug, Default)]
pub struct DayCost {
    /// Uploads.
    pub uploads: u32,
    /// Results in them.
    pub results: u32,
    /// Rows read from the store of flaky tests, for uploads and for looks of the clock.
    pub rows_read: usize,
    /// Rows written to it.
    pub rows_written: usize,
    /// CPU time of the process, including that of the generator.
    pub cpu: Duration,
}
