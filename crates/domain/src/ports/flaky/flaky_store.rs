//! Flaky tests: settings, tests and summaries, committed as a value.
//!
//! A repository has one version. Every step of its tests is decided on what was read at a version
//! and committed on it, so that no two uploads are judged without knowing each other.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;

use crate::audit::AuditRecord;
use crate::flaky::{
    Actor, CodeSummary, FailureHistory, Incident, IncidentId, IngestOutcome, JournalRecord,
    Presence, Progress, Recount, RunRecord, SameCode, Settings, Summary, TestCase, TestId,
    UploadId, Windows,
};
use crate::ids::{OrgId, RepoId};
use crate::ports::{CommitError, EventRecord, StoreError, Version};
use crate::time::Timestamp;

use super::flaky_draft::{FlakyDraft, NewIntake};

/// A repository and its organization. Every access names both, so that a repository of another
/// organization appears empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RepoRef {
    /// The organization.
    pub org: OrgId,
    /// The repository's id.
    pub id: RepoId,
}

/// The state of a repository as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlakyRepo {
    /// The number of commits.
    pub version: Version,
    /// Incremented when tests or settings change, which invalidates caches of quarantined tests. An
    /// upload that changes no test does not change it.
    pub revision: i64,
    /// Its settings; `None` for the defaults.
    pub settings: Option<Settings>,
    /// How far it was judged.
    pub progress: Progress,
}

/// A test with its state and metadata.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestRecord {
    /// Its state.
    pub test: TestCase,
    /// Its code owners as last reported, in order.
    pub owners: Vec<String>,
    /// The id of the ticket that is linked to it.
    pub ticket: Option<String>,
    /// When it was first reported.
    pub first_seen_at: Timestamp,
    /// The first commit of a stable branch that contained it; `None` while only other branches have.
    pub stable_since: Option<Timestamp>,
    /// The hour in which it was last reported, also as skipped: [`Upload::seen_at`](crate::flaky::Upload::seen_at).
    pub last_seen_at: Timestamp,
    /// The last failing run that counts.
    pub last_failure_at: Option<Timestamp>,
    /// What monitors must know of its runs.
    pub windows: Windows,
}

impl TestRecord {
    /// The last time at which it is known to have been reported.
    pub fn last_known_at(&self) -> Timestamp {
        let seen = self.last_seen_at.max(self.first_seen_at);
        self.last_failure_at.map_or(seen, |failed| failed.max(seen))
    }

    /// Whether its absence would show: [`TestCase::is_remarkable`], or a ticket is linked to it.
    pub fn is_remarkable(&self) -> bool {
        self.ticket.is_some() || self.test.is_remarkable()
    }
}

/// A known test without what monitors know of its runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownTest {
    /// Its state.
    pub test: TestCase,
    /// As [`TestRecord::stable_since`].
    pub stable_since: Option<Timestamp>,
    /// As [`TestRecord::last_failure_at`].
    pub last_failure_at: Option<Timestamp>,
}

/// A step of one test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestStep {
    /// The state after.
    pub test: TestCase,
    /// The journal's record.
    pub journal: JournalRecord,
    /// The public events.
    pub events: Vec<EventRecord>,
    /// When the test must be evaluated again; `None` until its next report.
    pub due_at: Option<Timestamp>,
    /// A ticket that is linked to it from now on; `None` leaves it unchanged.
    pub ticket: Option<String>,
}

/// A change of settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingsStep {
    /// The settings after.
    pub settings: Settings,
    /// Who changed them.
    pub by: Actor,
    /// When.
    pub at: Timestamp,
}

/// How far a repository was judged after a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgressStep {
    /// The progress after.
    pub progress: Progress,
    /// The event, if an import is finished.
    pub event: Option<EventRecord>,
}

/// An incident that is new or changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IncidentStep {
    /// The incident after.
    pub incident: Incident,
    /// Failures that belong to it from now on, beside those of before.
    pub failures: BTreeSet<(TestId, UploadId)>,
    /// The event, if its state is new.
    pub event: Option<EventRecord>,
}

/// What a step changes of incidents.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct IncidentChanges {
    /// The recent failures; `None` leaves them unchanged.
    pub history: Option<FailureHistory>,
    /// Incidents.
    pub steps: Vec<IncidentStep>,
    /// Failures that count again or no longer count. They are recounted before an upload's results
    /// are added.
    pub recounts: Vec<Recount>,
}

/// The incidents of a repository and its usual failures.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KnownIncidents {
    /// The recent failures.
    pub history: FailureHistory,
    /// Incidents, the newest first.
    pub incidents: Vec<Incident>,
}

/// Everything that one step of a repository writes.
#[derive(Debug)]
pub struct FlakyCommit<'a> {
    /// The repository.
    pub repo: RepoRef,
    /// The version that the step was decided on.
    pub expected: Version,
    /// New settings.
    pub settings: Option<&'a SettingsStep>,
    /// The tests that changed. They exist, or are in the [`FlakyDraft`], whose steps go before these.
    /// Several steps of one test are in order; the state of the last one stays.
    pub steps: &'a [TestStep],
    /// The windows of tests after the step. They exist; those of others stay as they are.
    pub windows: &'a BTreeMap<TestId, Windows>,
    /// What stable branches show of tests; `None` forgets it. Those of other tests stay as they are.
    pub presences: &'a BTreeMap<TestId, Option<Presence>>,
    /// What changes of incidents.
    pub incidents: Option<&'a IncidentChanges>,
    /// How far the repository was judged; `None` leaves it unchanged.
    pub progress: Option<&'a ProgressStep>,
    /// The time of the step; of an imported run, the time as of which it is judged.
    pub at: Timestamp,
    /// The record for the audit log, when the step is an administrative change.
    pub audit: Option<&'a AuditRecord>,
}

/// The data of a CI run, from `create-ci-run`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CiRun {
    /// Its id.
    pub id: uuid::Uuid,
    /// Everything that was sent, as JSON.
    pub document: String,
    /// When it came.
    pub at: Timestamp,
}

/// Keeps flaky tests.
#[async_trait]
pub trait FlakyStore: Send + Sync {
    /// The repository as a whole; version 0 without settings when nothing was committed yet.
    async fn repo(&self, repo: RepoRef) -> Result<FlakyRepo, StoreError>;

    /// The tests with these ids, ordered by id; unknown ones are omitted.
    async fn tests(&self, repo: RepoRef, ids: &[TestId]) -> Result<Vec<TestRecord>, StoreError>;

    /// The same as [`tests`](Self::tests) with less of each, for which less is read.
    async fn known_tests(
        &self,
        repo: RepoRef,
        ids: &[TestId],
    ) -> Result<Vec<KnownTest>, StoreError>;

    /// All tests for which a monitor is active, by id.
    async fn watched(&self, repo: RepoRef) -> Result<Vec<TestRecord>, StoreError>;

    /// What stable branches show of the tests of these places; only of tests for which it is kept.
    async fn presences(
        &self,
        repo: RepoRef,
        places: &[String],
    ) -> Result<BTreeMap<TestId, Presence>, StoreError>;

    /// The tests that have these ids of clients as aliases.
    async fn ids_by_alias(
        &self,
        repo: RepoRef,
        aliases: &[String],
    ) -> Result<Vec<(String, TestId)>, StoreError>;

    /// The aliases of these tests: ids of clients other than their own.
    async fn aliases(&self, repo: RepoRef, tests: &[TestId]) -> Result<Vec<String>, StoreError>;

    /// Summaries of the counted runs of these tests, as [`Summary::of`] computes them: buckets that
    /// began at or after `since`, and codes with a first success or failure at or after it. The cost
    /// grows with history: use it for previews and to rebuild windows.
    async fn summaries(
        &self,
        repo: RepoRef,
        ids: &[TestId],
        since: Timestamp,
    ) -> Result<BTreeMap<TestId, Summary>, StoreError>;

    /// Summaries of the runs of these tests on one code, by branch, as [`Summary::of`] computes them.
    /// The cost does not grow with the other codes.
    async fn codes(
        &self,
        repo: RepoRef,
        ids: &[TestId],
        code: &SameCode,
    ) -> Result<BTreeMap<TestId, Vec<CodeSummary>>, StoreError>;

    /// The incidents with a failure at `since` or later, at most `limit`, and the recent failures.
    async fn incidents(
        &self,
        repo: RepoRef,
        since: Timestamp,
        limit: u32,
    ) -> Result<KnownIncidents, StoreError>;

    /// The incident with that id.
    async fn incident(&self, repo: RepoRef, id: IncidentId)
    -> Result<Option<Incident>, StoreError>;

    /// The failures of an incident.
    async fn incident_failures(
        &self,
        repo: RepoRef,
        id: IncidentId,
    ) -> Result<BTreeSet<(TestId, UploadId)>, StoreError>;

    /// Failing runs of these tests in these uploads that started at `from` or later. Its cost grows
    /// with the runs of the tests since then that failed.
    async fn failing_runs(
        &self,
        repo: RepoRef,
        failures: &BTreeSet<(TestId, UploadId)>,
        from: Timestamp,
    ) -> Result<Vec<RunRecord>, StoreError>;

    /// The outcome of a processed upload.
    async fn ingest_outcome(
        &self,
        repo: RepoRef,
        id: UploadId,
    ) -> Result<Option<IngestOutcome>, StoreError>;

    /// Begins a step with the results of an upload.
    async fn draft(&self, new: &NewIntake<'_>) -> Result<Box<dyn FlakyDraft>, StoreError>;

    /// Writes a step whole or not at all, if the version is still the expected one, which then
    /// grows by one. Afterwards every list, summary and count shows it.
    async fn commit(&self, commit: &FlakyCommit<'_>) -> Result<Version, CommitError>;

    /// Tests that must be evaluated again at `at` or earlier, most overdue first.
    async fn due(&self, at: Timestamp, limit: u32) -> Result<Vec<(RepoRef, TestId)>, StoreError>;

    /// Sets when tests must be evaluated again, unless they have changed.
    async fn postpone(
        &self,
        repo: RepoRef,
        tests: &[(TestId, Option<Timestamp>)],
    ) -> Result<(), StoreError>;

    /// Links a ticket to a test, replacing the previous one; `false` if the test does not exist.
    async fn link_ticket(
        &self,
        repo: RepoRef,
        test: TestId,
        ticket: &str,
    ) -> Result<bool, StoreError>;

    /// The key that page tokens are signed with, the same on every server: `new` when none is kept
    /// yet, which is then kept, else the one that is.
    async fn page_key(&self, new: [u8; 32]) -> Result<[u8; 32], StoreError>;

    /// Keeps a CI run.
    async fn add_ci_run(&self, repo: RepoRef, run: &CiRun) -> Result<(), StoreError>;

    /// Makes room for results of the day of `at` and the three after it. Does nothing where none
    /// is needed.
    async fn prepare_days(&self, at: Timestamp) -> Result<(), StoreError>;

    /// Deletes what is older than `before`: results, summaries, uploads, and tests that were not
    /// reported since, with their journals. At most about `limit` rows of each kind in one call, so
    /// that other writers do not wait long. Returns the number of deleted rows; 0 when none is
    /// left.
    async fn prune(&self, before: Timestamp, limit: u32) -> Result<u64, StoreError>;
}
