//! Reads of flaky tests for API replies and pages. No decision depends on them.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;

use crate::flaky::{
    Addition, CodeSummary, FailureCluster, Incident, JournalRecord, QuarantineSettings, RunRecord,
    TestId, TestStatus,
};
use crate::ids::{PrNumber, Sha};
use crate::ports::{RepoRef, SettingsStep, StoreError, TestRecord};
use crate::time::{Span, Timestamp};

/// A list of tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TestList {
    /// Tests with a run that failed at `from` or later, and before `until`; also in uploads that
    /// do not count.
    Failing {
        /// The first moment.
        from: Timestamp,
        /// The first moment after.
        until: Timestamp,
    },
    /// Tests of a status.
    Unhealthy(TestStatus),
    /// Tests that are quarantined. A retired one is not.
    Quarantined {
        /// The repository's quarantine settings.
        settings: QuarantineSettings,
        /// The time of the query, because overrides expire.
        at: Timestamp,
    },
    /// Tests that stable branches no longer contain.
    Retired,
}

/// The start of a page. Lists are ordered by test id, which never changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seek {
    /// The first tests after a test, or of all.
    After(Option<TestId>),
    /// The last tests before a test, or of all; still in ascending order.
    Before(Option<TestId>),
}

/// The counts of a test.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TestNumbers {
    /// Runs that count, in whole hours that began within 24 hours.
    pub runs_24h: u32,
    /// The failed runs among them.
    pub failures_24h: u32,
    /// Runs that count, in whole hours that began within 7 days.
    pub runs_7d: u32,
    /// The failed runs among them.
    pub failures_7d: u32,
    /// Pull requests in which a run that counts failed within 7 days.
    pub pull_requests_7d: BTreeSet<PrNumber>,
    /// Its failures, the most frequent first, at most 5.
    pub failures: Vec<FailureCluster>,
}

/// The most clusters of failures that are listed of a test.
pub const MAX_CLUSTERS: usize = 5;

impl TestNumbers {
    /// The counts with these runs added.
    #[must_use]
    pub fn with(mut self, added: &Addition, at: Timestamp) -> Self {
        for hour in &added.hours {
            let runs = hour.passed.saturating_add(hour.failed);
            if hour.hour > at.minus(Span::hours(24)) {
                self.runs_24h = self.runs_24h.saturating_add(runs);
                self.failures_24h = self.failures_24h.saturating_add(hour.failed);
            }
            if hour.hour > at.minus(Span::hours(7 * 24)) {
                self.runs_7d = self.runs_7d.saturating_add(runs);
                self.failures_7d = self.failures_7d.saturating_add(hour.failed);
            }
        }
        self.pull_requests_7d.extend(added.impacted.map(|(pr, _)| pr));
        for new in &added.failures {
            match self.failures.iter_mut().find(|it| it.fingerprint == new.fingerprint) {
                Some(known) => {
                    known.occurrence_count =
                        known.occurrence_count.saturating_add(new.occurrence_count);
                    known.last_occurrence = known.last_occurrence.max(new.last_occurrence);
                }
                None => self.failures.push(new.clone()),
            }
        }
        Self::rank(&mut self.failures);
        self
    }

    /// Sorts clusters, most frequent first, then most recent, and keeps at most [`MAX_CLUSTERS`].
    pub fn rank(failures: &mut Vec<FailureCluster>) {
        failures.sort_by(|one, other| {
            (other.occurrence_count, other.last_occurrence, &one.fingerprint).cmp(&(
                one.occurrence_count,
                one.last_occurrence,
                &other.fingerprint,
            ))
        });
        failures.truncate(MAX_CLUSTERS);
    }

    /// The share of failing runs within 24 hours, 0 to 1; 0 without runs.
    pub fn failure_rate_24h(&self) -> f64 {
        share(self.failures_24h, self.runs_24h)
    }

    /// The share of failing runs within 7 days, 0 to 1; 0 without runs.
    pub fn failure_rate_7d(&self) -> f64 {
        share(self.failures_7d, self.runs_7d)
    }
}

fn share(failures: u32, runs: u32) -> f64 {
    if runs == 0 { 0.0 } else { f64::from(failures) / f64::from(runs) }
}

/// Reads committed rows.
#[async_trait]
pub trait FlakyReads: Send + Sync {
    /// A page of a list, ordered by id, at most `limit`. Its cost grows with the page and the
    /// tests of the list, not with the results that there are.
    async fn list(
        &self,
        repo: RepoRef,
        list: TestList,
        seek: Seek,
        limit: u32,
    ) -> Result<Vec<TestRecord>, StoreError>;

    /// The number of tests in a list.
    async fn count(&self, repo: RepoRef, list: TestList) -> Result<u64, StoreError>;

    /// The ids of all tests of a list, in order.
    async fn ids(&self, repo: RepoRef, list: TestList) -> Result<Vec<TestId>, StoreError>;

    /// The counts of these tests as of a time. A test without runs is omitted.
    async fn numbers(
        &self,
        repo: RepoRef,
        ids: &[TestId],
        at: Timestamp,
    ) -> Result<BTreeMap<TestId, TestNumbers>, StoreError>;

    /// The pull requests in which these tests failed within 7 days before a time. A test without
    /// any is omitted.
    async fn pull_requests(
        &self,
        repo: RepoRef,
        ids: &[TestId],
        at: Timestamp,
    ) -> Result<BTreeMap<TestId, BTreeSet<PrNumber>>, StoreError>;

    /// Summaries of the codes on which these tests failed at `since` or later, by branch and origin, as
    /// [`Summary::of`](crate::flaky::Summary::of) computes them. A test without such a failure is omitted. The
    /// cost grows with these codes and not with the other runs.
    async fn failed_codes(
        &self,
        repo: RepoRef,
        ids: &[TestId],
        since: Timestamp,
    ) -> Result<BTreeMap<TestId, Vec<CodeSummary>>, StoreError>;

    /// A test's journal, the newest first, before a number if given, at most `limit`.
    async fn test_journal(
        &self,
        repo: RepoRef,
        test: TestId,
        before: Option<u64>,
        limit: u32,
    ) -> Result<Vec<JournalRecord>, StoreError>;

    /// The incidents that failures of a test belong to, the newest first, at most `limit`.
    async fn incidents_of(
        &self,
        repo: RepoRef,
        test: TestId,
        limit: u32,
    ) -> Result<Vec<Incident>, StoreError>;

    /// A test's runs, the newest first, at most `limit`.
    async fn recent_runs(
        &self,
        repo: RepoRef,
        test: TestId,
        limit: u32,
    ) -> Result<Vec<RunRecord>, StoreError>;

    /// Runs of a commit that failed at `from` or later, and before `until`; the newest first, at
    /// most `limit`. Its cost grows with the runs of the repository that failed within that time.
    async fn failed_runs(
        &self,
        repo: RepoRef,
        sha: &Sha,
        (from, until): (Timestamp, Timestamp),
        limit: u32,
    ) -> Result<Vec<RunRecord>, StoreError>;

    /// Changes of settings, the newest first, at most `limit`.
    async fn settings_history(
        &self,
        repo: RepoRef,
        limit: u32,
    ) -> Result<Vec<SettingsStep>, StoreError>;
}
