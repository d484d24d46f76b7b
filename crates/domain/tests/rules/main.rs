//! Rules of the queue, one per test.

mod aside;
mod batches;
mod checks;
mod commands;
mod composition;
mod dependencies;
mod external;
mod fairness;
mod freezes;
mod landings;
mod lanes;
mod management;
mod modes;
mod policy;
mod pretest;
mod quota;
mod reasons;
mod reparenting;
mod retries;
mod settings;
mod shown;
mod state;
mod target;
mod targets;
mod turns;
mod window;

use signalbox_domain::ids::PrNumber;
use signalbox_domain::queue::{
    ChangeSource, Command, Culprit, Decision, Effect, Entry, EntryState, Exit, Fact, FailReason,
    Input, Mode, PrState, Refusal, ReportedTargets, RequestedState, RunChecks, Settings,
    SettingsPatch, WaitReason, absorb, decide, next_deadline, view_entry, view_queue,
};
use signalbox_domain::testing::{Rules, World};
use signalbox_domain::time::Span;

fn world(concurrency: u32, rules: Rules) -> World {
    World::new(Settings::new(Mode::Single, concurrency).expect("valid settings"), rules)
}

fn bad(prs: &[u32]) -> Rules {
    Rules { bad: prs.iter().copied().collect(), ..Rules::default() }
}

fn update(world: &mut World, settings: SettingsPatch, state: Option<RequestedState>) {
    let (settings, by) = (Box::new(settings), world.caller());
    let command = Command::Update {
        settings,
        state,
        reason: Some("a reason".into()),
        by,
        source: ChangeSource::Direct,
    };
    world.ask(command).expect("not refused");
}

/// Builds every candidate and leaves the checks in the outbox.
fn build_all(world: &mut World) {
    world.absorb_all();
    while let Some(at) = world.outbox.iter().position(|it| !is_checks(&it.effect)) {
        let effect = world.outbox.remove(at);
        world.run(&effect.effect);
        world.absorb_all();
    }
}

/// Runs the waiting checks of this pull request before all others.
fn checks_end(world: &mut World, pr: u32) {
    run_checks(world, pr);
    build_all(world);
}

/// Runs the waiting checks of this pull request before all others, and leaves what follows.
fn run_checks(world: &mut World, pr: u32) {
    build_all(world);
    let own = |effect: &Effect| matches!(effect, Effect::RunChecks(RunChecks { prs, .. }) if prs.contains(&PrNumber(pr)));
    let at = world.outbox.iter().position(|it| own(&it.effect)).expect("it is under test");
    let checks = world.outbox.remove(at);
    world.run(&checks.effect);
}

/// Settings of batches of so many, which wait 5 minutes to fill.
fn in_batches(size: u32) -> SettingsPatch {
    SettingsPatch {
        batch: Some(true),
        batching_min_size: Some(size),
        batching_max_wait_time_minutes: Some(5),
        ..SettingsPatch::default()
    }
}

/// Submits pull requests, one each second.
fn submit(world: &mut World, prs: impl IntoIterator<Item = u32>) {
    for pr in prs {
        world.wait(Span::seconds(1));
        world.submit(pr, None).expect("submitted");
    }
}

/// The pull requests in the line, in order.
fn in_line(world: &World) -> Vec<u32> {
    let line = states(world).into_iter().filter(|(_, state)| *state != PrState::NotReady);
    line.map(|(pr, _)| pr).collect()
}

fn states(world: &World) -> Vec<(u32, PrState)> {
    world.queue.entries_in_order().map(|it| (it.pr.0, it.state.name())).collect()
}

fn waits(world: &World, pr: u32) -> WaitReason {
    view_entry(&world.queue, PrNumber(pr)).and_then(|it| it.waits).expect("a live entry waits")
}

/// Runs effects and facts until one of these is next in the outbox.
fn run_until(world: &mut World, stop: fn(&Effect) -> bool) {
    for _ in 0..1_000 {
        let is_next =
            world.facts.is_empty() && world.outbox.first().is_some_and(|it| stop(&it.effect));
        if is_next || !world.step() {
            return;
        }
    }
}

const fn is_checks(effect: &Effect) -> bool {
    matches!(effect, Effect::RunChecks(_))
}

/// All decisions since the queue was created.
fn decisions(world: &World) -> Vec<Decision> {
    let mut queue = world.new_queue.clone();
    let mut decisions = Vec::new();
    for (at, input) in &world.journal {
        let transition = match input {
            Input::Command(command) => decide(&queue, command, *at).expect("it was not refused"),
            Input::Fact(fact) => absorb(&queue, fact, *at),
        };
        decisions.extend(transition.decisions);
        queue = transition.queue;
    }
    decisions
}

/// The exit of a pull request, from the last transition that ended it.
fn exit(world: &World, pr: u32) -> Exit {
    let mut queue = world.new_queue.clone();
    let mut last: Option<Entry> = None;
    for (at, input) in &world.journal {
        let transition = match input {
            Input::Command(command) => decide(&queue, command, *at).expect("it was not refused"),
            Input::Fact(fact) => absorb(&queue, fact, *at),
        };
        let ended = transition.changes.entries.iter().filter(|it| it.pr.0 == pr && !it.is_live());
        last = ended.map(|it| it.as_ref().clone()).next_back().or(last);
        queue = transition.queue;
    }
    match last.map(|it| it.state) {
        Some(EntryState::Ended(exit)) => exit,
        other => panic!("#{pr} has not ended: {other:?}"),
    }
}

#[test]
fn every_entry_has_exactly_one_wait_reason() {
    let mut world = world(2, Rules::default());
    for pr in 1..=4 {
        world.submit(pr, None).expect("submitted");
    }
    assert_eq!(waits(&world, 1), WaitReason::BuildingCandidate);
    assert_eq!(waits(&world, 2), WaitReason::BehindPrs { prs: vec![PrNumber(1)], ahead: 1 });
    run_until(&mut world, is_checks);
    let of_one = WaitReason::ChecksRunning { done: 0, of: 1 };
    assert_eq!(waits(&world, 1), of_one);
    assert_eq!(waits(&world, 3), WaitReason::SlotsFull { used: 2, limit: 2, ahead: 0 });
    world.take_in(&World::host_lost());
    assert_eq!(
        waits(&world, 3),
        WaitReason::HostUnreachable { since: world.at, detail: "no answer".into() }
    );
    world.take_in(&Fact::HostReachable);
    update(&mut world, SettingsPatch::default(), Some(RequestedState::Paused));
    let paused =
        WaitReason::QueuePaused { by: "token test".into(), reason: Some("a reason".into()) };
    assert_eq!(waits(&world, 4), paused);
    assert!(view_queue(&world.queue).entries.iter().all(|it| it.waits.is_some()));
}

#[test]
fn a_higher_priority_goes_ahead_of_waiting_entries_and_behind_entries_under_test() {
    let mut world = world(1, Rules::default());
    for (pr, priority) in [(1, None), (2, None), (3, Some(200)), (4, Some(10))] {
        world.submit(pr, priority).expect("submitted");
    }
    let order: Vec<u32> = states(&world).iter().map(|it| it.0).collect();
    assert_eq!(order, [1, 4, 2, 3]);
    world.submit(3, Some(5)).expect("submitted again");
    let order: Vec<u32> = states(&world).iter().map(|it| it.0).collect();
    assert_eq!(order, [1, 3, 4, 2]);
    world.settle();
    assert_eq!(world.landed, [1, 3, 4, 2]);
}

#[test]
fn an_urgent_pull_request_interrupts_and_goes_first() {
    let mut world = world(2, Rules::default());
    world.submit(1, None).expect("submitted");
    world.submit(2, None).expect("submitted");
    run_until(&mut world, is_checks);
    world.submit(3, Some(0)).expect("submitted");
    let order: Vec<u32> = states(&world).iter().map(|it| it.0).collect();
    assert_eq!(order, [3, 1, 2]);
    world.settle();
    assert_eq!(world.landed, [3, 1, 2]);
}

#[test]
fn a_failure_behind_a_running_test_is_pending_until_the_culprit_is_known() {
    let rules = Rules { bad: [1].into(), clash: [(1, 2)].into(), ..Rules::default() };
    let mut world = world(2, rules);
    world.submit(1, None).expect("submitted");
    world.submit(2, None).expect("submitted");
    world.settle();
    assert_eq!(world.landed, [2], "the second only failed because of the first");
    let Exit::Failed { reason, culprit, .. } = exit(&world, 1) else { panic!("it failed") };
    assert_eq!((reason, culprit), (FailReason::RequiredStatus, Culprit::Itself));
}

#[test]
fn a_conflict_with_a_pull_request_ahead_names_it_as_the_culprit() {
    let rules = Rules { conflict: [(1, 2)].into(), ..Rules::default() };
    let mut world = world(2, rules);
    world.submit(1, None).expect("submitted");
    world.submit(2, None).expect("submitted");
    run_until(&mut world, is_checks);
    let checks = world.outbox.remove(0);
    run_until(&mut world, is_checks);
    assert_eq!(waits(&world, 2), WaitReason::ConflictWithAhead { pr: PrNumber(1) });
    world.outbox.push(checks);
    world.settle();
    let Exit::Failed { reason, culprit, details, .. } = exit(&world, 2) else {
        panic!("it failed")
    };
    assert_eq!(reason, FailReason::MergeConflict);
    assert_eq!(culprit, Culprit::PullRequest(PrNumber(1)));
    assert_eq!(details, ["file"]);
}

#[test]
fn a_run_times_out_and_an_outage_of_the_host_extends_its_deadline() {
    let mut world = world(1, Rules::default());
    world.submit(1, None).expect("submitted");
    run_until(&mut world, is_checks);
    let (since, due) = (world.at, world.at.plus(Span::minutes(300)));
    world.wait(Span::minutes(10));
    world.take_in(&Fact::TimePassed);
    let names = vec!["test".to_owned()];
    assert_eq!(waits(&world, 1), WaitReason::ChecksSilent { names, since });
    assert_eq!(next_deadline(&world.queue), Some(due));
    world.take_in(&World::host_lost());
    assert_eq!(next_deadline(&world.queue), None);
    world.wait(Span::minutes(400));
    world.take_in(&Fact::TimePassed);
    assert_eq!(states(&world), [(1, PrState::Testing)], "nothing fails because of the host");
    world.take_in(&Fact::HostReachable);
    assert_eq!(next_deadline(&world.queue), Some(due.plus(Span::minutes(400))));
    world.wait(Span::minutes(300));
    world.take_in(&Fact::TimePassed);
    let Exit::Failed { reason, .. } = exit(&world, 1) else { panic!("it failed") };
    assert_eq!(reason, FailReason::Timeout);
}

#[test]
fn an_entry_that_is_not_ready_is_cancelled_after_a_day_unless_the_queue_keeps_it_out() {
    let mut world = world(1, Rules::default());
    world.retarget(1);
    world.facts.clear();
    world.submit(1, None).expect("submitted");
    assert_eq!(waits(&world, 1), WaitReason::BaseBranchDiffers);
    update(&mut world, SettingsPatch::default(), Some(RequestedState::Draining));
    assert_eq!(next_deadline(&world.queue), None);
    update(&mut world, SettingsPatch::default(), Some(RequestedState::Running));
    world.wait(Span::hours(23));
    world.take_in(&Fact::TimePassed);
    assert_eq!(states(&world), [(1, PrState::NotReady)]);
    world.wait(Span::hours(1));
    world.take_in(&Fact::TimePassed);
    assert!(matches!(exit(&world, 1), Exit::Cancelled { .. }));
}

#[test]
fn with_a_depth_a_failure_waits_for_successors_under_test() {
    let mut world = world(2, bad(&[1]));
    update(
        &mut world,
        SettingsPatch { pending_failure_depth: Some(1), ..SettingsPatch::default() },
        None,
    );
    world.submit(1, None).expect("submitted");
    world.submit(2, None).expect("submitted");
    run_until(&mut world, is_checks);
    let first = world.outbox.remove(0);
    run_until(&mut world, is_checks);
    world.run(&first.effect);
    world.absorb_all();
    assert_eq!(states(&world)[0], (1, PrState::PendingFailure));
    assert_eq!(waits(&world, 1), WaitReason::SuccessorWindow { depth: 1 });
    world.settle();
    assert_eq!(world.landed, [2]);
}

#[test]
fn a_refused_command_changes_nothing() {
    let mut world = world(1, Rules::default());
    let by = world.caller();
    let (pr, before) = (PrNumber(1), world.queue.clone());
    let cancel = Command::Cancel { pr, by: by.clone() };
    assert_eq!(world.ask(cancel.clone()), Err(Refusal::NotInQueue { pr }));
    assert_eq!(world.queue, before);
    world.submit(1, None).expect("submitted");
    assert_eq!(world.ask(Command::Delete), Err(Refusal::QueueNotEmpty { live: 1 }));
    run_until(&mut world, |effect| matches!(effect, Effect::Land(_)));
    let state = PrState::TestsPassed;
    assert_eq!(states(&world), [(1, state)]);
    assert_eq!(world.ask(cancel), Err(Refusal::Landing { pr }), "the host is merging it");
    let restart = Command::Restart { pr, by };
    assert_eq!(world.ask(restart), Err(Refusal::Landing { pr }));
    world.settle();
    assert_eq!(world.landed, [1]);
}

#[test]
fn targets_apply_only_to_the_head_that_they_were_reported_for() {
    let mut world =
        World::new(Settings::new(Mode::Parallel, 1).expect("valid settings"), Rules::default());
    world.reports_targets = false;
    world.submit(1, None).expect("submitted");
    assert_eq!(waits(&world, 1), WaitReason::MissingTargets);
    let head = world.pull_request(1).head;
    let targets = ReportedTargets::only(Some(head), ["a"]);
    world.push(1);
    let fact = world.facts.remove(0);
    world.take_in(&fact);
    world.ask(Command::SetTargets { pr: PrNumber(1), targets }).expect("not refused");
    assert_eq!(waits(&world, 1), WaitReason::MissingTargets, "they are for the old head");
    let head = world.pull_request(1).head;
    let targets = ReportedTargets::all(Some(head));
    world.ask(Command::SetTargets { pr: PrNumber(1), targets }).expect("not refused");
    world.settle();
    assert_eq!(world.landed, [1]);
}

#[test]
fn a_mode_switch_takes_effect_when_the_line_is_empty() {
    let mut world = world(1, Rules::default());
    world.submit(1, None).expect("submitted");
    let parallel = SettingsPatch { mode: Some(Mode::Parallel), ..SettingsPatch::default() };
    update(&mut world, parallel, None);
    assert_eq!(world.queue.header.state.name().as_str(), "SWITCHING_MODES");
    assert_eq!(world.queue.mode(), Mode::Single, "the old mode is in force");
    let single = SettingsPatch { mode: Some(Mode::Single), ..SettingsPatch::default() };
    let (settings, by) = (Box::new(single), world.caller());
    let again =
        Command::Update { settings, state: None, reason: None, by, source: ChangeSource::Direct };
    assert_eq!(world.ask(again), Err(Refusal::ModeChangeInProgress));
    world.settle();
    assert_eq!(world.landed, [1]);
    assert_eq!(world.queue.header.state.name().as_str(), "RUNNING");
    assert_eq!(world.queue.mode(), Mode::Parallel);
}
