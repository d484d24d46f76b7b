//! Batches that are bisected beside the line.

use signalbox_domain::ids::PrNumber;
use signalbox_domain::queue::{
    BisectionMode, Decision, Mode, Moved, PrState, Reason, Settings, SettingsPatch, WaitReason,
};
use signalbox_domain::testing::{Rules, World};

use crate::{bad, decisions, in_batches, is_checks, run_until, states, update, waits};

fn batches(size: u32, rules: Rules) -> World {
    let mut world = World::new(Settings::new(Mode::Single, 4).expect("valid settings"), rules);
    update(&mut world, in_batches(size), None);
    world
}

fn submit(world: &mut World, prs: impl IntoIterator<Item = u32>) {
    for pr in prs {
        world.submit(pr, None).expect("submitted");
    }
}

/// The pull requests that each started run of this kind tests, by the first of its group.
fn runs(world: &World, of_bisection: bool) -> Vec<Vec<u32>> {
    let mut runs: Vec<(Option<_>, Vec<u32>)> = Vec::new();
    for decision in decisions(world) {
        if let Decision::Moved(Moved { to: PrState::Testing, run, pr, bisection, .. }) = decision
            && bisection == of_bisection
        {
            match runs.last_mut() {
                Some((last, prs)) if *last == run => prs.push(pr.0),
                _ => runs.push((run, vec![pr.0])),
            }
        }
    }
    runs.into_iter().map(|(_, prs)| prs).collect()
}

/// Runs checks in order until this pull request is in that state.
fn until(world: &mut World, pr: u32, state: PrState) {
    while !states(world).contains(&(pr, state)) {
        run_until(world, is_checks);
        let next = world.outbox.remove(0);
        world.run(&next.effect);
        world.absorb_all();
    }
}

#[test]
fn a_failed_batch_does_not_block_the_pull_requests_behind_it() {
    let mut world = batches(4, bad(&[2]));
    submit(&mut world, 1..=8);
    world.settle();
    assert_eq!(world.landed, [5, 6, 7, 8, 1, 3, 4], "they pass it without its changes");
    let main = runs(&world, false);
    assert_eq!(main[2], [5, 6, 7, 8], "again, on the target alone");
    assert_eq!(main[3], [1, 3, 4], "again, behind them");
}

#[test]
fn good_members_land_without_another_test_if_nothing_was_started_meanwhile() {
    for culprit in 2..=4 {
        let mut world = batches(4, bad(&[culprit]));
        submit(&mut world, 1..=4);
        world.settle();
        let ahead: Vec<u32> = (1..culprit).collect();
        assert_eq!(world.landed.get(..ahead.len()), Some(ahead.as_slice()));
        let again = runs(&world, false);
        assert!(again.iter().skip(1).all(|run| run.iter().all(|pr| *pr > culprit)), "{again:?}");
    }
}

#[test]
fn a_part_that_passed_waits_for_the_rest_of_its_batch_and_is_tested_again() {
    let mut world = batches(4, bad(&[4]));
    submit(&mut world, 1..=8);
    until(&mut world, 1, PrState::TestsPassed);
    let prs = vec![PrNumber(3), PrNumber(4)];
    assert_eq!(waits(&world, 1), WaitReason::BatchBisected { prs });
    world.settle();
    let again = decisions(&world).into_iter().any(|decision| {
        matches!(decision, Decision::Moved(Moved { pr: PrNumber(1), to: PrState::Pending, reason: Reason::Queued(it), .. })
            if it.as_str() == "BISECTION_TEST_RUN_PASSED")
    });
    assert!(again && world.landed == [5, 6, 7, 8, 1, 2, 3], "{:?}", world.landed);
}

#[test]
fn the_setting_decides_for_batches_that_fail_later() {
    let place = |world: &mut World, mode| {
        let patch = SettingsPatch { bisection_mode: Some(mode), ..SettingsPatch::default() };
        update(world, patch, None);
    };
    for (mode, then, landed) in [
        (BisectionMode::InPlace, BisectionMode::Aside, [1, 3, 4, 5, 6, 7, 8]),
        (BisectionMode::Aside, BisectionMode::InPlace, [5, 6, 7, 8, 1, 3, 4]),
    ] {
        let mut world = batches(4, bad(&[2]));
        place(&mut world, mode);
        submit(&mut world, 1..=8);
        while runs(&world, true).is_empty() {
            world.step();
        }
        place(&mut world, then);
        world.settle();
        assert_eq!(world.landed, landed, "{mode:?}");
    }
}

#[test]
fn a_member_that_leaves_or_becomes_urgent_returns_the_others_to_the_line() {
    let in_bisection = || {
        let mut world = batches(4, bad(&[4]));
        submit(&mut world, 1..=4);
        while runs(&world, true).is_empty() {
            world.step();
        }
        world
    };
    let parts =
        |world: &World| world.queue.entries_in_order().filter(|it| it.part.is_some()).count();

    let mut world = in_bisection();
    assert_eq!(parts(&world), 4);
    world.push(3);
    world.absorb_all();
    assert_eq!(parts(&world), 0);
    world.settle();
    assert_eq!(world.landed, [1, 2]);

    let mut world = in_bisection();
    world.submit(3, Some(0)).expect("submitted again");
    assert_eq!(parts(&world), 0);
    world.settle();
    assert_eq!(world.landed, [3, 1, 2]);
}
