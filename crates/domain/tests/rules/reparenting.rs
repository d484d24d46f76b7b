//! Runs that fail while runs ahead of them are unfinished.

use std::collections::BTreeSet;

use signalbox_domain::ids::PrNumber;
use signalbox_domain::queue::{
    BisectionMode, Command, ConflictWith, Decision, Fact, Mergeability, Mode, Moved,
    OptimizationMode, PrState, Reason, ReparentingMode, RequestedState, Settings, SettingsPatch,
    WaitReason,
};
use signalbox_domain::testing::{Rules, World};

use crate::{bad, build_all, checks_end, decisions, in_batches, run_checks, states, update, waits};

fn world(reparenting: ReparentingMode, rules: Rules) -> World {
    let mut settings = Settings::new(Mode::Single, 6).expect("valid settings");
    settings.reparenting_mode = reparenting;
    World::new(settings, rules)
}

fn submit(world: &mut World, prs: impl IntoIterator<Item = u32>) {
    for pr in prs {
        world.submit(pr, None).expect("submitted");
    }
}

/// The pull requests of each run that was set aside.
fn reparented(world: &World) -> Vec<Vec<u32>> {
    let of = |decision: Decision| match decision {
        Decision::Reparented { prs, .. } => Some(prs.iter().map(|pr| pr.0).collect()),
        _ => None,
    };
    decisions(world).into_iter().filter_map(of).collect()
}

/// What the candidate of this pull request's run contains besides its group.
fn built_on(world: &World, pr: u32) -> Vec<u32> {
    let entry = world.queue.entry_of(PrNumber(pr)).expect("live");
    let run = world.queue.run(entry.state.run().expect("a run")).expect("known");
    run.ahead.iter().map(|(_, pr)| pr.0).collect()
}

fn state(world: &World, pr: u32) -> PrState {
    states(world).into_iter().find(|(it, _)| *it == pr).expect("live").1
}

#[test]
fn those_behind_a_failed_run_start_without_it_and_it_is_tested_alone() {
    let mut world = world(ReparentingMode::All, bad(&[3]));
    submit(&mut world, 1..=6);
    checks_end(&mut world, 3);
    assert_eq!(reparented(&world), [[3]]);
    assert_eq!(built_on(&world, 4), [1, 2], "the nearest that has not failed");
    assert_eq!(built_on(&world, 6), [1, 2, 4, 5]);
    assert_eq!((state(&world, 3), built_on(&world, 3)), (PrState::Testing, vec![]));
    assert_eq!(world.queue.slots_used(), (5, 1));
    world.settle();
    assert_eq!(world.landed, [1, 2, 4, 5, 6]);
}

#[test]
fn one_that_conflicts_with_a_reparented_one_starts_without_it() {
    let rules = Rules { conflict: [(2, 3)].into(), ..bad(&[2]) };
    let mut world = world(ReparentingMode::All, rules);
    submit(&mut world, 1..=3);
    build_all(&mut world);
    assert_eq!(state(&world, 3), PrState::Pending, "it waits for the one in conflict with it");
    checks_end(&mut world, 2);
    assert_eq!(reparented(&world), [[2]]);
    assert_eq!((state(&world, 3), built_on(&world, 3)), (PrState::Testing, vec![1]));
    world.settle();
    assert_eq!(world.landed, [1, 3]);
}

#[test]
fn one_that_failed_because_of_another_ahead_passes_alone_and_lands_behind_the_others() {
    let mut world = world(ReparentingMode::All, bad(&[1]));
    submit(&mut world, 1..=4);
    checks_end(&mut world, 2);
    assert_eq!(reparented(&world), [[2]]);
    world.settle();
    assert_eq!(world.landed.len(), 3, "{:?}", world.landed);
    let passes_alone = decisions(&world).into_iter().any(|decision| {
        matches!(decision, Decision::Moved(Moved { pr: PrNumber(2), reason: Reason::Queued(it), .. })
            if it.as_str() == "PASSED_ON_TARGET_ALONE")
    });
    assert!(passes_alone);
}

#[test]
fn a_batch_is_bisected_before_the_runs_ahead_have_ended() {
    let mut world = world(ReparentingMode::Batches, bad(&[3]));
    update(&mut world, in_batches(2), None);
    submit(&mut world, 1..=6);
    checks_end(&mut world, 4);
    assert_eq!(reparented(&world), [[3, 4]]);
    assert_eq!(built_on(&world, 6), [1, 2]);
    assert_eq!((built_on(&world, 3), built_on(&world, 4)), (vec![], vec![3]));
    world.settle();
    assert_eq!(world.landed, [1, 2, 5, 6, 4]);
}

#[test]
fn no_result_follows_for_a_part_while_a_run_ahead_may_be_at_fault() {
    let mut world = world(ReparentingMode::Batches, bad(&[1]));
    update(&mut world, in_batches(2), None);
    let skip = SettingsPatch {
        optimization_mode: Some(OptimizationMode::BisectionSkipRedundantTests),
        ..SettingsPatch::default()
    };
    update(&mut world, skip, None);
    submit(&mut world, 1..=6);
    checks_end(&mut world, 4);
    assert_eq!(reparented(&world), [[3, 4]]);
    // #3 passes, and #4 is tested nevertheless.
    checks_end(&mut world, 3);
    assert_eq!(state(&world, 4), PrState::Testing);
    world.settle();
    let mut landed = world.landed.clone();
    landed.sort_unstable();
    assert_eq!(landed, [2, 3, 4, 5, 6]);
}

#[test]
fn the_settings_decide_which_runs_are_set_aside() {
    let depth = SettingsPatch {
        can_optimistically_merge: Some(true),
        pending_failure_depth: Some(1),
        ..SettingsPatch::default()
    };
    let in_place =
        SettingsPatch { bisection_mode: Some(BisectionMode::InPlace), ..SettingsPatch::default() };
    let (off, batches, all) =
        (ReparentingMode::Off, ReparentingMode::Batches, ReparentingMode::All);
    for (mode, size, patch) in [
        (off, 1, None),
        (off, 2, None),
        (batches, 1, None),
        (all, 1, Some(depth.clone())),
        (batches, 2, Some(depth)),
        (all, 1, Some(in_place.clone())),
        (batches, 2, Some(in_place)),
    ] {
        let mut world = world(mode, bad(&[3]));
        if size > 1 {
            update(&mut world, in_batches(size), None);
        }
        if let Some(patch) = patch {
            update(&mut world, patch, None);
        }
        submit(&mut world, 1..=6);
        checks_end(&mut world, 3);
        assert_eq!(state(&world, 3), PrState::PendingFailure, "{mode:?}, batches of {size}");
        world.settle();
        assert_eq!(reparented(&world), Vec::<Vec<u32>>::new());
        let mut landed = world.landed.clone();
        landed.sort_unstable();
        assert_eq!(landed, [1, 2, 4, 5, 6], "{mode:?}, batches of {size}");
    }
}

#[test]
fn a_failure_with_nothing_unfinished_ahead_is_final() {
    let mut world = world(ReparentingMode::All, bad(&[1]));
    submit(&mut world, 1..=3);
    checks_end(&mut world, 1);
    assert_eq!(reparented(&world), Vec::<Vec<u32>>::new());
    assert!(world.queue.entry_of(PrNumber(1)).is_none(), "it has failed");
}

#[test]
fn other_lanes_are_not_concerned() {
    let lanes = [(1, 1), (2, 1), (3, 1), (4, 2)].map(|(pr, lane)| (pr, [lane].into())).into();
    let mut settings = Settings::new(Mode::Parallel, 6).expect("valid settings");
    settings.reparenting_mode = ReparentingMode::All;
    let mut world = World::new(settings, Rules { targets: lanes, ..bad(&[2]) });
    submit(&mut world, 1..=4);
    build_all(&mut world);
    let other = world.queue.entry_of(PrNumber(4)).and_then(|it| it.state.run());
    checks_end(&mut world, 2);
    assert_eq!((reparented(&world), built_on(&world, 3)), (vec![vec![2]], vec![1]));
    assert_eq!(world.queue.entry_of(PrNumber(4)).and_then(|it| it.state.run()), other);
    world.settle();
    assert_eq!(world.landed.len(), 3);
}

#[test]
fn what_happens_to_one_that_is_tested_alone_ends_that_test() {
    let aside = || {
        let mut world = world(ReparentingMode::All, bad(&[3]));
        submit(&mut world, 1..=6);
        checks_end(&mut world, 3);
        assert_eq!(built_on(&world, 3), Vec::<u32>::new());
        world
    };
    let is_aside = |world: &World| {
        world.queue.entry_of(PrNumber(3)).is_some_and(|entry| entry.aside().is_some())
    };
    let mut urgent = aside();
    urgent.submit(3, Some(0)).expect("submitted again");
    assert_eq!((is_aside(&urgent), states(&urgent)[0].0), (false, 3), "it is at the front");
    let mut pushed = aside();
    pushed.push(3);
    pushed.absorb_all();
    let mut moved = aside();
    moved.push_target();
    moved.absorb_all();
    let mut cancelled = aside();
    let by = cancelled.caller();
    cancelled.ask(Command::Cancel { pr: PrNumber(3), by }).expect("not refused");
    for mut world in [urgent, pushed, moved, cancelled] {
        assert!(!is_aside(&world), "{:?}", states(&world));
        world.settle();
        assert_eq!(world.landed, [1, 2, 4, 5, 6]);
    }
}

#[test]
fn one_that_needs_what_was_ahead_is_tested_again_with_it_before_it_is_blamed() {
    for (needs, landed) in [(vec![(2, 1)], vec![1, 2, 4, 5]), (vec![], vec![1, 2, 4, 5])] {
        let rules = Rules { needs: needs.iter().copied().collect(), ..bad(&[3]) };
        let mut world = world(ReparentingMode::Batches, rules);
        update(&mut world, in_batches(2), None);
        world.submit_with(1, None, Some(true)).expect("submitted");
        submit(&mut world, 2..=5);
        checks_end(&mut world, 3);
        assert_eq!(reparented(&world), [[2, 3]]);
        // On the target, where #1 is missing.
        checks_end(&mut world, 2);
        if needs.is_empty() {
            assert_eq!(state(&world, 2), PrState::TestsPassed);
        } else {
            assert_eq!(state(&world, 2), PrState::Pending);
            let ahead = WaitReason::PredecessorTesting { prs: vec![PrNumber(1)] };
            assert_eq!(waits(&world, 2), ahead);
        }
        world.settle();
        let mut all = world.landed.clone();
        all.sort_unstable();
        assert_eq!(all, landed, "only #3 is at fault");
    }
}

#[test]
fn one_that_fails_alone_is_blamed_when_those_ahead_are_decided() {
    let mut world = world(ReparentingMode::All, bad(&[3]));
    submit(&mut world, 1..=4);
    checks_end(&mut world, 3);
    checks_end(&mut world, 3);
    assert_eq!(state(&world, 3), PrState::Pending);
    let prs = vec![PrNumber(1), PrNumber(2)];
    assert_eq!(waits(&world, 3), WaitReason::PredecessorTesting { prs });
    world.settle();
    assert_eq!(world.landed, [1, 2, 4]);
}

#[test]
fn one_that_conflicts_with_the_target_without_what_was_ahead_returns_to_the_line() {
    let rules = Rules { flaky: [2].into(), ..Rules::default() };
    let mut world = world(ReparentingMode::All, rules);
    submit(&mut world, 1..=3);
    run_checks(&mut world, 2);
    world.absorb_all();
    let build = world.queue.runs().find(|run| run.bisection).expect("it is built alone").id;
    world.outbox.retain(|it| it.effect.run() != Some(build));
    world.take_in(&Fact::CandidateConflict {
        run: build,
        pr: PrNumber(2),
        with: ConflictWith::Target,
        paths: vec!["a".into()],
    });
    let entry = world.queue.entry_of(PrNumber(2)).expect("it has not failed");
    assert!(entry.part.is_none() && entry.reparented, "{entry:?}");
    world.settle();
    assert_eq!(world.landed.iter().copied().collect::<BTreeSet<u32>>(), [1, 2, 3].into());
}

#[test]
fn no_pull_request_leaves_the_line_twice_and_an_urgent_one_stays_at_the_front() {
    let mut slow = world(ReparentingMode::All, bad(&[1]));
    submit(&mut slow, 1..=3);
    checks_end(&mut slow, 2);
    checks_end(&mut slow, 2);
    checks_end(&mut slow, 2);
    assert_eq!(reparented(&slow), [[2]], "#1 is still under test");
    assert_eq!(state(&slow, 2), PrState::PendingFailure);
    slow.settle();
    assert_eq!(slow.landed.len(), 2);

    let mut urgent = world(ReparentingMode::All, bad(&[2]));
    urgent.submit(1, Some(0)).expect("submitted");
    urgent.submit(2, Some(0)).expect("submitted");
    urgent.submit(3, None).expect("submitted");
    checks_end(&mut urgent, 2);
    assert_eq!((reparented(&urgent), state(&urgent, 2)), (vec![], PrState::PendingFailure));
    urgent.settle();
    assert_eq!(urgent.landed, [1, 3]);
}

#[test]
fn a_right_half_that_needs_what_was_ahead_is_tested_on_the_present_target() {
    // #4 needs #1, which lands after #3 has passed without it; the failure comes from #2.
    let rules = Rules { needs: [(4, 1)].into(), ..bad(&[2]) };
    let mut world = world(ReparentingMode::Batches, rules);
    update(&mut world, in_batches(2), None);
    for pr in 1..=2 {
        world.submit_with(pr, None, Some(true)).expect("submitted");
    }
    submit(&mut world, 3..=4);
    checks_end(&mut world, 4);
    assert_eq!(reparented(&world), [[3, 4]]);
    let mut late = world.clone();
    checks_end(&mut world, 3);
    checks_end(&mut world, 4);
    assert_eq!(state(&world, 4), PrState::Pending);
    world.settle();
    assert_eq!(world.landed.iter().copied().collect::<BTreeSet<u32>>(), [1, 3, 4].into());
    // Or #1 lands before #4 starts.
    checks_end(&mut late, 1);
    late.settle();
    assert_eq!(late.landed.iter().copied().collect::<BTreeSet<u32>>(), [1, 3, 4].into());
}

#[test]
fn one_outside_the_line_holds_nothing_that_is_tested_beside_it() {
    let mut world = world(ReparentingMode::All, bad(&[3]));
    submit(&mut world, 1..=3);
    checks_end(&mut world, 3);
    checks_end(&mut world, 3);
    assert_eq!(state(&world, 3), PrState::Pending);
    // #2 returns to the line, and leaves it before it is tested again.
    update(&mut world, SettingsPatch::default(), Some(RequestedState::Paused));
    let by = world.caller();
    world.ask(Command::Cancel { pr: PrNumber(1), by }).expect("not refused");
    world.judge(2, Mergeability::NotMergeable("a review is missing".into()));
    world.absorb_all();
    assert_eq!(state(&world, 2), PrState::NotReady);
    // A draining queue does not admit it again.
    update(&mut world, SettingsPatch::default(), Some(RequestedState::Draining));
    world.settle();
    assert!(world.queue.entry_of(PrNumber(3)).is_none(), "{:?}", states(&world));
    assert_eq!(state(&world, 2), PrState::NotReady);
}
