//! The result of a simulation.

use crate::Sample;
use crate::numbers::{float, ratio};

/// The outcome of the pull requests of a stream.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Pull requests that were submitted.
    pub submitted: usize,
    /// Pull requests that merged.
    pub merged: usize,
    /// Pull requests that the queue removed because their tests failed.
    pub failed: usize,
    /// Failed pull requests that were good: they pass on their own and conflict with no
    /// earlier pull request that merged.
    pub false_ejections: usize,
    /// Merged pull requests that were not good.
    pub bad_merges: usize,
    /// Test runs that were started.
    pub runs: usize,
    /// Test runs that were cancelled before their end.
    pub cancelled_runs: usize,
    /// Minutes of test runs, including the cancelled ones.
    pub run_minutes: f64,
    /// Minutes from the first submission to the end of the last pull request.
    pub makespan_minutes: f64,
    /// Steps of the planner.
    pub steps: usize,
    /// Whether each pull request merged, in the order of submission.
    pub merges: Vec<bool>,
    /// The minutes that each counted pull request was in the queue, in the order of submission.
    pub minutes_in_queue: Vec<f64>,
}

impl Outcome {
    /// The minutes that pull requests were in the queue, from submission until they merged or
    /// failed.
    pub fn minutes(&self) -> Sample {
        self.minutes_in_queue.iter().copied().collect()
    }

    /// Test runs for each pull request.
    pub fn runs_per_pull_request(&self) -> f64 {
        ratio(float(self.runs), self.submitted)
    }

    /// Minutes of test runs for each merged pull request.
    pub fn run_minutes_per_merge(&self) -> f64 {
        ratio(self.run_minutes, self.merged)
    }

    /// Pull requests that merged in an hour, from the first submission to the last end.
    pub fn merged_per_hour(&self) -> f64 {
        if self.makespan_minutes > 0.0 {
            float(self.merged) * 60.0 / self.makespan_minutes
        } else {
            0.0
        }
    }
}
