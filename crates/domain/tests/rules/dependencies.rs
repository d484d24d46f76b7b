//! Dependencies: a pull request enters the line when its dependencies have merged.

use signalbox_domain::ids::{PrNumber, RepoName};
use signalbox_domain::queue::{
    CancelReason, Command, Decision, Dependency, DependencyState, Effect, Fact, Input, Mode, Moved,
    Reason, Refusal, RequestedState, Settings, SettingsPatch, WaitReason,
};
use signalbox_domain::testing::{Rules, World};
use signalbox_domain::time::Span;

use crate::{in_line, is_checks, run_until, states, submit, update, waits};

fn world(slots: u32) -> World {
    World::new(Settings::new(Mode::Single, slots).expect("valid settings"), Rules::default())
}

fn own(pr: u32) -> Dependency {
    Dependency::Own(PrNumber(pr))
}

fn on(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn depend(world: &mut World, pr: u32, on: impl IntoIterator<Item = Dependency>) {
    world.depend(pr, on);
    world.absorb_all();
}

fn setting(enabled: bool) -> SettingsPatch {
    SettingsPatch { dependencies_enabled: Some(enabled), ..SettingsPatch::default() }
}

/// Why an entry was cancelled in the last step.
fn ended(world: &World) -> Option<CancelReason> {
    world.decisions.iter().find_map(|decision| match decision {
        Decision::Moved(Moved { reason: Reason::Cancelled(reason), .. }) => Some(*reason),
        _ => None,
    })
}

#[test]
fn a_pull_request_waits_until_its_dependencies_in_the_queue_have_merged() {
    let mut world = world(3);
    depend(&mut world, 1, [own(2), own(3)]);
    submit(&mut world, [2, 1, 3]);
    assert_eq!(in_line(&world), [2, 3]);
    assert_eq!(waits(&world, 1), WaitReason::Dependencies { on: on(&["#2", "#3"]) });
    run_until(
        &mut world,
        |effect| matches!(effect, Effect::Land(land) if land.changes.iter().any(|it| it.pr.0 == 3)),
    );
    assert_eq!(waits(&world, 1), WaitReason::Dependencies { on: on(&["#3"]) });
    world.settle();
    assert_eq!(world.landed, [2, 3, 1]);
}

#[test]
fn a_dependency_outside_the_queue_is_read_and_followed() {
    let mut world = world(1);
    world.pull_request(7);
    depend(&mut world, 1, [own(7)]);
    submit(&mut world, [1]);
    assert!(world.outbox.iter().any(|it| it.effect == Effect::InspectDependency { on: own(7) }));
    world.settle();
    assert_eq!(waits(&world, 1), WaitReason::Dependencies { on: on(&["#7"]) });
    world.close_or_reopen(7);
    world.settle();
    assert_eq!(waits(&world, 1), WaitReason::DependencyClosed { on: on(&["#7"]) });
    world.close_or_reopen(7);
    world.settle();
    assert_eq!(waits(&world, 1), WaitReason::Dependencies { on: on(&["#7"]) });
    world.merge_by_hand(7);
    world.settle();
    assert_eq!(world.landed, [1]);
}

#[test]
fn a_merged_dependency_does_not_hold_its_dependent() {
    let mut world = world(1);
    world.pull_request(7);
    world.merge_by_hand(7);
    world.absorb_all();
    depend(&mut world, 1, [own(7)]);
    submit(&mut world, [1]);
    world.settle();
    assert_eq!(world.landed, [1]);
}

#[test]
fn an_unknown_dependency_holds_its_dependent() {
    let mut world = world(1);
    let other = RepoName::parse("git.example/acme/web").expect("a repository");
    let unknown = Dependency::Unknown("#x".into());
    depend(&mut world, 1, [own(99), Dependency::Other(other, PrNumber(4)), unknown]);
    submit(&mut world, [1]);
    world.settle();
    let names = on(&["#99", "acme/web#4", "#x"]);
    assert_eq!(waits(&world, 1), WaitReason::DependencyUnknown { on: names });
    assert_eq!(world.landed, []);
    depend(&mut world, 1, []);
    world.settle();
    assert_eq!(world.landed, [1], "its description no longer names any");
}

#[test]
fn a_dependency_of_another_repository_is_followed() {
    let mut world = world(1);
    let name = RepoName::parse("git.example/acme/web").expect("a repository");
    let other = Dependency::Other(name, PrNumber(4));
    depend(&mut world, 1, [other.clone()]);
    submit(&mut world, [1]);
    world.outbox.retain(|it| !matches!(it.effect, Effect::InspectDependency { .. }));
    assert_eq!(waits(&world, 1), WaitReason::Dependencies { on: on(&["acme/web#4"]) });
    for (state, expected) in [
        (DependencyState::Open, WaitReason::Dependencies { on: on(&["acme/web#4"]) }),
        (DependencyState::Missing, WaitReason::DependencyUnknown { on: on(&["acme/web#4"]) }),
        (DependencyState::Closed, WaitReason::DependencyClosed { on: on(&["acme/web#4"]) }),
    ] {
        world.take_in(&Fact::DependencySeen { on: other.clone(), state });
        assert_eq!(waits(&world, 1), expected);
    }
    world.take_in(&Fact::DependencySeen { on: other.clone(), state: DependencyState::Merged });
    // A read that was late.
    world.take_in(&Fact::DependencySeen { on: other, state: DependencyState::Open });
    world.settle();
    assert_eq!(world.landed, [1]);
}

#[test]
fn a_dependency_that_is_added_in_the_line_cancels() {
    let mut world = world(3);
    submit(&mut world, [1, 2, 3]);
    run_until(&mut world, is_checks);
    depend(&mut world, 1, [own(3)]);
    assert_eq!(in_line(&world), [2, 3]);
    assert_eq!(ended(&world), Some(CancelReason::DependencyNotMerged));
    let runs = || world.queue.runs();
    assert!(!runs().any(|run| run.contains(PrNumber(1))), "what was built on it is built again");
    submit(&mut world, [1]);
    world.settle();
    assert_eq!(world.landed, [2, 3, 1]);
}

#[test]
fn a_dependency_that_is_added_in_the_line_and_has_merged_changes_nothing() {
    let mut world = world(1);
    world.pull_request(7);
    world.merge_by_hand(7);
    world.absorb_all();
    submit(&mut world, [1]);
    run_until(&mut world, is_checks);
    depend(&mut world, 1, [own(7)]);
    assert_eq!(in_line(&world), [1]);
    world.settle();
    let runs = world
        .journal
        .iter()
        .filter(|(_, input)| matches!(input, Input::Fact(Fact::CandidateBuilt { .. })));
    assert_eq!((world.landed.as_slice(), runs.count()), ([1].as_slice(), 1));
}

/// #1 is landing when the setting is turned on, and depends on an open pull request.
fn landing_before_its_dependency() -> World {
    let mut world = world(1);
    update(&mut world, setting(false), None);
    world.pull_request(7);
    depend(&mut world, 1, [own(7)]);
    submit(&mut world, [1]);
    run_until(&mut world, |effect| matches!(effect, Effect::Land(_)));
    update(&mut world, setting(true), None);
    let inspect = world.outbox.pop().expect("the dependency is read");
    world.run(&inspect.effect);
    world.absorb_all();
    assert_eq!(in_line(&world), [1], "it is landing");
    world
}

#[test]
fn a_landing_entry_is_not_cancelled() {
    let mut world = landing_before_its_dependency();
    let run = world.queue.header.landing.as_ref().expect("it is landing").run;
    world.take_in(&Fact::AnswerLost { run });
    assert_eq!(in_line(&world), [1], "it may have landed");
    world.settle();
    assert_eq!(world.landed, [1]);
}

#[test]
fn an_entry_whose_landing_is_refused_after_a_change_of_the_setting_is_cancelled() {
    let mut world = landing_before_its_dependency();
    world.push_target();
    while !states(&world).is_empty() {
        assert!(world.step(), "it is cancelled");
    }
    assert_eq!(ended(&world), Some(CancelReason::DependencyNotMerged));
    world.settle();
    assert_eq!(world.landed, []);
}

#[test]
fn the_setting_takes_effect_in_both_directions() {
    let mut world = world(1);
    world.pull_request(7);
    depend(&mut world, 1, [own(7)]);
    depend(&mut world, 2, [own(7)]);
    submit(&mut world, [1]);
    world.settle();
    assert_eq!(in_line(&world), []);
    update(&mut world, setting(false), Some(RequestedState::Paused));
    assert_eq!(in_line(&world), [], "a paused queue admits none");
    update(&mut world, SettingsPatch::default(), Some(RequestedState::Running));
    submit(&mut world, [2]);
    assert_eq!(in_line(&world), [1, 2]);
    update(&mut world, setting(true), None);
    assert_eq!(in_line(&world), [1, 2], "the dependency has not been read");
    world.settle();
    assert_eq!((states(&world).len(), world.landed.len()), (0, 0), "both are cancelled");
    update(&mut world, setting(false), None);
    submit(&mut world, [1, 2]);
    world.settle();
    assert_eq!(world.landed, [1, 2]);
}

#[test]
fn a_cycle_is_refused_at_submission_and_named_after_an_edit() {
    let mut world = world(1);
    depend(&mut world, 1, [own(2)]);
    depend(&mut world, 3, [own(1)]);
    submit(&mut world, [1, 3]);
    depend(&mut world, 2, [own(3)]);
    let others = vec![PrNumber(3), PrNumber(1)];
    let refused = world.submit(2, None).expect_err("refused");
    assert_eq!(refused, Refusal::DependencyCycle { pr: PrNumber(2), others });
    assert_eq!(refused.to_string(), "pull request 2 depends on itself: #2 → #3 → #1 → #2");
    assert_eq!(in_line(&world), []);
    world.pull_request(9);
    depend(&mut world, 2, [own(9)]);
    submit(&mut world, [2]);
    depend(&mut world, 2, [own(3)]);
    let cycle = |prs: [u32; 3]| WaitReason::DependencyCycle { prs: prs.map(PrNumber).to_vec() };
    assert_eq!(waits(&world, 2), cycle([2, 3, 1]));
    assert_eq!(waits(&world, 1), cycle([1, 2, 3]));
    for pr in [1, 2, 3] {
        assert!(world.shown.contains(&PrNumber(pr)), "the host shows it at #{pr}");
    }
    depend(&mut world, 4, [own(4)]);
    let refused = world.submit(4, None).expect_err("refused");
    assert_eq!(refused.to_string(), "pull request 4 depends on itself: #4 → #4");
    let by = world.caller();
    world.ask(Command::Cancel { pr: PrNumber(2), by }).expect("cancelled");
    assert!(world.shown.contains(&PrNumber(1)), "it no longer shows a cycle");
    depend(&mut world, 3, []);
    submit(&mut world, [2]);
    world.settle();
    assert_eq!(world.landed, [3, 2, 1]);
}

#[test]
fn a_dependency_that_is_closed_and_submitted_again_is_followed() {
    let mut world = world(1);
    depend(&mut world, 2, [own(1)]);
    submit(&mut world, [1, 2]);
    world.close_or_reopen(1);
    world.absorb_all();
    let read =
        world.outbox.iter().position(|it| it.effect == Effect::InspectDependency { on: own(1) });
    let read = world.outbox.remove(read.expect("it is read again"));
    world.run(&read.effect);
    let late = world.facts.remove(0);
    assert_eq!(late, Fact::DependencySeen { on: own(1), state: DependencyState::Closed });
    world.take_in(&late);
    assert_eq!(waits(&world, 2), WaitReason::DependencyClosed { on: on(&["#1"]) });
    world.close_or_reopen(1);
    world.facts.clear();
    submit(&mut world, [1]);
    assert_eq!(waits(&world, 2), WaitReason::Dependencies { on: on(&["#1"]) }, "without a hint");
    world.take_in(&late);
    assert_eq!(waits(&world, 2), WaitReason::Dependencies { on: on(&["#1"]) }, "the read was late");
    world.settle();
    assert_eq!(world.landed, [1, 2]);
}

/// A host may show what was landed with new commits as closed, or as open for a while.
#[test]
fn a_hint_is_followed_by_a_read() {
    let mut world = world(1);
    world.pull_request(7);
    depend(&mut world, 1, [own(7)]);
    submit(&mut world, [1]);
    world.settle();
    world.close_or_reopen(7);
    world.absorb_all();
    assert_eq!(waits(&world, 1), WaitReason::Dependencies { on: on(&["#7"]) });
    let next = world.outbox.remove(0).effect;
    assert_eq!(next, Effect::InspectDependency { on: own(7) });
    world.take_in(&Fact::DependencySeen { on: own(7), state: DependencyState::Merged });
    world.settle();
    assert_eq!(world.landed, [1]);
}

#[test]
fn a_dependency_of_several_is_read_once() {
    let mut world = world(1);
    world.pull_request(7);
    for pr in [1, 2, 3] {
        depend(&mut world, pr, [own(7)]);
    }
    submit(&mut world, [1, 2]);
    let reads = |world: &World| {
        let reads = world.outbox.iter().map(|it| &it.effect);
        reads.filter(|it| matches!(it, Effect::InspectDependency { .. })).count()
    };
    assert_eq!(reads(&world), 1);
    world.settle();
    submit(&mut world, [3]);
    assert_eq!(reads(&world), 0, "the others know it");
    world.merge_by_hand(7);
    world.settle();
    assert_eq!(world.landed, [1, 2, 3], "the one that has waited longest first");
}

#[test]
fn a_dependency_that_leaves_the_queue_unmerged_holds_its_dependents() {
    let mut world = world(1);
    depend(&mut world, 2, [own(1)]);
    submit(&mut world, [1, 2]);
    let by = world.caller();
    world.ask(Command::Cancel { pr: PrNumber(1), by }).expect("cancelled");
    world.settle();
    assert_eq!(waits(&world, 2), WaitReason::Dependencies { on: on(&["#1"]) });
    submit(&mut world, [1]);
    world.settle();
    assert_eq!(world.landed, [1, 2]);
}

#[test]
fn an_urgent_pull_request_does_not_pass_its_dependencies() {
    let mut world = world(2);
    depend(&mut world, 2, [own(1)]);
    submit(&mut world, [3, 1]);
    world.submit(2, Some(0)).expect("submitted");
    assert_eq!(in_line(&world), [3, 1]);
    world.settle();
    assert_eq!(world.landed, [3, 1, 2]);
}

#[test]
fn the_wait_for_open_dependencies_does_not_time_out() {
    let mut world = world(1);
    world.pull_request(7);
    depend(&mut world, 1, [own(7)]);
    submit(&mut world, [1]);
    world.settle();
    let not_ready = Span::hours(world.queue.header.settings.not_ready_timeout_hours);
    let is_there = |world: &World| !states(world).is_empty();
    world.wait(not_ready);
    world.wait(not_ready);
    world.take_in(&Fact::TimePassed);
    assert!(is_there(&world));
    world.close_or_reopen(7);
    world.settle();
    world.take_in(&Fact::TimePassed);
    assert!(is_there(&world), "the time counts from when the dependency was closed");
    world.wait(not_ready);
    world.take_in(&Fact::TimePassed);
    assert!(!is_there(&world));
}
