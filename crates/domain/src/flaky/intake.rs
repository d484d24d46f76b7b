//! What an upload adds to what is known: the runs in every form in which they are kept.

use std::collections::{BTreeMap, BTreeSet};

use crate::ids::PrNumber;
use crate::time::{Span, Timestamp};

use super::{
    Admission, BranchClass, Failing, Failure, FailureCluster, FailureKey, Fingerprint,
    IngestOutcome, Origin, Ran, ReportedRun, Run, RunOutcome, SameCode, Settings, Summary,
    TestDirectory, TestId, TestKey, Upload, UploadCounts, UploadId, UploadLook, admit,
    cluster_failures, failure_keys, incidents,
};

/// The most bytes of an id that clients send for a test; under a longer one it is not found.
const MAX_ALIAS_BYTES: usize = 1_000;
/// The most bytes of a branch's name that tell it apart.
const MAX_BRANCH_BYTES: usize = 255;

/// A test that an upload reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportedTest {
    /// Its id.
    pub id: TestId,
    /// Its key.
    pub key: TestKey,
    /// Its code owners; empty when the upload names none.
    pub owners: Vec<String>,
    /// Ids that clients may send for it, beside its own.
    pub aliases: BTreeSet<String>,
    /// The last run that failed and counts.
    pub last_failure_at: Option<Timestamp>,
    /// What its failures may have in common with those of other tests.
    pub keys: Vec<FailureKey>,
}

/// One attempt of one test, as it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct RunRecord {
    /// The test.
    pub test: TestId,
    /// The upload.
    pub upload: UploadId,
    /// When it ran.
    pub at: Timestamp,
    /// Its outcome.
    pub outcome: RunOutcome,
    /// Which attempt it was within the upload.
    pub attempt: u32,
    /// Whether it feeds monitors and rates.
    pub counts: bool,
    /// The branch; empty when unknown.
    pub branch: String,
    /// The branch's class.
    pub class: BranchClass,
    /// The commit.
    pub sha: Option<String>,
    /// The pull request.
    pub pr: Option<PrNumber>,
    /// The CI job's page.
    pub job_url: Option<String>,
    /// How long it took.
    pub took: Option<Span>,
    /// Why it failed, as reported.
    pub message: Option<String>,
    /// Whether the uploader excused its failure because it was quarantined.
    pub quarantined: bool,
    /// Of a failing run: the job and the base that it is compared by.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub origin: Option<Origin>,
}

impl RunRecord {
    /// A first attempt in an upload that does not count, with nothing more to say of it.
    pub fn new(upload: &Upload, test: TestId, at: Timestamp, outcome: RunOutcome) -> Self {
        Self {
            test,
            upload: upload.id,
            at,
            outcome,
            attempt: 0,
            counts: false,
            branch: branch_of(upload).to_owned(),
            class: upload.class,
            sha: upload.sha.as_ref().map(|sha| sha.as_str().to_owned()),
            pr: upload.pr,
            job_url: upload.job_url.clone(),
            took: None,
            message: None,
            quarantined: false,
            origin: None,
        }
    }
}

/// The runs of a test within one hour.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HourCount {
    /// The hour's start.
    pub hour: Timestamp,
    /// Runs that passed and count.
    pub passed: u32,
    /// Runs that failed and count.
    pub failed: u32,
    /// The first run that failed, whether it counts or not.
    pub first_failure_at: Option<Timestamp>,
    /// The last run that failed, whether it counts or not.
    pub last_failure_at: Option<Timestamp>,
}

/// What is added to one test.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Addition {
    /// Runs that count.
    pub summary: Summary,
    /// Runs by hour, at most one per hour.
    pub hours: Vec<HourCount>,
    /// Failures that count, put together.
    pub failures: Vec<FailureCluster>,
    /// When it last failed in the upload's pull request.
    pub impacted: Option<(PrNumber, Timestamp)>,
}

impl Addition {
    /// Whether a run failed that counts.
    pub fn has_failed(&self) -> bool {
        self.summary.buckets.iter().any(|bucket| bucket.failed > 0)
    }
}

/// An upload's results, ready to be committed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Intake {
    /// The upload.
    pub upload: Upload,
    /// Its outcome.
    pub taken_in: IngestOutcome,
    /// The tests that it reports, by id.
    pub reported_tests: BTreeMap<TestId, ReportedTest>,
    /// All runs.
    pub runs: Vec<RunRecord>,
    /// What each test gets; a test that was only skipped gets nothing.
    pub additions: BTreeMap<TestId, Addition>,
}

/// Counts an upload. Tests whose id belongs to another test of `directory` are skipped.
pub fn intake(
    upload: &Upload,
    reported: &[ReportedRun],
    settings: &Settings,
    mut directory: TestDirectory,
) -> Intake {
    let mut reported_tests: BTreeMap<TestId, ReportedTest> = BTreeMap::new();
    let mut taken: Vec<(TestId, &ReportedRun)> = Vec::with_capacity(reported.len());
    for run in reported {
        let other_files: Vec<&str> = run.other_files.iter().map(String::as_str).collect();
        let Ok(id) = directory.learn(&run.key, &other_files) else { continue };
        let reported = reported_tests.entry(id).or_insert_with(|| ReportedTest {
            id,
            key: directory.key(id).unwrap_or(&run.key).clone(),
            owners: Vec::new(),
            aliases: BTreeSet::new(),
            last_failure_at: None,
            keys: Vec::new(),
        });
        let own = id.to_string();
        let sent = run.key.sent_ids(&other_files).into_iter();
        reported.aliases.extend(sent.filter(|it| *it != own && it.len() <= MAX_ALIAS_BYTES));
        if !run.owners.is_empty() {
            reported.owners.clone_from(&run.owners);
        }
        if let Some(failure) = run.failure.as_ref().filter(|_| run.outcome == RunOutcome::Failed) {
            for key in failure_keys(failure) {
                if !reported.keys.contains(&key) {
                    reported.keys.push(key);
                }
            }
        }
        taken.push((id, run));
    }
    let prints: Vec<Option<Fingerprint>> = taken.iter().map(|(_, run)| print_of(run)).collect();
    let counts = counts_of(upload, &taken);
    let admission = admit(settings.guard, settings.count_public_uploads, counts);
    let pairs: BTreeSet<(TestId, &Fingerprint)> = taken
        .iter()
        .zip(&prints)
        .filter_map(|((id, _), print)| Some((*id, print.as_ref()?)))
        .collect();
    let incidents = incidents(settings.guard, pairs.into_iter().map(|(_, print)| print));
    let mut runs = Vec::with_capacity(taken.len());
    let mut by_test: BTreeMap<TestId, Vec<usize>> = BTreeMap::new();
    for ((id, run), print) in taken.iter().zip(&prints) {
        let incident = print.as_ref().is_some_and(|print| incidents.contains(print));
        let ran = run.outcome != RunOutcome::Skipped;
        let counts = admission == Admission::Counts && ran && !incident;
        if ran {
            by_test.entry(*id).or_default().push(runs.len());
        }
        runs.push(record(upload, *id, run, counts));
    }
    let mut additions = BTreeMap::new();
    for (id, places) in by_test {
        let of_test: Vec<&RunRecord> = places.iter().filter_map(|at| runs.get(*at)).collect();
        let addition = addition(upload, &of_test);
        if let Some(reported) = reported_tests.get_mut(&id) {
            let failures = addition.summary.buckets.iter().filter_map(|it| it.last_failure_at);
            reported.last_failure_at = failures.max();
        }
        additions.insert(id, addition);
    }
    let taken_in = IngestOutcome {
        tests: counts.tests,
        failed: counts.failed,
        runs: small(runs.len()),
        admission,
        repeated: false,
    };
    Intake { upload: upload.clone(), taken_in, reported_tests, runs, additions }
}

impl Intake {
    /// The parts of the upload that concern incidents. `known` has the last counted failure of each
    /// test that was reported before.
    pub fn look(&self, known: &BTreeMap<TestId, Option<Timestamp>>) -> UploadLook {
        let upload = &self.upload;
        let mut last: BTreeMap<TestId, (u32, bool)> = BTreeMap::new();
        let mut failed: BTreeSet<TestId> = BTreeSet::new();
        for run in self.runs.iter().filter(|run| run.outcome != RunOutcome::Skipped) {
            let passed = run.outcome == RunOutcome::Passed;
            let entry = last.entry(run.test).or_insert((run.attempt, passed));
            if run.attempt >= entry.0 {
                *entry = (run.attempt, passed);
            }
            if !passed {
                failed.insert(run.test);
            }
        }
        let ran = last
            .into_iter()
            .map(|(test, (_, passed))| (test, Ran { passed, known: known.contains_key(&test) }));
        let week_ago = upload.received_at.minus(Span::days(7));
        let failing = failed.into_iter().map(|test| {
            let before = known.get(&test);
            Failing {
                test,
                rarely: before.is_some_and(|last| last.is_none_or(|last| last < week_ago)),
                never_failed: before.is_some_and(Option::is_none),
                keys: self.reported_tests.get(&test).map_or_else(Vec::new, |it| it.keys.clone()),
            }
        });
        UploadLook {
            org: upload.org,
            repo: upload.repo,
            upload: upload.id,
            at: upload.received_at,
            code: upload.code(),
            branch: branch_of(upload).to_owned(),
            job: upload.origin.job().or_else(|| upload.job_name.clone()),
            ran: ran.collect(),
            failing: failing.collect(),
        }
    }

    /// Counts no failure of these tests.
    pub fn exclude(&mut self, tests: &BTreeSet<TestId>) {
        if tests.is_empty() {
            return;
        }
        let mut by_test: BTreeMap<TestId, Vec<&RunRecord>> = BTreeMap::new();
        for run in self.runs.iter_mut().filter(|run| tests.contains(&run.test)) {
            run.counts &= run.outcome != RunOutcome::Failed;
        }
        for run in self.runs.iter().filter(|run| tests.contains(&run.test)) {
            if run.outcome != RunOutcome::Skipped {
                by_test.entry(run.test).or_default().push(run);
            }
        }
        for (test, runs) in by_test {
            self.additions.insert(test, addition(&self.upload, &runs));
            if let Some(reported) = self.reported_tests.get_mut(&test) {
                reported.last_failure_at = None;
            }
        }
    }
}

fn small(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

fn print_of(run: &ReportedRun) -> Option<Fingerprint> {
    (run.outcome == RunOutcome::Failed).then(|| Fingerprint::of(message_of(run)))
}

/// What tells a failure apart: its message, or the text that follows when it has none.
fn message_of(run: &ReportedRun) -> &str {
    run.failure.as_ref().map_or("", |failure| {
        if failure.message.trim().is_empty() { &failure.text } else { &failure.message }
    })
}

/// Distinct tests that ran, and tests whose last attempt failed.
fn counts_of(upload: &Upload, taken: &[(TestId, &ReportedRun)]) -> UploadCounts {
    let mut last: BTreeMap<TestId, (u32, bool)> = BTreeMap::new();
    for (id, run) in taken.iter().filter(|(_, run)| run.outcome != RunOutcome::Skipped) {
        let failed = run.outcome == RunOutcome::Failed;
        let entry = last.entry(*id).or_insert((run.attempt, failed));
        if run.attempt >= entry.0 {
            *entry = (run.attempt, failed);
        }
    }
    let failed = last.values().filter(|(_, failed)| *failed).count();
    UploadCounts { tests: small(last.len()), failed: small(failed), trust: upload.trust }
}

fn record(upload: &Upload, test: TestId, run: &ReportedRun, counts: bool) -> RunRecord {
    let failed = run.outcome == RunOutcome::Failed;
    // A machine whose clock is ahead must not write into the future.
    let at = run.started_at.unwrap_or(upload.received_at).min(upload.received_at);
    RunRecord {
        attempt: run.attempt,
        counts,
        took: run.took,
        message: failed.then(|| message_of(run).to_owned()),
        quarantined: run.quarantined,
        origin: failed.then_some(upload.origin),
        ..RunRecord::new(upload, test, at, run.outcome)
    }
}

/// The name of the upload's branch, cut between characters.
fn branch_of(upload: &Upload) -> &str {
    let end = upload.branch.floor_char_boundary(MAX_BRANCH_BYTES);
    upload.branch.get(..end).unwrap_or_default()
}

fn addition(upload: &Upload, runs: &[&RunRecord]) -> Addition {
    let ended = |outcome| runs.iter().any(|run| run.outcome == outcome);
    let retried = ended(RunOutcome::Failed) && ended(RunOutcome::Passed);
    let mut codes = vec![upload.code()];
    if retried && !upload.origin.is_complete() {
        codes.extend(of_upload(upload.sha.is_some(), upload.id));
    }
    let counting = || runs.iter().filter(|run| run.counts);
    let failing = || counting().filter(|run| run.outcome == RunOutcome::Failed);
    let summed: Vec<Run> = counting()
        .map(|run| Run {
            at: run.at,
            branch: run.branch.clone(),
            class: run.class,
            codes: codes.clone(),
            origin: upload.origin,
            passed: run.outcome == RunOutcome::Passed,
        })
        .collect();
    let messages = failing()
        .map(|run| Failure { message: run.message.as_deref().unwrap_or_default(), at: run.at });
    Addition {
        summary: Summary::of(&summed),
        hours: hours(runs),
        failures: cluster_failures(messages),
        impacted: upload.pr.zip(failing().map(|run| run.at).max()),
    }
}

/// The upload as a code beside the commit: its results compare with each other, of whatever job and
/// base they are.
pub(super) fn of_upload(names_commit: bool, upload: UploadId) -> Option<SameCode> {
    names_commit.then(|| SameCode::Upload(upload.to_string()))
}

fn hours(runs: &[&RunRecord]) -> Vec<HourCount> {
    let mut hours: BTreeMap<Timestamp, HourCount> = BTreeMap::new();
    for run in runs {
        let hour = run.at.floor(Span::hours(1));
        let count = hours.entry(hour).or_insert(HourCount {
            hour,
            passed: 0,
            failed: 0,
            first_failure_at: None,
            last_failure_at: None,
        });
        match run.outcome {
            RunOutcome::Passed => count.passed += u32::from(run.counts),
            RunOutcome::Failed => {
                count.failed += u32::from(run.counts);
                let first = count.first_failure_at.map_or(run.at, |first| first.min(run.at));
                count.first_failure_at = Some(first);
                count.last_failure_at = count.last_failure_at.max(Some(run.at));
            }
            RunOutcome::Skipped => {}
        }
    }
    hours.into_values().collect()
}
