//! The causes of failed checks, from the test results that were uploaded for the candidate.

use std::collections::{BTreeMap, BTreeSet};

use signalbox_domain::flaky::{
    Admission, BranchClass, KnownFailure, QuarantineCause, RunOutcome, RunRecord, TestId,
    TestedChanges, UploadId, UploadSource, known_failure,
};
use signalbox_domain::ids::Sha;
use signalbox_domain::ports::{CheckLog, FlakyStores, RepoRef, Repository};
use signalbox_domain::queue::{
    CheckCause, CheckConclusion, CheckReport, FailureCause, Queue, RetryClass, TestRun,
    machine_failure,
};
use signalbox_domain::time::{Span, Timestamp};
use signalbox_domain::upload::{Severity, UploadRecord, UploadState};

use super::Error;
use super::failure_reads::without_sequences;
use super::flaky::settings_of;

/// The most uploads of a repository during a run that are looked through; with more, nothing is known.
const MOST_UPLOADS: u32 = 200;
/// The most failing attempts that are read; with more, nothing is known.
const MOST_ATTEMPTS: u32 = 1_000;
/// The most failing tests that are judged; with more, nothing is known.
const MOST_TESTS: usize = 100;
/// The most runs of a test that are read.
const MOST_RUNS: u32 = 200;
/// The most characters of a line of output that are kept as evidence.
const MOST_OF_A_LINE: usize = 200;
/// The tolerance for clocks of CI machines, in hours.
const CLOCKS_HOURS: u32 = 24;

/// A run whose checks have failed.
pub(super) struct FailedRun<'a> {
    pub(super) repository: &'a Repository,
    pub(super) queue: &'a Queue,
    pub(super) run: &'a TestRun,
}

impl FailedRun<'_> {
    fn repo(&self) -> RepoRef {
        RepoRef { org: self.repository.org, id: self.repository.id }
    }

    /// When the present attempt started.
    fn since(&self) -> Timestamp {
        self.run.retries.last().map_or(self.run.started_at, |retry| retry.at)
    }

    /// Whether a check is declared to only run tests and upload their results.
    fn is_declared(&self, check: &CheckReport) -> bool {
        self.queue.header.settings.evidence_checks.contains(&check.name)
    }

    /// Whether an upload may have a check excused, by who sent it. The commit of an upload is only what
    /// its sender says, unless CI has proven it; it does not prove the commit of a pull request's job.
    fn may_excuse(&self, upload: &UploadRecord) -> bool {
        let is_proven =
            upload.claims.proven && upload.claims.class != Some(BranchClass::PullRequest);
        is_proven || !self.queue.header.settings.evidence_needs_identity
    }
}

/// The causes of these checks' failures, as far as they are known. A check without an upload has
/// none, unless it is declared to upload results; then they are awaited.
pub(super) async fn causes(
    stores: &FlakyStores,
    check_log: &dyn CheckLog,
    failed: &FailedRun<'_>,
    checks: &[CheckReport],
) -> Result<Vec<CheckCause>, Error> {
    let is_failure =
        |check: &&CheckReport| check.conclusion.is_some_and(|conclusion| !conclusion.is_success());
    let mut failures = checks.iter().filter(is_failure).peekable();
    let Some(candidate) = failed.run.candidate.as_ref() else { return Ok(Vec::new()) };
    if failures.peek().is_none() {
        return Ok(Vec::new());
    }
    let repo = failed.repo();
    // An upload without a token says nothing about a check, and must not crowd out one that does.
    let since = failed.since();
    let uploads = stores.uploads.trusted_since(repo.org, repo.id, since, MOST_UPLOADS).await?;
    if uploads.len() >= usize::try_from(MOST_UPLOADS).unwrap_or(usize::MAX) {
        return Ok(Vec::new());
    }
    let may_be_of_commit: Vec<&UploadRecord> = uploads
        .iter()
        .filter(|it| commit_of(it).is_none_or(|sha| sha == candidate.sha.as_str()))
        .collect();
    let of_candidate: Vec<&UploadRecord> = may_be_of_commit
        .iter()
        .copied()
        .filter(|it| commit_of(it).is_some())
        // A job that is known to be one of a pull request cannot speak for a candidate.
        .filter(|it| it.claims.class != Some(BranchClass::PullRequest))
        .collect();
    let mut found = Vec::new();
    for check in failures {
        let of_check: Vec<&UploadRecord> = of_candidate
            .iter()
            .copied()
            .filter(|upload| is_of(upload, check, failed.run))
            .collect();
        let by_tests = cause(stores, failed, check, &of_check, &candidate.sha).await?;
        let machine = if may_be_machine(&may_be_of_commit, check, failed.run) {
            failing_machine(check_log, failed, check).await?
        } else {
            None
        };
        let cause = match (by_tests, machine) {
            (Some(FailureCause::Awaited { until, .. }), machine) => {
                let otherwise = machine.into_iter().collect();
                Some(FailureCause::Awaited { until, otherwise })
            }
            (None, Some(line)) => {
                let (class, evidence) = (RetryClass::Infrastructure, vec![line]);
                Some(FailureCause::Retry { class, evidence, on_target: false })
            }
            (by_tests, _) => by_tests,
        };
        if let Some(cause) = cause {
            found.push(CheckCause { check: check.name.clone(), at: check.at, cause });
        }
    }
    Ok(found)
}

/// The commit of an upload; `None` if it is not known, for example before a bundle is read.
fn commit_of(upload: &UploadRecord) -> Option<&str> {
    let read = || upload.upload.as_ref().and_then(|it| it.sha.as_ref()).map(Sha::as_str);
    upload.claims.sha.as_deref().or_else(read)
}

/// Whether a check is a job within a workflow that another one calls.
fn is_within(check: &str, job: &str) -> bool {
    check.strip_suffix(job).is_some_and(|it| it.ends_with(" / "))
}

/// Whether an upload comes from the job of a check: it names the check, or its job has that name,
/// also within a workflow that another one calls. One that is not read yet may still name it.
fn is_of(upload: &UploadRecord, check: &CheckReport, run: &TestRun) -> bool {
    let required = || run.required.iter().flat_map(|required| &required.names);
    let is_named = |name: &String| {
        let is_only_one =
            || required().filter(|it| *it == name || is_within(it, name)).count() == 1;
        *name == check.name || (is_within(&check.name, name) && is_only_one())
    };
    if let Some(named) = &upload.claims.check {
        return is_named(named);
    }
    let read = || upload.upload.as_ref().and_then(|it| it.job_name.as_ref());
    match upload.claims.job_name.as_ref().or_else(read) {
        Some(job) => is_named(job),
        None => !is_read(upload),
    }
}

/// Whether nothing more is expected of an upload.
fn is_read(upload: &UploadRecord) -> bool {
    match upload.state {
        UploadState::Read | UploadState::Failed => true,
        UploadState::Awaited | UploadState::Received => false,
    }
}

const fn awaited() -> FailureCause {
    FailureCause::Awaited { until: None, otherwise: Vec::new() }
}

async fn cause(
    stores: &FlakyStores,
    failed: &FailedRun<'_>,
    check: &CheckReport,
    uploads: &[&UploadRecord],
    sha: &Sha,
) -> Result<Option<FailureCause>, Error> {
    let is_declared = failed.is_declared(check);
    if uploads.is_empty() {
        return Ok(is_declared.then(awaited));
    }
    if !uploads.iter().all(|upload| is_read(upload)) {
        return Ok(Some(awaited()));
    }
    let admitted_as = |admission| {
        uploads.iter().any(|it| it.taken_in.as_ref().is_some_and(|it| it.admission == admission))
    };
    if admitted_as(Admission::Infrastructure) {
        let evidence = vec![format!("{}: nearly all of its tests failed", check.name)];
        let class = RetryClass::Infrastructure;
        return Ok(Some(FailureCause::Retry { class, evidence, on_target: false }));
    }
    let Some(tests) = failed_tests(stores, failed, uploads, sha).await? else { return Ok(None) };
    // A check that was cancelled or ran out of time has run less than its reports say. Checks that
    // run here are excused, or not, where their exit is known.
    let may_excuse = is_declared
        && check.conclusion == Some(CheckConclusion::Failure)
        && uploads.iter().all(|upload| is_whole(upload) && failed.may_excuse(upload));
    Ok(Some(verdict(&tests, may_excuse)))
}

/// Whether a machine may have failed in a check: no upload that may be of the commit has a failed test,
/// or may have one, unless it names another required check. A failed test may be a new failure,
/// whatever else was printed.
fn may_be_machine(uploads: &[&UploadRecord], check: &CheckReport, run: &TestRun) -> bool {
    let required = run.required.iter().flat_map(|required| &required.names);
    let others: BTreeSet<&String> = required.filter(|name| **name != check.name).collect();
    let is_of_another = |upload: &&UploadRecord| {
        if let Some(named) = &upload.claims.check {
            return others.contains(named);
        }
        let read = || upload.upload.as_ref().and_then(|it| it.job_name.as_ref());
        let job = upload.claims.job_name.as_ref().or_else(read);
        job.is_some_and(|job| others.contains(job) && !is_within(&check.name, job))
    };
    let has_only_passed = |upload: &UploadRecord| {
        has_no_fault(upload) && upload.taken_in.as_ref().is_some_and(|it| it.failed == 0)
    };
    uploads.iter().filter(|it| !is_of_another(it)).all(|it| has_only_passed(it))
}

/// What shows in the output of a check that a machine failed.
async fn failing_machine(
    check_log: &dyn CheckLog,
    failed: &FailedRun<'_>,
    check: &CheckReport,
) -> Result<Option<String>, Error> {
    let settings = &failed.queue.header.settings;
    if settings.infrastructure_messages.is_empty()
        || check.conclusion != Some(CheckConclusion::Failure)
    {
        return Ok(None);
    }
    let output = check_log.read(failed.repository.org, failed.run.id, &check.name).await?;
    // An earlier attempt may have left one.
    let Some(output) = output.filter(|output| output.at >= failed.since()) else {
        return Ok(None);
    };
    let text = without_sequences(&output.text);
    Ok(machine_failure(settings, &text).map(|line| {
        let line: String = line.trim().chars().take(MOST_OF_A_LINE).collect();
        format!("{}: {line}", check.name)
    }))
}

/// Whether an upload was read completely.
fn is_whole(upload: &UploadRecord) -> bool {
    upload.source != UploadSource::Checks && upload.repeats.is_none() && has_no_fault(upload)
}

/// Whether every file of an upload was read.
fn has_no_fault(upload: &UploadRecord) -> bool {
    upload.state == UploadState::Read
        && upload.files.iter().all(|file| file.problem.is_none())
        && upload.warnings.iter().all(|it| it.kind.severity() != Severity::Invalid)
}

/// A test that failed in the end, by its name, with what is known about the failure.
type FailedTest = (String, KnownFailure);

/// The tests that failed in the end; `None` if there is none or there are too many to tell.
async fn failed_tests(
    stores: &FlakyStores,
    failed: &FailedRun<'_>,
    uploads: &[&UploadRecord],
    sha: &Sha,
) -> Result<Option<Vec<FailedTest>>, Error> {
    let repo = failed.repo();
    // What repeats another upload is stored once, under the id of that one.
    let ids: BTreeSet<UploadId> = uploads.iter().map(|it| it.repeats.unwrap_or(it.id)).collect();
    let counted = uploads.iter().filter(|upload| upload.repeats.is_none());
    let counts: Option<Vec<u32>> =
        counted.map(|it| it.taken_in.as_ref().map(|outcome| outcome.failed)).collect();
    let Some(expected) = counts.map(|counts| counts.iter().sum::<u32>()) else { return Ok(None) };
    let clocks = Span::hours(CLOCKS_HOURS);
    let last = uploads.iter().map(|upload| upload.created_at).max().unwrap_or(failed.since());
    let range = (failed.since().minus(clocks), last.plus(clocks));
    let attempts = stores.reads.failed_runs(repo, sha, range, MOST_ATTEMPTS).await?;
    if attempts.len() >= usize::try_from(MOST_ATTEMPTS).unwrap_or(usize::MAX) {
        return Ok(None);
    }
    let mut failures: BTreeMap<TestId, RunRecord> = BTreeMap::new();
    for attempt in attempts.into_iter().filter(|attempt| ids.contains(&attempt.upload)) {
        failures.entry(attempt.test).or_insert(attempt);
    }
    if failures.len() > MOST_TESTS {
        return Ok(None);
    }
    let tests: Vec<TestId> = failures.keys().copied().collect();
    let settings = settings_of(repo, &stores.tests.repo(repo).await?);
    let prs = failed.run.prs().collect();
    let target = failed.queue.header.branch.as_str();
    let changes = TestedChanges { sha, target, prs: &prs, since: failed.run.started_at };
    let mut found = Vec::new();
    for record in stores.tests.tests(repo, &tests).await? {
        let Some(failure) = failures.get(&record.test.id) else { continue };
        let runs = stores.reads.recent_runs(repo, record.test.id, MOST_RUNS).await?;
        if failed_in_the_end(&runs, &ids) == Some(false) {
            continue;
        }
        let known = known_failure(&record.test, &settings, failure, &runs, changes);
        found.push((record.test.key.name.clone(), known));
    }
    // Failures that were not found could be new ones.
    let is_complete = usize::try_from(expected).is_ok_and(|expected| expected <= found.len());
    Ok(Some(found).filter(|found| is_complete && !found.is_empty()))
}

/// Whether the last attempt of a test that ran failed, in one of these uploads; `None` if none of its
/// runs is among these.
fn failed_in_the_end(runs: &[RunRecord], uploads: &BTreeSet<UploadId>) -> Option<bool> {
    let mut last: BTreeMap<UploadId, &RunRecord> = BTreeMap::new();
    for run in runs.iter().filter(|run| uploads.contains(&run.upload)) {
        let is_later = |known: &&RunRecord| (known.attempt, known.at) < (run.attempt, run.at);
        if run.outcome != RunOutcome::Skipped && last.get(&run.upload).is_none_or(is_later) {
            last.insert(run.upload, run);
        }
    }
    let failed = || last.values().any(|run| run.outcome == RunOutcome::Failed);
    (!last.is_empty()).then(failed)
}

/// What the failed tests of a check say about it. `may_excuse`: whether it counts as passed if all
/// of them are quarantined.
fn verdict(tests: &[FailedTest], may_excuse: bool) -> FailureCause {
    let first = |names: &mut dyn Iterator<Item = String>| -> Vec<String> {
        names.take(FailureCause::NAMED).collect()
    };
    let new = || tests.iter().filter(|(_, known)| *known == KnownFailure::New);
    if new().next().is_some() {
        let tests = first(&mut new().map(|(name, _)| name.clone()));
        return FailureCause::New { tests };
    }
    let causes: Option<Vec<(&String, &QuarantineCause)>> = tests
        .iter()
        .map(|(name, known)| match known {
            KnownFailure::Quarantined(cause) => Some((name, cause)),
            KnownFailure::Flaky | KnownFailure::SeenElsewhere { .. } | KnownFailure::New => None,
        })
        .collect();
    if let Some(causes) = causes.filter(|_| may_excuse) {
        // All of them: the journal keeps who or what excused each.
        let tests = causes.iter().map(|(name, cause)| format!("{name} ({cause})")).collect();
        return FailureCause::Quarantined { tests };
    }
    let mut seen = tests.iter().filter_map(|(_, known)| match known {
        KnownFailure::SeenElsewhere { on_target } => Some(*on_target),
        KnownFailure::Quarantined(_) | KnownFailure::Flaky | KnownFailure::New => None,
    });
    let (class, on_target) = match seen.next() {
        Some(first) => (RetryClass::SeenElsewhere, first && seen.all(|on_target| on_target)),
        None => (RetryClass::KnownFlaky, false),
    };
    let evidence = first(&mut tests.iter().map(|(name, _)| name.clone()));
    FailureCause::Retry { class, evidence, on_target }
}
