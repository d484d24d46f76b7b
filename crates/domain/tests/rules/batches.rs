//! Batches, bisection and optimistic merging.

use signalbox_domain::ids::PrNumber;
use signalbox_domain::queue::{
    BisectionMode, Culprit, Decision, Effect, Exit, Fact, FailReason, Mode, Moved,
    OptimizationMode, PassReason, PrState, RequestedState, Settings, SettingsPatch, WaitReason,
    next_deadline, view_queue,
};
use signalbox_domain::testing::{Rules, World};
use signalbox_domain::time::Span;

use crate::{
    bad, build_all, decisions, exit, in_batches, is_checks, run_until, states, update, waits,
};

fn batching(size: u32, rules: Rules) -> World {
    let mut world = World::new(Settings::new(Mode::Single, 4).expect("valid settings"), rules);
    update(&mut world, in_batches(size), None);
    world
}

fn set(world: &mut World, patch: SettingsPatch) {
    update(world, patch, None);
}

fn submit(world: &mut World, prs: impl IntoIterator<Item = u32>) {
    for pr in prs {
        world.submit(pr, None).expect("submitted");
    }
}

/// The groups of all started runs, and whether each was part of a bisection.
fn started(world: &World) -> Vec<(Vec<u32>, bool)> {
    let mut runs: Vec<(Vec<u32>, bool)> = Vec::new();
    let mut last = None;
    for decision in decisions(world) {
        if let Decision::Moved(Moved { to: PrState::Testing, run, pr, bisection, .. }) = decision {
            if last == Some(run) {
                runs.last_mut().expect("a run").0.push(pr.0);
            } else {
                runs.push((vec![pr.0], bisection));
            }
            last = Some(run);
        }
    }
    runs
}

#[test]
fn a_full_batch_is_one_run_and_lands_in_one_step() {
    let mut world = batching(3, Rules::default());
    submit(&mut world, 1..=3);
    world.settle();
    assert_eq!(started(&world), [(vec![1, 2, 3], false)]);
    assert_eq!(world.landed, [1, 2, 3]);
}

#[test]
fn a_batch_that_is_not_full_starts_when_its_oldest_entry_has_waited() {
    let mut world = batching(4, Rules::default());
    submit(&mut world, [1]);
    world.wait(Span::minutes(2));
    submit(&mut world, [2]);
    let until = world.at.plus(Span::minutes(3));
    let filling = WaitReason::BatchFilling { have: 2, target: 4, until };
    assert_eq!((waits(&world, 1), waits(&world, 2)), (filling.clone(), filling));
    assert_eq!(next_deadline(&world.queue), Some(until));
    world.wait(Span::minutes(3));
    world.take_in(&Fact::TimePassed);
    world.settle();
    assert_eq!(started(&world), [(vec![1, 2], false)]);
}

#[test]
fn no_entry_overtakes_one_that_must_be_tested_alone() {
    let mut world = batching(3, Rules::default());
    submit(&mut world, [1]);
    world.submit_with(2, None, Some(true)).expect("submitted");
    submit(&mut world, [3]);
    world.settle();
    world.wait(Span::minutes(5));
    world.take_in(&Fact::TimePassed);
    world.settle();
    assert_eq!(started(&world), [(vec![1], false), (vec![2], false), (vec![3], false)]);
    assert_eq!(world.landed, [1, 2, 3]);
}

#[test]
fn a_draining_queue_does_not_wait_for_a_batch_to_fill() {
    let mut world = batching(4, Rules::default());
    submit(&mut world, [1, 2]);
    let draining = Some(RequestedState::Draining);
    update(&mut world, SettingsPatch::default(), draining);
    world.settle();
    assert_eq!(world.landed, [1, 2]);
}

#[test]
fn bisection_finds_the_culprit_of_a_batch_of_four_and_lands_the_others() {
    for culprit in 1..=4_u32 {
        let mut world = batching(4, bad(&[culprit]));
        submit(&mut world, 1..=4);
        world.settle();
        let good: Vec<u32> = (1..=4).filter(|pr| *pr != culprit).collect();
        assert_eq!(world.landed, good, "culprit {culprit}");
        let Exit::Failed { reason, culprit: blamed, .. } = exit(&world, culprit) else {
            panic!("#{culprit} failed")
        };
        assert_eq!((reason, blamed), (FailReason::RequiredStatus, Culprit::Itself));
        assert!(started(&world).iter().skip(1).any(|(_, bisection)| *bisection));
    }
}

#[test]
fn of_members_that_fail_only_together_the_later_one_fails() {
    let rules = Rules { clash: [(1, 4)].into(), ..Rules::default() };
    let mut world = batching(4, rules);
    submit(&mut world, 1..=4);
    world.settle();
    assert_eq!(world.landed, [1, 2, 3]);
}

#[test]
fn bisection_runs_have_slots_of_their_own() {
    let mut world = batching(4, bad(&[3]));
    let patch = SettingsPatch {
        concurrency: Some(1),
        bisection_concurrency: Some(1),
        ..SettingsPatch::default()
    };
    set(&mut world, patch);
    submit(&mut world, 1..=4);
    run_until(
        &mut world,
        |effect| matches!(effect, Effect::BuildCandidate(build) if build.changes.len() == 2),
    );
    assert_eq!(world.queue.slots_used(), (0, 1));
    assert_eq!(waits(&world, 4), WaitReason::SlotsFull { used: 1, limit: 1, ahead: 1 });
    let Effect::BuildCandidate(build) = &world.outbox[0].effect else { panic!("a build") };
    assert!(build.branch.as_str().ends_with("-bisection"), "{}", build.branch);
    world.settle();
    assert_eq!(world.landed, [1, 2, 4]);
}

#[test]
fn redundant_bisection_runs_are_skipped_when_optimization_is_on() {
    let count = |mode| {
        let mut world = batching(8, bad(&[8]));
        set(
            &mut world,
            SettingsPatch { optimization_mode: Some(mode), ..SettingsPatch::default() },
        );
        submit(&mut world, 1..=8);
        world.settle();
        assert_eq!(world.landed, [1, 2, 3, 4, 5, 6, 7]);
        (started(&world).len(), exit(&world, 8))
    };
    let (all, _) = count(OptimizationMode::Off);
    let (fewer, exit) = count(OptimizationMode::BisectionSkipRedundantTests);
    assert_eq!((all, fewer), (7, 5), "the whole batch, one per halving, one to confirm");
    let Exit::Failed { reason, .. } = exit else { panic!("it failed") };
    assert_eq!(reason, FailReason::RequiredStatus, "no entry fails by inference alone");
}

#[test]
fn a_passing_run_absolves_what_it_contains() {
    let rules = Rules { flaky: [2].into(), ..Rules::default() };
    let mut world =
        World::new(Settings::new(Mode::Single, 3).expect("valid settings"), rules.clone());
    let patch = SettingsPatch {
        can_optimistically_merge: Some(true),
        pending_failure_depth: Some(1),
        ..SettingsPatch::default()
    };
    set(&mut world, patch);
    submit(&mut world, 1..=3);
    world.settle();
    assert_eq!(world.landed, [1, 2, 3], "C has passed with B in it");
    let absolved = decisions(&world).iter().any(|decision| {
        matches!(decision, Decision::Moved(Moved { pr: PrNumber(2), reason, .. })
            if *reason == PassReason::Successor.into())
    });
    assert!(absolved);
    let mut world = World::new(Settings::new(Mode::Single, 3).expect("valid settings"), rules);
    submit(&mut world, 1..=3);
    world.settle();
    assert_eq!(world.landed, [1, 3], "without optimistic merging B has failed");
}

#[test]
fn a_failure_waits_for_as_many_levels_as_pending_failure_depth() {
    let rules = Rules { flaky: [1, 2].into(), ..Rules::default() };
    for (depth, landed) in [(1, vec![2, 3]), (2, vec![1, 2, 3])] {
        let mut world =
            World::new(Settings::new(Mode::Single, 1).expect("valid settings"), rules.clone());
        let patch = SettingsPatch {
            can_optimistically_merge: Some(true),
            pending_failure_depth: Some(depth),
            ..SettingsPatch::default()
        };
        set(&mut world, patch);
        submit(&mut world, 1..=3);
        world.settle();
        assert_eq!(world.landed, landed, "depth {depth}");
    }
}

#[test]
fn a_passing_batch_absolves_the_batch_ahead() {
    let rules = Rules { flaky: [1].into(), ..Rules::default() };
    let mut world = batching(2, rules);
    let patch = SettingsPatch {
        can_optimistically_merge: Some(true),
        pending_failure_depth: Some(1),
        ..SettingsPatch::default()
    };
    set(&mut world, patch);
    submit(&mut world, 1..=4);
    world.settle();
    assert_eq!(world.landed, [1, 2, 3, 4]);
    assert_eq!(started(&world).len(), 2, "nothing was bisected");
}

#[test]
fn a_leaving_member_returns_the_rest_of_its_batch_to_the_line() {
    let mut world = batching(3, Rules::default());
    submit(&mut world, 1..=3);
    run_until(&mut world, is_checks);
    let by = world.caller();
    world
        .ask(signalbox_domain::queue::Command::Cancel { pr: PrNumber(2), by })
        .expect("not refused");
    let testing = [(1, PrState::Testing), (3, PrState::Testing)];
    assert_eq!(states(&world), testing, "they were tested before and do not wait again");
    world.settle();
    assert_eq!(world.landed, [1, 3]);
}

#[test]
fn a_member_that_conflicts_with_another_waits_for_it() {
    let rules = Rules { conflict: [(1, 3)].into(), ..Rules::default() };
    let mut world = batching(3, rules);
    submit(&mut world, 1..=3);
    world.settle();
    world.wait(Span::minutes(5));
    world.take_in(&Fact::TimePassed);
    world.settle();
    assert_eq!(world.landed, [1, 2]);
    let Exit::Failed { reason, culprit, .. } = exit(&world, 3) else { panic!("it failed") };
    assert_eq!(reason, FailReason::MergeConflict);
    assert_eq!(culprit, Culprit::PullRequest(PrNumber(1)));
}

/// Q7: exactly the culprits fail, within a bound that grows with their number.
#[test]
fn bisection_finds_exactly_the_culprits_in_few_runs() {
    // `just nightly` has more.
    let is_long = std::env::var_os("SIGNALBOX_PROPTEST_CASES").is_some();
    for (size, seeds) in [(2_u32, 100), (5, 100), (8, 60), (16, 25), (31, 10)] {
        for seed in 0..if is_long { 100_u64 } else { seeds } {
            let mut numbers = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ u64::from(size);
            let mut next = || {
                numbers ^= numbers << 13;
                numbers ^= numbers >> 7;
                numbers ^= numbers << 17;
                numbers
            };
            let odds = 2 + next() % 12;
            let culprits: Vec<u32> = (1..=size).filter(|_| next() % odds == 0).collect();
            let skips = [OptimizationMode::Off, OptimizationMode::BisectionSkipRedundantTests];
            let places = [BisectionMode::InPlace, BisectionMode::Aside];
            for (mode, place) in skips.iter().flat_map(|it| places.map(|place| (*it, place))) {
                let mut world = batching(size, bad(&culprits));
                let patch = SettingsPatch {
                    optimization_mode: Some(mode),
                    bisection_mode: Some(place),
                    bisection_concurrency: Some(2),
                    ..SettingsPatch::default()
                };
                set(&mut world, patch);
                submit(&mut world, 1..=size);
                world.settle();
                world.wait(Span::minutes(5));
                world.take_in(&Fact::TimePassed);
                world.settle();
                let good: Vec<u32> = (1..=size).filter(|pr| !culprits.contains(pr)).collect();
                assert_eq!(world.landed, good, "of {size}, culprits {culprits:?}");
                let (k, runs) = (culprits.len(), started(&world).len());
                let levels = usize::try_from(size.next_power_of_two().ilog2()).expect("small");
                let bound = 2 * k * levels + 3 * k + 1;
                assert!(runs <= bound, "{runs} runs for {culprits:?} of {size}, bound {bound}");
            }
        }
    }
}

#[test]
fn runs_of_bisections_take_slots_of_the_queue_without_slots_of_their_own() {
    let mut world = batching(2, bad(&[2]));
    let shared = SettingsPatch {
        concurrency: Some(2),
        bisection_concurrency: Some(0),
        bisection_mode: Some(BisectionMode::InPlace),
        ..SettingsPatch::default()
    };
    set(&mut world, shared);
    submit(&mut world, 1..=12);
    let mut both = false;
    loop {
        let (main, bisection) = world.queue.slots_used();
        assert!(main + bisection <= 2, "{main} and {bisection} of 2 slots");
        both |= main == 1 && bisection == 1;
        for entry in view_queue(&world.queue).entries {
            let full = matches!(entry.waits, Some(WaitReason::SlotsFull { .. }));
            let of_all =
                matches!(entry.waits, Some(WaitReason::SlotsFull { used: 2, limit: 2, .. }));
            assert_eq!(full, of_all, "{:?}", entry.waits);
        }
        if !world.step() {
            break;
        }
    }
    assert!(both, "a run of each kind at the same time");
    assert_eq!(world.landed.len(), 11);
}

/// A batch of this size that timed out, with its halves under test. A timeout is no evidence, so no
/// result follows from it.
fn split_batch(size: u32, mode: OptimizationMode) -> World {
    let mut world = batching(size, Rules::default());
    let patch = SettingsPatch {
        optimization_mode: Some(mode),
        bisection_concurrency: Some(2),
        ..SettingsPatch::default()
    };
    set(&mut world, patch);
    submit(&mut world, 1..=size);
    run_until(&mut world, is_checks);
    world.outbox.clear();
    world.wait(Span::minutes(300));
    world.take_in(&Fact::TimePassed);
    build_all(&mut world);
    world
}

#[test]
fn a_passing_half_proves_the_half_ahead_only_when_optimization_is_on() {
    use PrState::{Testing, TestsPassed};
    let second_half = |mode| {
        let mut world = split_batch(4, mode);
        let of_it = |effect: &Effect| matches!(effect, Effect::RunChecks(checks) if checks.prs.contains(&PrNumber(3)));
        let at = world.outbox.iter().position(|it| of_it(&it.effect)).expect("both are tested");
        let checks = world.outbox.remove(at);
        world.run(&checks.effect);
        world.absorb_all();
        states(&world)
    };
    let off = second_half(OptimizationMode::Off);
    assert_eq!(off, [(1, Testing), (2, Testing), (3, TestsPassed), (4, TestsPassed)]);
    let skipping = second_half(OptimizationMode::BisectionSkipRedundantTests);
    assert_eq!(skipping, [1, 2, 3, 4].map(|pr| (pr, TestsPassed)));
}

#[test]
fn a_half_of_one_waits_for_the_half_ahead_when_optimization_is_on() {
    use PrState::{Pending, Testing, TestsPassed};
    let both = split_batch(2, OptimizationMode::Off);
    assert_eq!(states(&both), [1, 2].map(|pr| (pr, Testing)));
    let mut world = split_batch(2, OptimizationMode::BisectionSkipRedundantTests);
    assert_eq!(states(&world), [(1, Testing), (2, Pending)]);
    let reason = WaitReason::PredecessorTesting { prs: vec![PrNumber(1)] };
    assert_eq!(waits(&world, 2), reason);
    run_until(&mut world, is_checks);
    world.step();
    world.absorb_all();
    assert_eq!(states(&world), [(1, TestsPassed), (2, Testing)]);
    world.settle();
    assert_eq!(world.landed, [1, 2]);
    let larger = split_batch(4, OptimizationMode::BisectionSkipRedundantTests);
    assert_eq!(states(&larger), [1, 2, 3, 4].map(|pr| (pr, Testing)));
}

#[test]
fn a_paused_queue_splits_nothing() {
    let mut world = batching(4, bad(&[4]));
    let patch = SettingsPatch {
        optimization_mode: Some(OptimizationMode::BisectionSkipRedundantTests),
        bisection_concurrency: Some(1),
        ..SettingsPatch::default()
    };
    set(&mut world, patch);
    submit(&mut world, 1..=4);
    run_until(&mut world, is_checks);
    let whole = world.outbox.remove(0);
    world.run(&whole.effect);
    run_until(&mut world, is_checks);
    let splits = |world: &World| {
        decisions(world).iter().filter(|it| matches!(it, Decision::Bisected { .. })).count()
    };
    assert_eq!(splits(&world), 1, "the whole batch");
    update(&mut world, SettingsPatch::default(), Some(RequestedState::Paused));
    world.settle();
    assert_eq!(splits(&world), 1, "the second half follows from the first, but waits");
    update(&mut world, SettingsPatch::default(), Some(RequestedState::Running));
    world.settle();
    assert_eq!(world.landed, [1, 2, 3]);
    assert!(splits(&world) > 1);
}

#[test]
fn a_setting_that_admits_a_build_on_a_failed_run_acts_immediately() {
    let mut world = World::new(Settings::new(Mode::Single, 3).expect("valid settings"), bad(&[1]));
    set(&mut world, SettingsPatch { pending_failure_depth: Some(2), ..SettingsPatch::default() });
    submit(&mut world, 1..=2);
    run_until(&mut world, is_checks);
    let first = world.outbox.remove(0);
    run_until(&mut world, is_checks);
    let second = world.outbox.remove(0);
    world.run(&first.effect);
    run_until(&mut world, is_checks);
    submit(&mut world, [3]);
    assert_eq!(states(&world)[0], (1, PrState::PendingFailure));
    assert_eq!(states(&world)[2], (3, PrState::Pending));
    set(
        &mut world,
        SettingsPatch { can_optimistically_merge: Some(true), ..SettingsPatch::default() },
    );
    assert_eq!(states(&world)[2], (3, PrState::Testing), "two levels may absolve the first");
    world.outbox.push(second);
    world.settle();
    assert_eq!(world.landed, [2, 3]);
}
