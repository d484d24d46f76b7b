//! Incidents: how they are recognized, joined and ended.

use std::collections::BTreeSet;
use std::sync::Arc;

use signalbox_domain::flaky::{
    Actor, Assessment, Failing, FailureHistory, FailureKey, Incident, IncidentCause, IncidentState,
    Ran, SameCode, TestId, UploadId, UploadLook, assess,
};
use signalbox_domain::ids::{OrgId, RepoId, Sha};
use signalbox_domain::time::{Span, Timestamp};
use uuid::Uuid;

/// The tests of a repository.
const TESTS: u32 = 200;

/// A repository, as far as incidents are about it.
struct Repository {
    now: Timestamp,
    uploads: u32,
    history: FailureHistory,
    incidents: Vec<Incident>,
}

/// An upload: the tests that failed, and their past.
struct Report<'a> {
    failing: &'a [u32],
    /// What the failures have in common.
    key: Option<&'a str>,
    rarely: bool,
    never_failed: bool,
    commit: u32,
    branch: &'a str,
    job: Option<&'a str>,
    /// How many of the tests failed in the end; the others passed when they ran again.
    red: usize,
    tests: u32,
}

impl Default for Report<'_> {
    fn default() -> Self {
        Self {
            failing: &[],
            key: None,
            rarely: true,
            never_failed: false,
            commit: 0,
            branch: "main",
            job: None,
            red: usize::MAX,
            tests: TESTS,
        }
    }
}

const fn test(number: u32) -> TestId {
    TestId(Uuid::from_u128(number as u128))
}

fn numbers(until: u32) -> Vec<u32> {
    (0..until).collect()
}

impl Repository {
    /// A repository with some days of uploads in which nothing failed.
    fn quiet() -> Self {
        Self::with_usual(0)
    }

    /// A repository with some days of uploads in each of which so many tests failed.
    fn with_usual(count: u32) -> Self {
        let mut repository = Self::new();
        let failing = numbers(count);
        for upload in 0..40 {
            repository.wait(Span::hours(3));
            let commit = 1_000 + upload;
            let report = Report { failing: &failing, commit, ..Report::default() };
            let found = repository.upload(&report);
            assert_eq!((found.incident, found.changed), (None, Vec::new()));
        }
        repository.wait(Span::hours(3));
        repository
    }

    fn new() -> Self {
        let now = Timestamp::parse("2026-11-02T00:00:00Z").expect("valid");
        let history = FailureHistory::default();
        Self { now, uploads: 0, history, incidents: Vec::new() }
    }

    fn wait(&mut self, span: Span) {
        self.now = self.now.plus(span);
    }

    fn upload(&mut self, report: &Report<'_>) -> Assessment {
        self.uploads += 1;
        let key = report.key.map(|key| FailureKey { digest: key.into(), label: key.into() });
        let failing = report.failing.iter().map(|number| Failing {
            test: test(*number),
            rarely: report.rarely,
            never_failed: report.never_failed,
            keys: key.clone().map(Arc::new).into_iter().collect(),
        });
        let red: BTreeSet<u32> = report.failing.iter().copied().take(report.red).collect();
        let ran = (0..report.tests)
            .map(|number| (test(number), Ran { passed: !red.contains(&number), known: true }));
        let commit = Sha::new(format!("{:040x}", report.commit)).expect("forty digits");
        let look = UploadLook {
            org: OrgId(Uuid::from_u128(1)),
            repo: RepoId(Uuid::from_u128(2)),
            upload: UploadId(Uuid::from_u128(u128::from(self.uploads))),
            at: self.now,
            code: SameCode::Commit(commit),
            branch: report.branch.into(),
            job: report.job.map(ToOwned::to_owned),
            ran: ran.collect(),
            failing: failing.collect(),
        };
        let found = assess(&look, &self.history, &self.incidents);
        self.history = found.history.clone();
        for (_, incident) in &found.changed {
            self.incidents.retain(|known| known.id != incident.id);
            self.incidents.insert(0, incident.clone());
        }
        found
    }

    fn excluded(&mut self, report: &Report<'_>) -> usize {
        self.upload(report).excluded.len()
    }

    fn only(&self) -> &Incident {
        let [incident] = self.incidents.as_slice() else { panic!("{:?}", self.incidents) };
        incident
    }

    fn state(&self) -> IncidentState {
        self.only().state
    }
}

/// The cause of the incident that failures in one upload show, if they do.
fn cause(repository: &mut Repository, report: &Report<'_>) -> Option<IncidentCause> {
    let found = repository.upload(report);
    assert_eq!(found.incident.is_some(), !found.excluded.is_empty());
    found.changed.first().map(|(_, incident)| incident.cause)
}

#[test]
fn five_tests_with_the_same_failure_are_an_incident_where_the_usual_is_known() {
    let shared = |failing: &[u32]| {
        let report = Report { failing, key: Some("db is down"), ..Report::default() };
        (cause(&mut Repository::quiet(), &report), cause(&mut Repository::new(), &report))
    };
    assert_eq!(shared(&numbers(4)), (None, None));
    assert_eq!(shared(&numbers(5)), (Some(IncidentCause::SharedFailure), None));
    assert_eq!(shared(&numbers(9)), (Some(IncidentCause::SharedFailure), None));
    let both = Some(IncidentCause::SharedFailure);
    assert_eq!(shared(&numbers(10)).1, both, "ten where nothing is known");
}

#[test]
fn only_tests_that_rarely_fail_count() {
    let failing = numbers(30);
    let report = Report { failing: &failing, key: Some("x"), rarely: false, ..Report::default() };
    assert_eq!(cause(&mut Repository::quiet(), &report), None);
}

#[test]
fn a_shared_failure_excludes_only_the_failures_that_share_it() {
    let mut repository = Repository::quiet();
    let failing = numbers(6);
    let report = Report { failing: &failing, key: Some("db is down"), ..Report::default() };
    let found = repository.upload(&report);
    assert_eq!(found.excluded, (0..6).map(test).collect());
    assert_eq!(repository.only().summary, "db is down");
    assert_eq!((repository.only().uploads, repository.only().failures), (1, 6));
    // Later failures of that kind join it, however few; others do not.
    repository.wait(Span::hours(5));
    let one = Report { failing: &[9], key: Some("db is down"), commit: 3, ..Report::default() };
    assert_eq!(repository.excluded(&one), 1);
    let other = Report { failing: &[9], key: Some("wrong sum"), commit: 4, ..Report::default() };
    assert_eq!(repository.excluded(&other), 0);
    assert_eq!(repository.only().failures, 7);
    repository.wait(Span::hours(6));
    assert_eq!(repository.excluded(&Report { commit: 5, ..one }), 1, "6 hours after the last");
    repository.wait(Span::minutes(361));
    assert_eq!(repository.excluded(&Report { commit: 6, ..one }), 0, "and no longer");
}

#[test]
fn shared_failures_of_an_hour_are_added_up() {
    for (minutes, expected) in [(59, 6), (60, 0)] {
        let mut repository = Repository::quiet();
        let shard = |failing| Report { failing, key: Some("x"), ..Report::default() };
        assert_eq!(repository.excluded(&shard(&[0, 1, 2])), 0);
        repository.wait(Span::minutes(minutes));
        let found = repository.upload(&shard(&[10, 11, 12]));
        assert_eq!(found.excluded.len() + found.late.len(), expected, "{minutes} minutes");
        if expected > 0 {
            assert_eq!(repository.only().uploads, 2);
            assert_eq!(repository.only().started_at, repository.now.minus(Span::minutes(minutes)));
        }
    }
}

#[test]
fn ten_tests_with_nothing_in_common_are_a_jump() {
    let found = |mut repository: Repository, failing, tests| {
        let failing = numbers(failing);
        cause(&mut repository, &Report { failing: &failing, tests, ..Report::default() })
    };
    let jump = Some(IncidentCause::FailureJump);
    assert_eq!(found(Repository::quiet(), 9, TESTS), None);
    assert_eq!(found(Repository::quiet(), 10, TESTS), jump);
    // While nothing is usual, a jump is more than a tenth of the tests.
    assert_eq!(found(Repository::new(), 20, TESTS), None);
    assert_eq!(found(Repository::new(), 21, TESTS), jump);
    // Half a percent of the tests is the least jump.
    assert_eq!(found(Repository::quiet(), 10, 2_000), None);
    assert_eq!(found(Repository::quiet(), 11, 2_000), jump);
}

#[test]
fn tests_that_never_failed_before_show_an_incident() {
    let found = |failing, never_failed| {
        let failing = numbers(failing);
        let report = Report { failing: &failing, never_failed, tests: 4_000, ..Report::default() };
        cause(&mut Repository::quiet(), &report)
    };
    assert_eq!(found(10, true), Some(IncidentCause::NeverFailedBefore));
    assert_eq!(found(9, true), None);
    assert_eq!(found(10, false), None);
}

/// What fails in each upload anyway moves every bound.
#[test]
fn the_bounds_grow_with_the_usual_failures() {
    let found = |failing, key, never_failed| {
        let failing = numbers(failing);
        let of_many = Report { tests: 4_000, commit: 1, ..Report::default() };
        let report = Report { failing: &failing, key, never_failed, ..of_many };
        cause(&mut Repository::with_usual(1), &report)
    };
    assert_eq!(found(10, None, true), None);
    assert_eq!(found(11, None, true), Some(IncidentCause::NeverFailedBefore));
    assert_eq!(found(6, Some("x"), false), None);
    assert_eq!(found(7, Some("x"), false), Some(IncidentCause::SharedFailure));
}

#[test]
fn the_bound_of_an_hour_grows_with_its_uploads() {
    let tests = numbers(200);
    let shard = |from: usize, until: usize| Report {
        failing: &tests[from..until],
        never_failed: true,
        tests: 4_000,
        ..Report::default()
    };
    for (last, expected) in [(20, 0), (21, 7)] {
        let mut repository = Repository::with_usual(1);
        for from in [0, 7] {
            assert_eq!(repository.excluded(&shard(from, from + 7)), 0);
            repository.wait(Span::minutes(10));
        }
        assert_eq!(repository.excluded(&shard(14, last)), expected, "{last} tests of 3 uploads");
        if expected > 0 {
            repository.wait(Span::minutes(10));
            let more = |until| Report { never_failed: false, ..shard(100, until) };
            assert_eq!(repository.excluded(&more(104)), 0, "4 more");
            assert_eq!(repository.excluded(&more(105)), 5, "5 more");
        }
    }
    // Two tests in each of many uploads are no incident.
    let mut repository = Repository::quiet();
    for from in 0..14 {
        assert_eq!(repository.excluded(&shard(from * 2, from * 2 + 2)), 0);
        repository.wait(Span::minutes(4));
    }
}

#[test]
fn a_reason_has_at_most_256_characters() {
    let (repository, _) = broken(None, &numbers(20));
    let decided = |length| {
        let by = Actor { full_name: "Ada".into(), email: String::new() };
        repository.only().decided(true, Some("é".repeat(length)), by, repository.now)
    };
    assert!(decided(256).is_ok());
    let refusal = decided(257).expect_err("too long").to_string();
    assert_eq!(refusal, "reason must have at most 256 characters");
}

/// A failure that is compared with any other of its upload has the upload as a second code.
#[test]
fn a_recounted_failure_has_the_codes_that_it_was_counted_by() {
    use signalbox_domain::flaky::{Base, BranchClass, Origin, RunOutcome, RunRecord, failures_of};
    let codes = |sha: Option<&str>, origin: Origin| {
        let upload = UploadId(Uuid::from_u128(7));
        let run = RunRecord {
            test: test(1),
            upload,
            at: Timestamp::from_unix_seconds(1_000),
            outcome: RunOutcome::Failed,
            attempt: 0,
            counts: true,
            branch: "main".into(),
            class: BranchClass::Stable,
            sha: sha.map(ToOwned::to_owned),
            pr: None,
            job_url: None,
            took: None,
            message: None,
            quarantined: false,
            origin: Some(origin),
        };
        let passed = RunRecord { outcome: RunOutcome::Passed, test: test(2), ..run.clone() };
        let failures = failures_of(&[run, passed]);
        assert_eq!(failures.keys().copied().collect::<Vec<_>>(), [test(1)]);
        failures[&test(1)].codes.iter().map(|it| it.code.clone()).collect::<BTreeSet<_>>().len()
    };
    let commit = "a".repeat(40);
    let complete = Origin::new(Some(&["unit"]), Base::Itself);
    assert_eq!(codes(Some(&commit), complete), 1);
    assert_eq!(codes(Some(&commit), Origin::default()), 2);
    assert_eq!(codes(None, Origin::default()), 1);
}

#[test]
fn twenty_tests_of_an_hour_that_never_failed_before_show_an_incident() {
    let mut repository = Repository::quiet();
    let tests = numbers(27);
    let shard = |from: usize, until: usize| Report {
        failing: &tests[from..until],
        never_failed: true,
        tests: 4_000,
        ..Report::default()
    };
    assert_eq!(repository.excluded(&shard(0, 9)), 0);
    repository.wait(Span::minutes(20));
    assert_eq!(repository.excluded(&shard(9, 18)), 0);
    repository.wait(Span::minutes(20));
    let found = repository.upload(&shard(18, 27));
    assert_eq!((found.excluded.len(), found.late.len()), (9, 18));
    assert_eq!(repository.only().cause, IncidentCause::NeverFailedBefore);
    // Within the hour three more are enough, whatever they say.
    repository.wait(Span::minutes(30));
    let few = |failing| Report { failing, tests: 4_000, commit: 9, ..Report::default() };
    assert_eq!(repository.excluded(&few(&[100, 101])), 0);
    assert_eq!(repository.excluded(&few(&[100, 101, 102])), 3);
    repository.wait(Span::minutes(61));
    assert_eq!(repository.excluded(&few(&[103, 104, 105])), 0);
}

/// A repository in which 20 tests failed on the first commit, in this job.
fn broken<'a>(job: Option<&'a str>, failing: &'a [u32]) -> (Repository, Report<'a>) {
    let mut repository = Repository::quiet();
    let report = Report { failing, job, ..Report::default() };
    assert_eq!(repository.excluded(&report), failing.len());
    assert_eq!(repository.state(), IncidentState::Suspected);
    repository.wait(Span::minutes(10));
    (repository, report)
}

#[test]
fn tests_that_stay_red_on_two_commits_are_a_regression() {
    let tests = numbers(20);
    let (mut repository, report) = broken(None, &tests);
    assert_eq!(repository.excluded(&Report { commit: 1, ..report }), 20, "the first upload after");
    assert_eq!(repository.state(), IncidentState::Suspected);
    repository.wait(Span::minutes(10));
    let found = repository.upload(&Report { commit: 2, ..report });
    assert_eq!((repository.state(), found.excluded.len()), (IncidentState::Regression, 0));
    assert_eq!(repository.only().since, repository.now);
    // One commit alone is not enough, however many jobs test it.
    let (mut repository, report) = broken(None, &tests);
    for _ in 0..4 {
        assert_eq!(repository.excluded(&report), 20);
    }
    assert_eq!(repository.state(), IncidentState::Suspected);
    // Neither are other branches, nor uploads much later.
    let (mut repository, report) = broken(None, &tests);
    for commit in 1..4 {
        repository.upload(&Report { commit, branch: "other", failing: &[], red: 0, ..report });
    }
    assert_eq!(repository.state(), IncidentState::Suspected);
    assert_eq!(repository.only().red, 0);
}

#[test]
fn four_in_five_tests_that_stay_red_are_enough() {
    for (red, expected) in [(16, IncidentState::Regression), (15, IncidentState::Suspected)] {
        let tests = numbers(20);
        let (mut repository, report) = broken(None, &tests);
        for commit in 1..3 {
            // Half of what the upload excludes must stay red, or it has recovered.
            repository.upload(&Report { commit, red, ..report });
            repository.wait(Span::minutes(10));
        }
        assert_eq!(repository.state(), expected, "{red} of 20");
    }
}

#[test]
fn tests_that_pass_again_on_the_same_commit_have_recovered() {
    let tests = numbers(20);
    let again = |red, job, commit| {
        let (mut repository, report) = broken(Some("unit"), &tests);
        let failing = &tests[..red];
        repository.upload(&Report { failing, rarely: false, job, commit, ..report });
        (repository.state(), repository.only().proven)
    };
    assert_eq!(again(0, Some("unit"), 0), (IncidentState::Recovered, true));
    assert_eq!(again(10, Some("unit"), 0), (IncidentState::Recovered, true), "half of them");
    assert_eq!(again(11, Some("unit"), 0), (IncidentState::Suspected, false));
    assert_eq!(again(0, Some("unit"), 7), (IncidentState::Suspected, false), "another commit");
    assert_eq!(again(0, Some("windows"), 0), (IncidentState::Recovered, false), "another job");
}

#[test]
fn an_upload_with_few_of_its_tests_says_nothing_about_an_incident() {
    for (tests, expected) in [(4, IncidentState::Suspected), (5, IncidentState::Recovered)] {
        let all = numbers(20);
        let (mut repository, report) = broken(None, &all);
        repository.upload(&Report { failing: &[], tests, ..report });
        assert_eq!(repository.state(), expected, "{tests} of 20");
    }
}

#[test]
fn retries_that_pass_in_the_same_upload_prove_an_incident() {
    for (red, expected) in [(10, IncidentState::Recovered), (11, IncidentState::Suspected)] {
        let mut repository = Repository::quiet();
        let failing = numbers(20);
        repository.upload(&Report { failing: &failing, red, ..Report::default() });
        assert_eq!(repository.state(), expected, "{red} of 20 stayed red");
        assert_eq!(repository.only().proven, expected == IncidentState::Recovered);
    }
}

#[test]
fn another_job_that_passes_does_not_take_a_regression_back() {
    let tests = numbers(20);
    let regression = || {
        let (mut repository, report) = broken(Some("unit"), &tests);
        for commit in 1..3 {
            repository.upload(&Report { commit, ..report });
            repository.wait(Span::minutes(10));
        }
        assert_eq!(repository.state(), IncidentState::Regression);
        (repository, Report { failing: &[], commit: 0, ..report })
    };
    let (mut repository, passes) = regression();
    repository.upload(&Report { job: Some("windows"), ..passes });
    assert_eq!(repository.state(), IncidentState::Regression);
    let (mut repository, passes) = regression();
    repository.upload(&passes);
    assert_eq!(repository.state(), IncidentState::Recovered, "its own job does");
}

#[test]
fn what_a_user_decided_stays() {
    let tests = numbers(20);
    for (confirm, expected) in [(true, IncidentState::Confirmed), (false, IncidentState::Dismissed)]
    {
        let (mut repository, report) = broken(None, &tests);
        let by = Actor { full_name: "Ada".into(), email: String::new() };
        let decided = repository.only().decided(confirm, Some("seen".into()), by, repository.now);
        repository.incidents = vec![decided.expect("a short reason")];
        for commit in 0..4 {
            repository.wait(Span::minutes(1));
            repository.upload(&Report { failing: &[], commit, ..report });
            repository.upload(&Report { commit: commit + 10, ..report });
        }
        let decided = repository.incidents.iter().find(|it| it.decision.is_some());
        assert_eq!(decided.map(|it| it.state), Some(expected));
    }
}

#[test]
fn what_fails_every_day_becomes_usual() {
    let mut repository = Repository::new();
    let tests = numbers(TESTS);
    let upload = |repository: &mut Repository, count: usize, commit| {
        let failing = &tests[..count];
        repository.upload(&Report { failing, commit, ..Report::default() });
    };
    for number in 0..200_u32 {
        repository.wait(Span::hours(3));
        let count = 12 + usize::try_from(number % 5).expect("small");
        upload(&mut repository, count, number);
    }
    let before = repository.incidents.len();
    repository.wait(Span::hours(7));
    upload(&mut repository, 16, 900);
    assert_eq!(repository.incidents.len(), before, "16 failures are usual");
    upload(&mut repository, 80, 901);
    assert_eq!(repository.incidents.len(), before + 1, "80 are not");
}
