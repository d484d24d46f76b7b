//! Exhaustive exploration with up to four pull requests: submissions, one disturbance at any
//! moment, and effects and facts in every order. States that differ only in numbers are visited
//! once.

use std::collections::{BTreeSet, HashSet};
use std::fmt::Write;

use signalbox_domain::ids::{PrNumber, RunId};
use signalbox_domain::queue::{
    BisectionMode, ChangeSource, Command, Effect, Entry, EntryState, Fact, LinePosition, Mode,
    OptimizationMode, Outcomes, PullRequest, ReparentingMode, RunStatus, Settings, SettingsPatch,
    check_invariants,
};
use signalbox_domain::testing::{AnyPolicy, Rules, World};

/// An action of a user, at any moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Act {
    Submit(u32),
    Cancel(u32),
    Restart(u32),
    Push(u32),
    PushTarget,
    Urgent(u32),
    Set(Setting),
}

/// A changed setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Setting {
    Optimistic(bool),
    Depth(u32),
    Concurrency(u32),
    Batches(u32),
    FairShare,
    OtherMode,
}

fn patch(world: &World, setting: Setting) -> SettingsPatch {
    let mut patch = SettingsPatch::default();
    match setting {
        Setting::Optimistic(on) => patch.can_optimistically_merge = Some(on),
        Setting::Depth(depth) => patch.pending_failure_depth = Some(depth),
        Setting::Concurrency(slots) => patch.concurrency = Some(slots),
        Setting::Batches(size) => {
            patch.batch = Some(true);
            patch.batching_min_size = Some(size);
            patch.batching_max_wait_time_minutes = Some(0);
        }
        Setting::FairShare => patch.fair_share = Some(true),
        Setting::OtherMode => {
            patch.mode = Some(match world.queue.header.settings.mode {
                Mode::Single => Mode::Parallel,
                Mode::Parallel => Mode::Single,
            });
        }
    }
    patch
}

fn act(world: &mut World, act: Act) {
    let by = world.caller();
    match act {
        Act::Submit(pr) => drop(world.submit(pr, None)),
        Act::Urgent(pr) => drop(world.submit(pr, Some(0))),
        Act::Cancel(pr) => drop(world.ask(Command::Cancel { pr: PrNumber(pr), by })),
        Act::Restart(pr) => drop(world.ask(Command::Restart { pr: PrNumber(pr), by })),
        Act::Push(pr) => world.push(pr),
        Act::PushTarget => world.push_target(),
        Act::Set(setting) => {
            let settings = Box::new(patch(world, setting));
            drop(world.ask(Command::Update {
                settings,
                state: None,
                reason: None,
                by,
                source: ChangeSource::Direct,
            }));
        }
    }
}

/// The relevant part of a state: everything but ids, numbers and times.
fn shape(world: &World, acts: &[Act]) -> String {
    let queue = &world.queue;
    let run = |id: RunId| {
        queue.run(id).map_or_else(
            || "gone".to_owned(),
            |run| {
                let prs: Vec<u32> = run.group.iter().map(|it| it.pr.0).collect();
                let ahead: Vec<u32> = run
                    .ahead
                    .iter()
                    .filter(|(_, pr)| queue.entry_of(*pr).is_some())
                    .map(|(_, pr)| pr.0)
                    .collect();
                let status = match &run.status {
                    RunStatus::Building => "building",
                    RunStatus::Testing => "testing",
                    RunStatus::Passed => "passed",
                    RunStatus::Failed { .. } => "failed",
                    RunStatus::Cancelled { .. } => "cancelled",
                };
                let parts = run.bisection;
                format!("{prs:?}on{ahead:?}{status}{}{parts}", run.checks.len())
            },
        )
    };
    let mut text = format!("{acts:?}|{:?}|{:?}|{:?}|", world.target, world.landed, world.flaked);
    for entry in queue.entries_in_order() {
        let held = match &entry.state {
            EntryState::Pending { held_by, was_held_by, .. } => {
                format!("{held_by:?}{was_held_by:?}")
            }
            _ => String::new(),
        };
        let on = entry.state.run().map(run).unwrap_or_default();
        let part = entry.part.as_ref().map(|part| {
            let of_part =
                |it: &&Entry| it.part.as_ref().is_some_and(|other| other.number == part.number);
            let first = queue.entries_in_order().find(of_part).map(|it| it.pr);
            let prs = part.behind.as_ref().map(|behind| (behind.prs.clone(), behind.failed));
            (first, part.implied, (part.aside, part.pretest), prs)
        });
        let history = (entry.proven.is_some(), entry.reparented);
        let held = format!("{held}{part:?}{history:?}");
        let turn = match entry.place {
            LinePosition::Waiting { turn, .. } => turn,
            LinePosition::Outside | LinePosition::Front { .. } | LinePosition::Anchored { .. } => 0,
        };
        let state = entry.state.name().as_str();
        let PullRequest { head: commit, .. } = &*entry.pull_request;
        let _ = write!(text, "{}{state}{held}{on}{commit}{turn}|", entry.pr);
    }
    let mut waiting: Vec<String> = world
        .outbox
        .iter()
        .map(|it| {
            let effect = &it.effect;
            format!("{}{}", effect.name(), effect.run().map(run).unwrap_or_default())
        })
        .collect();
    waiting.extend(world.facts.iter().map(|fact| match fact {
        Fact::CandidateBuilt { run: id, .. }
        | Fact::CandidateConflict { run: id, .. }
        | Fact::ChecksReported { run: id, .. }
        | Fact::Landed { run: id, .. }
        | Fact::LandRefused { run: id, .. } => format!("{}{}", fact.name(), run(*id)),
        Fact::TargetSeen { head, .. } => {
            format!("target{}", queue.header.target.head.as_ref() == Some(head))
        }
        Fact::PullRequestSeen { pull_request, .. } => {
            format!("pr{}{}", pull_request.number, pull_request.head)
        }
        other => other.name().to_owned(),
    }));
    waiting.sort();
    let landing = queue.header.landing.as_ref().map(|it| run(it.run));
    let _ = write!(text, "{waiting:?}{landing:?}{:?}", queue.header.window);
    let _ = write!(text, "{:?}{:?}", queue.header.outcomes, queue.header.freeze.in_force);
    let _ = write!(text, "{:?}", queue.header.started_turns);
    text
}

/// Visits every state; returns the number of states, and the sequences of landed pull requests with
/// which histories ended.
fn visit(start: World, acts: Vec<Act>) -> (usize, BTreeSet<Vec<u32>>) {
    let mut seen = HashSet::new();
    let mut ends = BTreeSet::new();
    let mut open = vec![(start, acts)];
    while let Some((mut world, acts)) = open.pop() {
        // Deleting branches and checking landings does not affect the explored state.
        let shows_nothing = |effect: &Effect| {
            matches!(
                effect,
                Effect::DeleteBranch { .. }
                    | Effect::CheckLandings { .. }
                    | Effect::OpenTestPullRequest { .. }
            )
        };
        world.outbox.retain(|it| !shows_nothing(&it.effect));
        if !seen.insert(shape(&world, &acts)) {
            continue;
        }
        assert!(seen.len() < 400_000, "too many states: make the world smaller");
        let mut next = Vec::new();
        if let Some((first, rest)) = acts.split_first() {
            // Submissions come in their order, a disturbance at any moment among them.
            let mut after = world.clone();
            act(&mut after, *first);
            next.push((after, rest.to_vec()));
            if let [first, second, rest @ ..] = acts.as_slice()
                && !matches!(second, Act::Submit(_))
            {
                let mut after = world.clone();
                act(&mut after, *second);
                next.push((after, [&[*first], rest].concat()));
            }
        }
        for at in 0..world.outbox.len() {
            let mut after = world.clone();
            let effect = after.outbox.remove(at);
            after.run(&effect.effect);
            next.push((after, acts.clone()));
        }
        for at in 0..world.facts.len() {
            let mut after = world.clone();
            let fact = after.facts.remove(at);
            after.take_in(&fact);
            next.push((after, acts.clone()));
        }
        if next.is_empty() {
            // No effect, fact or action is left: the line must be empty (Q8).
            let left: Vec<_> = world
                .queue
                .entries_in_order()
                .filter(|it| it.state != EntryState::NotReady)
                .map(|it| (it.pr, it.state.clone()))
                .collect();
            assert!(left.is_empty(), "Q8: {left:?}");
            ends.insert(world.landed.clone());
        }
        for (after, acts) in next {
            assert_eq!(check_invariants(&after.queue), Vec::new());
            if after.landed.len() > world.landed.len() {
                assert!(after.target_is_green(), "Q1: {:?}", after.landed);
            }
            open.push((after, acts));
        }
    }
    (seen.len(), ends)
}

fn world(concurrency: u32, bad: &[u32], clash: &[(u32, u32)], conflict: &[(u32, u32)]) -> World {
    let rules = Rules {
        bad: bad.iter().copied().collect(),
        clash: clash.iter().copied().collect(),
        conflict: conflict.iter().copied().collect(),
        ..Rules::default()
    };
    World::new(Settings::new(Mode::Single, concurrency).expect("valid settings"), rules)
}

fn submit(prs: u32) -> Vec<Act> {
    (1..=prs).map(Act::Submit).collect()
}

#[test]
fn good_pull_requests_all_land_in_order() {
    for concurrency in 1..=3 {
        let (states, ends) = visit(world(concurrency, &[], &[], &[]), submit(3));
        assert_eq!(ends, BTreeSet::from([vec![1, 2, 3]]), "{states} states");
    }
}

#[test]
fn four_pull_requests_land_in_order_without_the_bad_one() {
    for bad in 0..=4_u32 {
        let (_, ends) = visit(world(2, &[bad], &[], &[]), submit(4));
        let good: Vec<u32> = (1..=4).filter(|pr| *pr != bad).collect();
        assert_eq!(ends, BTreeSet::from([good]));
    }
}

/// A world with changed settings.
fn world_with(rules: Rules, change: impl FnOnce(&mut Settings)) -> World {
    let mut settings = Settings::new(Mode::Single, 2).expect("valid settings");
    change(&mut settings);
    World::new(settings, rules)
}

#[test]
fn of_a_batch_of_four_only_the_culprit_does_not_land() {
    let (in_place, aside) = (BisectionMode::InPlace, BisectionMode::Aside);
    for (culprit, skip, place) in [
        (1, false, in_place),
        (3, false, in_place),
        (3, true, in_place),
        (4, true, in_place),
        (1, false, aside),
        (3, false, aside),
        (3, true, aside),
        (4, true, aside),
    ] {
        let rules = Rules { bad: [culprit].into(), ..Rules::default() };
        let start = world_with(rules, |settings| {
            settings.batch = true;
            settings.batching_min_size = 4;
            settings.bisection_mode = place;
            if skip {
                settings.optimization_mode = OptimizationMode::BisectionSkipRedundantTests;
            }
        });
        let (_, ends) = visit(start, submit(4));
        let good: Vec<u32> = (1..=4).filter(|pr| *pr != culprit).collect();
        assert_eq!(ends, BTreeSet::from([good]), "culprit {culprit}, {place:?}");
    }
}

#[test]
fn optimistic_merging_absolves_a_flaky_failure_without_loss_of_a_place() {
    let rules = Rules { flaky: [2].into(), ..Rules::default() };
    let mut start = world_with(rules, |settings| {
        settings.can_optimistically_merge = true;
        settings.pending_failure_depth = 2;
    });
    for pr in 1..=3 {
        start.submit(pr, None).expect("submitted");
    }
    let (_, ends) = visit(start, Vec::new());
    assert_eq!(ends, BTreeSet::from([vec![1, 2, 3]]));
}

#[test]
fn parallel_lanes_settle_in_every_order() {
    let touch = |names: &[u32]| names.iter().copied().collect::<BTreeSet<u32>>();
    let targets = [(1, touch(&[1])), (2, touch(&[2])), (3, touch(&[1, 2])), (4, touch(&[2]))];
    for bad in [0, 1] {
        let rules =
            Rules { targets: targets.clone().into(), bad: [bad].into(), ..Rules::default() };
        let start = world_with(rules, |settings| settings.mode = Mode::Parallel);
        let (_, ends) = visit(start, submit(if bad == 0 { 3 } else { 4 }));
        for end in ends {
            let place = |pr: u32| end.iter().position(|it| *it == pr);
            assert!(place(2) < place(3) && place(3).is_some(), "{end:?}");
            assert_eq!(place(1).is_none(), bad == 1, "{end:?}");
        }
    }
}

#[test]
fn every_pull_request_but_the_bad_one_lands() {
    for bad in 1..=3_u32 {
        let (_, ends) = visit(world(3, &[bad], &[], &[]), submit(3));
        let good: Vec<u32> = (1..=3).filter(|pr| *pr != bad).collect();
        assert_eq!(ends, BTreeSet::from([good]));
    }
}

#[test]
fn an_adaptive_window_changes_neither_order_nor_result() {
    for bad in 1..=4_u32 {
        let rules = Rules { bad: [bad].into(), ..Rules::default() };
        let start = world_with(rules, |settings| {
            settings.adaptive_window = true;
            settings.window_floor = 1;
        });
        let (_, ends) = visit(start, submit(4));
        let good: Vec<u32> = (1..=4).filter(|pr| *pr != bad).collect();
        assert_eq!(ends, BTreeSet::from([good]));
    }
}

/// The authors of even and odd numbers differ.
#[test]
fn with_fair_share_every_pull_request_but_the_bad_one_lands() {
    let rules = Rules { bad: BTreeSet::from([4]), ..Rules::default() };
    let start = world_with(rules, |settings| {
        settings.concurrency = 1;
        settings.fair_share = true;
    });
    let (_, ends) = visit(start, [2, 4, 6, 8, 1].map(Act::Submit).to_vec());
    let orders = [[2, 1, 6, 8], [2, 6, 1, 8], [2, 6, 8, 1]];
    assert_eq!(ends, orders.into_iter().map(Vec::from).collect());
}

/// Visits all orders in which these pull requests are tested: all but the bad one land.
fn all_but_one_land(mut start: World, prs: u32, bad: u32) {
    for pr in 1..=prs {
        start.submit(pr, None).expect("submitted");
    }
    let (_, ends) = visit(start, Vec::new());
    let good: BTreeSet<u32> = (1..=prs).filter(|pr| *pr != bad).collect();
    for end in ends {
        assert_eq!(end.iter().copied().collect::<BTreeSet<u32>>(), good, "#{bad} fails");
    }
}

/// Visits all orders in which a queue that re-parents runs tests pull requests of which one fails.
fn visit_reparenting(mode: ReparentingMode, size: u32, prs: u32, bad: u32) {
    let rules = Rules { bad: [bad].into(), ..Rules::default() };
    let start = world_with(rules, |settings| {
        settings.reparenting_mode = mode;
        settings.batch = size > 1;
        settings.batching_min_size = size;
        settings.batching_max_wait_time_minutes = 0;
        settings.optimization_mode = OptimizationMode::BisectionSkipRedundantTests;
    });
    all_but_one_land(start, prs, bad);
}

#[test]
fn of_single_pull_requests_beside_the_line_only_the_culprit_does_not_land() {
    for bad in 1..=3 {
        visit_reparenting(ReparentingMode::All, 1, 3, bad);
    }
}

#[test]
fn of_batches_beside_the_line_only_the_culprit_ahead_does_not_land() {
    visit_reparenting(ReparentingMode::Batches, 2, 4, 1);
    visit_reparenting(ReparentingMode::Batches, 2, 4, 4);
}

#[test]
fn of_batches_beside_the_line_only_the_culprit_in_the_middle_does_not_land() {
    visit_reparenting(ReparentingMode::Batches, 2, 4, 3);
}

#[test]
#[ignore = "takes minutes; `just nightly` runs it"]
fn of_batches_beside_the_line_only_the_last_of_the_first_does_not_land() {
    visit_reparenting(ReparentingMode::Batches, 2, 4, 2);
}

/// Visits all orders in which a queue that pretests whatever it can tests pull requests of which one
/// fails.
fn visit_pretests(mode: Mode, size: u32, prs: u32, bad: u32, needs: &[(u32, u32)]) {
    let needs = needs.iter().copied().collect();
    let rules = Rules { bad: [bad].into(), needs, ..Rules::default() };
    let start = world_with(rules, |settings| {
        settings.mode = mode;
        settings.pretest_threshold = 100;
        settings.batch = size > 1;
        settings.batching_min_size = size;
        settings.batching_max_wait_time_minutes = 0;
    });
    let fail = Outcomes { merged: 60, failed: 30 };
    all_but_one_land(start.after(&[("eve", fail)]), prs, bad);
}

/// Ada has submitted the odd ones.
#[test]
fn of_pull_requests_of_which_only_those_of_an_author_are_pretested_the_culprit_does_not_land() {
    let (fail, pass) = (Outcomes { merged: 10, failed: 30 }, Outcomes { merged: 60, failed: 0 });
    for bad in 0..=4 {
        let rules = Rules { bad: [bad].into(), ..Rules::default() };
        let start = world_with(rules, |_| {}).after(&[("ada", fail), ("grace", pass)]);
        all_but_one_land(start, 3 + u32::from(bad == 4), bad);
    }
}

#[test]
fn of_pretested_pull_requests_only_the_culprit_does_not_land() {
    for (mode, bad) in
        [(Mode::Single, 0), (Mode::Single, 1), (Mode::Single, 2), (Mode::Parallel, 3)]
    {
        visit_pretests(mode, 1, 3, bad, &[]);
    }
}

#[test]
fn of_pretested_pull_requests_one_that_needs_another_ahead_lands() {
    visit_pretests(Mode::Single, 1, 3, 2, &[(3, 1)]);
    visit_pretests(Mode::Single, 2, 4, 3, &[(4, 1)]);
}

#[test]
fn of_pretested_batches_only_the_culprit_does_not_land() {
    for bad in 0..=3 {
        visit_pretests(Mode::Single, 2, 3, bad, &[]);
    }
}

#[test]
fn whatever_a_policy_answers_only_the_culprit_does_not_land() {
    for (seed, size) in (1..=4).zip([1, 2].into_iter().cycle()) {
        for bad in 1..=3 {
            let rules = Rules { bad: [bad].into(), ..Rules::default() };
            let start = world_with(rules, |settings| {
                settings.batch = size > 1;
                settings.batching_max_wait_time_minutes = 0;
                settings.adaptive_window = true;
            });
            all_but_one_land(start.with_policy(AnyPolicy(seed)), 3, bad);
        }
    }
}

#[test]
fn of_two_incompatible_pull_requests_the_first_lands() {
    let (_, ends) = visit(world(3, &[], &[(1, 3)], &[]), submit(3));
    assert_eq!(ends, BTreeSet::from([vec![1, 2]]));
    let (_, ends) = visit(world(2, &[1], &[(1, 2)], &[]), submit(2));
    assert_eq!(ends, BTreeSet::from([vec![2]]), "the second is not blamed for the first");
}

#[test]
fn a_conflict_with_a_pull_request_ahead_waits_until_that_one_is_settled() {
    let (_, ends) = visit(world(3, &[], &[], &[(1, 2)]), submit(3));
    assert_eq!(ends, BTreeSet::from([vec![1, 3]]));
    let (_, ends) = visit(world(2, &[1], &[], &[(1, 2)]), submit(2));
    assert_eq!(ends, BTreeSet::from([vec![2]]), "when the first fails, the second lands");
}

#[test]
fn a_disturbance_at_any_moment_leaves_main_green_and_the_line_empty() {
    for disturbance in
        [Act::Cancel(1), Act::Restart(1), Act::Push(1), Act::PushTarget, Act::Urgent(2)]
    {
        let acts = [&submit(2)[..], &[disturbance]].concat();
        let (states, ends) = visit(world(2, &[], &[], &[]), acts);
        assert!(states > 10, "{disturbance:?}");
        for end in ends {
            let landed: BTreeSet<u32> = end.iter().copied().collect();
            assert_eq!(landed.len(), end.len(), "nothing lands twice");
            assert!(landed.contains(&2), "{disturbance:?}: the other one lands");
        }
    }
}

#[test]
fn a_setting_change_at_any_moment_blocks_no_pull_request() {
    for (setting, bad, optimistic) in [
        (Setting::Optimistic(true), &[][..], false),
        (Setting::Optimistic(true), &[1], false),
        (Setting::Optimistic(false), &[], true),
        (Setting::Depth(2), &[2], false),
        (Setting::Concurrency(1), &[], false),
        (Setting::Batches(2), &[2], false),
        (Setting::FairShare, &[1], false),
        (Setting::OtherMode, &[], false),
    ] {
        let rules = Rules { bad: bad.iter().copied().collect(), ..Rules::default() };
        let start = world_with(rules, |settings| {
            settings.concurrency = 3;
            settings.can_optimistically_merge = optimistic;
            settings.pending_failure_depth = u32::from(optimistic);
        });
        let acts = [&submit(3)[..], &[Act::Set(setting)]].concat();
        let (_, ends) = visit(start, acts);
        for end in ends {
            // A mode switch admits nothing for a while; a late pull request waits outside the line.
            let expected = (1..=3).filter(|pr| !bad.contains(pr));
            let all = expected.collect::<Vec<u32>>();
            let right = if setting == Setting::OtherMode {
                end.iter().all(|pr| all.contains(pr))
            } else {
                end == all
            };
            assert!(right, "{setting:?}: {end:?}");
        }
    }
}
