//! How long a test delayed pull requests.

use std::collections::BTreeSet;

use proptest::prelude::*;
use signalbox_domain::flaky::{
    Base, BranchClass, CodeSummary, Delay, Origin, SameCode, delayed, delays,
};
use signalbox_domain::ids::Sha;
use signalbox_domain::time::{Span, Timestamp};

fn minute(at: u32) -> Timestamp {
    Timestamp::from_unix_seconds(1_000_000).plus(Span::minutes(at))
}

/// The runs of a job on a commit of a branch: when it first failed and first passed.
fn runs(
    branch: &str,
    commit: u32,
    job: Option<&str>,
    (failed, passed): (Option<u32>, Option<u32>),
) -> CodeSummary {
    CodeSummary {
        code: SameCode::Commit(Sha::new(format!("{commit:040x}")).expect("a commit")),
        branch: branch.to_owned(),
        class: BranchClass::PullRequest,
        origin: Origin::new(job.as_ref().map(std::slice::from_ref), Base::Unknown),
        first_success_at: passed.map(minute),
        first_failure_at: failed.map(minute),
    }
}

fn minutes(codes: &[CodeSummary]) -> i64 {
    delayed(&delays(codes, minute(0))).micros() / Span::minutes(1).micros()
}

#[test]
fn the_time_to_a_success_on_the_same_code_is_a_delay() {
    let test = Some("test");
    assert_eq!(minutes(&[runs("a", 1, test, (Some(10), Some(25)))]), 15);
    let fixed = [runs("a", 1, test, (Some(10), None)), runs("a", 2, test, (None, Some(25)))];
    assert_eq!(minutes(&fixed), 0, "fixed by another commit");
    assert_eq!(minutes(&[runs("a", 1, test, (Some(25), Some(10)))]), 0, "it passed before");
    let twice = [1, 2].map(|commit| runs("a", commit, test, (Some(10 * commit), Some(25))));
    assert_eq!(minutes(&twice), 15, "one branch waits once");
    let two = ["a", "b"].map(|branch| runs(branch, 1, test, (Some(10), Some(25))));
    assert_eq!(minutes(&two), 30);
}

#[test]
fn only_the_same_job_ends_a_delay() {
    let linux = |failed, passed| runs("a", 1, Some("linux"), (failed, passed));
    let windows = |failed, passed| runs("a", 1, Some("windows"), (failed, passed));
    assert_eq!(minutes(&[linux(Some(10), None), windows(None, Some(12))]), 0);
    assert_eq!(minutes(&[linux(Some(10), Some(40)), windows(None, Some(12))]), 30);
    assert_eq!(minutes(&[linux(Some(10), Some(30)), windows(Some(10), Some(12))]), 20);
    assert_eq!(minutes(&[runs("a", 1, None, (Some(10), Some(12)))]), 0, "the job is unknown");
}

#[test]
fn stable_branches_are_not_delayed() {
    let of = |class| CodeSummary { class, ..runs("a", 1, Some("test"), (Some(10), Some(25))) };
    let counted = BranchClass::ALL.iter().filter(|class| minutes(&[of(**class)]) > 0);
    let counted: Vec<BranchClass> = counted.copied().collect();
    assert_eq!(counted, [BranchClass::PullRequest, BranchClass::Merge]);
}

#[test]
fn earlier_failures_are_not_counted() {
    let codes = [
        runs("a", 1, Some("test"), (Some(10), Some(25))),
        runs("a", 2, Some("test"), (Some(30), Some(35))),
    ];
    let found = delays(&codes, minute(30));
    assert_eq!(found, [Delay { branch: "a".into(), from: minute(30), until: minute(35) }]);
}

proptest! {
    /// Each minute of each branch counts once, whatever the order.
    #[test]
    fn delays_at_the_same_time_count_once(
        delays in prop::collection::vec((0_u8..3, 0_u32..40, 1_u32..20), 0..12),
    ) {
        let counted: BTreeSet<(u8, u32)> = delays
            .iter()
            .flat_map(|(branch, from, length)| (*from..from + length).map(|at| (*branch, at)))
            .collect();
        let delays: Vec<Delay> = delays
            .iter()
            .map(|(branch, from, length)| Delay {
                branch: branch.to_string(),
                from: minute(*from),
                until: minute(from + length),
            })
            .collect();
        let minutes = delayed(&delays).micros() / Span::minutes(1).micros();
        prop_assert_eq!(minutes, i64::try_from(counted.len()).expect("a small number"));
    }
}
