//! Groups that are tested beside the line before their first run in it.

use signalbox_domain::ids::PrNumber;
use signalbox_domain::queue::{
    Basis, BisectionMode, Command, ConflictWith, Decision, Effect, Fact, Mode, Moved, Outcomes,
    PrState, Reason, RequestedState, Settings, SettingsPatch, SuccessEstimates, WaitReason,
    estimate,
};
use signalbox_domain::testing::{Rules, World};
use signalbox_domain::time::Span;

use crate::{bad, build_all, checks_end, decisions, in_batches, run_until, submit, update, waits};

/// A queue of which every third pull request failed lately: one passes with 66 %, two with 44 %.
fn world(patch: &SettingsPatch, rules: Rules) -> World {
    of_mode(Mode::Single, patch, rules)
}

fn of_mode(mode: Mode, patch: &SettingsPatch, rules: Rules) -> World {
    let settings = Settings::new(mode, 6).expect("valid settings");
    let settings = patch.applied_to(&settings).expect("valid settings");
    World::new(settings, rules).after(&[("eve", Outcomes { merged: 60, failed: 30 })])
}

fn none() -> SettingsPatch {
    SettingsPatch::default()
}

/// Lets everything happen, also what waits for batches to fill.
fn settle_in_time(world: &mut World) {
    for _ in 0..4 {
        world.settle();
        world.wait(Span::minutes(5));
        world.take_in(&Fact::TimePassed);
    }
    world.settle();
}

fn threshold(percent: u32) -> SettingsPatch {
    SettingsPatch { pretest_threshold: Some(percent), ..none() }
}

/// The pull requests of each pretest, and the probability in percent.
fn pretested(world: &World) -> Vec<(Vec<u32>, u32)> {
    let of = |decision: Decision| match decision {
        Decision::Pretested { prs, percent, .. } => {
            Some((prs.iter().map(|pr| pr.0).collect(), percent))
        }
        _ => None,
    };
    decisions(world).into_iter().filter_map(of).collect()
}

/// The pull requests of each run that has started, with what its candidate contains besides them.
fn runs(world: &World) -> Vec<(Vec<u32>, Vec<u32>)> {
    let numbers = |prs: Vec<PrNumber>| prs.iter().map(|pr| pr.0).collect::<Vec<u32>>();
    let mut runs: Vec<_> = world.queue.runs().collect();
    runs.sort_by_key(|run| run.number);
    runs.iter()
        .map(|run| {
            let group = run.group.iter().map(|member| member.pr).collect();
            (numbers(group), numbers(run.ahead.iter().map(|(_, pr)| *pr).collect()))
        })
        .collect()
}

/// Lets #1 and #2 pass a run together, and a push return them to the line, with more behind them.
fn pass_and_return(
    world: &mut World,
    more: impl IntoIterator<Item = u32>,
    settings: SettingsPatch,
) {
    submit(world, 1..=2);
    build_all(world);
    update(world, none(), Some(RequestedState::Paused));
    checks_end(world, 1);
    submit(world, more);
    world.push_target();
    build_all(world);
    update(world, settings, Some(RequestedState::Running));
    build_all(world);
}

#[test]
fn one_that_would_probably_fail_in_the_line_is_tested_beside_it_first() {
    let mut world = world(&none(), Rules::default());
    submit(&mut world, 1..=3);
    build_all(&mut world);
    assert_eq!(pretested(&world), [(vec![2], 44), (vec![3], 44)]);
    let alone = |pr| (vec![pr], vec![]);
    assert_eq!(runs(&world), [alone(1), alone(2), alone(3)], "on the target alone");
    assert_eq!(world.queue.slots_used(), (3, 0), "they use the slots of the line");
    checks_end(&mut world, 3);
    let behind = (vec![3], vec![1]);
    assert_eq!(runs(&world), [alone(1), alone(2), behind], "it has passed, and enters the line");
    let again = decisions(&world).into_iter().any(|decision| {
        matches!(decision, Decision::Moved(Moved { pr: PrNumber(3), to: PrState::Pending, reason: Reason::Queued(it), .. })
            if it.as_str() == "PASSED_ON_TARGET_ALONE")
    });
    world.settle();
    assert!(again && world.landed.len() == 3, "{:?}", world.landed);
    assert_eq!(pretested(&world).len(), 2, "none a second time");
}

#[test]
fn a_pretest_that_fails_restarts_no_other_run() {
    let mut world = world(&none(), bad(&[2]));
    submit(&mut world, 1..=3);
    build_all(&mut world);
    let before: Vec<_> = world.queue.runs().map(|run| run.id).collect();
    checks_end(&mut world, 2);
    let left: Vec<_> = world.queue.runs().map(|run| run.id).collect();
    assert_eq!(waits(&world, 2), WaitReason::PredecessorTesting { prs: vec![PrNumber(1)] });
    assert!(left.len() == 2 && left.iter().all(|run| before.contains(run)), "#1 and #3 continue");
    world.settle();
    assert_eq!(world.landed, [1, 3]);
}

#[test]
fn a_batch_whose_pretest_fails_is_bisected_beside_the_line() {
    for culprit in 4..=6 {
        let mut world = world(&in_batches(3), bad(&[culprit]));
        submit(&mut world, 1..=6);
        build_all(&mut world);
        assert_eq!(pretested(&world), [(vec![1, 2, 3], 29), (vec![4, 5, 6], 29)]);
        settle_in_time(&mut world);
        let mut landed = world.landed.clone();
        landed.sort_unstable();
        let good: Vec<u32> = (1..=6).filter(|pr| *pr != culprit).collect();
        assert_eq!(landed, good);
    }
}

#[test]
fn lanes_count_only_what_a_run_contains() {
    let targets = [(1, [1].into()), (2, [2].into()), (3, [1].into())].into();
    let rules = Rules { targets, ..Rules::default() };
    let mut world = of_mode(Mode::Parallel, &none(), rules);
    submit(&mut world, 1..=3);
    build_all(&mut world);
    assert_eq!(pretested(&world), [(vec![3], 44)]);
    world.settle();
    assert_eq!(world.landed.len(), 3);
}

#[test]
fn the_settings_and_the_history_decide() {
    type Change = fn(&mut SettingsPatch);
    let cases: [(Change, bool); 7] = [
        (|_| {}, true),
        (|it| it.pretest_threshold = Some(0), false),
        (|it| it.pretest_threshold = Some(44), false),
        (|it| it.pretest_threshold = Some(45), true),
        (|it| it.bisection_mode = Some(BisectionMode::InPlace), false),
        (|it| it.pending_failure_depth = Some(1), false),
        (|it| it.can_optimistically_merge = Some(true), true),
    ];
    for (at, (change, expected)) in cases.into_iter().enumerate() {
        let mut patch = none();
        change(&mut patch);
        let mut world = world(&patch, Rules::default());
        submit(&mut world, 1..=2);
        build_all(&mut world);
        assert_eq!(!pretested(&world).is_empty(), expected, "case {at}");
    }
    let mut world = World::new(Settings::new(Mode::Single, 6).expect("valid"), bad(&[1]));
    submit(&mut world, 1..=6);
    world.settle();
    assert_eq!(pretested(&world), [], "one failure shows little");
    assert_eq!(world.queue.header.outcomes, Outcomes { merged: 5, failed: 1 });
}

/// A queue in which 3 of 4 pull requests of ada failed lately and none of grace, whose numbers are even.
fn of_two_authors(patch: &SettingsPatch) -> World {
    let settings = Settings::new(Mode::Single, 6).expect("valid settings");
    let settings = patch.applied_to(&settings).expect("valid settings");
    let failing = Outcomes { merged: 10, failed: 30 };
    World::new(settings, Rules::default())
        .after(&[("ada", failing), ("grace", Outcomes { merged: 60, failed: 0 })])
}

#[test]
fn an_author_whose_pull_requests_fail_is_pretested_and_others_are_not() {
    let mut world = of_two_authors(&none());
    submit(&mut world, [1, 2, 4, 3]);
    build_all(&mut world);
    assert_eq!(pretested(&world), [(vec![1], 28), (vec![3], 27)]);
    assert_eq!(runs(&world)[2], (vec![4], vec![2]), "in the line");
    // One rate for all: 70 % pass.
    let queue = SettingsPatch { success_estimates: Some(SuccessEstimates::Queue), ..none() };
    let mut world = of_two_authors(&queue);
    submit(&mut world, [1, 2, 4, 3]);
    build_all(&mut world);
    assert_eq!(pretested(&world), [(vec![2], 49), (vec![4], 49), (vec![3], 49)]);
}

/// What is counted of each author, in quarters of pull requests.
fn counted(world: &World) -> Vec<(String, u32, u32)> {
    let shares = world.queue.header.share_outcomes.iter();
    shares.map(|(of, it)| (of.to_owned(), it.merged, it.failed)).collect()
}

#[test]
fn outcomes_of_authors_are_counted_while_they_are_used() {
    let labels = SettingsPatch { agent_labels: Some(vec!["agent:*".to_owned()]), ..none() };
    let mut world = of_two_authors(&labels);
    world.relabel(2, vec!["agent:x".to_owned()]);
    submit(&mut world, [2, 4]);
    world.settle();
    let of = |of: &str, merged, failed| (of.to_owned(), merged, failed);
    // In quarters.
    let all = [of("ada", 40, 120), of("agent:x", 4, 0), of("grace", 244, 0)];
    assert_eq!(counted(&world), all);
    let estimates = |it| SettingsPatch { success_estimates: Some(it), ..none() };
    update(&mut world, estimates(SuccessEstimates::Queue), None);
    submit(&mut world, [6]);
    world.settle();
    assert!(counted(&world).is_empty());
    update(&mut world, estimates(SuccessEstimates::Authors), None);
    submit(&mut world, [8]);
    world.settle();
    assert_eq!(counted(&world), [of("grace", 4, 0)]);
    assert_eq!(world.queue.header.outcomes, Outcomes { merged: 74, failed: 30 });
}

#[test]
fn old_outcomes_count_less() {
    let before = [
        ("ada", Outcomes { merged: 90, failed: 5 }),
        ("eve", Outcomes { merged: 1, failed: 0 }),
        ("grace", Outcomes { merged: 103, failed: 1 }),
    ];
    let settings = Settings::new(Mode::Single, 1).expect("valid settings");
    let mut world = World::new(settings, Rules::default()).after(&before);
    submit(&mut world, [2]);
    world.settle();
    assert_eq!(world.queue.header.outcomes, Outcomes { merged: 97, failed: 3 });
    let found = counted(&world);
    let found: Vec<_> =
        found.iter().map(|(of, merged, failed)| (&**of, *merged, *failed)).collect();
    assert_eq!(found, [("ada", 180, 10), ("eve", 2, 0), ("grace", 208, 2)]);
}

/// After a switch, what was counted of the queue alone says nothing about authors.
#[test]
fn authors_with_the_same_outcomes_have_the_rate_of_the_queue() {
    let queue = SettingsPatch { success_estimates: Some(SuccessEstimates::Queue), ..none() };
    let mut world = world(&queue, Rules::default());
    submit(&mut world, [1]);
    world.settle();
    assert!(counted(&world).is_empty());
    let authors = SettingsPatch { success_estimates: Some(SuccessEstimates::Authors), ..none() };
    update(&mut world, authors, None);
    for pr in 2..=11 {
        submit(&mut world, [pr]);
        world.settle();
    }
    assert_eq!(counted(&world), [("ada".to_owned(), 20, 0), ("grace".to_owned(), 20, 0)]);
    assert!(pretested(&world).is_empty());
    // 71 have merged and 30 failed.
    submit(&mut world, [13, 14]);
    build_all(&mut world);
    assert_eq!(pretested(&world), [(vec![14], 49)]);
}

#[test]
fn an_urgent_one_is_tested_at_the_front() {
    let mut world = world(&none(), Rules::default());
    submit(&mut world, [1]);
    build_all(&mut world);
    world.submit(2, Some(0)).expect("submitted");
    world.submit(3, Some(0)).expect("submitted");
    build_all(&mut world);
    let of_urgent = pretested(&world).into_iter().filter(|(prs, _)| !prs.contains(&1));
    assert_eq!(of_urgent.count(), 0);
    world.settle();
    assert_eq!(world.landed, [2, 3, 1]);
}

#[test]
fn a_pretest_starts_during_a_landing() {
    let mut world = world(&threshold(100), bad(&[]));
    submit(&mut world, [1]);
    run_until(&mut world, |effect| matches!(effect, Effect::Land(_)));
    assert!(world.queue.header.landing.is_some());
    submit(&mut world, [2]);
    assert_eq!(pretested(&world).len(), 2);
    world.settle();
    assert_eq!(world.landed, [1, 2]);
}

#[test]
fn one_that_fails_without_what_is_ahead_is_not_blamed() {
    let needs = Rules { needs: [(2, 1)].into(), ..Rules::default() };
    let mut world = world(&none(), needs);
    submit(&mut world, 1..=2);
    build_all(&mut world);
    let half_an_hour = Span::minutes(30);
    let expected = |world: &World| estimate(&world.queue, PrNumber(2), &[half_an_hour], world.at);
    assert_eq!(expected(&world).time, Some(Span::hours(1)), "it is tested in the line, too");
    checks_end(&mut world, 2);
    let waits_for = WaitReason::PredecessorTesting { prs: vec![PrNumber(1)] };
    assert_eq!(waits(&world, 2), waits_for);
    assert_eq!(expected(&world).basis, Basis::Waits(Some(waits_for)), "it has failed");
    world.settle();
    assert_eq!(world.landed, [1, 2]);
}

#[test]
fn a_member_of_a_pretested_batch_that_needs_what_is_ahead_is_not_blamed() {
    for other in [3, 4] {
        let rules = Rules { needs: [(other, 1)].into(), ..bad(&[7 - other]) };
        let mut world = world(&in_batches(2), rules);
        update(&mut world, threshold(0), None);
        submit(&mut world, 1..=2);
        build_all(&mut world);
        update(&mut world, threshold(100), None);
        submit(&mut world, 3..=4);
        build_all(&mut world);
        assert_eq!(runs(&world), [(vec![1, 2], vec![]), (vec![3, 4], vec![])]);
        checks_end(&mut world, 3);
        settle_in_time(&mut world);
        assert_eq!(world.landed, [1, 2, other]);
    }
}

#[test]
fn one_that_conflicts_with_the_target_alone_returns_to_the_line() {
    let mut world = world(&none(), Rules::default());
    submit(&mut world, 1..=2);
    let run = |world: &World| world.queue.entry_of(PrNumber(2))?.state.run();
    while run(&world).is_none() {
        world.step();
    }
    let run = run(&world);
    world.outbox.retain(|it| it.effect.run() != run);
    world.take_in(&Fact::CandidateConflict {
        run: run.expect("it is pretested"),
        pr: PrNumber(2),
        with: ConflictWith::Target,
        paths: vec!["a".into()],
    });
    build_all(&mut world);
    assert_eq!(
        runs(&world),
        [(vec![1], vec![]), (vec![2], vec![1])],
        "in the line, not again beside it"
    );
    world.settle();
    assert_eq!((world.landed.as_slice(), pretested(&world).len()), ([1, 2].as_slice(), 1));
}

#[test]
fn one_that_others_are_built_on_is_restarted_in_its_place() {
    let mut world = world(&none(), Rules::default());
    submit(&mut world, 1..=3);
    checks_end(&mut world, 2);
    checks_end(&mut world, 3);
    let (one, two) = ((vec![1], vec![]), (vec![2], vec![1]));
    assert_eq!(runs(&world), [one.clone(), two, (vec![3], vec![1, 2])]);
    let by = world.caller();
    world.ask(Command::Restart { pr: PrNumber(2), by }).expect("restarted");
    build_all(&mut world);
    assert_eq!(pretested(&world).len(), 2, "not a third time");
    world.settle();
    assert_eq!(world.landed, [1, 2, 3]);
}

#[test]
fn a_batch_that_has_passed_takes_none_with_it_that_would_be_pretested() {
    let mut world = world(&in_batches(2), Rules::default());
    pass_and_return(&mut world, 3..=4, threshold(100));
    assert_eq!(runs(&world), [(vec![1, 2], vec![]), (vec![3, 4], vec![])]);
    let groups: Vec<Vec<u32>> = pretested(&world).into_iter().map(|it| it.0).collect();
    assert_eq!(groups, [vec![1, 2], vec![3, 4]]);
}

#[test]
fn passed_members_return_to_the_line_when_their_batch_fails() {
    let patch = SettingsPatch { pretest_threshold: Some(1), ..in_batches(2) };
    let mut world = world(&patch, bad(&[3]));
    pass_and_return(&mut world, [3], none());
    assert_eq!(runs(&world), [(vec![1, 2, 3], vec![])], "one more than the size");
    checks_end(&mut world, 3);
    assert_eq!(runs(&world), [(vec![3], vec![])], "only #3 is a suspect");
    let WaitReason::BatchFilling { have, target, until } = waits(&world, 1) else {
        panic!("{:?}", waits(&world, 1));
    };
    assert_eq!((have, target), (2, 4), "others may join them");
    assert_eq!(until.since(world.at), Span::minutes(5));
    world.wait(Span::minutes(5));
    world.take_in(&Fact::TimePassed);
    build_all(&mut world);
    assert_eq!(runs(&world), [(vec![3], vec![]), (vec![1, 2], vec![])]);
    assert_eq!(world.queue.slots_used(), (1, 1));
    settle_in_time(&mut world);
    assert_eq!(world.landed, [1, 2]);
}

#[test]
fn one_whose_batch_mates_have_returned_is_not_blamed_without_them() {
    let patch = SettingsPatch { pretest_threshold: Some(1), ..in_batches(2) };
    let rules = Rules { needs: [(3, 1)].into(), ..bad(&[4]) };
    let mut world = world(&patch, rules);
    let larger = SettingsPatch { batching_min_size: Some(4), ..none() };
    pass_and_return(&mut world, 3..=4, larger);
    assert_eq!(runs(&world), [(vec![1, 2, 3, 4], vec![])]);
    settle_in_time(&mut world);
    assert_eq!(world.landed, [1, 2, 3]);
}

#[test]
fn batches_keep_their_size_where_no_pretest_is_in_force() {
    for (mode, expected) in [(BisectionMode::Aside, 4), (BisectionMode::InPlace, 2)] {
        let bisection_mode = Some(mode);
        let patch = SettingsPatch { pretest_threshold: Some(1), bisection_mode, ..in_batches(2) };
        let mut world = world(&patch, Rules::default());
        pass_and_return(&mut world, 3..=5, none());
        assert_eq!(runs(&world)[0].0.len(), expected, "{mode:?}");
    }
}

#[test]
fn two_that_conflict_with_the_same_one_wait_for_it() {
    let rules = Rules { conflict: [(1, 2), (1, 3)].into(), ..Rules::default() };
    let mut world = world(&in_batches(2), rules);
    submit(&mut world, 1..=3);
    settle_in_time(&mut world);
    assert_eq!(world.landed, [1]);
}
