//! The adaptive window.

use signalbox_domain::ids::PrNumber;
use signalbox_domain::queue::{Decision, Mode, PrState, Settings, SettingsPatch, WaitReason};
use signalbox_domain::testing::{Rules, World};

use crate::{bad, build_all, decisions, in_batches, is_checks, run_until, states, update, waits};

fn adaptive(concurrency: u32, floor: u32, rules: Rules) -> World {
    let settings = Settings::builder()
        .concurrency(concurrency)
        .adaptive_window(true)
        .window_floor(floor)
        .build()
        .expect("valid settings");
    World::new(settings, rules)
}

fn submit(world: &mut World, prs: impl IntoIterator<Item = u32>) {
    for pr in prs {
        world.submit(pr, None).expect("submitted");
    }
}

/// Every change of the window, in order.
fn resizes(world: &World) -> Vec<(u32, u32)> {
    let resized = |decision: Decision| match decision {
        Decision::WindowResized { from, to, .. } => Some((from, to)),
        _ => None,
    };
    decisions(world).into_iter().filter_map(resized).collect()
}

/// Runs the next checks, and everything up to the checks after them.
fn next_checks(world: &mut World) {
    run_until(world, is_checks);
    let next = world.outbox.remove(0);
    world.run(&next.effect);
    run_until(world, is_checks);
}

#[test]
fn a_failure_that_restarts_others_halves_the_window_and_each_merge_adds_one() {
    let mut world = adaptive(8, 3, bad(&[1]));
    submit(&mut world, 1..=12);
    build_all(&mut world);
    assert_eq!((world.queue.slots_of_line().1, world.queue.slots_used()), (8, (8, 0)));
    next_checks(&mut world);
    build_all(&mut world);
    assert_eq!((world.queue.slots_of_line().1, world.queue.slots_used()), (4, (4, 0)));
    let closed = |ahead| WaitReason::WindowClosed { used: 4, window: 4, limit: 8, ahead };
    assert_eq!(waits(&world, 6), closed(0));
    assert_eq!(waits(&world, 12), closed(6));
    world.settle();
    assert_eq!(world.landed, (2..=12).collect::<Vec<u32>>());
    assert_eq!(resizes(&world), [(8, 4), (4, 5), (5, 6), (6, 7), (7, 8)]);
    assert_eq!(world.queue.header.window, None, "it is as large as the concurrency again");
}

#[test]
fn a_failure_with_nothing_behind_it_keeps_the_window() {
    let mut world = adaptive(8, 1, bad(&[3]));
    submit(&mut world, 1..=3);
    world.settle();
    assert_eq!((world.landed.as_slice(), resizes(&world)), ([1, 2].as_slice(), vec![]));
}

#[test]
fn the_window_is_never_below_its_floor_or_above_the_concurrency() {
    for (floor, least) in [(1, 1), (3, 3), (100, 6)] {
        let mut world = adaptive(6, floor, bad(&[1, 2, 3, 4, 5, 6]));
        submit(&mut world, 1..=40);
        world.settle();
        assert_eq!(world.landed, (7..=40).collect::<Vec<u32>>());
        let sizes: Vec<u32> = resizes(&world).into_iter().map(|(_, to)| to).collect();
        assert_eq!(sizes.iter().min().copied().unwrap_or(6), least, "{sizes:?}");
        assert_eq!(sizes.last().copied().unwrap_or(6), 6, "{sizes:?}");
    }
}

#[test]
fn a_merged_batch_adds_one_for_each_pull_request() {
    let mut world = adaptive(8, 1, bad(&[1]));
    update(&mut world, in_batches(2), None);
    submit(&mut world, 1..=12);
    world.settle();
    let sizes = resizes(&world);
    assert_eq!(sizes.first(), Some(&(8, 4)));
    assert_eq!(sizes.get(1), Some(&(4, 6)), "{sizes:?}");
}

#[test]
fn what_runs_when_the_window_closes_continues() {
    let mut world = adaptive(5, 1, Rules { targets: lanes(), ..bad(&[1]) });
    let mode = SettingsPatch { mode: Some(Mode::Parallel), ..SettingsPatch::default() };
    update(&mut world, mode, None);
    submit(&mut world, 1..=5);
    build_all(&mut world);
    assert_eq!(world.queue.slots_used(), (5, 0), "#2 is built on #1");
    next_checks(&mut world);
    build_all(&mut world);
    // The other lanes are not concerned.
    assert_eq!((world.queue.slots_of_line().1, world.queue.slots_used()), (2, (3, 0)));
    let closed = WaitReason::WindowClosed { used: 3, window: 2, limit: 5, ahead: 0 };
    assert_eq!(waits(&world, 2), closed);
    world.settle();
    assert_eq!(world.landed, [3, 4, 5, 2]);
}

fn lanes() -> std::collections::BTreeMap<u32, std::collections::BTreeSet<u32>> {
    [(1, 1), (2, 1), (3, 2), (4, 3), (5, 4)].map(|(pr, lane)| (pr, [lane].into())).into()
}

#[test]
fn an_urgent_pull_request_starts_while_the_window_is_closed() {
    let mut world = adaptive(8, 3, bad(&[1]));
    submit(&mut world, 1..=12);
    build_all(&mut world);
    next_checks(&mut world);
    build_all(&mut world);
    world.submit(20, Some(0)).expect("submitted");
    assert!(states(&world).contains(&(20, PrState::Testing)), "{:?}", states(&world));
}

#[test]
fn the_window_opens_when_its_setting_is_switched_off() {
    let mut world = adaptive(8, 3, bad(&[1]));
    submit(&mut world, 1..=12);
    build_all(&mut world);
    next_checks(&mut world);
    build_all(&mut world);
    let off = SettingsPatch { adaptive_window: Some(false), ..SettingsPatch::default() };
    update(&mut world, off, None);
    build_all(&mut world);
    assert_eq!((world.queue.slots_of_line().1, world.queue.slots_used()), (8, (8, 0)));
    let on = SettingsPatch { adaptive_window: Some(true), ..SettingsPatch::default() };
    update(&mut world, on, None);
    assert_eq!(world.queue.slots_of_line().1, 8, "earlier failures do not count again");
    assert_eq!(waits(&world, 12), WaitReason::SlotsFull { used: 8, limit: 8, ahead: 2 });
}

#[test]
fn a_lower_concurrency_is_the_limit_below_the_window() {
    let mut world = adaptive(8, 3, bad(&[1]));
    submit(&mut world, 1..=12);
    build_all(&mut world);
    next_checks(&mut world);
    build_all(&mut world);
    let lower = SettingsPatch { concurrency: Some(2), ..SettingsPatch::default() };
    update(&mut world, lower, None);
    assert_eq!(world.queue.slots_of_line().1, 2);
    assert!(matches!(waits(&world, 12), WaitReason::SlotsFull { limit: 2, .. }));
    assert!(world.queue.entry_of(PrNumber(2)).is_some());
    world.settle();
    assert_eq!(world.landed, (2..=12).collect::<Vec<u32>>());
}

#[test]
fn the_halves_of_a_failed_batch_do_not_shrink_the_window_again() {
    let settings = Settings::builder()
        .concurrency(20_u32)
        .bisection_concurrency(20_u32)
        .adaptive_window(true)
        .build()
        .expect("valid settings");
    let mut world = World::new(settings, bad(&[1]));
    update(&mut world, in_batches(4), None);
    submit(&mut world, 1..=12);
    world.settle();
    assert_eq!(resizes(&world).first(), Some(&(20, 10)));
    assert!(
        resizes(&world).into_iter().skip(1).all(|(from, to)| from < to),
        "{:?}",
        resizes(&world)
    );
}

#[test]
fn a_higher_floor_opens_the_window() {
    let mut world = adaptive(8, 3, bad(&[1]));
    submit(&mut world, 1..=12);
    build_all(&mut world);
    next_checks(&mut world);
    assert_eq!(world.queue.slots_of_line().1, 4);
    let floor = SettingsPatch { window_floor: Some(6), ..SettingsPatch::default() };
    update(&mut world, floor, None);
    build_all(&mut world);
    assert_eq!(world.queue.slots_of_line(), (6, 6));
    world.settle();
    assert_eq!(world.landed.len(), 11);
}
