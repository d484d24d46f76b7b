//! The limit for each author. Even numbers are by one author, odd ones by another.

use signalbox_domain::ids::PrNumber;
use signalbox_domain::queue::{
    Command, Fact, Mode, RequestedState, Settings, SettingsPatch, WaitReason, next_deadline,
};
use signalbox_domain::testing::{Rules, World};
use signalbox_domain::time::Span;

use crate::{in_line, is_checks, run_until, states, submit, update, waits};

fn world(author_limit: u32) -> World {
    let mut settings = Settings::new(Mode::Single, 1).expect("valid settings");
    settings.author_limit = author_limit;
    World::new(settings, Rules::default())
}

#[test]
fn more_pull_requests_of_an_author_wait_outside_the_line() {
    let mut world = world(2);
    submit(&mut world, [2, 4, 6, 8, 1]);
    assert_eq!(in_line(&world), [2, 4, 1]);
    let prs = vec![PrNumber(2), PrNumber(4)];
    let limit = WaitReason::AuthorLimit { author: "grace".into(), limit: 2, prs };
    assert_eq!((waits(&world, 6), waits(&world, 8)), (limit.clone(), limit));
    world.settle();
    assert_eq!(world.landed, [2, 4, 1, 6, 8], "the other author does not wait for all of them");
}

#[test]
fn the_one_that_waits_longest_enters_when_another_leaves() {
    let mut world = world(1);
    submit(&mut world, [2, 4, 6]);
    let by = world.caller();
    world.ask(Command::Cancel { pr: PrNumber(2), by }).expect("cancelled");
    assert_eq!(in_line(&world), [4]);
    world.redraft(4);
    world.absorb_all();
    assert_eq!(in_line(&world), [6], "a draft leaves the line, too");
}

#[test]
fn urgent_ones_enter_and_a_higher_limit_lets_more_in() {
    let mut world = world(1);
    submit(&mut world, [2, 4, 6, 8]);
    world.submit(8, Some(0)).expect("submitted again");
    assert_eq!(in_line(&world), [8, 2]);
    let limit = |limit| SettingsPatch { author_limit: Some(limit), ..SettingsPatch::default() };
    update(&mut world, limit(3), None);
    assert_eq!(in_line(&world), [8, 2, 4]);
    update(&mut world, limit(1), None);
    assert_eq!(in_line(&world), [8, 2, 4], "all stay in the line");
    update(&mut world, limit(0), None);
    assert_eq!(in_line(&world), [8, 2, 4, 6]);
}

#[test]
fn one_that_leaves_while_the_queue_admits_none_makes_room_for_later() {
    let mut world = world(1);
    submit(&mut world, [2, 4]);
    update(&mut world, SettingsPatch::default(), Some(RequestedState::Draining));
    world.settle();
    assert_eq!(
        (world.landed.as_slice(), waits(&world, 4)),
        ([2].as_slice(), WaitReason::QueueDraining)
    );
    update(&mut world, SettingsPatch::default(), Some(RequestedState::Running));
    world.settle();
    assert_eq!(world.landed, [2, 4]);
}

#[test]
fn one_that_waits_only_for_the_limit_does_not_time_out() {
    let mut world = world(1);
    submit(&mut world, [2, 4]);
    // Its author's other pull request is tested for as long.
    let patch = SettingsPatch { testing_timeout_minutes: Some(0), ..SettingsPatch::default() };
    update(&mut world, patch, None);
    run_until(&mut world, is_checks);
    let not_ready = Span::hours(world.queue.header.settings.not_ready_timeout_hours);
    world.wait(not_ready);
    world.wait(not_ready);
    world.take_in(&Fact::TimePassed);
    let is_there = |world: &World| states(world).iter().any(|(pr, _)| *pr == 4);
    assert!(is_there(&world), "{:?}", states(&world));
    world.redraft(4);
    world.absorb_all();
    world.take_in(&Fact::TimePassed);
    assert!(is_there(&world), "the time counts from when it is a draft");
    world.wait(not_ready);
    world.take_in(&Fact::TimePassed);
    assert!(!is_there(&world));
}

#[test]
fn one_that_a_switch_of_modes_makes_unready_has_the_whole_time() {
    let mut world = world(1);
    submit(&mut world, [2, 4]);
    let patch = SettingsPatch { testing_timeout_minutes: Some(0), ..SettingsPatch::default() };
    update(&mut world, patch, None);
    let not_ready = Span::hours(world.queue.header.settings.not_ready_timeout_hours);
    world.wait(not_ready);
    world.wait(not_ready);
    let parallel = SettingsPatch { mode: Some(Mode::Parallel), ..SettingsPatch::default() };
    update(&mut world, parallel, None);
    world.settle();
    assert_eq!((world.landed.as_slice(), world.queue.mode()), ([2].as_slice(), Mode::Parallel));
    world.take_in(&Fact::TimePassed);
    assert_eq!(waits(&world, 4), WaitReason::MissingTargets);
    world.wait(not_ready);
    world.take_in(&Fact::TimePassed);
    assert_eq!(states(&world), []);
}

fn hourly(limit: u32) -> SettingsPatch {
    SettingsPatch { author_hourly_limit: Some(limit), ..SettingsPatch::default() }
}

fn daily(minutes: u32) -> SettingsPatch {
    SettingsPatch { author_daily_minutes: Some(minutes), ..SettingsPatch::default() }
}

/// Lets the time pass until the queue has something to do, and does it.
fn wait_for_the_deadline(world: &mut World) {
    let due = next_deadline(&world.queue).expect("a deadline");
    world.wait(due.since(world.at));
    world.take_in(&Fact::TimePassed);
}

#[test]
fn an_author_enters_the_line_only_so_often_within_an_hour() {
    let mut world = world(0);
    update(&mut world, hourly(2), None);
    submit(&mut world, [2, 4, 6, 8, 1]);
    assert_eq!(in_line(&world), [2, 4, 1]);
    let WaitReason::Quota { author, of, limit, until } = waits(&world, 6) else {
        panic!("{:?}", waits(&world, 6));
    };
    assert_eq!((author.as_str(), of.as_str(), limit), ("grace", "authorHourlyLimit", 2));
    let wait = until.since(world.at);
    assert!(wait > Span::hours(1) && wait <= Span::minutes(65), "{wait:?}");
    world.settle();
    assert_eq!(world.landed, [2, 4, 1], "merged ones count, too");
    assert_eq!(next_deadline(&world.queue), Some(until));
    wait_for_the_deadline(&mut world);
    assert_eq!(in_line(&world), [6, 8]);
    world.settle();
    submit(&mut world, [10]);
    assert_eq!(in_line(&world), [], "two have entered in the last hour");
    world.submit(10, Some(0)).expect("submitted again");
    assert_eq!(in_line(&world), [10], "an urgent one always enters");
}

#[test]
fn minutes_of_test_runs_are_used_up_when_they_have_run() {
    let mut world = world(0);
    let minute = SettingsPatch { testing_timeout_minutes: Some(0), ..daily(1) };
    update(&mut world, minute, None);
    submit(&mut world, [2, 4]);
    assert_eq!(in_line(&world), [2, 4], "nothing has run");
    run_until(&mut world, is_checks);
    world.wait(Span::minutes(3));
    world.settle();
    assert_eq!(world.landed, [2, 4], "one in the line is tested");
    submit(&mut world, [6, 1]);
    assert_eq!(in_line(&world), [1]);
    let WaitReason::Quota { of, limit, until, .. } = waits(&world, 6) else {
        panic!("{:?}", waits(&world, 6));
    };
    assert_eq!((of.as_str(), limit), ("authorDailyMinutes", 1));
    assert!(until.since(world.at) > Span::hours(23));
    // A higher limit, and none, let it in.
    update(&mut world, daily(2), None);
    assert_eq!(in_line(&world), [1]);
    update(&mut world, daily(0), None);
    assert_eq!(in_line(&world), [1, 6]);
}

#[test]
fn a_cancelled_pull_request_has_used_the_minutes_of_its_run() {
    let mut world = world(0);
    update(&mut world, daily(2), None);
    submit(&mut world, [2]);
    run_until(&mut world, is_checks);
    world.wait(Span::minutes(2));
    let by = world.caller();
    world.ask(Command::Cancel { pr: PrNumber(2), by }).expect("cancelled");
    submit(&mut world, [4]);
    assert_eq!(in_line(&world), []);
}

#[test]
fn a_quota_that_is_restored_while_the_queue_admits_none_counts_later() {
    let mut world = world(0);
    update(&mut world, hourly(1), None);
    submit(&mut world, [2, 4]);
    world.settle();
    update(&mut world, SettingsPatch::default(), Some(RequestedState::Draining));
    assert_eq!(waits(&world, 4), WaitReason::QueueDraining);
    world.wait(Span::hours(2));
    update(&mut world, SettingsPatch::default(), Some(RequestedState::Running));
    assert_eq!(in_line(&world), [4]);
}

#[test]
fn a_run_that_another_author_interrupts_uses_no_minutes() {
    let mut world = world(0);
    update(&mut world, daily(2), None);
    submit(&mut world, [2]);
    run_until(&mut world, is_checks);
    world.wait(Span::minutes(5));
    world.submit(1, Some(0)).expect("urgent");
    submit(&mut world, [4]);
    assert_eq!(in_line(&world), [1, 2, 4], "#1 has interrupted the test run of #2");
}
