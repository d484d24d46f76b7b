//! Impacted targets that the queue's rules compute from changed paths.

use std::collections::BTreeSet;

use signalbox_domain::ids::PrNumber;
use signalbox_domain::queue::{
    BatchingRule, Command, ComputedTargets, Decision, Effect, Fact, IgnoredBecause, MergeMethod,
    Mergeability, Mode, PrState, ReportedTargets, RequestedState, Settings, SettingsPatch,
    Submission, Targets, TargetsOrigin, WaitReason, WhyAll,
};
use signalbox_domain::testing::{Rules, World};
use signalbox_domain::time::Span;

use crate::{in_batches, in_line, is_checks, run_until, states, submit, update, waits};

const OWN: [&str; 3] = ["t1/** t1", "t2/** t2", "t3/** NONE"];

fn setting(rules: &[&str]) -> SettingsPatch {
    let rules = rules.iter().map(|rule| (*rule).to_owned()).collect();
    SettingsPatch { impacted_target_rules: Some(rules), ..SettingsPatch::default() }
}

/// A queue with rules, to which nothing is reported. Pull request N changes a file in `tN`, and any above
/// 9 changes the `Makefile`.
fn world(mode: Mode, rules: &[&str]) -> World {
    let settings = Settings::new(mode, 5).expect("valid settings");
    let settings = setting(rules).applied_to(&settings).expect("valid rules");
    let targets = (1..10).map(|pr| (pr, BTreeSet::from([pr]))).collect();
    let mut world = World::new(settings, Rules { targets, ..Rules::default() });
    world.reports_targets = false;
    world
}

/// Runs the waiting effects that compute targets, and no others.
fn compute(world: &mut World) {
    let is_wanted = |effect: &Effect| matches!(effect, Effect::ComputeTargets { .. });
    while let Some(at) = world.outbox.iter().position(|it| is_wanted(&it.effect)) {
        let effect = world.outbox.remove(at);
        world.run(&effect.effect);
        world.absorb_all();
    }
}

fn requested(world: &World) -> Vec<u32> {
    let computed = world.outbox.iter().filter_map(|it| match &it.effect {
        Effect::ComputeTargets { pr, .. } => Some(pr.0),
        _ => None,
    });
    computed.collect()
}

fn targets(world: &World, pr: u32) -> Option<ReportedTargets> {
    let entry = world.queue.entry_of(PrNumber(pr)).expect("a live entry");
    entry.known_targets(&world.queue.header).cloned()
}

fn names(world: &World, pr: u32) -> Vec<String> {
    match targets(world, pr).expect("known targets").targets {
        Targets::Only(names) => names.iter().map(ToOwned::to_owned).collect(),
        Targets::All => vec!["ALL".to_owned()],
    }
}

fn report(world: &mut World, pr: u32, names: &[&str]) {
    let head = world.pull_request(pr).head;
    let targets = ReportedTargets::only(Some(head), names);
    world.ask(Command::SetTargets { pr: PrNumber(pr), targets }).expect("not refused");
}

/// The pull requests ahead in the candidate of one.
fn built_on(world: &World, pr: u32) -> Vec<u32> {
    let run = world.queue.entry_of(PrNumber(pr)).and_then(|it| it.state.run());
    let run = run.and_then(|run| world.queue.run(run)).expect("it is under test");
    run.ahead.iter().map(|(_, pr)| pr.0).collect()
}

fn is_ignored(world: &World, because: IgnoredBecause) -> bool {
    world
        .decisions
        .iter()
        .any(|it| matches!(it, Decision::Ignored { because: found } if *found == because))
}

#[test]
fn a_pull_request_enters_the_line_when_its_targets_are_computed() {
    let mut world = world(Mode::Parallel, &OWN);
    submit(&mut world, [1, 2, 3, 11]);
    assert_eq!(requested(&world), [1, 2, 3, 11]);
    assert_eq!(waits(&world, 1), WaitReason::ComputingTargets);
    assert_eq!(in_line(&world), []);
    compute(&mut world);
    assert_eq!(in_line(&world), [1, 2, 3, 11]);
    assert_eq!((names(&world, 1), names(&world, 3)), (vec!["t1".to_owned()], vec![]));
    let all = targets(&world, 11).expect("known").origin;
    let why_all = Some(WhyAll::NoRule { path: "Makefile".into() });
    assert_eq!(all, TargetsOrigin::Computed { revision: 0, why_all });
    run_until(&mut world, is_checks);
    assert_eq!(built_on(&world, 2), []);
    assert_eq!(built_on(&world, 3), []);
    world.settle();
    assert_eq!(world.landed.len(), 4);
    assert_eq!(world.landed.last(), Some(&11), "it waits for all");
}

#[test]
fn a_queue_without_rules_computes_nothing() {
    let mut world = world(Mode::Parallel, &[]);
    submit(&mut world, [1]);
    assert_eq!(requested(&world), []);
    assert_eq!(waits(&world, 1), WaitReason::MissingTargets);
}

#[test]
fn a_queue_with_one_line_does_not_wait_for_targets() {
    let mut world = world(Mode::Single, &OWN);
    submit(&mut world, [1]);
    assert_eq!(requested(&world), [1]);
    assert_eq!(in_line(&world), [1]);
    compute(&mut world);
    assert_eq!(names(&world, 1), ["t1"]);
    assert_eq!(in_line(&world), [1]);
    world.settle();
    assert_eq!(world.landed, [1]);
}

#[test]
fn reported_targets_take_precedence() {
    let mut world = world(Mode::Parallel, &OWN);
    submit(&mut world, [1]);
    report(&mut world, 1, &["//reported"]);
    assert_eq!(in_line(&world), [1]);
    compute(&mut world);
    assert!(is_ignored(&world, IgnoredBecause::Superseded));
    assert_eq!(names(&world, 1), ["//reported"]);

    submit(&mut world, [2]);
    compute(&mut world);
    run_until(&mut world, is_checks);
    let before = world.queue.entry_of(PrNumber(2)).and_then(|it| it.state.run());
    report(&mut world, 2, &["t2"]);
    let run = |world: &World| world.queue.entry_of(PrNumber(2)).and_then(|it| it.state.run());
    assert_eq!(run(&world), before, "the same targets restart nothing");
    assert_eq!(targets(&world, 2).map(|it| it.origin), Some(TargetsOrigin::Reported));
    report(&mut world, 2, &["//other"]);
    assert_ne!(run(&world), before);
    update(&mut world, setting(&["** ALL"]), None);
    assert_eq!(requested(&world), [], "both are reported");
    world.settle();
    assert_eq!(world.landed.len(), 2);
}

#[test]
fn targets_belong_to_a_head() {
    let mut world = world(Mode::Parallel, &OWN);
    submit(&mut world, [1]);
    let effect = world.outbox.iter().find(|it| matches!(it.effect, Effect::ComputeTargets { .. }));
    let effect = effect.expect("requested").effect.clone();
    world.judge(1, Mergeability::InProgress);
    world.absorb_all();
    assert_eq!(requested(&world), [1], "the head is the same");
    world.run(&effect);
    let late = world.facts.remove(0);
    world.push(1);
    world.absorb_all();
    assert_eq!(requested(&world), [1, 1]);
    world.take_in(&late);
    assert!(is_ignored(&world, IgnoredBecause::Superseded));
    assert_eq!(targets(&world, 1), None, "they are of the old head");
    compute(&mut world);
    assert_eq!(names(&world, 1), ["t1"]);
    assert!(targets(&world, 1).is_some_and(|it| it.sha.is_some()));
}

#[test]
fn other_rules_compute_all_targets_again() {
    let mut world = world(Mode::Parallel, &OWN);
    submit(&mut world, [1, 2]);
    compute(&mut world);
    run_until(&mut world, is_checks);
    assert_eq!(built_on(&world, 2), []);
    update(&mut world, setting(&["t1/** t1", "** ALL"]), None);
    assert_eq!(requested(&world), [1, 2]);
    let late = Fact::TargetsComputed {
        pr: PrNumber(2),
        head: world.pull_request(2).head,
        revision: 0,
        computed: ComputedTargets::incomplete("a reason"),
    };
    world.take_in(&late);
    assert!(is_ignored(&world, IgnoredBecause::Superseded));
    assert_eq!(targets(&world, 2), None, "they are by the old rules");
    assert_eq!(built_on(&world, 2), [], "which still apply");
    compute(&mut world);
    assert_eq!(names(&world, 2), ["ALL"]);
    run_until(&mut world, |effect| matches!(effect, Effect::Land(_)));
    assert_eq!(built_on(&world, 2), [1], "it is tested again, on top of #1");
    world.settle();
    assert_eq!(world.landed, [1, 2]);
}

#[test]
fn without_rules_entries_keep_their_targets_and_others_need_a_report() {
    let mut world = world(Mode::Parallel, &OWN);
    submit(&mut world, [1, 2]);
    // Longer than the timeout: only the queue keeps it outside.
    world.wait(Span::hours(30));
    world.take_in(&Fact::TimePassed);
    let at = world
        .outbox
        .iter()
        .position(|it| matches!(&it.effect, Effect::ComputeTargets { pr, .. } if pr.0 == 1));
    let effect = world.outbox.remove(at.expect("requested"));
    world.run(&effect.effect);
    world.absorb_all();
    assert_eq!(waits(&world, 2), WaitReason::ComputingTargets);
    update(&mut world, setting(&[]), None);
    assert_eq!(in_line(&world), [1]);
    assert_eq!(waits(&world, 2), WaitReason::MissingTargets);
    compute(&mut world);
    assert_eq!(waits(&world, 2), WaitReason::MissingTargets);
    world.settle();
    assert_eq!(world.landed, [1]);
    world.wait(Span::hours(20));
    world.take_in(&Fact::TimePassed);
    assert_eq!(states(&world), [(2, PrState::NotReady)], "its time starts with the change");
    world.wait(Span::hours(5));
    world.take_in(&Fact::TimePassed);
    assert_eq!(states(&world), []);
}

#[test]
fn targets_that_are_computed_during_a_landing_are_requested_again_after_its_refusal() {
    let mut world = world(Mode::Parallel, &OWN);
    submit(&mut world, [1]);
    compute(&mut world);
    run_until(&mut world, |effect| matches!(effect, Effect::Land(_)));
    update(&mut world, setting(&["** ALL"]), None);
    compute(&mut world);
    assert!(is_ignored(&world, IgnoredBecause::Superseded));
    assert_eq!(targets(&world, 1), None);
    world.push_target();
    world.facts.clear();
    let at = world.outbox.iter().position(|it| matches!(it.effect, Effect::Land(_)));
    let landing = world.outbox.remove(at.expect("it is landing"));
    world.run(&landing.effect);
    world.absorb_all();
    assert_eq!(requested(&world), [1]);
    compute(&mut world);
    assert_eq!(names(&world, 1), ["ALL"]);
    world.settle();
    assert_eq!(world.landed, [1]);
}

#[test]
fn targets_of_an_earlier_submission_are_computed_again() {
    let mut world = world(Mode::Parallel, &OWN);
    let head = world.pull_request(1).head;
    let computed = ComputedTargets::incomplete("a reason");
    let stored = ReportedTargets::computed(head, 7, computed);
    let submission = Submission::builder(world.pull_request(1), world.caller(), world.at);
    world.ask(submission.targets(stored).build().into()).expect("not refused");
    assert_eq!(targets(&world, 1), None);
    compute(&mut world);
    assert_eq!(names(&world, 1), ["t1"]);
}

#[test]
fn a_queue_with_one_line_and_batching_rules_waits_for_computed_targets() {
    let mut world = world(Mode::Single, &OWN);
    let rule = BatchingRule { target_pattern: "t1".into(), policy: "isolate".into() };
    let batching_rules = Some(vec![rule]);
    let patch = SettingsPatch { batching_rules, ..in_batches(2) };
    update(&mut world, patch, None);
    submit(&mut world, [1, 2, 3]);
    assert_eq!(waits(&world, 1), WaitReason::ComputingTargets);
    compute(&mut world);
    run_until(&mut world, is_checks);
    let groups: Vec<usize> = world.queue.runs().map(|run| run.group.len()).collect();
    assert_eq!(groups, [1, 2], "the first is isolated");
    world.settle();
    assert_eq!(world.landed, [1, 2, 3]);
}

#[test]
fn another_merge_method_and_lost_landings_compute_targets_again() {
    let mut world = world(Mode::Parallel, &OWN);
    submit(&mut world, [1, 2]);
    compute(&mut world);
    let method = SettingsPatch { merge_method: Some(MergeMethod::Rebase), ..Default::default() };
    update(&mut world, method, None);
    assert_eq!(requested(&world), [1, 2]);
    world.settle();
    assert_eq!(world.landed, [1, 2]);
    submit(&mut world, [3]);
    compute(&mut world);
    world.push_target();
    world.absorb_all();
    assert_eq!(requested(&world), []);
    let lost = world.merged.values().next().expect("it has merged").clone();
    let head = world.queue.header.target.head.clone().expect("a known head");
    let was = lost.pull_request.head.clone();
    world.take_in(&Fact::LandingsChecked { was, head, lost: vec![lost], back: Vec::new() });
    assert_eq!(requested(&world), [3]);
    assert_eq!(names(&world, 3), Vec::<String>::new(), "which are known until then");
    world.settle();
    assert_eq!(world.landed.len(), 3);
}

#[test]
fn targets_that_an_outage_has_left_are_requested_again_after_it() {
    let mut world = world(Mode::Parallel, &OWN);
    submit(&mut world, [1, 2]);
    world.take_in(&World::host_lost());
    let pull_request = world.pull_request(1);
    world.take_in(&Fact::TargetsComputed {
        pr: PrNumber(1),
        head: pull_request.head,
        revision: 0,
        computed: ComputedTargets::host_failed("the host is not available"),
    });
    assert_eq!(names(&world, 1), ["ALL"]);
    world.outbox.clear();
    world.take_in(&Fact::HostReachable);
    assert_eq!(requested(&world), [1]);
    compute(&mut world);
    assert_eq!(names(&world, 1), ["t1"]);
}

#[test]
fn targets_are_requested_again_when_the_answer_of_a_landing_is_lost() {
    let mut world = world(Mode::Parallel, &OWN);
    submit(&mut world, [1]);
    compute(&mut world);
    run_until(&mut world, |effect| matches!(effect, Effect::Land(_)));
    update(&mut world, setting(&["** ALL"]), Some(RequestedState::Paused));
    compute(&mut world);
    let run = world.queue.header.landing.clone().expect("it is landing").run;
    world.take_in(&Fact::AnswerLost { run });
    assert_eq!(requested(&world), [1]);
}
