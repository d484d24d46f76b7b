//! Commands: deletions, changes of state, and resubmissions.

use signalbox_domain::ids::PrNumber;
use signalbox_domain::queue::{
    CancelReason, ChangeSource, Command, Decision, Exit, Fact, IgnoredBecause, Mergeability, Mode,
    PrState, Refusal, RequestedState, SettingsPatch, Submission,
};
use signalbox_domain::testing::{Rules, World};

use crate::{exit, is_checks, run_until, states, update, world};

fn order(world: &World) -> Vec<u32> {
    states(world).into_iter().map(|(pr, _)| pr).collect()
}

/// A resubmission that forces the pull request into the line.
fn force(world: &mut World, pr: u32, priority: Option<u32>) -> Vec<Decision> {
    let pull_request = world.pull_request(pr);
    let submission = Submission::builder(pull_request, world.caller(), world.at)
        .priority(priority.map(signalbox_domain::queue::Priority::number))
        .force(true)
        .build();
    world.ask(submission.into()).expect("not refused");
    world.decisions.clone()
}

fn changes(decisions: &[Decision]) -> Vec<String> {
    let what = |it: &Decision| match it {
        Decision::Changed { what, .. } => Some(what.clone()),
        _ => None,
    };
    decisions.iter().filter_map(what).collect()
}

#[test]
fn an_empty_queue_is_deleted() {
    let mut world = world(1, Rules::default());
    world.ask(Command::Delete).expect("nothing is in it");
    assert!(world.queue.header.deleted);
}

#[test]
fn a_drain_is_refused_during_a_mode_switch() {
    let mut world = world(1, Rules::default());
    world.submit(1, None).expect("submitted");
    let parallel = SettingsPatch { mode: Some(Mode::Parallel), ..SettingsPatch::default() };
    update(&mut world, parallel, None);
    let (settings, by) = (Box::default(), world.caller());
    let state = Some(RequestedState::Draining);
    let drain = Command::Update { settings, state, reason: None, by, source: ChangeSource::Direct };
    assert_eq!(world.ask(drain), Err(Refusal::ModeChangeInProgress));
}

#[test]
fn a_forced_resubmission_enters_the_line_although_the_host_reports_a_conflict() {
    let mut world = world(1, Rules::default());
    world.judge(1, Mergeability::NotMergeable("a conflict".into()));
    world.facts.clear();
    world.submit(1, None).expect("submitted");
    assert_eq!(states(&world), [(1, PrState::NotReady)]);
    assert_eq!(changes(&force(&mut world, 1, None)), ["priority medium, in a batch, forced"]);
    assert_eq!(states(&world), [(1, PrState::Testing)]);
    let because = IgnoredBecause::Known;
    assert_eq!(force(&mut world, 1, None), [Decision::Ignored { because }]);
    assert_eq!(changes(&force(&mut world, 1, Some(10))), ["priority high, in a batch"]);
}

#[test]
fn a_pull_request_that_is_no_longer_urgent_waits_by_priority() {
    let mut world = world(2, Rules::default());
    for (pr, priority) in [(1, None), (2, None), (3, Some(0)), (4, Some(0)), (5, Some(0))] {
        world.submit(pr, priority).expect("submitted");
    }
    run_until(&mut world, is_checks);
    assert_eq!(order(&world), [3, 4, 5, 1, 2]);
    world.submit(5, Some(100)).expect("submitted again");
    assert_eq!(order(&world), [3, 4, 1, 2, 5]);
}

#[test]
fn a_pull_request_that_is_gone_from_the_host_leaves() {
    let mut world = world(1, Rules::default());
    world.submit(1, None).expect("submitted");
    world.take_in(&Fact::PullRequestGone { pr: PrNumber(1) });
    let Exit::Cancelled { reason, .. } = exit(&world, 1) else { panic!("it left") };
    assert_eq!(reason, CancelReason::Closed);
    world.take_in(&Fact::PullRequestGone { pr: PrNumber(1) });
    let because = IgnoredBecause::NoSuchEntry;
    assert_eq!(world.decisions, [Decision::Ignored { because }]);
}
