//! What a part of an upload adds to what is known: its runs in every form in which they are kept.

use std::collections::{BTreeMap, BTreeSet};

use crate::ids::PrNumber;
use crate::time::{Span, Timestamp};

use super::{
    Admission, BranchClass, Failure, FailureCluster, Origin, Outline, ReportedRun, Run, RunOutcome,
    RunsPart, SameCode, Summary, TestId, TestKey, Upload, UploadId, cluster_failures,
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
    /// Whether it was reported before.
    pub is_known: bool,
    /// Its code owners; empty when the upload names none.
    pub owners: Vec<String>,
    /// Ids that clients may send for it, beside its own.
    pub aliases: BTreeSet<String>,
    /// The last run that failed and counts.
    pub last_failure_at: Option<Timestamp>,
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

/// The results of some tests of an upload, ready to be committed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Intake {
    /// The upload.
    pub upload: Upload,
    /// The tests, by id.
    pub reported_tests: BTreeMap<TestId, ReportedTest>,
    /// All runs, by test.
    pub runs: Vec<RunRecord>,
    /// What each test gets; a test that was only skipped gets nothing.
    pub additions: BTreeMap<TestId, Addition>,
}

/// The keys under which tests are known, by id. Runs of other tests with one of these ids are
/// ignored.
pub type KnownKeys<'a> = BTreeMap<TestId, &'a TestKey>;

/// Counts a part of an upload. Failures of `excluded` tests belong to an incident and count for
/// nothing.
pub fn intake(
    outline: &Outline,
    part: RunsPart<'_>,
    excluded: &BTreeSet<TestId>,
    known: &KnownKeys<'_>,
) -> Intake {
    let upload = outline.upload();
    let feeds = outline.outcome().admission == Admission::Counts;
    let mut reported_tests = BTreeMap::new();
    let mut additions = BTreeMap::new();
    let mut records = Vec::with_capacity(part.len());
    for (id, runs) in part.tests() {
        let runs = outline.of_one_test(known.get(&id).copied(), runs).0;
        let Some(first) = runs.first() else { continue };
        let start = records.len();
        let is_excluded = excluded.contains(&id);
        for run in &runs {
            let failed = run.outcome == RunOutcome::Failed;
            let incident = failed && (is_excluded || outline.is_incident(run));
            let ran = run.outcome != RunOutcome::Skipped;
            records.push(record(upload, id, run, feeds && ran && !incident));
        }
        let made = records.get(start..).unwrap_or_default();
        let ran: Vec<&RunRecord> =
            made.iter().filter(|run| run.outcome != RunOutcome::Skipped).collect();
        let mut test = reported(id, known.get(&id).copied(), first);
        if outline.is_trusted() {
            (test.owners, test.aliases) = vouched_for(id, &runs);
        }
        if !ran.is_empty() {
            let addition = addition(upload, &ran);
            let failures = addition.summary.buckets.iter().filter_map(|it| it.last_failure_at);
            test.last_failure_at = failures.max();
            additions.insert(id, addition);
        }
        reported_tests.insert(id, test);
    }
    Intake { upload: upload.clone(), reported_tests, runs: records, additions }
}

fn reported(id: TestId, known: Option<&TestKey>, first: &ReportedRun) -> ReportedTest {
    ReportedTest {
        id,
        key: known.unwrap_or(&first.key).clone(),
        is_known: known.is_some(),
        owners: Vec::new(),
        aliases: BTreeSet::new(),
        last_failure_at: None,
    }
}

/// The owners and the aliases of a test: what decides about later requests, so a sender that is not
/// trusted cannot set it.
fn vouched_for(id: TestId, runs: &[&ReportedRun]) -> (Vec<String>, BTreeSet<String>) {
    let own = id.to_string();
    let mut aliases = BTreeSet::new();
    for run in runs {
        let other_files: Vec<&str> = run.other_files.iter().map(String::as_str).collect();
        let sent = run.key.other_ids(&other_files).into_iter();
        aliases.extend(sent.filter(|it| *it != own && it.len() <= MAX_ALIAS_BYTES));
    }
    let owners = runs.iter().rev().map(|run| &run.owners).find(|owners| !owners.is_empty());
    (owners.cloned().unwrap_or_default(), aliases)
}

/// What tells a failure apart: its message, or the text that follows when it has none.
pub(super) fn message_of(run: &ReportedRun) -> &str {
    run.failure.as_ref().map_or("", |failure| {
        if failure.message.trim().is_empty() { &failure.text } else { &failure.message }
    })
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
pub(super) fn branch_of(upload: &Upload) -> &str {
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
