//! What an upload costs: rows that are read and written, with little and with much history.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use signalbox_domain::flaky::{
    Addition, CodeSummary, Incident, IncidentId, IngestOutcome, Presence, ReportedRun, RunRecord,
    SameCode, Summary, TestId, UploadId,
};
use signalbox_domain::ports::{
    CiRun, CommitError, FlakyCommit, FlakyDraft, FlakyRepo, FlakyStore, IntakePart, KnownIncidents,
    KnownTest, NewIntake, RepoRef, StoreError, Stores, TestRecord, TestStep, Version,
};
use signalbox_domain::time::{Span, Timestamp};

use super::flaky_scenario::Scenario;

/// Tests of each upload.
const TESTS: u32 = 20;
/// Tests of each upload that fail and pass on a retry; each test is one of them in every fifth.
const FLAKY: u32 = 4;

/// A store that counts the rows that go through it.
pub struct Counting {
    store: Arc<dyn FlakyStore>,
    read: AtomicUsize,
    written: Arc<AtomicUsize>,
}

impl Counting {
    /// Counts the rows of a store.
    pub fn new(store: Arc<dyn FlakyStore>) -> Self {
        Self { store, read: AtomicUsize::new(0), written: Arc::default() }
    }

    fn read(&self, rows: usize) {
        self.read.fetch_add(rows, Ordering::Relaxed);
    }

    /// The rows read and written since the last call.
    pub fn take(&self) -> (usize, usize) {
        (self.read.swap(0, Ordering::Relaxed), self.written.swap(0, Ordering::Relaxed))
    }
}

fn rows_of(addition: &Addition) -> usize {
    let Addition { summary, hours, failures, impacted } = addition;
    let counted = summary.buckets.len() + summary.codes.len() + hours.len() + failures.len();
    counted + usize::from(impacted.is_some())
}

#[async_trait]
impl FlakyStore for Counting {
    async fn repo(&self, repo: RepoRef) -> Result<FlakyRepo, StoreError> {
        self.read(1);
        self.store.repo(repo).await
    }

    async fn tests(&self, repo: RepoRef, ids: &[TestId]) -> Result<Vec<TestRecord>, StoreError> {
        let found = self.store.tests(repo, ids).await?;
        self.read(found.len());
        Ok(found)
    }

    async fn known_tests(
        &self,
        repo: RepoRef,
        ids: &[TestId],
    ) -> Result<Vec<KnownTest>, StoreError> {
        let found = self.store.known_tests(repo, ids).await?;
        self.read(found.len());
        Ok(found)
    }

    async fn watched(&self, repo: RepoRef) -> Result<Vec<TestRecord>, StoreError> {
        let found = self.store.watched(repo).await?;
        self.read(found.len());
        Ok(found)
    }

    async fn presences(
        &self,
        repo: RepoRef,
        places: &[String],
    ) -> Result<BTreeMap<TestId, Presence>, StoreError> {
        let found = self.store.presences(repo, places).await?;
        self.read(found.len());
        Ok(found)
    }

    async fn ids_by_alias(
        &self,
        repo: RepoRef,
        aliases: &[String],
    ) -> Result<Vec<(String, TestId)>, StoreError> {
        let found = self.store.ids_by_alias(repo, aliases).await?;
        self.read(found.len());
        Ok(found)
    }

    async fn aliases(&self, repo: RepoRef, tests: &[TestId]) -> Result<Vec<String>, StoreError> {
        let found = self.store.aliases(repo, tests).await?;
        self.read(found.len());
        Ok(found)
    }

    async fn summaries(
        &self,
        repo: RepoRef,
        ids: &[TestId],
        since: Timestamp,
    ) -> Result<BTreeMap<TestId, Summary>, StoreError> {
        let found = self.store.summaries(repo, ids, since).await?;
        self.read(found.values().map(|it| it.buckets.len() + it.codes.len()).sum());
        Ok(found)
    }

    async fn codes(
        &self,
        repo: RepoRef,
        ids: &[TestId],
        code: &SameCode,
    ) -> Result<BTreeMap<TestId, Vec<CodeSummary>>, StoreError> {
        let found = self.store.codes(repo, ids, code).await?;
        self.read(found.values().map(Vec::len).sum());
        Ok(found)
    }

    async fn incidents(
        &self,
        repo: RepoRef,
        since: Timestamp,
        limit: u32,
    ) -> Result<KnownIncidents, StoreError> {
        let found = self.store.incidents(repo, since, limit).await?;
        self.read(found.incidents.len() + 1);
        Ok(found)
    }

    async fn incident(
        &self,
        repo: RepoRef,
        id: IncidentId,
    ) -> Result<Option<Incident>, StoreError> {
        self.read(1);
        self.store.incident(repo, id).await
    }

    async fn incident_failures(
        &self,
        repo: RepoRef,
        id: IncidentId,
    ) -> Result<BTreeSet<(TestId, UploadId)>, StoreError> {
        let found = self.store.incident_failures(repo, id).await?;
        self.read(found.len());
        Ok(found)
    }

    async fn failing_runs(
        &self,
        repo: RepoRef,
        failures: &BTreeSet<(TestId, UploadId)>,
        from: Timestamp,
    ) -> Result<Vec<RunRecord>, StoreError> {
        let found = self.store.failing_runs(repo, failures, from).await?;
        self.read(found.len());
        Ok(found)
    }

    async fn ingest_outcome(
        &self,
        repo: RepoRef,
        id: UploadId,
    ) -> Result<Option<IngestOutcome>, StoreError> {
        self.store.ingest_outcome(repo, id).await
    }

    async fn draft(&self, new: &NewIntake<'_>) -> Result<Box<dyn FlakyDraft>, StoreError> {
        let draft = self.store.draft(new).await?;
        Ok(Box::new(CountingDraft { draft, written: self.written.clone() }))
    }

    async fn commit(&self, commit: &FlakyCommit<'_>) -> Result<Version, CommitError> {
        count(&self.written, commit.steps, commit.presences.len());
        self.store.commit(commit).await
    }

    async fn due(&self, at: Timestamp, limit: u32) -> Result<Vec<(RepoRef, TestId)>, StoreError> {
        self.store.due(at, limit).await
    }

    async fn postpone(
        &self,
        repo: RepoRef,
        tests: &[(TestId, Option<Timestamp>)],
    ) -> Result<(), StoreError> {
        self.written.fetch_add(tests.len(), Ordering::Relaxed);
        self.store.postpone(repo, tests).await
    }

    async fn link_ticket(
        &self,
        repo: RepoRef,
        test: TestId,
        ticket: &str,
    ) -> Result<bool, StoreError> {
        self.store.link_ticket(repo, test, ticket).await
    }

    async fn page_key(&self, new: [u8; 32]) -> Result<[u8; 32], StoreError> {
        self.store.page_key(new).await
    }

    async fn add_ci_run(&self, repo: RepoRef, run: &CiRun) -> Result<(), StoreError> {
        self.store.add_ci_run(repo, run).await
    }

    async fn prepare_days(&self, at: Timestamp) -> Result<(), StoreError> {
        self.store.prepare_days(at).await
    }

    async fn prune(&self, before: Timestamp, limit: u32) -> Result<u64, StoreError> {
        self.store.prune(before, limit).await
    }
}

struct CountingDraft {
    draft: Box<dyn FlakyDraft>,
    written: Arc<AtomicUsize>,
}

#[async_trait]
impl FlakyDraft for CountingDraft {
    async fn add(&mut self, part: &IntakePart<'_>) -> Result<(), StoreError> {
        let intake = part.intake;
        let counted: usize = intake.additions.values().map(rows_of).sum();
        let rows = intake.reported_tests.len() + intake.runs.len() + counted;
        count(&self.written, part.steps, rows + part.presences.len());
        self.draft.add(part).await
    }

    async fn commit(self: Box<Self>, commit: &FlakyCommit<'_>) -> Result<Version, CommitError> {
        count(&self.written, commit.steps, commit.presences.len());
        self.draft.commit(commit).await
    }
}

fn count(written: &AtomicUsize, steps: &[TestStep], others: usize) {
    let of_steps: usize = steps.iter().map(|step| 2 + step.events.len()).sum();
    written.fetch_add(of_steps + others, Ordering::Relaxed);
}

/// An upload of all tests on a commit of its own, some of which fail and pass on a retry.
fn runs(scenario: &Scenario<'_>, number: u32) -> Vec<ReportedRun> {
    let mut runs = Vec::new();
    for test in 0..TESTS {
        let name = format!("test {test}");
        let is_flaky = (test + number * FLAKY) % TESTS < FLAKY;
        if is_flaky {
            runs.push(scenario.run(&name, false));
        }
        let attempt = u32::from(is_flaky);
        runs.push(ReportedRun { attempt, ..scenario.run(&name, true) });
    }
    runs
}

/// Rows of five uploads, and of the looks of the clock between them.
async fn cost(scenario: &Scenario<'_>, counting: &Counting, from: u32) -> (usize, usize) {
    counting.take();
    for number in from..from + 5 {
        scenario.report(number, runs(scenario, number)).await;
        scenario.clock.advance(Span::minutes(37));
        scenario.service.measure().await.expect("measured");
    }
    counting.take()
}

fn is_flat(early: usize, late: usize) -> bool {
    late * 100 <= early * 120 && late * 120 >= early * 100
}

/// An upload costs what it contains, however much history its tests have.
pub async fn an_upload_costs_what_it_contains(stores: &Stores) {
    let counting = Arc::new(Counting::new(stores.flaky.tests.clone()));
    let mut stores = stores.clone();
    stores.flaky.tests = counting.clone();
    let scenario = Scenario::new(&stores, "acme").await;
    let mut number = 0;
    while number < 10 {
        scenario.report(number, runs(&scenario, number)).await;
        scenario.clock.advance(Span::minutes(37));
        number += 1;
    }
    let early = cost(&scenario, &counting, number).await;
    number += 5;
    while number < 300 {
        scenario.report(number, runs(&scenario, number)).await;
        scenario.clock.advance(Span::minutes(37));
        number += 1;
    }
    let late = cost(&scenario, &counting, number).await;
    assert!(is_flat(early.0, late.0), "rows read: {} early, {} late", early.0, late.0);
    assert!(is_flat(early.1, late.1), "rows written: {} early, {} late", early.1, late.1);
}
