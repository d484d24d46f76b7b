//! Fairness: no entry is stuck, none fails for the fault of another, and none waits for an entry
//! with which it shares no target.

use std::collections::{BTreeMap, BTreeSet};

use signalbox_domain::ids::{PrNumber, RunId};
use signalbox_domain::queue::{
    BisectionMode, ConflictWith, Culprit, Decision, Effect, Evidence, Exit, Fact, IgnoredBecause,
    LandRefusal, Mode, Moved, OptimizationMode, PrState, Settings, SettingsPatch, WaitReason,
    unjustified, view_entry,
};
use signalbox_domain::testing::{Rules, World};
use signalbox_domain::time::Span;

use crate::{build_all, exit, in_batches, run_until, states, update, waits};

fn submit(world: &mut World, prs: impl IntoIterator<Item = u32>) {
    for pr in prs {
        world.submit(pr, None).expect("submitted");
    }
}

fn targets(of: &[(u32, &[u32])]) -> BTreeMap<u32, BTreeSet<u32>> {
    of.iter().map(|(pr, names)| (*pr, names.iter().copied().collect())).collect()
}

/// Runs the waiting checks of this pull request's run.
fn check(world: &mut World, pr: u32) {
    let of_it = |effect: &Effect| matches!(effect, Effect::RunChecks(checks) if checks.prs.contains(&PrNumber(pr)));
    let at = world.outbox.iter().position(|it| of_it(&it.effect)).expect("checks that wait");
    let effect = world.outbox.remove(at);
    world.run(&effect.effect);
    world.absorb_all();
}

fn optimistic() -> SettingsPatch {
    SettingsPatch { can_optimistically_merge: Some(true), ..SettingsPatch::default() }
}

#[test]
fn pull_requests_passed_by_different_runs_land_together() {
    for mode in [Mode::Single, Mode::Parallel] {
        let mut world =
            World::new(Settings::new(mode, 3).expect("valid settings"), Rules::default());
        submit(&mut world, 1..=3);
        build_all(&mut world);
        check(&mut world, 2);
        // With optimistic merging on, #1 passes by the run of #3; #2 has its own run.
        update(&mut world, optimistic(), None);
        check(&mut world, 3);
        assert_eq!(unjustified(&world.queue), []);
        assert_eq!(waits(&world, 1), WaitReason::Landing, "{mode:?}");
        world.settle();
        assert_eq!(world.landed, [1, 2, 3], "{mode:?}");
    }
}

#[test]
fn reverting_a_setting_during_a_run_blocks_no_pull_request() {
    let mut world =
        World::new(Settings::new(Mode::Single, 4).expect("valid settings"), Rules::default());
    submit(&mut world, 1..=4);
    build_all(&mut world);
    check(&mut world, 2);
    update(&mut world, optimistic(), None);
    check(&mut world, 4);
    let back = SettingsPatch { can_optimistically_merge: Some(false), ..optimistic() };
    update(&mut world, back, None);
    world.settle();
    assert_eq!(world.landed, [1, 2, 3, 4]);
}

fn batches(mode: Mode, slots: u32, size: u32, skip: bool, rules: Rules) -> World {
    let mut world = World::new(Settings::new(mode, slots).expect("valid settings"), rules);
    let optimization_mode = Some(if skip {
        OptimizationMode::BisectionSkipRedundantTests
    } else {
        OptimizationMode::Off
    });
    let patch = SettingsPatch { optimization_mode, ..in_batches(size) };
    update(&mut world, patch, None);
    world
}

/// Settles the queue, including batches that wait to fill.
fn settle_batches(world: &mut World) {
    for _ in 0..4 {
        world.settle();
        world.wait(Span::minutes(5));
        world.take_in(&Fact::TimePassed);
    }
    world.settle();
}

#[test]
fn an_unrelated_bad_batch_member_fails_no_other_pull_request() {
    for skip in [false, true] {
        let (a, c) = (1, 3);
        let of = targets(&[(1, &[a, c]), (2, &[c]), (3, &[c]), (4, &[a])]);
        let rules = Rules { targets: of, bad: [3].into(), ..Rules::default() };
        let mut world = batches(Mode::Parallel, 4, 4, skip, rules);
        submit(&mut world, 1..=4);
        settle_batches(&mut world);
        let landed: BTreeSet<u32> = world.landed.iter().copied().collect();
        assert_eq!(landed, [1, 2, 4].into(), "skip {skip}");
        assert!(matches!(exit(&world, 3), Exit::Failed { .. }));
    }
}

#[test]
fn one_flaky_failure_in_a_batch_of_eight_fails_no_pull_request() {
    for (size, flaky) in (2..=8).flat_map(|size| (1..=size).map(move |flaky| (size, flaky))) {
        let rules = Rules { flaky: [flaky].into(), ..Rules::default() };
        let mut world = batches(Mode::Single, 4, size, true, rules);
        submit(&mut world, 1..=size);
        world.settle();
        assert_eq!(world.landed, (1..=size).collect::<Vec<_>>(), "flaky #{flaky} of {size}");
    }
}

#[test]
fn pull_requests_without_a_shared_target_never_wait_for_each_other() {
    let of = targets(&[(1, &[3, 5]), (2, &[5]), (3, &[3]), (4, &[3])]);
    let rules = Rules { targets: of, bad: [2].into(), ..Rules::default() };
    let mut world = batches(Mode::Parallel, 6, 2, false, rules);
    submit(&mut world, 1..=4);
    build_all(&mut world);
    for run in world.queue.runs() {
        let group: Vec<u32> = run.group.iter().map(|member| member.pr.0).collect();
        let ahead: Vec<u32> = run.ahead.iter().map(|(_, pr)| pr.0).collect();
        match group.as_slice() {
            [1, 2] => assert!(ahead.is_empty()),
            [3, 4] => assert_eq!(ahead, [1], "#2 shares no target with them"),
            other => panic!("{other:?} on {ahead:?}"),
        }
    }
    settle_batches(&mut world);
    let landed: BTreeSet<u32> = world.landed.iter().copied().collect();
    assert_eq!(landed, [1, 3, 4].into());
    let red = crate::decisions(&world).into_iter().filter(|decision| {
        matches!(decision, Decision::Moved(Moved { pr, to, .. })
            if pr.0 > 2 && matches!(to, PrState::PendingFailure | PrState::Failed))
    });
    assert_eq!(red.count(), 0, "neither #3 nor #4 goes red because of #2");
}

#[test]
fn a_fact_about_a_pull_request_outside_the_run_is_ignored() {
    let mut world =
        World::new(Settings::new(Mode::Single, 3).expect("valid settings"), Rules::default());
    submit(&mut world, 1..=3);
    let build = |world: &World, pr: u32| -> RunId {
        let run = world.queue.entry_of(PrNumber(pr)).and_then(|entry| entry.state.run());
        run.expect("it is under test")
    };
    run_until(
        &mut world,
        |effect| matches!(effect, Effect::BuildCandidate(build) if build.changes[0].pr.0 == 2),
    );
    let (first, second) = (build(&world, 1), build(&world, 2));
    let before = states(&world);
    let conflict = |run, pr: u32, with| Fact::CandidateConflict {
        run,
        pr: PrNumber(pr),
        with,
        paths: vec!["file".into()],
    };
    for fact in [
        conflict(second, 1, ConflictWith::Target),
        conflict(second, 3, ConflictWith::Ahead(first)),
        conflict(second, 2, ConflictWith::Ahead(second)),
        conflict(second, 2, ConflictWith::Group(PrNumber(1))),
        conflict(second, 2, ConflictWith::Group(PrNumber(2))),
        conflict(second, 9, ConflictWith::Target),
    ] {
        world.take_in(&fact);
        let because = IgnoredBecause::NotOfRun;
        assert_eq!(world.decisions, [Decision::Ignored { because }], "{fact:?}");
        assert_eq!(states(&world), before);
    }
    world.settle();
    assert_eq!(world.landed, [1, 2, 3]);
}

#[test]
fn a_landing_refused_for_an_unrelated_pull_request_is_retried() {
    let mut world =
        World::new(Settings::new(Mode::Single, 2).expect("valid settings"), Rules::default());
    submit(&mut world, 1..=2);
    run_until(&mut world, |effect| matches!(effect, Effect::Land(_)));
    let run = world.queue.header.landing.as_ref().expect("it lands").run;
    world.outbox.remove(0);
    let because = LandRefusal::HeadMoved { pr: PrNumber(2) };
    world.take_in(&Fact::LandRefused { run, because });
    assert!(world.queue.entry_of(PrNumber(2)).is_some(), "no entry fails");
    world.settle();
    assert_eq!(world.landed, [1, 2]);
}

#[test]
fn a_lost_answer_is_requested_again() {
    let mut world =
        World::new(Settings::new(Mode::Single, 2).expect("valid settings"), Rules::default());
    submit(&mut world, [1]);
    let run = |world: &World| world.queue.runs().next().expect("a run").id;
    world.outbox.clear();
    let fact = Fact::AnswerLost { run: run(&world) };
    world.take_in(&fact);
    run_until(&mut world, |effect| matches!(effect, Effect::Land(_)));
    world.outbox.retain(|it| !matches!(it.effect, Effect::Land(_)));
    let fact = Fact::AnswerLost { run: run(&world) };
    world.take_in(&fact);
    world.settle();
    assert_eq!(world.landed, [1]);
}

#[test]
fn a_wait_reason_counts_all_pull_requests_ahead() {
    let mut world =
        World::new(Settings::new(Mode::Single, 5).expect("valid settings"), Rules::default());
    submit(&mut world, 1..=250);
    build_all(&mut world);
    assert_eq!(waits(&world, 250), WaitReason::SlotsFull { used: 5, limit: 5, ahead: 244 });
    assert_eq!(waits(&world, 6), WaitReason::SlotsFull { used: 5, limit: 5, ahead: 0 });
}

#[test]
fn evidence_states_what_was_observed() {
    let seen = |world: &World, pr| {
        let Exit::Failed { evidence, .. } = exit(world, pr) else { panic!("it failed") };
        let numbers = |prs: Vec<PrNumber>| prs.into_iter().map(|pr| pr.0).collect::<Vec<_>>();
        let Evidence { on_top_of, passed_without, .. } = *evidence.expect("evidence");
        (numbers(on_top_of), numbers(passed_without))
    };
    // Alone on the target.
    let mut world =
        World::new(Settings::new(Mode::Single, 1).expect("valid settings"), crate::bad(&[1]));
    submit(&mut world, [1]);
    world.settle();
    assert_eq!(seen(&world, 1), (vec![], vec![]));
    // On top of another one that passes.
    let mut world =
        World::new(Settings::new(Mode::Single, 2).expect("valid settings"), crate::bad(&[2]));
    submit(&mut world, 1..=2);
    world.settle();
    assert_eq!(seen(&world, 2), (vec![1], vec![]));
    // It passes, then an incompatible urgent pull request arrives.
    let rules = Rules { clash: [(1, 8)].into(), ..Rules::default() };
    let mut world = World::new(Settings::new(Mode::Single, 2).expect("valid settings"), rules);
    submit(&mut world, [9, 1]);
    build_all(&mut world);
    check(&mut world, 1);
    world.submit(8, Some(0)).expect("submitted");
    world.settle();
    assert_eq!(world.landed, [8, 9]);
    assert_eq!(seen(&world, 1), (vec![8, 9], vec![8]));
    let Exit::Failed { culprit, .. } = exit(&world, 1) else { panic!("it failed") };
    assert_eq!(culprit, Culprit::Itself);
}

#[test]
fn an_entry_that_takes_a_freed_place_starts_immediately() {
    let mut settings = Settings::new(Mode::Single, 2).expect("valid settings");
    (settings.can_optimistically_merge, settings.pending_failure_depth) = (true, 2);
    let rules = Rules { bad: [1].into(), ..Rules::default() };
    let mut world = World::new(settings, rules);
    submit(&mut world, 1..=2);
    build_all(&mut world);
    check(&mut world, 1);
    submit(&mut world, 3..=4);
    build_all(&mut world);
    check(&mut world, 3);
    // #1 failed, and may still be absolved by two levels: #2 and #3. #4 has no room behind them.
    assert_eq!(states(&world).last(), Some(&(4, PrState::Pending)));
    world.close_or_reopen(3);
    let fact = world.facts.remove(0);
    world.take_in(&fact);
    assert_eq!(states(&world).last(), Some(&(4, PrState::Testing)), "it takes the place of #3");
}

#[test]
fn optimistic_merging_switched_on_while_a_batch_is_split_leaves_no_entry_waiting() {
    let rules = Rules {
        flaky: [3].into(),
        targets: [(5, [].into()), (6, [].into())].into(),
        ..Rules::default()
    };
    let mut world = World::new(Settings::new(Mode::Parallel, 2).expect("valid settings"), rules);
    let patch = SettingsPatch {
        batch: Some(true),
        batching_min_size: Some(6),
        batching_max_wait_time_minutes: Some(1),
        bisection_concurrency: Some(2),
        bisection_mode: Some(BisectionMode::InPlace),
        ..SettingsPatch::default()
    };
    update(&mut world, patch, None);
    submit(&mut world, 1..=6);
    update(&mut world, optimistic(), None);
    // #6 shares no target with the others, so their batch stays one short.
    world.wait(Span::minutes(1));
    world.take_in(&Fact::TimePassed);
    world.reconcile();
    let mut reasons = Vec::new();
    while world.step() {
        reasons.extend(view_entry(&world.queue, PrNumber(1)).and_then(|it| it.waits));
    }
    // #6 has passed on top of #1 to #4 while #4 is tested again with #5.
    let behind = WaitReason::SuccessorTesting { prs: vec![PrNumber(4)] };
    assert!(reasons.contains(&behind), "{reasons:?}");
    assert_eq!(world.landed, [1, 2, 3, 4, 6, 5]);
}
