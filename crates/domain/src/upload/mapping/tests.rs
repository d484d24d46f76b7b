//! What becomes of an upload's times, branch, pull request, attempts and excuses.

use std::collections::BTreeMap;

use proptest::prelude::*;
use uuid::Uuid;

use super::super::{Claims, ContentHash, FoundRun, WarningKind};
use super::*;
use crate::flaky::{Trust, UploadId};
use crate::ids::{OrgId, RepoId};

const NOW: i64 = 1_767_225_600;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_unix_seconds(NOW + seconds)
}

fn record(claims: Claims) -> (UploadRecord, Received) {
    let id = Uuid::from_u128(1);
    let record = UploadRecord::awaited(
        UploadId(id),
        (OrgId(id), RepoId(id)),
        (UploadSource::Bundle, Trust::Token),
        claims,
        at(0),
    );
    (record, Received { at: at(0), parts: Vec::new() })
}

fn run(name: &str, outcome: RunOutcome) -> FoundRun {
    FoundRun {
        parent: "suite".into(),
        classname: "class".into(),
        file: "file.rs".into(),
        name: name.into(),
        info: String::new(),
        other_files: Vec::new(),
        outcome,
        started_at: Some(at(-60)),
        took: Some(Span::seconds(1)),
        failure: None,
        owners: Vec::new(),
        quarantined: false,
        told_again: false,
        contradicted: false,
    }
}

fn mapped(meta: Option<BundleMeta>, runs: Vec<FoundRun>, claims: Claims) -> Mapped {
    mapped_from(UploadSource::Bundle, meta, runs, claims)
}

fn mapped_from(
    source: UploadSource,
    meta: Option<BundleMeta>,
    runs: Vec<FoundRun>,
    claims: Claims,
) -> Mapped {
    let (record, received) = record(claims);
    let record = UploadRecord { source, ..record };
    let found = FoundReport { meta, runs, files: Vec::new(), digest: ContentHash([0; 32]) };
    let org = OrgSlug::new("acme").expect("a slug");
    let repo = RepoName::parse("github.com/acme/calc").expect("a name");
    let rules = MappingRules {
        branches: BranchRules::default(),
        oldest: at(-45 * 86_400),
        count_public_uploads: false,
    };
    map(&record, &received, found, (&org, &repo), &rules)
}

fn meta(variables: &[(&str, &str)]) -> BundleMeta {
    let variables: BTreeMap<String, String> =
        variables.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
    BundleMeta {
        sha: "a".repeat(40),
        branch: "refs/heads/from-git".into(),
        committed_at: Some(at(-3_600)),
        author: "Ada".into(),
        variables,
        ..BundleMeta::default()
    }
}

fn claims(branch: &str, pr: Option<u32>) -> Claims {
    Claims { branch: Some(branch.into()), pr: pr.map(PrNumber), ..Claims::default() }
}

#[test]
fn the_ci_system_counts_before_git_unless_there_is_no_clone() {
    let github = [("GITHUB_ACTIONS", "true"), ("GITHUB_REF", "refs/heads/from-ci")];
    assert_eq!(mapped(Some(meta(&github)), vec![], Claims::default()).upload.branch, "from-ci");
    let uncloned = BundleMeta { uncloned: true, ..meta(&github) };
    assert_eq!(mapped(Some(uncloned), vec![], Claims::default()).upload.branch, "from-git");
    assert_eq!(mapped(Some(meta(&[])), vec![], Claims::default()).upload.branch, "from-git");
}

#[test]
fn branches_have_the_class_that_senders_expect() {
    for (branch, pr, class) in [
        ("main", None, BranchClass::Stable),
        ("refs/heads/main", None, BranchClass::Stable),
        ("main", Some(7), BranchClass::PullRequest),
        ("pull/7/merge", None, BranchClass::PullRequest),
        ("remotes/pull/7/head", None, BranchClass::PullRequest),
        ("trunk-merge/pr-7/x", Some(7), BranchClass::Merge),
        ("x/gtmq_y", None, BranchClass::Merge),
        ("gtmq_y", None, BranchClass::Merge),
        ("gh-readonly-queue/main/pr-7", None, BranchClass::Merge),
        ("topic", None, BranchClass::Other),
    ] {
        assert_eq!(mapped(None, vec![], claims(branch, pr)).upload.class, class, "{branch} {pr:?}");
    }
    let by_branch = mapped(None, vec![], claims("refs/pull/7/merge", None)).upload;
    assert_eq!(by_branch.pr, Some(PrNumber(7)));
}

#[test]
fn the_origin_of_results_is_their_job_and_base() {
    let origin = |variables: &[(&str, &str)]| {
        let marker = [("GITHUB_ACTIONS", "true"), ("GITHUB_JOB", "unit")];
        let all: Vec<(&str, &str)> = marker.iter().chain(variables).copied().collect();
        mapped(Some(meta(&all)), vec![], Claims::default()).upload.origin
    };
    let of = |base| Origin::new(Some(&["github", "unit", "", "", "", ""]), base);
    let pr = ("GITHUB_REF", "refs/pull/7/merge");
    let head = "a".repeat(40);
    assert_eq!(origin(&[("GITHUB_REF", "refs/heads/main"), ("GITHUB_SHA", "b")]), of(Base::Itself));
    assert_eq!(origin(&[pr, ("GITHUB_SHA", "b")]), of(Base::Merged("b")));
    assert_eq!(origin(&[pr, ("GITHUB_SHA", &head)]), of(Base::Itself));
    assert_eq!(origin(&[pr]), of(Base::Unknown));
    assert_eq!(origin(&[("GITHUB_REF", "refs/heads/topic")]), of(Base::Itself), "a push");
    let attempt = [pr, ("GITHUB_SHA", "b"), ("GITHUB_RUN_ID", "12"), ("GITHUB_RUN_ATTEMPT", "1")];
    assert_eq!(origin(&attempt), of(Base::Merged("b")).in_attempt(&["12", "1"]));
    let plain = |claims| mapped(None, vec![], claims).upload.origin;
    assert_eq!(plain(claims("topic", Some(7))), Origin::default());
    assert_eq!(plain(claims("main", None)), Origin::new(None, Base::Itself));
    let named = |name: &str| Claims { job_name: Some(name.into()), ..claims("main", None) };
    assert_ne!(plain(named("linux")), plain(named("windows")));
    let check = |run| Claims { check: Some("unit".into()), ..named(run) };
    let of_check = |claims| mapped_from(UploadSource::Checks, None, vec![], claims).upload.origin;
    assert_eq!(of_check(check("unit of test run 1")), of_check(check("unit of test run 2")));
    // Elsewhere the job names the matrix entry, too.
    assert_ne!(plain(check("unit (linux)")), plain(check("unit (windows)")));
    let status = Claims { check: Some("unit".into()), ..claims("main", None) };
    assert_ne!(plain(status), plain(claims("main", None)));
    let base = Claims { base: Some("c".into()), ..claims("topic", Some(7)) };
    assert_eq!(plain(base), Origin::new(None, Base::Merged("c")));
}

#[test]
fn a_start_is_believed_between_its_commit_and_its_upload() {
    for (seconds, believed) in
        [(-60, true), (200, true), (301, false), (-3_600 - 86_400, true), (-3_601 - 86_400, false)]
    {
        let run = FoundRun { started_at: Some(at(seconds)), ..run("a", RunOutcome::Passed) };
        let mapped = mapped(Some(meta(&[])), vec![run], Claims::default());
        assert_eq!(mapped.runs[0].started_at.is_some(), believed, "{seconds}");
    }
}

#[test]
fn a_start_is_kept_at_its_time_or_not_at_all() {
    let day = 86_400;
    for (seconds, kept) in [
        (-20 * day, Some(true)),
        (-44 * day, Some(true)),
        (-46 * day, None),
        (-60 * day, None),
        // Writers without a time write zeros: such a test ran when it was uploaded.
        (-NOW, Some(false)),
    ] {
        let run = FoundRun { started_at: Some(at(seconds)), ..run("a", RunOutcome::Passed) };
        let mapped = mapped(None, vec![run], Claims::default());
        let starts: Vec<Option<Timestamp>> = mapped.runs.iter().map(|it| it.started_at).collect();
        let expected = kept.map(|own| own.then(|| at(seconds)));
        assert_eq!(starts, expected.into_iter().collect::<Vec<_>>(), "{seconds}");
        assert_eq!(mapped.too_old, usize::from(kept.is_none()), "{seconds}");
        let warned = mapped.warnings.iter().any(|it| it.kind == WarningKind::TimestampTooOld);
        assert_eq!(warned, kept.is_none(), "{seconds}");
    }
}

/// A commit that is newer than its run does not bring the run to the time of the upload.
#[test]
fn a_new_commit_makes_no_old_run_new() {
    let run = FoundRun { started_at: Some(at(-60 * 86_400)), ..run("a", RunOutcome::Passed) };
    let mapped = mapped(Some(meta(&[])), vec![run], Claims::default());
    assert_eq!((mapped.runs, mapped.too_old), (Vec::new(), 1));
}

#[test]
fn attempts_are_counted_through_all_files() {
    let runs = vec![
        run("a", RunOutcome::Failed),
        run("b", RunOutcome::Passed),
        run(" a ", RunOutcome::Passed),
    ];
    let mapped = mapped(None, runs, Claims::default());
    let attempts: Vec<u32> = mapped.runs.iter().map(|run| run.attempt).collect();
    assert_eq!(attempts, [0, 0, 1]);
    assert_eq!(mapped.runs[0].key.repo, "github.com/acme/calc");
}

#[test]
fn an_excused_failure_is_known_by_every_id_that_was_sent_for_it() {
    let by_attribute = FoundRun { info: "123".into(), ..run("a", RunOutcome::Failed) };
    let passed = FoundRun { info: "123".into(), ..run("a", RunOutcome::Passed) };
    let meta = BundleMeta { excused: ["123".to_owned()].into(), ..meta(&[]) };
    let runs = vec![by_attribute, passed, run("b", RunOutcome::Failed)];
    let mapped = mapped(Some(meta), runs, Claims::default());
    let quarantined: Vec<bool> = mapped.runs.iter().map(|run| run.quarantined).collect();
    assert_eq!(quarantined, [true, false, false]);
}

#[test]
fn a_warning_is_reported_once_with_a_count() {
    let nameless =
        FoundRun { name: String::new(), started_at: None, ..run("", RunOutcome::Passed) };
    let old = FoundRun { started_at: Some(at(-90_000)), ..run("b", RunOutcome::Passed) };
    let mapped = mapped(None, vec![nameless, old], Claims::default());
    let kinds: Vec<(WarningKind, u32)> =
        mapped.warnings.iter().map(|it| (it.kind, it.count)).collect();
    assert_eq!(
        kinds,
        [
            (WarningKind::CaseNameMissing, 1),
            (WarningKind::ShaMissing, 0),
            (WarningKind::BranchMissing, 0),
            (WarningKind::TimestampMissing, 1),
            (WarningKind::TimestampOld, 1),
            (WarningKind::JobUrlMissing, 0),
        ]
    );
}

#[test]
fn a_sender_without_a_token_gives_no_test_its_id() {
    let id = "1defca6d-177c-5958-b1df-4c4da091b71a";
    let given = |info: &str| FoundRun { info: info.into(), ..run("adds", RunOutcome::Passed) };
    let info = |trust, count_public_uploads, sent: &str| {
        let (record, received) = record(Claims::default());
        let record = UploadRecord { trust, ..record };
        let found = FoundReport {
            meta: None,
            runs: vec![given(sent)],
            files: Vec::new(),
            digest: ContentHash([0; 32]),
        };
        let org = OrgSlug::new("acme").expect("a slug");
        let repo = RepoName::parse("github.com/acme/calc").expect("a name");
        let branches = BranchRules::default();
        let rules = MappingRules { branches, oldest: at(-86_400), count_public_uploads };
        let mut mapped = map(&record, &received, found, (&org, &repo), &rules);
        mapped.runs.remove(0).key.info
    };
    assert_eq!(info(Trust::Public, false, id), "");
    assert_eq!(info(Trust::Public, true, id), id);
    assert_eq!(info(Trust::Token, false, id), id);
    for other in ["case-7", "trunk:./spec/a.rb[1]"] {
        assert_eq!(info(Trust::Public, false, other), other);
    }
}

#[test]
fn an_address_of_a_job_is_one_of_the_web() {
    let claims = |url: &str| Claims { job_url: Some(url.into()), ..Claims::default() };
    assert_eq!(mapped(None, vec![], claims("javascript:alert(1)")).upload.job_url, None);
    assert!(mapped(None, vec![], claims("https://ci/1")).upload.job_url.is_some());
}

proptest! {
    #[test]
    fn whatever_is_sent_is_mapped_and_cut(branch in "\\PC{0,1200}", sha in "\\PC{0,50}", variant in "\\PC{0,80}") {
        let claims = Claims { branch: Some(branch), sha: Some(sha), variant, ..Claims::default() };
        let upload = mapped(None, vec![], claims).upload;
        prop_assert!(upload.branch.len() <= MAX_SHOWN && upload.variant.len() <= MAX_VARIANT);
    }
}

#[test]
fn attempts_are_numbered_by_their_starts_when_all_are_known() {
    use RunOutcome::{Failed, Passed};
    let started = |seconds: Option<i64>, outcome| FoundRun {
        started_at: seconds.map(at),
        ..run("a", outcome)
    };
    let numbers = |runs: Vec<FoundRun>| -> Vec<(RunOutcome, u32)> {
        let runs = mapped(None, runs, Claims::default()).runs;
        runs.into_iter().map(|it| (it.outcome, it.attempt)).collect()
    };
    // The file of the rerun comes first in the bundle.
    let rerun_first = vec![started(Some(-10), Passed), started(Some(-60), Failed)];
    assert_eq!(numbers(rerun_first), [(Passed, 1), (Failed, 0)]);
    let one_is_unknown = vec![started(Some(-10), Passed), started(None, Failed)];
    assert_eq!(numbers(one_is_unknown), [(Passed, 0), (Failed, 1)]);
    let at_once = vec![started(Some(-60), Failed), started(Some(-60), Passed)];
    assert_eq!(numbers(at_once), [(Failed, 0), (Passed, 1)]);
    // What cannot be believed is not known.
    let ahead = vec![started(Some(9_999), Passed), started(Some(-60), Failed)];
    assert_eq!(numbers(ahead), [(Passed, 0), (Failed, 1)]);
}
