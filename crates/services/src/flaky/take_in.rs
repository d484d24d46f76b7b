//! Results come in: kept, counted and judged in one commit.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use async_trait::async_trait;

use crate::ResultsSink;
use signalbox_domain::flaky::{
    Addition, IngestOutcome, Intake, ReportedRun, Settings, StableRun, Summary, TestCase,
    TestDirectory, TestId, Upload, WindowRules, Windows, horizon, intake,
};
use signalbox_domain::ports::{
    FlakyCommit, IncidentChanges, ProgressStep, RepoRef, StoreError, TestRecord,
};
use signalbox_domain::time::Timestamp;

use super::super::Error;
use super::incidents::{apply, by_test, without_excluded};
use super::judge::{Judged, is_watched};
use super::presence::Names;
use super::{ATTEMPTS, FlakyService, settings_of};

#[async_trait]
impl ResultsSink for FlakyService {
    async fn take_in(
        &self,
        upload: &Upload,
        runs: Vec<ReportedRun>,
    ) -> Result<IngestOutcome, Error> {
        let repo = RepoRef { org: upload.org, id: upload.repo };
        let stores = &self.context.stores;
        let Some(repository) = self.context.repositories.find(repo.org, repo.id).await? else {
            let words = format!("repository {} is not registered", repo.id);
            return Err(StoreError::Failed(words.into()).into());
        };
        let ids: BTreeSet<TestId> = runs.iter().map(|run| run.key.id()).collect();
        let ids: Vec<TestId> = ids.into_iter().collect();
        let turn = self.turn(repo);
        let _turn = turn.lock().await;
        for _ in 0..ATTEMPTS {
            // The version first: what is read after it may be newer, and then the commit conflicts.
            let known = stores.tests.repo(repo).await?;
            let at = known.progress.as_of(upload, self.context.clock.now());
            if let Some(before) = stores.tests.ingest_outcome(repo, upload.id).await? {
                return Ok(IngestOutcome { repeated: true, ..before });
            }
            let settings = settings_of(repo, &known);
            let mut records: BTreeMap<TestId, TestRecord> =
                by_id(stores.tests.tests(repo, &ids).await?);
            let mut directory = TestDirectory::default();
            for record in records.values() {
                // Stored tests have different ids, so they cannot collide.
                directory.learn(&record.test.key, &[]).ok();
            }
            let mut intake = intake(upload, &runs, &settings, directory);
            let changes = self.assess(&repository, &settings, &mut intake, &records, at).await?;
            let mut changes = changes.unwrap_or_default();
            let intake = Arc::new(intake);
            let run = StableRun::of(&intake);
            let mut names = match &run {
                Some(run) => self.names(repo, &settings, run, (&*intake, &mut records), at).await?,
                None => Names::default(),
            };
            let remarkable = records.values().filter(|record| record.is_remarkable());
            let remarkable: BTreeSet<TestId> = remarkable.map(|record| record.test.id).collect();
            let here = self.judge(repo, &settings, &intake, records, &mut changes, at).await?;
            let (here, mut windows) = here;
            for (id, inherited) in std::mem::take(&mut names.windows) {
                windows.entry(id).or_insert(inherited);
            }
            let mut judged = std::mem::take(&mut names.judged);
            judged.extend(here);
            if let Some(run) = &run {
                names.seen(run, &intake, &remarkable, &judged);
            }
            let (left, presences) = names.retired(&settings, &judged, at);
            judged.extend(left);
            let steps = self.steps(&repository, &settings, Some(&intake), judged, at).await?;
            let progress = known.progress.with(upload, intake.taken_in.runs, at);
            let progress = ProgressStep { progress, event: None };
            let commit = FlakyCommit {
                repo,
                expected: known.version,
                settings: None,
                intake: Some(&intake),
                steps: &steps,
                windows: &windows,
                presences: &presences,
                incidents: Some(&changes),
                progress: Some(&progress),
                at,
                audit: None,
            };
            if self.commit(&commit).await?.is_some() {
                return Ok(intake.taken_in);
            }
        }
        Err(Error::Busy)
    }
}

impl FlakyService {
    /// Counts the runs of an upload in the windows of its tests, and judges the tests about which it
    /// can say anything new. A test that passed, has not failed for as long as any monitor looks
    /// back, and is not watched, stays healthy.
    ///
    /// Besides the tests themselves, only the summaries of the judged tests on the tested code are
    /// read, and none of their history.
    async fn judge(
        &self,
        repo: RepoRef,
        settings: &Settings,
        intake: &Intake,
        mut records: BTreeMap<TestId, TestRecord>,
        changes: &mut IncidentChanges,
        at: Timestamp,
    ) -> Result<(Vec<Judged>, BTreeMap<TestId, Windows>), Error> {
        let horizon = horizon(at);
        let (mut others, mut here) = (IncidentChanges::default(), Vec::new());
        for recount in std::mem::take(&mut changes.recounts) {
            let counted = intake.additions.get(&recount.test);
            let is_here = counted.is_some_and(|it| !it.summary.buckets.is_empty());
            if is_here { here.push(recount) } else { others.recounts.push(recount) }
        }
        let (mut judged, mut windows) = self.recounted(repo, settings, &mut others, at).await?;
        let on_codes = self.codes_of(repo, &here).await?;
        let mut here = by_test(here);
        let worth = |id: &TestId| {
            if here.contains_key(id) {
                return true;
            }
            let failed =
                intake.reported_tests.get(id).is_some_and(|it| it.last_failure_at.is_some());
            failed
                || records.get(id).is_some_and(|record| {
                    record.last_failure_at.is_some_and(|last| last >= horizon)
                        || is_watched(&record.test)
                })
        };
        let counted = intake.additions.iter().filter(|(_, it)| !it.summary.buckets.is_empty());
        let counted: Vec<(TestId, &Addition)> = counted.map(|(id, it)| (*id, it)).collect();
        let ids: Vec<TestId> = counted.iter().map(|(id, _)| *id).filter(worth).collect();
        let tests = &self.context.stores.tests;
        let mut codes = tests.codes(repo, &ids, &intake.upload.code()).await?;
        let rules = WindowRules::of(&settings.monitors);
        let known = ids.iter().filter_map(|id| records.get(id));
        let mut rebuilt = self.rebuilt(repo, &rules, known, at).await?;
        let ids: BTreeSet<TestId> = ids.into_iter().collect();
        judged.reserve(ids.len());
        for (id, addition) in counted {
            let Some(reported) = intake.reported_tests.get(&id) else { continue };
            let mut record = records
                .remove(&id)
                .unwrap_or_else(|| new_record(repo, intake, reported.key.clone(), at));
            let mut after = rebuilt.remove(&id).unwrap_or(std::mem::take(&mut record.windows));
            let recounts = here.entry(id).or_default();
            if !recounts.is_empty() {
                let on_codes = on_codes.get(&id).cloned().unwrap_or_default();
                let last = record.last_failure_at;
                record.last_failure_at = apply(&mut after, &rules, recounts, &on_codes, last, at);
            }
            let mut known = codes.remove(&id).unwrap_or_default();
            without_excluded(&mut known, recounts);
            let mut on_code = Summary { buckets: Vec::new(), codes: known };
            on_code.add(&Summary { buckets: Vec::new(), codes: addition.summary.codes.clone() });
            after.count(&rules, &addition.summary, &on_code.codes, at);
            if ids.contains(&id) {
                judged.push(Judged::recounted(record, settings, &after, recounts, at));
            }
            windows.insert(id, after);
        }
        changes.recounts = others.recounts;
        changes.recounts.extend(here.into_values().flatten());
        Ok((judged, windows))
    }
}

/// A test that was never reported before.
fn new_record(
    repo: RepoRef,
    intake: &Intake,
    key: signalbox_domain::flaky::TestKey,
    at: Timestamp,
) -> TestRecord {
    TestRecord {
        test: TestCase::new(repo.org, repo.id, key, at),
        owners: Vec::new(),
        ticket: None,
        first_seen_at: intake.upload.received_at,
        stable_since: None,
        last_seen_at: intake.upload.seen_at(),
        last_failure_at: None,
        windows: Windows::default(),
    }
}

pub(super) fn by_id(records: Vec<TestRecord>) -> BTreeMap<TestId, TestRecord> {
    records.into_iter().map(|record| (record.test.id, record)).collect()
}
