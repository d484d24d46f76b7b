//! Results come in: kept, counted and judged in one commit.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;

use crate::ResultsSink;
use signalbox_domain::flaky::{
    Addition, IngestOutcome, Intake, KnownKeys, Outline, Recount, ReportedRun, Settings, Summary,
    TestCase, TestId, Upload, UploadRuns, WindowRules, Windows, horizon, intake,
};
use signalbox_domain::ports::{
    FlakyCommit, FlakyRepo, IncidentChanges, IntakePart, NewIntake, ProgressStep, RepoRef,
    Repository, StoreError, TestRecord,
};
use signalbox_domain::time::Timestamp;

use super::super::Error;
use super::incidents::{apply, by_test, without_excluded};
use super::judge::{Judged, is_watched};
use super::presence::{Names, Reported};
use super::{ATTEMPTS, FlakyService, HasSteps, settings_of};

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
        let runs = UploadRuns::new(runs);
        let turn = self.turn(repo);
        let _turn = turn.lock().await;
        for _ in 0..ATTEMPTS {
            // The version first: what is read after it may be newer, and then the commit conflicts.
            let known = stores.tests.repo(repo).await?;
            if let Some(before) = stores.tests.ingest_outcome(repo, upload.id).await? {
                return Ok(IngestOutcome { repeated: true, ..before });
            }
            if let Some(taken_in) = self.attempt(&repository, &known, upload, &runs).await? {
                return Ok(taken_in);
            }
        }
        Err(Error::Busy)
    }
}

/// The tests of an upload before it.
#[derive(Default)]
struct Before {
    /// The last counted failure of each.
    last_failures: BTreeMap<TestId, Option<Timestamp>>,
    /// Of an upload of one part, the records.
    records: Option<BTreeMap<TestId, TestRecord>>,
    reported: Reported,
}

impl FlakyService {
    /// Judges and commits an upload; `None` when another commit came first.
    async fn attempt(
        &self,
        repository: &Repository,
        known: &FlakyRepo,
        upload: &Upload,
        runs: &UploadRuns,
    ) -> Result<Option<IngestOutcome>, Error> {
        let repo = RepoRef { org: repository.org, id: repository.id };
        let at = known.progress.as_of(upload, self.context.clock.now());
        let settings = settings_of(repo, known);
        let (outline, mut before) = self.outlined(repo, upload, runs, &settings).await?;
        let taken_in = outline.outcome();
        let last = &before.last_failures;
        let assessed = self.assess(repository, &settings, &outline, last, at).await?;
        let (mut changes, excluded) = assessed.unwrap_or_default();
        let run = outline.stable_run();
        let mut names = match &run {
            Some(run) => {
                let reported = (&outline, std::mem::take(&mut before.reported));
                self.names(repo, &settings, run, reported, runs, at).await?
            }
            None => Names::default(),
        };
        let (expected, stores) = (known.version, &self.context.stores);
        let new = NewIntake { repo, expected, upload, taken_in, at };
        let mut draft = stores.tests.draft(&new).await?;
        let mut recounts = by_test(std::mem::take(&mut changes.recounts));
        let mut has_steps = HasSteps::default();
        for part in runs.parts(self.part) {
            let mut records = match before.records.take() {
                Some(records) => records,
                None => by_id(stores.tests.tests(repo, &part.ids()).await?),
            };
            let intake = intake(&outline, part, &excluded, &keys(&records));
            let mut judged = names.part(&intake, &mut records);
            let remarkable = records.values().filter(|record| record.is_remarkable());
            let remarkable: BTreeSet<TestId> = remarkable.map(|record| record.test.id).collect();
            let here = self.judge(repo, &settings, &intake, records, &mut recounts, at).await?;
            let Counted { judged: here, mut windows, recounts: done } = here;
            changes.recounts.extend(done);
            names.windows_of(&intake, &mut windows);
            judged.extend(here);
            let presences = match &run {
                Some(run) => names.seen(run, &intake, &remarkable, &judged),
                None => BTreeMap::new(),
            };
            let steps =
                self.steps(repository, &settings, Some(upload), Some(&intake), judged, at).await?;
            has_steps.note(&steps);
            let part = IntakePart {
                intake: &intake,
                steps: &steps,
                windows: &windows,
                presences: &presences,
            };
            draft.add(&part).await?;
        }
        let mut others = IncidentChanges::default();
        others.recounts.extend(recounts.into_values().flatten());
        let (mut judged, windows) = self.recounted(repo, &settings, &mut others, at).await?;
        changes.recounts.append(&mut others.recounts);
        let (left, presences) = names.retired(&settings, &judged, at);
        judged.extend(left);
        let steps = self.steps(repository, &settings, Some(upload), None, judged, at).await?;
        let progress = known.progress.with(upload, taken_in.runs, at);
        let progress = ProgressStep { progress, event: None };
        let commit = FlakyCommit {
            repo,
            expected,
            settings: None,
            steps: &steps,
            windows: &windows,
            presences: &presences,
            incidents: Some(&changes),
            progress: Some(&progress),
            at,
            audit: None,
        };
        has_steps.note(&steps);
        let done = draft.commit(&commit).await;
        Ok(self.committed(&commit, has_steps, done)?.map(|()| taken_in))
    }

    /// What concerns all tests of an upload together, and these tests before it.
    async fn outlined(
        &self,
        repo: RepoRef,
        upload: &Upload,
        runs: &UploadRuns,
        settings: &Settings,
    ) -> Result<(Outline, Before), Error> {
        let mut outline = Outline::new(upload, settings);
        let mut before = Before::default();
        let tests = &self.context.stores.tests;
        let (mut since, mut retired) = (BTreeSet::new(), Vec::new());
        let mut note = |test: &TestCase, stable_since: Option<Timestamp>, last_failure_at| {
            before.last_failures.insert(test.id, last_failure_at);
            if test.retired.is_some() {
                retired.push(test.id);
            } else {
                since.extend(stable_since);
            }
        };
        if runs.parts(self.part).nth(1).is_none() {
            let mut records = BTreeMap::new();
            if let Some(part) = runs.parts(self.part).next() {
                records = by_id(tests.tests(repo, &part.ids()).await?);
                outline.add(part, &keys(&records));
            }
            for record in records.values() {
                note(&record.test, record.stable_since, record.last_failure_at);
            }
            before.records = Some(records);
        } else {
            for part in runs.parts(self.part) {
                let known = tests.known_tests(repo, &part.ids()).await?;
                outline.add(part, &known.iter().map(|it| (it.test.id, &it.test.key)).collect());
                for it in &known {
                    note(&it.test, it.stable_since, it.last_failure_at);
                }
            }
        }
        let retired =
            if retired.is_empty() { Vec::new() } else { tests.tests(repo, &retired).await? };
        before.reported = Reported::new(since, retired);
        Ok((outline, before))
    }

    /// Counts a part of an upload in the windows of its tests, and judges the tests about which it
    /// can say anything new. A test that passed, has not failed for as long as any monitor looks
    /// back, and is not watched, stays healthy. The recounts of these tests are removed
    /// from `recounts`.
    ///
    /// Besides the tests themselves, only the summaries of the judged tests on the tested code are
    /// read, and none of their history.
    async fn judge(
        &self,
        repo: RepoRef,
        settings: &Settings,
        intake: &Intake,
        mut records: BTreeMap<TestId, TestRecord>,
        recounts: &mut BTreeMap<TestId, Vec<Recount>>,
        at: Timestamp,
    ) -> Result<Counted, Error> {
        let horizon = horizon(at);
        let counted = intake.additions.iter().filter(|(_, it)| !it.summary.buckets.is_empty());
        let counted: Vec<(TestId, &Addition)> = counted.map(|(id, it)| (*id, it)).collect();
        let mut here = BTreeMap::new();
        for (id, _) in &counted {
            here.extend(recounts.remove_entry(id));
        }
        let all: Vec<Recount> = here.values().flatten().cloned().collect();
        let on_codes = self.codes_of(repo, &all).await?;
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
        let ids: Vec<TestId> = counted.iter().map(|(id, _)| *id).filter(worth).collect();
        let tests = &self.context.stores.tests;
        let mut codes = tests.codes(repo, &ids, &intake.upload.code()).await?;
        let rules = WindowRules::of(&settings.monitors);
        let known = ids.iter().filter_map(|id| records.get(id));
        let mut rebuilt = self.rebuilt(repo, &rules, known, at).await?;
        let ids: BTreeSet<TestId> = ids.into_iter().collect();
        let (mut judged, mut windows) = (Vec::with_capacity(ids.len()), BTreeMap::new());
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
                judged.push(Judged::recounted(record, (settings, &rules), &after, recounts, at));
            }
            windows.insert(id, after);
        }
        Ok(Counted { judged, windows, recounts: here.into_values().flatten().collect() })
    }
}

/// What follows from a part of an upload.
struct Counted {
    judged: Vec<Judged>,
    windows: BTreeMap<TestId, Windows>,
    /// The recounts of its tests, with what they change.
    recounts: Vec<Recount>,
}

/// The keys of tests.
fn keys(records: &BTreeMap<TestId, TestRecord>) -> KnownKeys<'_> {
    records.iter().map(|(id, record)| (*id, &record.test.key)).collect()
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
