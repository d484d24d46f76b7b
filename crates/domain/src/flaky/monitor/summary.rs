//! The summary of a test's runs, which monitors measure.
//!
//! Only runs that may count are in here: see [`crate::flaky::Admission`]. Skipped tests did not
//! run.

use std::collections::BTreeMap;

use crate::ids::{Sha, TreeId};
use crate::time::{Span, Timestamp};

use super::super::{BranchClass, BranchScope, Origin};

/// How long a bucket is, in minutes. Stores cut time at multiples of it since 1970.
pub const BUCKET_MINUTES: u32 = 5;

/// The runs of a test on one branch that started within one [`BUCKET_MINUTES`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Bucket {
    /// Its start.
    pub start: Timestamp,
    /// The branch.
    pub branch: String,
    /// The branch's class when the runs came in.
    pub class: BranchClass,
    /// Runs that passed.
    pub passed: u32,
    /// Runs that failed.
    pub failed: u32,
    /// The last run.
    pub last_run_at: Timestamp,
    /// The last run that failed.
    pub last_failure_at: Option<Timestamp>,
}

/// What makes two runs runs of the same code.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum SameCode {
    /// They name the same commit.
    Commit(Sha),
    /// Their commits have the same tree.
    Tree(TreeId),
    /// They came in one upload that names no commit, by its id.
    Upload(String),
}

/// The runs of a test on one code, on one branch and of one origin.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct CodeSummary {
    /// The code.
    pub code: SameCode,
    /// The branch.
    pub branch: String,
    /// The branch's class when the runs came in.
    pub class: BranchClass,
    /// Their job and base.
    pub origin: Origin,
    /// The first run that passed.
    pub first_success_at: Option<Timestamp>,
    /// The first run that failed.
    pub first_failure_at: Option<Timestamp>,
}

impl CodeSummary {
    /// Whether both are of the same code, branch and origin.
    pub fn is_of(&self, other: &Self) -> bool {
        self.code == other.code && self.branch == other.branch && self.origin == other.origin
    }
}

/// The runs of a test within the time that history is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Summary {
    /// By time, at most one per start and branch; in any order.
    pub buckets: Vec<Bucket>,
    /// By code, at most one per code, branch and origin; in any order.
    pub codes: Vec<CodeSummary>,
}

/// One run of a test that may count.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Run {
    /// When it started.
    pub at: Timestamp,
    /// The branch.
    pub branch: String,
    /// The branch's class.
    pub class: BranchClass,
    /// The code that was tested, in each form that is known: a commit, its tree. Of a test that
    /// failed and passed in one upload, that upload, too.
    pub codes: Vec<SameCode>,
    /// Its job and base.
    pub origin: Origin,
    /// Whether it passed.
    pub passed: bool,
}

/// Runs of a test within a bucket of a window; at least one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Period {
    /// Its start.
    pub start: Timestamp,
    /// Runs that passed.
    pub passed: u32,
    /// Runs that failed.
    pub failed: u32,
}

/// Counts over some buckets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) runs: u32,
    pub(super) failures: u32,
    pub(super) last_run_at: Option<Timestamp>,
    pub(super) last_failure_at: Option<Timestamp>,
}

impl Summary {
    /// The summary of some runs, in any order. Stores that count in the database must agree with
    /// it.
    pub fn of<'a>(runs: impl IntoIterator<Item = &'a Run>) -> Self {
        let mut buckets: BTreeMap<(Timestamp, &str), Bucket> = BTreeMap::new();
        let mut codes: BTreeMap<(&SameCode, &str, Origin), CodeSummary> = BTreeMap::new();
        for run in runs {
            let length = Span::minutes(BUCKET_MINUTES).micros();
            let start = run.at.unix_micros().div_euclid(length) * length;
            let start = Timestamp::from_unix_micros(start);
            let bucket = buckets.entry((start, &run.branch)).or_insert_with(|| Bucket {
                start,
                branch: run.branch.clone(),
                class: run.class,
                passed: 0,
                failed: 0,
                last_run_at: run.at,
                last_failure_at: None,
            });
            bucket.last_run_at = bucket.last_run_at.max(run.at);
            if run.passed {
                bucket.passed += 1;
            } else {
                bucket.failed += 1;
                bucket.last_failure_at = bucket.last_failure_at.max(Some(run.at));
            }
            for code in &run.codes {
                let key = (code, run.branch.as_str(), run.origin);
                let row = codes.entry(key).or_insert_with(|| CodeSummary {
                    code: code.clone(),
                    branch: run.branch.clone(),
                    class: run.class,
                    origin: run.origin,
                    first_success_at: None,
                    first_failure_at: None,
                });
                let first =
                    if run.passed { &mut row.first_success_at } else { &mut row.first_failure_at };
                *first = Some(first.map_or(run.at, |known| known.min(run.at)));
            }
        }
        Self { buckets: buckets.into_values().collect(), codes: codes.into_values().collect() }
    }

    /// Adds what another summary of the same test knows. A class stays as it was first seen.
    pub fn add(&mut self, other: &Self) {
        for new in &other.buckets {
            let same = |it: &&mut Bucket| it.start == new.start && it.branch == new.branch;
            match self.buckets.iter_mut().find(same) {
                Some(bucket) => {
                    bucket.passed = bucket.passed.saturating_add(new.passed);
                    bucket.failed = bucket.failed.saturating_add(new.failed);
                    bucket.last_run_at = bucket.last_run_at.max(new.last_run_at);
                    bucket.last_failure_at = bucket.last_failure_at.max(new.last_failure_at);
                }
                None => self.buckets.push(new.clone()),
            }
        }
        let earlier = |one: Option<Timestamp>, other: Option<Timestamp>| match (one, other) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
        for new in &other.codes {
            let same = |it: &&mut CodeSummary| it.is_of(new);
            match self.codes.iter_mut().find(same) {
                Some(row) => {
                    row.first_success_at = earlier(row.first_success_at, new.first_success_at);
                    row.first_failure_at = earlier(row.first_failure_at, new.first_failure_at);
                }
                None => self.codes.push(new.clone()),
            }
        }
    }

    /// Counts the runs of a scope within the last `window` before `at`, and the last times ever.
    ///
    /// Time is cut into [`bucket_length`](super::bucket_length)s of the window. A bucket that began at
    /// the window's edge or before it is skipped, so that nothing older than the window counts. A
    /// bucket from the future is skipped too.
    pub(super) fn tally(&self, scope: &BranchScope, window: Span, at: Timestamp) -> Tally {
        let mut tally = Tally::default();
        for bucket in &self.buckets {
            if bucket.start > at || !scope.covers(&bucket.branch, bucket.class) {
                continue;
            }
            if bucket.start_in(window) > at.minus(window) {
                tally.runs = tally.runs.saturating_add(bucket.passed.saturating_add(bucket.failed));
                tally.failures = tally.failures.saturating_add(bucket.failed);
            }
            tally.last_run_at = tally.last_run_at.max(Some(bucket.last_run_at));
            tally.last_failure_at = tally.last_failure_at.max(bucket.last_failure_at);
        }
        tally
    }

    /// The runs of a scope within the last `window` before `at`, by buckets of the window, the oldest
    /// first.
    pub(super) fn periods(&self, scope: &BranchScope, window: Span, at: Timestamp) -> Vec<Period> {
        let mut periods: BTreeMap<Timestamp, (u32, u32)> = BTreeMap::new();
        for bucket in &self.buckets {
            let start = bucket.start_in(window);
            let within = bucket.start <= at && start > at.minus(window);
            if within && scope.covers(&bucket.branch, bucket.class) {
                let (passed, failed) = periods.entry(start).or_default();
                *passed = passed.saturating_add(bucket.passed);
                *failed = failed.saturating_add(bucket.failed);
            }
        }
        let periods = periods.into_iter().filter(|(_, counts)| *counts != (0, 0));
        periods.map(|(start, (passed, failed))| Period { start, passed, failed }).collect()
    }
}
