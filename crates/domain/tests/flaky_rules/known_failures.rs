//! What is known about the failure of a test in a candidate.

use std::collections::BTreeSet;

use signalbox_domain::flaky::{
    Actor, AutoQuarantine, BranchClass, KnownFailure, ManualFlag, QuarantineCause,
    QuarantineSettings, RunOutcome, RunRecord, SEEN_WITHIN_HOURS, Settings, TestCase, TestKey,
    TestStatus, TestedChanges, Trust, Upload, UploadId, UploadSource, known_failure,
};
use signalbox_domain::ids::{OrgId, PrNumber, RepoId, Sha};
use signalbox_domain::time::{Span, Timestamp};
use uuid::Uuid;

/// When the test run started.
fn started() -> Timestamp {
    Timestamp::from_unix_seconds(1_767_225_600)
}

fn sha(digit: char) -> Sha {
    Sha::new(digit.to_string().repeat(40)).expect("a commit")
}

fn test() -> TestCase {
    let key = TestKey { name: "adds".into(), ..TestKey::default() };
    TestCase::new(OrgId(Uuid::nil()), RepoId(Uuid::nil()), key, started().minus(Span::days(9)))
}

/// A test that a user flagged at that time.
fn flagged(at: Timestamp) -> TestCase {
    let mut test = test();
    test.standing.value = TestStatus::Flaky;
    test.standing.since = at;
    let by = Actor { full_name: "Ada".into(), email: String::new() };
    test.flag = Some(ManualFlag { reason: None, by, at });
    test
}

/// A failure with this message, some minutes before the run started.
fn failure(
    message: &str,
    class: BranchClass,
    commit: char,
    pr: Option<u32>,
    ago: u32,
) -> RunRecord {
    let upload = Upload {
        id: UploadId(Uuid::nil()),
        org: OrgId(Uuid::nil()),
        repo: RepoId(Uuid::nil()),
        source: UploadSource::JUnit,
        trust: Trust::Token,
        received_at: started(),
        sha: Some(sha(commit)),
        committed_at: None,
        branch: "a branch".into(),
        class,
        pr: pr.map(PrNumber),
        job_url: None,
        job_name: None,
        origin: signalbox_domain::flaky::Origin::default(),
        author: None,
        variant: String::new(),
    };
    let at = started().minus(Span::minutes(ago));
    let mut run = RunRecord::new(&upload, test().id, at, RunOutcome::Failed);
    run.counts = true;
    run.message = Some(message.to_owned());
    run
}

/// Judges a failure in the candidate `c` of pull request 7.
fn judged(
    test: &TestCase,
    settings: &Settings,
    message: &str,
    others: &[RunRecord],
) -> KnownFailure {
    let (sha, prs) = (sha('c'), BTreeSet::from([PrNumber(7)]));
    let this = failure(message, BranchClass::Merge, 'c', Some(7), 0);
    let changes = TestedChanges { sha: &sha, target: "a branch", prs: &prs, since: started() };
    known_failure(test, settings, &this, others, changes)
}

#[test]
fn what_became_known_after_the_run_started_does_not_count() {
    let mut settings = Settings::new(RepoId(Uuid::nil()));
    let later = started().plus(Span::seconds(1));
    assert_eq!(judged(&test(), &settings, "2 is not 3", &[]), KnownFailure::New);
    assert_eq!(judged(&flagged(started()), &settings, "2 is not 3", &[]), KnownFailure::Flaky);
    assert_eq!(judged(&flagged(later), &settings, "2 is not 3", &[]), KnownFailure::New);
    settings.quarantine = QuarantineSettings { enabled: true, auto: AutoQuarantine::Flaky };
    let by = Actor { full_name: "Ada".into(), email: String::new() };
    let quarantined = KnownFailure::Quarantined(QuarantineCause::Flag { by });
    assert_eq!(judged(&flagged(started()), &settings, "2 is not 3", &[]), quarantined);
    assert_eq!(judged(&flagged(later), &settings, "2 is not 3", &[]), KnownFailure::New);
    let mut broken = flagged(started());
    broken.standing.value = TestStatus::Broken;
    assert_eq!(judged(&broken, &settings, "2 is not 3", &[]), KnownFailure::New);
}

#[test]
fn an_equal_failure_counts_only_without_the_changes() {
    use BranchClass::{Merge, Other, PullRequest, Stable};
    let settings = Settings::new(RepoId(Uuid::nil()));
    let day = SEEN_WITHIN_HOURS * 60;
    let message = "no answer from 10.0.0.7 after 31 ms";
    let alike = "no answer from 10.0.0.9 after 55 ms";
    for (other, seen) in [
        (failure(alike, Stable, 'a', None, 5), true),
        (failure(alike, PullRequest, 'b', Some(8), 5), true),
        (failure(alike, Stable, 'a', None, day - 1), true),
        (failure(alike, Stable, 'a', None, day), false),
        (failure("2 is not 3", Stable, 'a', None, 5), false),
        (failure(alike, PullRequest, 'b', Some(7), 5), false),
        (failure(alike, PullRequest, 'b', None, 5), false),
        (failure(alike, Merge, 'd', Some(8), 5), false),
        (failure(alike, Other, 'd', None, 5), false),
        (failure(alike, Stable, 'c', None, 5), false),
        (RunRecord { counts: false, ..failure(alike, Stable, 'a', None, 5) }, false),
        (RunRecord { outcome: RunOutcome::Passed, ..failure(alike, Stable, 'a', None, 5) }, false),
        (RunRecord { message: None, ..failure(alike, Stable, 'a', None, 5) }, false),
    ] {
        let on_target = other.class == Stable;
        let expected =
            if seen { KnownFailure::SeenElsewhere { on_target } } else { KnownFailure::New };
        let found = judged(&test(), &settings, message, std::slice::from_ref(&other));
        assert_eq!(found, expected, "{other:?}");
    }
    // The target is red only while its own newest result, of the last day, is that failure.
    let red = failure(alike, Stable, 'a', None, 60);
    let passed = |run: RunRecord| RunRecord { outcome: RunOutcome::Passed, ..run };
    for (other, on_target) in [
        (passed(failure("", Stable, 'e', None, 5)), false),
        (failure("2 is not 3", Stable, 'e', None, 5), false),
        (RunRecord { outcome: RunOutcome::Skipped, ..failure("", Stable, 'e', None, 5) }, true),
        (passed(failure("", PullRequest, 'e', Some(8), 5)), true),
        (passed(failure("", Stable, 'e', None, 90)), true),
        (RunRecord { branch: "develop".into(), ..passed(failure("", Stable, 'e', None, 5)) }, true),
    ] {
        let found = judged(&test(), &settings, message, &[red.clone(), other.clone()]);
        assert_eq!(found, KnownFailure::SeenElsewhere { on_target }, "{other:?}");
    }
    let elsewhere = failure(alike, PullRequest, 'b', Some(8), 5);
    let of_develop = RunRecord { branch: "develop".into(), ..red };
    for other in [of_develop, failure(alike, Stable, 'a', None, day)] {
        let found = judged(&test(), &settings, message, &[elsewhere.clone(), other]);
        assert_eq!(found, KnownFailure::SeenElsewhere { on_target: false });
    }
    let silent = failure("", Stable, 'a', None, 5);
    assert_eq!(judged(&test(), &settings, "", &[silent]), KnownFailure::New, "nothing to compare");
}
