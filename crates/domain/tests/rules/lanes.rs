//! PARALLEL mode: which entries depend on each other.

use std::collections::{BTreeMap, BTreeSet};

use signalbox_domain::ids::PrNumber;
use signalbox_domain::queue::{
    BisectionMode, Command, Effect, Fact, Mode, PrState, RequestedState, Settings, SettingsPatch,
    TestRun, WaitReason, unjustified,
};
use signalbox_domain::testing::{Rules, World};
use signalbox_domain::time::Span;

use crate::reasons::is_land;
use crate::{build_all, checks_end, in_batches, is_checks, run_until, states, update, waits};

const FRONTEND: u32 = 1;
const BACKEND: u32 = 2;
const DOCS: u32 = 3;

fn lanes(targets: &[(u32, &[u32])], rules: Rules) -> World {
    let targets: BTreeMap<u32, BTreeSet<u32>> =
        targets.iter().map(|(pr, names)| (*pr, names.iter().copied().collect())).collect();
    World::new(
        Settings::new(Mode::Parallel, 10).expect("valid settings"),
        Rules { targets, ..rules },
    )
}

fn submit(world: &mut World, prs: impl IntoIterator<Item = u32>) {
    for pr in prs {
        world.submit(pr, None).expect("submitted");
    }
}

/// The other pull requests in each pull request's latest candidate.
fn built_on(world: &World) -> BTreeMap<u32, Vec<u32>> {
    let runs = world.queue.runs();
    runs.flat_map(|run| {
        let ahead: Vec<u32> = run.ahead.iter().map(|(_, pr)| pr.0).collect();
        run.group.iter().map(move |member| (member.pr.0, ahead.clone()))
    })
    .collect()
}

#[test]
fn each_lane_is_tested_on_its_own() {
    let targets: [(u32, &[u32]); 5] =
        [(1, &[FRONTEND]), (2, &[BACKEND]), (3, &[DOCS]), (4, &[FRONTEND]), (5, &[BACKEND, DOCS])];
    let mut world = lanes(&targets, Rules::default());
    submit(&mut world, 1..=5);
    run_until(&mut world, |effect| matches!(effect, Effect::Land(_)));
    let expected = [(1, vec![]), (2, vec![]), (3, vec![]), (4, vec![1]), (5, vec![2, 3])].into();
    assert_eq!(built_on(&world), expected);
    world.settle();
    assert_eq!(world.landed.len(), 5);
}

#[test]
fn a_slow_or_failing_lane_does_not_delay_other_lanes() {
    let targets: [(u32, &[u32]); 3] = [(1, &[FRONTEND]), (2, &[BACKEND]), (3, &[FRONTEND])];
    let rules = Rules { bad: [1].into(), ..Rules::default() };
    let mut world = lanes(&targets, rules);
    submit(&mut world, 1..=3);
    // The checks of the first one do not run.
    run_until(&mut world, is_checks);
    let slow = world.outbox.remove(0);
    world.settle();
    assert_eq!(world.landed, [2]);
    let held = WaitReason::PredecessorTesting { prs: vec![PrNumber(1)] };
    assert_eq!(waits(&world, 3), held);
    world.outbox.push(slow);
    world.settle();
    assert_eq!(world.landed, [2, 3], "the third is tested again without the first");
}

#[test]
fn all_meets_every_set_and_the_empty_set_meets_only_all() {
    let targets: [(u32, &[u32]); 4] = [(1, &[FRONTEND]), (2, &[]), (3, &[]), (5, &[])];
    let mut world = lanes(&targets, Rules::default());
    // The fourth is not named: it touches everything.
    submit(&mut world, 1..=5);
    run_until(&mut world, |effect| matches!(effect, Effect::Land(_)));
    let expected =
        [(1, vec![]), (2, vec![]), (3, vec![]), (4, vec![1, 2, 3]), (5, vec![1, 2, 3, 4])].into();
    assert_eq!(built_on(&world), expected);
}

#[test]
fn the_next_candidate_contains_landings_of_other_lanes() {
    let targets: [(u32, &[u32]); 3] =
        [(1, &[FRONTEND]), (2, &[BACKEND]), (3, &[FRONTEND, BACKEND])];
    let rules = Rules { clash: [(2, 3)].into(), ..Rules::default() };
    let mut world = lanes(&targets, rules);
    submit(&mut world, [1, 2]);
    run_until(&mut world, is_checks);
    let slow = world.outbox.remove(0);
    world.settle();
    assert_eq!(world.landed, [2]);
    // Its candidate is the first one's, which does not contain the second.
    submit(&mut world, [3]);
    world.outbox.push(slow);
    world.settle();
    assert_eq!(world.landed, [2, 1], "the third is incompatible with the second");
}

#[test]
fn an_urgent_pull_request_interrupts_only_its_lane() {
    let targets: [(u32, &[u32]); 4] =
        [(1, &[FRONTEND]), (2, &[BACKEND]), (3, &[FRONTEND]), (4, &[FRONTEND])];
    let mut world = lanes(&targets, Rules::default());
    submit(&mut world, 1..=3);
    run_until(&mut world, is_checks);
    let before = built_on(&world).len();
    world.submit(4, Some(0)).expect("submitted");
    let order: Vec<u32> = states(&world).iter().map(|it| it.0).collect();
    assert_eq!((before, order), (3, vec![4, 1, 2, 3]));
    let run = |pr: u32| world.queue.entry_of(PrNumber(pr)).and_then(|it| it.state.run());
    assert!(run(2).is_some(), "the other lane continues");
    assert_eq!(run(1), None);
    world.settle();
    let place = |pr: u32| world.landed.iter().position(|it| *it == pr);
    assert!(place(4) < place(1) && place(1) < place(3));
}

#[test]
fn new_targets_return_an_entry_under_test_to_the_line() {
    let targets: [(u32, &[u32]); 2] = [(1, &[FRONTEND]), (2, &[BACKEND])];
    let mut world = lanes(&targets, Rules::default());
    submit(&mut world, 1..=2);
    run_until(&mut world, is_checks);
    world.retouch(2, [FRONTEND].into());
    run_until(&mut world, |effect| matches!(effect, Effect::Land(_)));
    assert_eq!(built_on(&world).get(&2), Some(&vec![1]));
    // The same targets again change nothing.
    let before = world.queue.clone();
    let report = world.targets(2);
    world.ask(Command::SetTargets { pr: PrNumber(2), targets: report }).expect("not refused");
    assert_eq!(world.queue.runs().count(), before.runs().count());
    world.settle();
    assert_eq!(world.landed, [1, 2]);
}

#[test]
fn only_entries_of_one_lane_are_batched() {
    let targets: [(u32, &[u32]); 4] =
        [(1, &[FRONTEND]), (2, &[BACKEND]), (3, &[FRONTEND]), (4, &[BACKEND])];
    let mut world = lanes(&targets, Rules::default());
    let patch =
        SettingsPatch { batch: Some(true), batching_min_size: Some(2), ..SettingsPatch::default() };
    update(&mut world, patch, None);
    submit(&mut world, 1..=4);
    run_until(&mut world, is_checks);
    let groups: BTreeSet<Vec<u32>> =
        world.queue.runs().map(|run| run.group.iter().map(|it| it.pr.0).collect()).collect();
    assert_eq!(groups, BTreeSet::from([vec![1, 3], vec![2, 4]]));
    world.settle();
    assert_eq!(world.landed.len(), 4);
}

#[test]
fn an_urgent_pull_request_without_targets_is_retested_without_entries_now_behind_it() {
    // The first is not named: it touches everything.
    let mut world = lanes(&[(2, &[])], Rules::default());
    submit(&mut world, 1..=2);
    run_until(&mut world, is_checks);
    assert_eq!(built_on(&world).get(&2), Some(&vec![1]));
    update(&mut world, SettingsPatch::default(), Some(RequestedState::Paused));
    let by = world.caller();
    world.ask(Command::Restart { pr: PrNumber(1), by }).expect("restarted");
    world.submit(2, Some(0)).expect("urgent");
    assert_eq!(states(&world), [(2, PrState::Pending), (1, PrState::Pending)]);
    update(&mut world, SettingsPatch::default(), Some(RequestedState::Running));
    world.settle();
    assert_eq!(world.landed, [2, 1]);
}

#[test]
fn a_batch_is_not_built_on_entries_between_its_members() {
    // The third is not named: it touches everything.
    let targets: [(u32, &[u32]); 2] = [(1, &[FRONTEND]), (2, &[BACKEND])];
    let mut world = lanes(&targets, Rules::default());
    submit(&mut world, 1..=2);
    run_until(&mut world, is_checks);
    let patch = SettingsPatch { batch: Some(true), ..SettingsPatch::default() };
    update(&mut world, patch, None);
    submit(&mut world, [3]);
    // In one batch with the third, the first would have to be tested on the second, which is behind
    // it.
    let by = world.caller();
    world.ask(Command::Restart { pr: PrNumber(1), by }).expect("restarted");
    assert_eq!(built_on(&world).get(&1), Some(&vec![]));
    world.settle();
    assert_eq!(world.landed.len(), 2);
    world.wait(Span::minutes(5));
    world.take_in(&Fact::TimePassed);
    world.settle();
    assert_eq!(world.landed.len(), 3);
}

#[test]
fn a_batch_member_does_not_overtake_an_entry_of_its_lane() {
    // The first is not named: it touches everything.
    let targets: [(u32, &[u32]); 2] = [(2, &[FRONTEND]), (3, &[BACKEND])];
    let mut world = lanes(&targets, Rules::default());
    submit(&mut world, [1]);
    world.submit_with(2, None, Some(true)).expect("submitted");
    run_until(&mut world, is_checks);
    let patch =
        SettingsPatch { batch: Some(true), batching_min_size: Some(2), ..SettingsPatch::default() };
    update(&mut world, patch, None);
    submit(&mut world, [3]);
    // The second must be tested alone, on the first and not on a batch with the third.
    world.push_target();
    world.reconcile();
    world.settle();
    assert_eq!(world.landed, [1, 2]);
    world.wait(Span::minutes(5));
    world.take_in(&Fact::TimePassed);
    world.settle();
    assert_eq!(world.landed, [1, 2, 3]);
}

#[test]
fn a_pull_request_may_touch_a_quarter_of_a_million_targets() {
    use signalbox_domain::queue::ReportedTargets;
    let names = |from: usize| (from..from + 250_000).map(|it| format!("//target:{it}"));
    let (one, other) =
        (ReportedTargets::only(None, names(0)), ReportedTargets::only(None, names(250_000)));
    let few = ReportedTargets::only(None, ["//target:249999"]);
    assert!(one.targets.meets(&few.targets) && few.targets.meets(&one.targets));
    assert!(!one.targets.meets(&other.targets) && !other.targets.meets(&few.targets));
}

#[test]
fn a_switch_to_single_mode_finishes_the_lanes_first() {
    let targets: [(u32, &[u32]); 3] = [(1, &[FRONTEND]), (2, &[BACKEND]), (3, &[DOCS])];
    let mut world = lanes(&targets, Rules::default());
    submit(&mut world, 1..=2);
    run_until(&mut world, is_checks);
    let single = SettingsPatch { mode: Some(Mode::Single), ..SettingsPatch::default() };
    update(&mut world, single, None);
    submit(&mut world, [3]);
    assert_eq!(waits(&world, 3), WaitReason::QueueSwitchingModes);
    assert_eq!(states(&world)[2], (3, PrState::NotReady));
    world.settle();
    assert_eq!(world.queue.mode(), Mode::Single);
    assert_eq!(world.landed.len(), 3);
}

/// A success absolves the entries ahead only if that ends no run that tests other entries.
#[test]
fn a_success_does_not_end_a_run_ahead_that_also_tests_other_entries() {
    let mut settings = Settings::new(Mode::Parallel, 2).expect("valid settings");
    settings.batch = true;
    let one = || BTreeSet::from([1]);
    let targets = BTreeMap::from([(5, one()), (6, one()), (8, BTreeSet::new())]);
    let rules = Rules { bad: BTreeSet::from([5]), targets, ..Rules::default() };
    let mut world = World::new(settings, rules);
    world.submit(7, Some(10)).expect("submitted");
    let optimistic =
        SettingsPatch { can_optimistically_merge: Some(true), ..SettingsPatch::default() };
    update(&mut world, optimistic, None);
    for (pr, priority) in [(5, None), (8, None), (6, Some(10))] {
        world.submit(pr, priority).expect("submitted");
    }
    for _ in 0..4 {
        world.settle();
        world.wait(Span::minutes(10));
        world.take_in(&Fact::TimePassed);
        world.reconcile();
    }
    world.settle();
    let landed: BTreeSet<u32> = world.landed.iter().copied().collect();
    assert_eq!(landed, BTreeSet::from([6, 7, 8]));
    assert_eq!(world.queue.live(), 0);
}

#[test]
fn each_lane_fills_a_batch_of_its_own() {
    let targets: [(u32, &[u32]); 3] = [(1, &[FRONTEND]), (2, &[BACKEND]), (3, &[FRONTEND])];
    let mut world = lanes(&targets, Rules::default());
    let patch = SettingsPatch {
        batch: Some(true),
        batching_min_size: Some(3),
        batching_max_wait_time_minutes: Some(5),
        ..SettingsPatch::default()
    };
    update(&mut world, patch, None);
    submit(&mut world, [1]);
    world.wait(Span::minutes(1));
    submit(&mut world, 2..=3);
    let until = |minutes| world.at.plus(Span::minutes(minutes));
    let filling = |have, until| WaitReason::BatchFilling { have, target: 3, until };
    assert_eq!(waits(&world, 1), filling(2, until(4)));
    assert_eq!(waits(&world, 3), filling(2, until(4)));
    assert_eq!(waits(&world, 2), filling(1, until(5)));
}

#[test]
fn a_change_in_one_lane_leaves_the_bisection_of_another_alone() {
    let targets: Vec<(u32, &[u32])> =
        (1..=8).map(|pr| (pr, if pr <= 4 { &[FRONTEND] as &[u32] } else { &[BACKEND] })).collect();
    let rules = Rules { bad: [2, 6].into(), ..Rules::default() };
    let mut world = lanes(&targets, rules);
    let patch = SettingsPatch {
        batch: Some(true),
        batching_min_size: Some(4),
        bisection_concurrency: Some(1),
        bisection_mode: Some(BisectionMode::InPlace),
        ..SettingsPatch::default()
    };
    update(&mut world, patch, None);
    submit(&mut world, 1..=8);
    let parts = |world: &World| -> Vec<u32> {
        let waiting = world.queue.entries_in_order();
        let waiting = waiting.filter(|entry| entry.part.is_some() && entry.waits_in_line());
        waiting.map(|entry| entry.pr.0).collect()
    };
    while parts(&world).iter().filter(|pr| **pr > 4).count() == 0
        || parts(&world).iter().filter(|pr| **pr <= 4).count() == 0
    {
        run_until(&mut world, is_checks);
        let next = world.outbox.remove(0);
        world.run(&next.effect);
    }
    let before: Vec<u32> = parts(&world).into_iter().filter(|pr| *pr > 4).collect();
    let waiting = parts(&world).into_iter().find(|pr| *pr <= 4).expect("a waiting part");
    world.push(waiting);
    world.absorb_all();
    let after = parts(&world);
    assert_eq!(after.iter().copied().filter(|pr| *pr > 4).collect::<Vec<_>>(), before);
    assert!(!after.iter().any(|pr| *pr <= 4), "the parts of the changed lane are dissolved");
}

/// Batches of `size` in lanes.
fn batches_of(size: u32, targets: &[(u32, &[u32])]) -> World {
    let mut world = lanes(targets, Rules::default());
    update(&mut world, in_batches(size), None);
    world
}

#[test]
fn a_batch_is_built_on_what_any_of_its_members_depends_on_once() {
    let targets: [(u32, &[u32]); 4] = [
        (1, &[FRONTEND]),
        (2, &[BACKEND]),
        (3, &[FRONTEND, DOCS]),
        (4, &[FRONTEND, BACKEND, DOCS]),
    ];
    let mut world = batches_of(2, &targets);
    for pr in [1, 2] {
        world.submit_with(pr, None, Some(true)).expect("submitted");
    }
    run_until(&mut world, is_checks);
    submit(&mut world, [3, 4]);
    let on = built_on(&world);
    assert_eq!((&on[&3], &on[&4]), (&vec![1, 2], &vec![1, 2]));
}

#[test]
fn an_entry_behind_another_waits_for_it_and_not_for_its_batch() {
    let targets: [(u32, &[u32]); 3] = [(1, &[BACKEND]), (2, &[BACKEND]), (3, &[FRONTEND])];
    let mut world = batches_of(3, &targets);
    world.submit_with(1, None, Some(true)).expect("submitted");
    submit(&mut world, [2, 3]);
    let until = world.at.plus(Span::minutes(5));
    assert_eq!(waits(&world, 3), WaitReason::BatchFilling { have: 1, target: 3, until });
    assert_eq!(waits(&world, 2), WaitReason::BehindPrs { prs: vec![PrNumber(1)], ahead: 1 });
}

#[test]
fn an_urgent_pull_request_is_linked_by_what_lands_only_until_it_has_landed() {
    // 5 has all targets: 4 depends on it, and it would depend on the urgent 8, which has none. But
    // 5 is landing when 8 comes.
    let targets: [(u32, &[u32]); 3] = [(3, &[FRONTEND]), (4, &[FRONTEND]), (8, &[])];
    let mut world = lanes(&targets, Rules::default());
    update(&mut world, SettingsPatch { concurrency: Some(2), ..SettingsPatch::default() }, None);
    submit(&mut world, [5, 3, 4]);
    run_until(&mut world, is_land);
    world.submit(8, Some(0)).expect("submitted");
    run_until(&mut world, is_checks);
    run_until(&mut world, is_land);
    while built_on(&world).get(&4).is_none_or(|on| on.contains(&5)) && world.step() {}
    assert_eq!(built_on(&world)[&4], [3], "8 shares no target with 3 and 4");
    world.settle();
    assert_eq!(states(&world), []);
}

#[test]
fn a_passed_pull_request_waits_for_the_passed_ones_ahead() {
    // 4 and 5 are a lane, 1 depends on neither, and all others have all targets. While the batch of
    // 4 and 5 is bisected, 1 passes on 4 and 6 to 9, which have passed with 5.
    let targets = [(1, [].into()), (2, [].into()), (4, [2].into()), (5, [2].into())].into();
    let rules = Rules { targets, flaky: [4].into(), ..Rules::default() };
    let mut settings = Settings::new(Mode::Parallel, 2).expect("valid settings");
    (settings.bisection_concurrency, settings.batch, settings.batching_min_size) = (2, true, 4);
    settings.bisection_mode = BisectionMode::InPlace;
    let mut world = World::new(settings, rules);
    world.take_in(&Fact::TargetMissing);
    world.retarget(3);
    world.submit(1, Some(200)).expect("submitted");
    world.wait(Span::seconds(1));
    for pr in 2..=9 {
        world.submit(pr, None).expect("submitted");
    }
    world.wait(Span::seconds(1));
    let mut reasons = Vec::new();
    for _ in 0..4 {
        while world.step() {
            let passed = states(&world).contains(&(1, PrState::TestsPassed));
            reasons.extend(passed.then(|| waits(&world, 1)));
        }
        world.wait(Span::minutes(10));
        world.take_in(&Fact::TimePassed);
        world.reconcile();
    }
    let behind = WaitReason::PredecessorTesting { prs: vec![PrNumber(5)] };
    assert!(reasons.contains(&behind), "{reasons:?}");
    assert_eq!(states(&world), [(3, PrState::NotReady)]);
}

/// The pull requests whose tests run.
fn tested(world: &World) -> Vec<u32> {
    let running = world.queue.runs().filter(|run| run.status.is_running());
    let members = |run: &TestRun| run.group.iter().map(|member| member.pr.0).collect::<Vec<_>>();
    let mut tested: Vec<u32> = running.flat_map(members).collect();
    tested.sort_unstable();
    tested
}

fn capacities(rules: &[&str]) -> SettingsPatch {
    let rules = rules.iter().map(ToString::to_string).collect();
    SettingsPatch { target_capacities: Some(rules), ..SettingsPatch::default() }
}

#[test]
fn no_more_runs_than_its_capacity_test_a_target() {
    let targets: [(u32, &[u32]); 5] =
        [(1, &[FRONTEND]), (2, &[FRONTEND]), (3, &[BACKEND]), (4, &[FRONTEND, DOCS]), (6, &[DOCS])];
    let mut world = lanes(&targets, Rules::default());
    update(&mut world, capacities(&["t1 2"]), None);
    submit(&mut world, [1, 2, 3, 4, 6]);
    build_all(&mut world);
    assert_eq!(tested(&world), [1, 2, 3], "#6 is behind #4 in the lane of the docs");
    let full = WaitReason::TargetFull { target: "t1".into(), used: 2, limit: 2 };
    assert_eq!(waits(&world, 4), full);
    assert_eq!(waits(&world, 6), WaitReason::BehindPrs { prs: vec![PrNumber(4)], ahead: 1 });
    checks_end(&mut world, 1);
    build_all(&mut world);
    assert_eq!(tested(&world), [2, 3, 4, 6]);
    world.settle();
    assert_eq!(world.landed.len(), 5);
}

#[test]
fn a_pull_request_of_all_targets_needs_each_capacity_and_patterns_match_names() {
    let targets: [(u32, &[u32]); 3] = [(1, &[FRONTEND]), (2, &[BACKEND]), (3, &[DOCS])];
    let mut world = lanes(&targets, Rules::default());
    update(&mut world, capacities(&["none 1", "t* 2"]), None);
    // The fourth is not named: it impacts all targets.
    submit(&mut world, 1..=4);
    build_all(&mut world);
    assert_eq!(tested(&world), [1, 2]);
    let full = WaitReason::TargetFull { target: "t*".into(), used: 2, limit: 2 };
    assert_eq!(waits(&world, 3), full);
    update(&mut world, capacities(&[]), None);
    build_all(&mut world);
    assert_eq!(tested(&world), [1, 2, 3, 4], "without capacities all start");
    update(&mut world, capacities(&["t1 1"]), None);
    assert_eq!(tested(&world), [1, 2, 3, 4], "what runs is not interrupted");
    world.settle();
    assert_eq!(world.landed.len(), 4);
}

#[test]
fn capacities_have_no_effect_in_single_mode() {
    let mut world =
        World::new(Settings::new(Mode::Single, 3).expect("valid settings"), Rules::default());
    update(&mut world, capacities(&["* 1"]), None);
    submit(&mut world, 1..=3);
    build_all(&mut world);
    assert_eq!(tested(&world), [1, 2, 3]);
}

#[test]
fn an_invalid_capacity_is_refused_with_its_rule() {
    let refused = |rule: &str| {
        let settings = Settings::builder().target_capacities(vec![rule.to_owned()]).build();
        settings.expect_err("refused").to_string()
    };
    let form = "targetCapacities has an invalid rule: \"ios\" is not of the form TARGET NUMBER, such \
                as \"ios 2\" or \"gpu-* 4\"";
    assert_eq!(refused("ios"), form);
    for rule in ["ios 0", "ios 1001", "ios -1", "ios +1", "ios 02", "ios two", "ios 2.5"] {
        let number = format!(
            "targetCapacities has an invalid rule: {rule:?} must end with a whole number from 1 to 1000, as in \"ios 2\""
        );
        assert_eq!(refused(rule), number);
    }
    assert!(refused("ios, 2").contains("must not contain commas"));
    for rule in ["ios 1", "gpu-* 1000", "an app 3", " ios  2 "] {
        assert!(
            Settings::builder().target_capacities(vec![rule.to_owned()]).build().is_ok(),
            "{rule}"
        );
    }
}

#[test]
fn a_batch_accepts_none_that_needs_a_full_target() {
    let targets: [(u32, &[u32]); 3] = [(1, &[FRONTEND]), (2, &[DOCS]), (3, &[FRONTEND, DOCS])];
    let mut world = lanes(&targets, Rules::default());
    update(&mut world, capacities(&["t1 1"]), None);
    submit(&mut world, [1]);
    build_all(&mut world);
    let batches = SettingsPatch { batching_max_wait_time_minutes: Some(0), ..in_batches(4) };
    update(&mut world, batches, None);
    submit(&mut world, [2, 3]);
    build_all(&mut world);
    assert_eq!(tested(&world), [1, 2], "#2 does not need the target that #3 waits for");
    let full = WaitReason::TargetFull { target: "t1".into(), used: 1, limit: 1 };
    assert_eq!(waits(&world, 3), full);
    world.settle();
    assert_eq!(world.landed.len(), 3);
}

#[test]
fn a_batch_that_has_waited_long_enough_waits_for_its_target() {
    let targets: [(u32, &[u32]); 3] = [(1, &[FRONTEND]), (2, &[FRONTEND]), (3, &[BACKEND])];
    let mut world = lanes(&targets, Rules::default());
    update(&mut world, capacities(&["t1 1"]), None);
    submit(&mut world, [1]);
    build_all(&mut world);
    update(&mut world, in_batches(4), None);
    submit(&mut world, [2]);
    world.wait(Span::minutes(4));
    submit(&mut world, [3]);
    world.wait(Span::minutes(1));
    world.take_in(&Fact::TimePassed);
    assert!(matches!(waits(&world, 3), WaitReason::BatchFilling { have: 1, .. }));
    assert!(matches!(waits(&world, 2), WaitReason::TargetFull { .. }), "{:?}", waits(&world, 2));
    assert_eq!(unjustified(&world.queue), []);
}
