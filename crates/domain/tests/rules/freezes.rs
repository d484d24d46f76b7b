//! Freezes: urgent pull requests merge during one, the others when it ends. Each
//! world starts on Thursday, January 1, 2026, at midnight UTC.

use signalbox_domain::ids::PrNumber;
use signalbox_domain::queue::{
    Basis, Command, Decision, Effect, Fact, Freeze, Mode, PrState, ReparentingMode, RequestedState,
    Settings, SettingsPatch, WaitReason, estimate, next_deadline,
};
use signalbox_domain::testing::{Rules, World};
use signalbox_domain::time::{Span, Timestamp};

use crate::{
    bad, build_all, checks_end, decisions, in_batches, is_checks, run_until, states, update, waits,
};

const HOLIDAYS: &str = "2026-01-01T00:00/2026-01-05T08:00[Europe/Berlin] holidays";
const END: &str = "2026-01-05T07:00:00Z";

fn world(mode: Mode, freezes: &[&str]) -> World {
    let mut settings = Settings::new(mode, 3).expect("valid settings");
    settings.freezes = freezes.iter().map(|&rule| rule.to_owned()).collect();
    World::new(settings, Rules::default())
}

fn freezes(rules: &[&str]) -> SettingsPatch {
    let rules = rules.iter().map(|&rule| rule.to_owned()).collect();
    SettingsPatch { freezes: Some(rules), ..SettingsPatch::default() }
}

fn end() -> Timestamp {
    Timestamp::parse(END).expect("RFC 3339")
}

fn submit(world: &mut World, prs: &[u32]) {
    for pr in prs {
        world.submit(*pr, None).expect("submitted");
    }
}

fn holidays() -> WaitReason {
    WaitReason::Frozen { until: Some(end()), reason: Some("holidays".into()) }
}

fn pass_time_until(world: &mut World, until: Timestamp) {
    world.wait(until.since(world.at));
    world.take_in(&Fact::TimePassed);
}

#[test]
fn what_passes_during_a_freeze_merges_when_it_ends() {
    let mut world = world(Mode::Single, &[HOLIDAYS]);
    submit(&mut world, &[1, 2]);
    world.settle();
    assert!(world.landed.is_empty(), "{:?}", world.landed);
    assert_eq!((waits(&world, 1), waits(&world, 2)), (holidays(), holidays()));
    assert_eq!(next_deadline(&world.queue), Some(end()));
    world.wait(Span::hours(1));
    world.take_in(&Fact::TimePassed);
    world.settle();
    assert!(world.landed.is_empty(), "{:?}", world.landed);
    pass_time_until(&mut world, end());
    world.settle();
    assert_eq!(world.landed, [1, 2]);
    assert_eq!(next_deadline(&world.queue), None);
    assert_eq!(decisions(&world).iter().filter(|it| **it == Decision::FreezeEnded).count(), 1);
}

#[test]
fn urgent_pull_requests_merge_during_a_freeze() {
    for mode in [Mode::Single, Mode::Parallel] {
        let mut world = world(mode, &[HOLIDAYS]);
        submit(&mut world, &[1]);
        world.settle();
        world.submit(2, Some(0)).expect("submitted");
        world.settle();
        assert_eq!(world.landed, [2], "{mode:?}");
        assert_eq!(waits(&world, 1), holidays(), "it was tested again on the new target");
        // A pull request that becomes urgent does not wait for the end of the freeze.
        world.submit(1, Some(0)).expect("submitted again");
        world.settle();
        assert_eq!(world.landed, [2, 1], "{mode:?}");
    }
}

#[test]
fn without_tests_during_freezes_only_urgent_ones_start() {
    let mut world = world(Mode::Single, &[HOLIDAYS]);
    let off = SettingsPatch { test_while_frozen: Some(false), ..SettingsPatch::default() };
    update(&mut world, off, None);
    submit(&mut world, &[1, 2]);
    world.settle();
    assert_eq!(world.queue.runs().count(), 0);
    assert_eq!((waits(&world, 1), waits(&world, 2)), (holidays(), holidays()));
    world.submit(3, Some(0)).expect("submitted");
    world.settle();
    assert_eq!(world.landed, [3]);
    pass_time_until(&mut world, end());
    world.settle();
    assert_eq!(world.landed, [3, 1, 2]);
}

#[test]
fn a_freeze_begins_at_its_time_and_leaves_a_landing_alone() {
    let mut world = world(Mode::Single, &["01:00/06:00[UTC]"]);
    submit(&mut world, &[1, 2]);
    let start = Timestamp::parse("2026-01-01T01:00:00Z");
    run_until(&mut world, |effect| matches!(effect, Effect::Land(_)));
    let landing = world.queue.header.landing.clone().expect("it lands");
    assert_eq!(world.queue.header.freeze.due, start);
    pass_time_until(&mut world, start.expect("RFC 3339"));
    assert_eq!(world.queue.header.landing, Some(landing));
    world.settle();
    assert_eq!(world.landed, [1], "a landing that has begun is completed");
    let until = Timestamp::parse("2026-01-01T06:00:00Z");
    assert_eq!(waits(&world, 2), WaitReason::Frozen { until, reason: None });
}

#[test]
fn a_change_of_the_rules_counts_immediately() {
    let mut world = world(Mode::Single, &[]);
    update(&mut world, freezes(&["2026-01-01T00:00/..[UTC]"]), None);
    submit(&mut world, &[1]);
    world.settle();
    assert_eq!(waits(&world, 1), WaitReason::Frozen { until: None, reason: None });
    assert_eq!(next_deadline(&world.queue), None, "a freeze without an end has no deadline");
    update(&mut world, freezes(&[HOLIDAYS]), None);
    assert_eq!(waits(&world, 1), holidays());
    update(&mut world, freezes(&[]), None);
    world.settle();
    assert_eq!(world.landed, [1]);
    let seen: Vec<Decision> = decisions(&world)
        .into_iter()
        .filter(|it| matches!(it, Decision::FreezeStarted { .. } | Decision::FreezeEnded))
        .collect();
    let started =
        |freeze: Freeze| Decision::FreezeStarted { until: freeze.until, reason: freeze.reason };
    let open = Freeze { until: None, reason: None };
    let named = Freeze { until: Some(end()), reason: Some("holidays".into()) };
    assert_eq!(seen, [started(open), started(named), Decision::FreezeEnded]);
}

#[test]
fn a_rule_that_cannot_be_read_is_refused_and_changes_nothing() {
    let mut world = world(Mode::Single, &[HOLIDAYS]);
    let before = world.queue.clone();
    let command = |settings| Command::Update {
        settings: Box::new(settings),
        state: None,
        reason: None,
        by: world.caller(),
        source: signalbox_domain::queue::ChangeSource::Direct,
    };
    let wrong = command(freezes(&[HOLIDAYS, "22:00/06:00[Mars/Olympus]"]));
    let refused = world.ask(wrong).expect_err("refused").to_string();
    let rule =
        "freezes has an invalid rule: \"Mars/Olympus\" is not a time zone of the IANA database";
    assert!(refused.starts_with(rule), "{refused}");
    assert_eq!(world.queue, before);
}

#[test]
fn an_estimate_includes_the_freezes() {
    let mut world = world(Mode::Single, &["01:00/06:00[UTC] night"]);
    submit(&mut world, &[1, 2]);
    run_until(&mut world, is_checks);
    let minutes = |minutes| vec![Span::minutes(minutes)];
    let of = |world: &World, pr, history: &[Span]| {
        estimate(&world.queue, PrNumber(pr), history, world.at)
    };
    let until = |world: &World, text| Timestamp::parse(text).expect("RFC 3339").since(world.at);
    let soon = of(&world, 1, &minutes(30)).time.expect("an estimate");
    assert!(soon <= Span::minutes(30), "it merges before the freeze: {soon:?}");
    let later = of(&world, 1, &minutes(90)).time;
    assert_eq!(later, Some(until(&world, "2026-01-01T06:00:00Z")), "at the end of the freeze");
    update(&mut world, freezes(&["2026-01-01T00:20/..[UTC]"]), None);
    let open = of(&world, 1, &minutes(90));
    assert_eq!((open.time, open.basis), (None, Basis::Waits(Some(waits(&world, 1)))));
    let urgent = |world: &mut World| world.submit(1, Some(0)).expect("submitted again");
    urgent(&mut world);
    assert!(of(&world, 1, &minutes(90)).time.is_some(), "a freeze does not delay an urgent one");
}

#[test]
fn an_urgent_pull_request_is_not_built_on_one_that_was_urgent() {
    for tests in [true, false] {
        let mut world = world(Mode::Single, &[HOLIDAYS]);
        let tests = SettingsPatch { test_while_frozen: Some(tests), ..SettingsPatch::default() };
        update(&mut world, tests, None);
        world.submit(1, Some(0)).expect("submitted");
        run_until(&mut world, is_checks);
        world.submit(1, Some(100)).expect("submitted again");
        world.submit(2, Some(0)).expect("submitted");
        world.settle();
        assert_eq!(world.landed, [2], "#1 is held");
        assert_eq!(waits(&world, 1), holidays());
    }
}

#[test]
fn urgent_pull_requests_keep_their_order_when_a_freeze_moves_one_that_was_urgent() {
    let mut world = world(Mode::Single, &[]);
    for pr in [1, 2, 3] {
        world.submit(pr, Some(0)).expect("submitted");
    }
    build_all(&mut world);
    world.submit(1, Some(100)).expect("submitted again");
    assert_eq!(states(&world).first().map(|(pr, _)| *pr), Some(1), "others are built on it");
    update(&mut world, freezes(&[HOLIDAYS]), None);
    world.settle();
    assert_eq!(world.landed, [2, 3]);
}

#[test]
fn an_urgent_pull_request_does_not_wait_for_one_that_is_held() {
    let conflict = std::iter::once((1, 2)).collect();
    let mut settings = Settings::new(Mode::Single, 3).expect("valid settings");
    settings.freezes = vec![HOLIDAYS.to_owned()];
    let mut world = World::new(settings, Rules { conflict, ..Rules::default() });
    world.submit(1, Some(0)).expect("submitted");
    world.submit(2, Some(0)).expect("submitted");
    build_all(&mut world);
    assert_eq!(waits(&world, 2), WaitReason::ConflictWithAhead { pr: PrNumber(1) });
    world.submit(1, Some(100)).expect("submitted again");
    world.settle();
    assert_eq!(world.landed, [2]);
}

#[test]
fn an_estimate_without_tests_during_freezes_counts_the_time_outside_them() {
    let mut world = world(Mode::Single, &["01:00/06:00[UTC]"]);
    let off = SettingsPatch { test_while_frozen: Some(false), ..SettingsPatch::default() };
    update(&mut world, off, None);
    submit(&mut world, &[1, 2, 3, 4]);
    let of = |pr| estimate(&world.queue, PrNumber(pr), &[Span::minutes(90)], world.at).time;
    let until = |text| Timestamp::parse(text).expect("RFC 3339").since(world.at);
    assert_eq!(of(1), Some(until("2026-01-01T06:00:00Z")), "its run continues during the freeze");
    // An hour passes before the freeze, and two after it.
    assert_eq!(of(4), Some(until("2026-01-01T08:00:00Z")));
}

/// A queue that merges optimistically and tests two pull requests, of which the first is urgent.
fn urgent_before_another(freezes: &[&str]) -> World {
    let mut world = world(Mode::Single, freezes);
    let optimistic =
        SettingsPatch { can_optimistically_merge: Some(true), ..SettingsPatch::default() };
    update(&mut world, optimistic, None);
    world.submit(1, Some(0)).expect("submitted");
    submit(&mut world, &[2]);
    build_all(&mut world);
    world
}

#[test]
fn an_urgent_pull_request_does_not_pass_by_the_run_of_one_that_is_held() {
    let mut world = urgent_before_another(&[HOLIDAYS]);
    checks_end(&mut world, 2);
    world.settle();
    assert_eq!(world.landed, [1]);
    // Without a freeze the later run passes both, and they land together.
    update(&mut world, freezes(&[]), None);
    world.settle();
    assert_eq!(world.landed, [1, 2]);
}

#[test]
fn a_freeze_that_begins_returns_urgent_ones_from_the_runs_of_others() {
    let mut world = urgent_before_another(&[]);
    update(&mut world, SettingsPatch::default(), Some(RequestedState::Paused));
    checks_end(&mut world, 2);
    let passed =
        |world: &World| states(world).iter().all(|(_, state)| *state == PrState::TestsPassed);
    assert!(passed(&world), "#1 passes by the run of #2: {:?}", states(&world));
    update(&mut world, freezes(&[HOLIDAYS]), Some(RequestedState::Running));
    world.settle();
    assert_eq!(world.landed, [1]);
    assert_eq!(waits(&world, 2), holidays());
}

#[test]
fn an_urgent_pull_request_is_tested_on_a_landing_that_began_before_the_freeze() {
    let mut world = world(Mode::Single, &[]);
    submit(&mut world, &[1]);
    run_until(&mut world, |effect| matches!(effect, Effect::Land(_)));
    update(&mut world, freezes(&[HOLIDAYS]), None);
    world.submit(2, Some(0)).expect("submitted");
    world.settle();
    assert_eq!(world.landed, [1, 2]);
}

/// The target lacks what has passed: alone both pass, and behind #1 one of them fails.
#[test]
fn a_batch_that_fails_behind_what_is_held_is_bisected_in_place() {
    for mode in [Mode::Single, Mode::Parallel] {
        let mut settings = Settings::new(mode, 3).expect("valid settings");
        settings.freezes = vec![HOLIDAYS.to_owned()];
        let clash = std::iter::once((1, 3)).collect();
        let mut world = World::new(settings, Rules { clash, ..Rules::default() });
        submit(&mut world, &[1]);
        world.settle();
        update(&mut world, in_batches(2), None);
        submit(&mut world, &[2, 3]);
        world.settle();
        assert!(world.ended.contains(&PrNumber(3)), "#3 fails: {:?}", states(&world));
        assert_eq!((waits(&world, 1), waits(&world, 2)), (holidays(), holidays()), "{mode:?}");
    }
}

/// It may need #1, which has passed and waits for the end of the freeze.
#[test]
fn one_that_failed_beside_the_line_waits_for_the_end_of_the_freeze() {
    let settings = Settings::builder()
        .concurrency(3_u32)
        .bisection_concurrency(3_u32)
        .reparenting_mode(ReparentingMode::All);
    let mut world = World::new(settings.build().expect("valid settings"), bad(&[2]));
    submit(&mut world, &[1, 2]);
    build_all(&mut world);
    checks_end(&mut world, 2);
    assert!(world.queue.entry_of(PrNumber(2)).is_some_and(|it| it.aside().is_some()));
    checks_end(&mut world, 2);
    let prs = vec![PrNumber(1)];
    assert_eq!(waits(&world, 2), WaitReason::PredecessorTesting { prs });
    update(&mut world, freezes(&[HOLIDAYS]), None);
    world.settle();
    assert_eq!((waits(&world, 1), waits(&world, 2)), (holidays(), holidays()));
    pass_time_until(&mut world, end());
    world.settle();
    assert_eq!(world.landed, [1]);
    assert!(world.ended.contains(&PrNumber(2)));
}

#[test]
fn a_failure_does_not_wait_for_one_that_is_not_tested() {
    let settings = Settings::builder()
        .concurrency(2_u32)
        .can_optimistically_merge(true)
        .pending_failure_depth(1_u32)
        .test_while_frozen(false)
        .freezes(vec![HOLIDAYS.to_owned()]);
    let mut world = World::new(settings.build().expect("valid settings"), bad(&[1]));
    world.submit(1, Some(0)).expect("submitted");
    submit(&mut world, &[2]);
    world.settle();
    assert!(world.ended.contains(&PrNumber(1)), "{:?}", waits(&world, 1));
}

/// A world in PARALLEL mode in which each pull request has these targets.
fn world_with_targets(rules: &[&str], targets: &[(u32, &[u32])]) -> World {
    let mut settings = Settings::new(Mode::Parallel, 3).expect("valid settings");
    settings.freezes = rules.iter().map(|&rule| rule.to_owned()).collect();
    let targets = targets.iter().map(|(pr, targets)| (*pr, targets.iter().copied().collect()));
    World::new(settings, Rules { targets: targets.collect(), ..Rules::default() })
}

fn labels(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

#[test]
fn a_freeze_of_some_targets_lets_the_others_merge() {
    let rule = "2026-01-01T00:00/2026-01-05T08:00[Europe/Berlin]{target:t1} holidays";
    let mut world = world_with_targets(&[rule], &[(1, &[1]), (2, &[1, 2]), (3, &[2]), (4, &[1])]);
    for pr in [1, 2, 3] {
        submit(&mut world, &[pr]);
        world.wait(Span::seconds(1));
    }
    world.submit(4, Some(0)).expect("submitted");
    world.settle();
    assert_eq!(world.landed, [3, 4], "an urgent one merges, and one without the target");
    assert_eq!((waits(&world, 1), waits(&world, 2)), (holidays(), holidays()));
    assert_eq!(next_deadline(&world.queue), Some(end()));
    pass_time_until(&mut world, end());
    world.settle();
    assert_eq!(world.landed, [3, 4, 1, 2], "in their order");
    let ended = decisions(&world);
    assert!(ended.iter().any(|it| matches!(it, Decision::PartialFreezeEnded { .. })), "{ended:?}");
}

#[test]
fn targets_that_are_not_known_count_as_all_of_them() {
    let mut world =
        world(Mode::Single, &["00:00/06:00[UTC]{target:t1}", "00:00/05:00[UTC]{!target:t1}"]);
    world.reports_targets = false;
    submit(&mut world, &[1]);
    world.settle();
    assert!(world.landed.is_empty(), "{:?}", world.landed);
    let until = Timestamp::parse("2026-01-01T06:00:00Z");
    assert_eq!(waits(&world, 1), WaitReason::Frozen { until, reason: None }, "the last end");
}

#[test]
fn a_freeze_by_label_follows_the_labels() {
    let mut world = world(Mode::Single, &["2026-01-01T00:00/..[UTC]{label:mobile; !label:hotfix}"]);
    world.relabel(1, labels(&["Mobile"]));
    world.relabel(2, labels(&["mobile", "hotfix"]));
    submit(&mut world, &[1, 2, 3]);
    world.settle();
    assert_eq!(world.landed, [2, 3]);
    assert_eq!(waits(&world, 1), WaitReason::Frozen { until: None, reason: None });
    world.relabel(1, labels(&[]));
    world.settle();
    assert_eq!(world.landed, [2, 3, 1]);
}

#[test]
fn what_a_freeze_begins_to_cover_leaves_the_line_and_the_others_are_tested_without_it() {
    for mode in [Mode::Single, Mode::Parallel] {
        let mut world = world(mode, &["01:00/06:00[UTC]{label:mobile}"]);
        world.relabel(1, labels(&["mobile"]));
        world.relabel(3, labels(&["mobile"]));
        for pr in [1, 2, 3] {
            submit(&mut world, &[pr]);
            world.wait(Span::seconds(1));
        }
        build_all(&mut world);
        let start = Timestamp::parse("2026-01-01T01:00:00Z").expect("RFC 3339");
        pass_time_until(&mut world, start);
        let state = |world: &World, pr| {
            let states = states(world);
            states.into_iter().find(|(it, _)| *it == pr).map(|(_, state)| state)
        };
        assert_eq!(state(&world, 1), Some(PrState::NotReady), "{mode:?}");
        world.settle();
        assert_eq!(world.landed, [2], "{mode:?}");
        let until = Timestamp::parse("2026-01-01T06:00:00Z");
        assert_eq!(waits(&world, 1), WaitReason::Frozen { until, reason: None });
        // A pull request that waits only for a freeze does not time out.
        let day = SettingsPatch { not_ready_timeout_hours: Some(1), ..SettingsPatch::default() };
        update(&mut world, day, None);
        pass_time_until(&mut world, until.expect("RFC 3339"));
        world.settle();
        assert_eq!(world.landed, [2, 1, 3], "{mode:?}: in the order in which they were submitted");
    }
}

#[test]
fn what_lands_when_a_freeze_of_some_begins_is_completed() {
    let mut world = world(Mode::Single, &["01:00/06:00[UTC]{label:mobile}"]);
    world.relabel(1, labels(&["mobile"]));
    submit(&mut world, &[1]);
    run_until(&mut world, |effect| matches!(effect, Effect::Land(_)));
    pass_time_until(&mut world, Timestamp::parse("2026-01-01T01:00:00Z").expect("RFC 3339"));
    world.settle();
    assert_eq!(world.landed, [1]);
}

#[test]
fn an_estimate_includes_only_the_freezes_that_apply() {
    let mut world = world(Mode::Single, &["01:00/06:00[UTC]{label:mobile}"]);
    world.relabel(1, labels(&["mobile"]));
    submit(&mut world, &[1, 2]);
    run_until(&mut world, is_checks);
    let of = |pr| estimate(&world.queue, PrNumber(pr), &[Span::minutes(90)], world.at).time;
    let end = Timestamp::parse("2026-01-01T06:00:00Z").expect("RFC 3339");
    let tested_again = end.plus(Span::minutes(90)).since(world.at);
    assert_eq!(of(1), Some(tested_again), "the freeze ends its test");
    assert!(of(2).expect("an estimate") < Span::hours(3));
}
