//! What an upload adds to what is known.

use signalbox_domain::flaky::{
    Admission, Base, BranchClass, Imported, Origin, Progress, ReportedFailure, ReportedRun,
    RunOutcome, Settings, TestDirectory, TestKey, Trust, Upload, UploadId, UploadSource, intake,
};
use signalbox_domain::ids::{OrgId, PrNumber, RepoId, Sha};
use signalbox_domain::time::{Span, Timestamp};
use uuid::Uuid;

fn upload() -> Upload {
    Upload {
        id: UploadId(Uuid::from_u128(1)),
        org: OrgId(Uuid::from_u128(2)),
        repo: RepoId(Uuid::from_u128(3)),
        source: UploadSource::JUnit,
        trust: Trust::Token,
        received_at: Timestamp::from_unix_seconds(1_000_000),
        sha: Some(Sha::new("a".repeat(40)).expect("a commit")),
        committed_at: None,
        branch: "main".into(),
        class: BranchClass::Stable,
        pr: Some(PrNumber(7)),
        job_url: None,
        job_name: None,
        origin: Origin::new(Some(&["unit"]), Base::Itself),
        author: None,
        variant: String::new(),
    }
}

fn run(name: &str, outcome: RunOutcome, attempt: u32) -> ReportedRun {
    let failure = ReportedFailure { message: "lost 3 of 4".into(), text: String::new() };
    ReportedRun {
        key: TestKey { name: name.into(), ..TestKey::default() },
        other_files: Vec::new(),
        outcome,
        attempt,
        started_at: None,
        took: None,
        failure: (outcome == RunOutcome::Failed).then_some(failure),
        owners: Vec::new(),
        quarantined: false,
    }
}

fn settings() -> Settings {
    Settings::new(RepoId(Uuid::from_u128(3)))
}

#[test]
fn a_test_has_failed_if_its_last_attempt_has() {
    use RunOutcome::{Failed, Passed, Skipped};
    let runs = [
        run("retried", Failed, 0),
        run("retried", Passed, 1),
        run("fails", Failed, 0),
        run("fails", Failed, 1),
        run("skipped", Skipped, 0),
    ];
    let taken = intake(&upload(), &runs, &settings(), TestDirectory::default());
    let counts = taken.taken_in;
    assert_eq!((counts.tests, counts.failed, counts.runs), (2, 1, 5));
    assert_eq!((taken.reported_tests.len(), taken.additions.len()), (3, 2));
    let retried = &taken.additions[&runs[0].key.id()];
    let code = &retried.summary.codes[0];
    assert!(code.first_failure_at.is_some() && code.first_success_at.is_some());
    assert_eq!((retried.hours[0].passed, retried.hours[0].failed), (1, 1));
    assert_eq!(retried.impacted.map(|(pr, _)| pr), Some(PrNumber(7)));
    assert_eq!(retried.failures[0].summary, "lost <num> of <num>");
}

#[test]
fn owners_are_those_of_the_last_attempt_that_names_any() {
    let owned = |attempt, owners: &[&str]| ReportedRun {
        owners: owners.iter().map(|it| (*it).to_owned()).collect(),
        ..run("owned", RunOutcome::Passed, attempt)
    };
    let runs = [owned(0, &["@acme/calc"]), owned(1, &["@acme/sums"]), owned(2, &[])];
    let taken = intake(&upload(), &runs, &settings(), TestDirectory::default());
    assert_eq!(taken.reported_tests[&runs[0].key.id()].owners, ["@acme/sums"]);
}

#[test]
fn a_retry_within_an_upload_is_evidence_of_its_own_where_the_origin_is_incomplete() {
    use RunOutcome::{Failed, Passed};
    let runs = [run("retried", Failed, 0), run("retried", Passed, 1), run("fails", Failed, 0)];
    let codes = |origin| {
        let upload = Upload { origin, ..upload() };
        let taken = intake(&upload, &runs, &settings(), TestDirectory::default());
        assert!(taken.runs.iter().all(|run| run.origin.is_some() == (run.outcome == Failed)));
        let count = |at: usize| taken.additions[&runs[at].key.id()].summary.codes.len();
        (count(0), count(2))
    };
    assert_eq!(codes(upload().origin), (1, 1));
    assert_eq!(codes(Origin::default()), (2, 1));
    assert_eq!(codes(upload().origin.in_attempt(&["1"])), (2, 1));
}

#[test]
fn what_does_not_count_is_kept_and_feeds_nothing() {
    let runs: Vec<ReportedRun> =
        (0..20).map(|it| run(&format!("t{it}"), RunOutcome::Failed, 0)).collect();
    let public = Upload { trust: Trust::Public, ..upload() };
    for (upload, admission) in
        [(upload(), Admission::Infrastructure), (public, Admission::Untrusted)]
    {
        let taken = intake(&upload, &runs, &settings(), TestDirectory::default());
        assert_eq!((taken.taken_in.admission, taken.runs.len()), (admission, 20));
        for addition in taken.additions.values() {
            assert!(addition.summary.buckets.is_empty() && addition.summary.codes.is_empty());
            assert!(addition.failures.is_empty() && addition.impacted.is_none());
            assert_eq!((addition.hours[0].passed, addition.hours[0].failed), (0, 0));
            assert!(addition.hours[0].first_failure_at.is_some(), "it is shown as failing");
        }
    }
}

#[test]
fn an_incident_excludes_only_its_failures() {
    let mut settings = settings();
    settings.guard.same_failure_tests = Some(2);
    let mut other = run("other", RunOutcome::Failed, 0);
    other.failure = Some(ReportedFailure { message: "own fault".into(), text: String::new() });
    let runs = [run("a", RunOutcome::Failed, 0), run("b", RunOutcome::Failed, 0), other];
    let taken = intake(&upload(), &runs, &settings, TestDirectory::default());
    let counts: Vec<bool> = taken.runs.iter().map(|run| run.counts).collect();
    assert_eq!(counts, [false, false, true]);
}

#[test]
fn times_branches_and_ids_from_outside_are_bounded() {
    let long = Upload { branch: "ü".repeat(300), ..upload() };
    let mut ahead = run("ahead", RunOutcome::Passed, 0);
    ahead.started_at = Some(long.received_at.plus(Span::hours(9)));
    ahead.key.info = "x".repeat(1_001);
    let taken = intake(&long, &[ahead], &settings(), TestDirectory::default());
    assert_eq!(taken.runs[0].at, long.received_at);
    assert_eq!(taken.runs[0].branch.len(), 254);
    assert!(taken.reported_tests.values().all(|it| it.aliases.is_empty()));
}

#[test]
fn a_second_test_under_a_known_id_is_ignored() {
    let five = "1defca6d-177c-5958-b1df-4c4da091b71a";
    let known = TestKey { name: "known".into(), info: five.into(), ..TestKey::default() };
    let mut directory = TestDirectory::default();
    let id = directory.learn(&known, &[]).expect("new");
    // Not the attribute makes this id, but fields that happen to give it.
    let mut same = run("known", RunOutcome::Passed, 0);
    same.key = known;
    let taken = intake(&upload(), &[same], &settings(), directory);
    assert_eq!(taken.reported_tests.keys().copied().collect::<Vec<_>>(), [id]);
}

#[test]
fn progress_adds_up_imported_runs_and_never_goes_back() {
    let at = Timestamp::from_unix_seconds;
    let imported = |received_at| Upload { source: UploadSource::Import, received_at, ..upload() };
    let after = Progress::default().with(&imported(at(500)), 3, at(900));
    let after = after.with(&imported(at(400)), 2, at(900));
    let sum = Imported { uploads: 2, runs: 5, from: at(400), until: at(500) };
    assert_eq!(after, Progress { judged_at: Some(at(900)), imported: Some(sum) });
    let reported = after.with(&upload(), 7, at(800));
    assert_eq!(reported, after, "a report of the present is no import, and 900 is later");
    let now = at(2_000_000);
    assert_eq!(after.as_of(&imported(at(500)), now), at(900), "not before what was judged");
    assert_eq!(after.as_of(&imported(at(1_000)), now), at(1_000));
    assert_eq!(after.as_of(&imported(at(3_000_000)), now), now);
    assert_eq!(after.as_of(&upload(), now), now);
}

#[test]
fn a_test_rarely_fails_if_its_last_failure_is_more_than_a_week_ago() {
    use RunOutcome::Failed;
    let taken = intake(&upload(), &[run("adds", Failed, 0)], &settings(), TestDirectory::default());
    let id = *taken.reported_tests.keys().next().expect("a test");
    let week_ago = taken.upload.received_at.minus(Span::days(7));
    let seen = |known: Option<Option<Timestamp>>| {
        let look = taken.look(&known.into_iter().map(|last| (id, last)).collect());
        (look.failing[0].rarely, look.failing[0].never_failed, look.ran[&id].known)
    };
    assert_eq!(seen(None), (false, false, false), "it is new");
    assert_eq!(seen(Some(None)), (true, true, true), "it has never failed");
    assert_eq!(seen(Some(Some(week_ago))), (false, false, true));
    assert_eq!(seen(Some(Some(week_ago.minus(Span::MICROSECOND)))), (true, false, true));
}
