//! What an upload adds to what is known.

use std::collections::BTreeSet;

use signalbox_domain::flaky::{
    Admission, Base, BranchClass, Imported, InfrastructureGuard, IngestOutcome, Intake, KnownKeys,
    Origin, Outline, Progress, ReportedFailure, ReportedRun, RunOutcome, Settings, TestId, TestKey,
    Trust, Upload, UploadId, UploadRuns, UploadSource, intake,
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

/// The outline of an upload and its counted parts, of that many runs each.
fn outlined(
    upload: &Upload,
    runs: &[ReportedRun],
    settings: &Settings,
    known: &KnownKeys<'_>,
    part: usize,
) -> (Outline, Vec<Intake>) {
    let runs = UploadRuns::new(runs.to_vec());
    let mut outline = Outline::new(upload, settings);
    for part in runs.parts(part) {
        outline.add(part, known);
    }
    let parts = runs.parts(part);
    let parts = parts.map(|part| intake(&outline, part, &BTreeSet::new(), known)).collect();
    (outline, parts)
}

/// An upload of one part.
fn taken(upload: &Upload, runs: &[ReportedRun], settings: &Settings) -> (IngestOutcome, Intake) {
    let (outline, mut parts) = outlined(upload, runs, settings, &KnownKeys::new(), 1_000);
    assert_eq!(parts.len(), 1);
    (outline.outcome(), parts.remove(0))
}

#[test]
fn parts_add_up_to_the_whole() {
    use RunOutcome::{Failed, Passed, Skipped};
    let mut settings = settings();
    settings.guard.same_failure_tests = Some(3);
    let mut runs = Vec::new();
    for number in 0..40 {
        let name = format!("test {}", number % 13);
        let outcome = match number % 5 {
            0 => Failed,
            1 => Skipped,
            _ => Passed,
        };
        runs.push(ReportedRun {
            owners: vec![format!("@{number}")],
            ..run(&name, outcome, number / 13)
        });
    }
    let (whole, mut parts) = outlined(&upload(), &runs, &settings, &KnownKeys::new(), 1_000);
    let one = parts.remove(0);
    assert!(parts.is_empty() && !one.additions.is_empty());
    for size in [0, 1, 2, 3, 7, 39, 40] {
        let (outline, parts) = outlined(&upload(), &runs, &settings, &KnownKeys::new(), size);
        assert_eq!(outline.outcome(), whole.outcome());
        assert_eq!(outline.stable_run(), whole.stable_run());
        let known = one.reported_tests.keys().map(|id| (*id, None)).collect();
        assert_eq!(outline.look(&known).failing, whole.look(&known).failing);
        let tests = parts.iter().flat_map(|it| it.reported_tests.clone());
        assert!(tests.eq(one.reported_tests.clone()), "{size}");
        let counted: Vec<_> = parts.iter().flat_map(|it| it.runs.clone()).collect();
        assert_eq!(counted, one.runs, "{size}");
        let additions = parts.iter().flat_map(|it| it.additions.clone());
        assert!(additions.eq(one.additions.clone()), "{size}");
        let most = if size < 4 { 13 } else { 40_usize.div_ceil(size) };
        assert!(parts.len() <= most && (size > 2 || parts.len() == 13), "{size}: {}", parts.len());
    }
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
    let (outcome, taken) = taken(&upload(), &runs, &settings());
    assert_eq!((outcome.tests, outcome.failed, outcome.runs), (2, 1, 5));
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
    let (_, taken) = taken(&upload(), &runs, &settings());
    assert_eq!(taken.reported_tests[&runs[0].key.id()].owners, ["@acme/sums"]);
}

#[test]
fn a_retry_within_an_upload_is_evidence_of_its_own_where_the_origin_is_incomplete() {
    use RunOutcome::{Failed, Passed};
    let runs = [run("retried", Failed, 0), run("retried", Passed, 1), run("fails", Failed, 0)];
    let codes = |origin| {
        let upload = Upload { origin, ..upload() };
        let (_, taken) = taken(&upload, &runs, &settings());
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
        let (outcome, taken) = taken(&upload, &runs, &settings());
        assert_eq!((outcome.admission, taken.runs.len()), (admission, 20));
        for addition in taken.additions.values() {
            assert!(addition.summary.buckets.is_empty() && addition.summary.codes.is_empty());
            assert!(addition.failures.is_empty() && addition.impacted.is_none());
            assert_eq!((addition.hours[0].passed, addition.hours[0].failed), (0, 0));
            assert!(addition.hours[0].first_failure_at.is_some(), "it is shown as failing");
        }
    }
}

#[test]
fn many_tests_that_fail_alike_can_count_for_nothing() {
    let fails = |name: &str, message: &str| ReportedRun {
        failure: Some(ReportedFailure { message: message.into(), text: String::new() }),
        ..run(name, RunOutcome::Failed, 0)
    };
    let runs = [fails("a", "no disk 1"), fails("b", "no disk 2"), fails("c", "own fault")];
    let counting = |guard: InfrastructureGuard| {
        let (_, taken) = taken(&upload(), &runs, &Settings { guard, ..settings() });
        let counting = taken.runs.iter().filter(|run| run.counts).map(|run| run.test);
        let counting: BTreeSet<TestId> = counting.collect();
        let names = runs.iter().filter(|run| counting.contains(&run.key.id()));
        names.map(|run| run.key.name.clone()).collect::<String>()
    };
    let guard = |least, enabled| InfrastructureGuard {
        same_failure_tests: least,
        enabled,
        ..InfrastructureGuard::default()
    };
    assert_eq!(counting(guard(Some(2), true)), "c");
    assert_eq!(counting(guard(Some(3), true)), "abc");
    assert_eq!(counting(guard(None, true)), "abc");
    assert_eq!(counting(guard(Some(2), false)), "abc");
}

#[test]
fn failures_of_an_incident_count_for_nothing_and_passes_do() {
    use RunOutcome::{Failed, Passed};
    let runs = [run("a", Failed, 0), run("a", Passed, 1), run("b", Failed, 0)];
    let excluded = BTreeSet::from([runs[0].key.id()]);
    let (outline, _) = outlined(&upload(), &runs, &settings(), &KnownKeys::new(), 10);
    let all = UploadRuns::new(runs.to_vec());
    let part = all.parts(10).next().expect("a part");
    let taken = intake(&outline, part, &excluded, &KnownKeys::new());
    let (a, b) = (runs[0].key.id(), runs[2].key.id());
    let of = |id| taken.runs.iter().filter(move |run| run.test == id);
    assert!(of(a).map(|run| (run.outcome, run.counts)).eq([(Failed, false), (Passed, true)]));
    assert!(of(b).all(|run| run.counts));
    assert!(!taken.additions[&a].has_failed() && taken.additions[&b].has_failed());
    assert_eq!(taken.reported_tests[&a].last_failure_at, None);
    assert!(taken.reported_tests[&b].last_failure_at.is_some());
}

#[test]
fn times_branches_and_ids_from_outside_are_bounded() {
    let long = Upload { branch: "ü".repeat(300), ..upload() };
    let mut ahead = run("ahead", RunOutcome::Passed, 0);
    ahead.started_at = Some(long.received_at.plus(Span::hours(9)));
    ahead.key.info = "x".repeat(1_001);
    let (_, taken) = taken(&long, &[ahead], &settings());
    assert_eq!(taken.runs[0].at, long.received_at);
    assert_eq!(taken.runs[0].branch.len(), 254);
    assert!(taken.reported_tests.values().all(|it| it.aliases.is_empty()));
}

#[test]
fn a_second_test_under_a_known_id_is_ignored() {
    let five = "1defca6d-177c-5958-b1df-4c4da091b71a";
    let known = TestKey { name: "known".into(), info: five.into(), ..TestKey::default() };
    let id = known.id();
    // The same attribute stands for the same test, whatever its name is.
    let mut same = run("renamed", RunOutcome::Passed, 0);
    same.key.info = five.into();
    let mut other = run("other", RunOutcome::Failed, 0);
    other.key = TestKey { variant: "linux".into(), ..TestKey::default() };
    let hidden = other.key.id();
    let stored = TestKey { name: "stored".into(), ..TestKey::default() };
    let keys = KnownKeys::from([(id, &known), (hidden, &stored)]);
    let (outline, parts) = outlined(&upload(), &[same, other], &settings(), &keys, 1_000);
    let ids: Vec<TestId> = parts[0].reported_tests.keys().copied().collect();
    assert_eq!(ids, [id], "the other one has the id of a stored test");
    assert_eq!(parts[0].reported_tests[&id].key, known);
    let outcome = outline.outcome();
    assert_eq!((outcome.tests, outcome.failed, outcome.runs, outcome.ignored), (1, 0, 1, 1));
    assert!(outline.reports(id) && !outline.reports(hidden));
}

#[test]
fn an_untrusted_upload_cannot_change_whom_an_id_means_nor_who_owns_a_test() {
    let mut reported = run("adds", RunOutcome::Failed, 0);
    reported.key.file = "calc.rs".into();
    reported.other_files = vec!["other.rs".into()];
    reported.owners = vec!["@others".into()];
    // Its parts, joined, are those of `adds` in the file `a.rs` with the class `b`.
    let mut twin = run("adds", RunOutcome::Passed, 0);
    (twin.key.file, twin.key.classname) = ("a.rs#b".into(), String::new());
    let mut real = run("adds", RunOutcome::Failed, 0);
    (real.key.file, real.key.classname) = ("a.rs".into(), "b#".into());
    assert_eq!(twin.key.id(), real.key.id(), "the attack is a real one");
    let public = Upload { trust: Trust::Public, ..upload() };
    let runs = [reported, twin];
    let (outcome, parts) = taken(&public, &runs, &settings());
    assert_eq!((outcome.runs, outcome.ignored), (1, 1));
    let test = parts.reported_tests.values().next().expect("the test without a sign");
    assert!(test.aliases.is_empty() && test.owners.is_empty(), "{test:?}");
    let counted = Settings { count_public_uploads: true, ..settings() };
    for (upload, settings) in [(upload(), settings()), (public.clone(), counted)] {
        let (outcome, parts) = taken(&upload, &runs, &settings);
        assert_eq!((outcome.runs, outcome.ignored), (2, 0));
        let owned = parts.reported_tests.values().find(|it| !it.owners.is_empty());
        assert_eq!(owned.map(|it| it.aliases.len()), Some(1));
    }
    let known = KnownKeys::from([(runs[1].key.id(), &runs[1].key)]);
    let (outline, _) = outlined(&public, &runs, &settings(), &known, 1_000);
    assert_eq!(outline.outcome().ignored, 0, "it is a known test");
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
    let runs = [run("adds", Failed, 0)];
    let (outline, _) = outlined(&upload(), &runs, &settings(), &KnownKeys::new(), 1);
    let id = runs[0].key.id();
    let week_ago = upload().received_at.minus(Span::days(7));
    let seen = |known: Option<Option<Timestamp>>| {
        let look = outline.look(&known.into_iter().map(|last| (id, last)).collect());
        (look.failing[0].rarely, look.failing[0].never_failed, look.ran[&id].known)
    };
    assert_eq!(seen(None), (false, false, false), "it is new");
    assert_eq!(seen(Some(None)), (true, true, true), "it has never failed");
    assert_eq!(seen(Some(Some(week_ago))), (false, false, true));
    assert_eq!(seen(Some(Some(week_ago.minus(Span::MICROSECOND)))), (true, false, true));
}
