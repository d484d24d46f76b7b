//! Flaky tests: settings, tests and summaries, committed as a value.
//!
//! A repository has one version. Every step of its tests is decided on what was read at a version
//! and committed on it, so that no two uploads are judged without knowing each other.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use async_trait::async_trait;

use crate::audit::AuditRecord;
use crate::flaky::{
    Actor, CodeSummary, FailureHistory, Incident, IncidentId, IngestOutcome, Intake, JournalRecord,
    Recount, RunRecord, SameCode, Settings, Summary, TestCase, TestId, UploadId, Windows,
};
use crate::ids::{OrgId, RepoId};
use crate::ports::{CommitError, EventRecord, StoreError, Version};
use crate::time::Timestamp;

/// A repository and whose it is. Every access names both: that of another organization is empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RepoRef {
    /// Whose.
    pub org: OrgId,
    /// Which.
    pub id: RepoId,
}

/// What is kept of a repository as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlakyRepo {
    /// How often it was committed; 0 before the first commit.
    pub version: Version,
    /// Grows when tests or settings change, so that what is known of quarantine is out of date. An
    /// upload that changes no test leaves it.
    pub marks: i64,
    /// Its settings; `None` while nobody has changed them.
    pub settings: Option<Settings>,
}

/// A test with what is known of it beside its state.
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
    /// When it was last reported, also as skipped.
    pub last_seen_at: Timestamp,
    /// The last failing run that counts.
    pub last_failure_at: Option<Timestamp>,
    /// What monitors must know of its runs.
    pub windows: Windows,
}

/// A step of one test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestStep {
    /// The state after.
    pub test: TestCase,
    /// The journal's record.
    pub journal: JournalRecord,
    /// What is told.
    pub events: Vec<EventRecord>,
    /// When the test is to be looked at again; `None`: when something is reported.
    pub due_at: Option<Timestamp>,
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
    /// What is known of failures lately; `None`: as before.
    pub history: Option<FailureHistory>,
    /// Incidents.
    pub steps: Vec<IncidentStep>,
    /// Failures that count after all, or no longer. They are recounted before an upload's results
    /// are added.
    pub recounts: Vec<Recount>,
}

/// What is known of incidents of a repository.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KnownIncidents {
    /// What is known of failures lately.
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
    /// An upload's results.
    pub intake: Option<&'a Arc<Intake>>,
    /// The tests that changed. They exist, or are seen in the intake.
    pub steps: &'a [TestStep],
    /// The windows of tests after the step. They exist, or are seen in the intake; those of others
    /// stay as they are.
    pub windows: &'a BTreeMap<TestId, Windows>,
    /// What changes of incidents.
    pub incidents: Option<&'a IncidentChanges>,
    /// The time of the step.
    pub at: Timestamp,
    /// The record for the audit log, when the step is an administrative change.
    pub audit: Option<&'a AuditRecord>,
}

/// What a CI run says of itself, for `create-ci-run`.
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

    /// The tests with those ids, by id; unknown ones are left out.
    async fn tests(&self, repo: RepoRef, ids: &[TestId]) -> Result<Vec<TestRecord>, StoreError>;

    /// All tests for which a monitor is active, by id.
    async fn watched(&self, repo: RepoRef) -> Result<Vec<TestRecord>, StoreError>;

    /// Which tests are known under these ids of clients, beside their own.
    async fn holders(
        &self,
        repo: RepoRef,
        aliases: &[String],
    ) -> Result<Vec<(String, TestId)>, StoreError>;

    /// The ids of clients, beside their own, under which these tests are known.
    async fn aliases(&self, repo: RepoRef, tests: &[TestId]) -> Result<Vec<String>, StoreError>;

    /// What is known of the runs of these tests that count, as [`Summary::of`] makes it: buckets
    /// that began at or after `since`, and codes with a first success or failure at or after it. Its
    /// cost grows with history: it is for previews and for windows that must be rebuilt.
    async fn summaries(
        &self,
        repo: RepoRef,
        ids: &[TestId],
        since: Timestamp,
    ) -> Result<BTreeMap<TestId, Summary>, StoreError>;

    /// What is known of the runs of these tests on one code, as [`Summary::of`] makes it, by branch.
    /// Its cost does not grow with the other codes.
    async fn codes(
        &self,
        repo: RepoRef,
        ids: &[TestId],
        code: &SameCode,
    ) -> Result<BTreeMap<TestId, Vec<CodeSummary>>, StoreError>;

    /// What is known of incidents: those with a failure at `since` or later, at most `limit`.
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

    /// What became of an upload that was taken in.
    async fn taken_in(
        &self,
        repo: RepoRef,
        id: UploadId,
    ) -> Result<Option<IngestOutcome>, StoreError>;

    /// Writes a step whole or not at all, if the version is still the expected one, which then
    /// grows by one. Afterwards every list, summary and count shows it.
    async fn commit(&self, commit: &FlakyCommit<'_>) -> Result<Version, CommitError>;

    /// Tests that are to be looked at again at `at` or before, the most overdue first.
    async fn due(&self, at: Timestamp, limit: u32) -> Result<Vec<(RepoRef, TestId)>, StoreError>;

    /// Says when tests are to be looked at again, if nothing else has changed.
    async fn postpone(
        &self,
        repo: RepoRef,
        tests: &[(TestId, Option<Timestamp>)],
    ) -> Result<(), StoreError>;

    /// Links a ticket to a test, in place of the one before. `false`: there is no such test.
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
    /// reported since, with their journals. At most about `limit` rows of each kind at once, so
    /// that nobody waits long. Returns how many rows went; 0 when nothing is left.
    async fn prune(&self, before: Timestamp, limit: u32) -> Result<u64, StoreError>;
}
