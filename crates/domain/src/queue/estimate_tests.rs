//! Estimates of small queues.

use proptest::prelude::*;
use uuid::Uuid;

use super::super::Mode;
use super::*;
use crate::ids::EntryId;
use crate::queue::{
    Actor, ChangeSource, Command, Outcomes, PrState, ReportedTargets, RequestedState, Settings,
    SettingsPatch,
};
use crate::testing::{Rules, World};

fn minutes(minutes: u32) -> Span {
    Span::minutes(minutes)
}

/// A queue whose entries are all in the line, the first of them just started.
fn world(settings: Settings, prs: u32) -> World {
    let mut world = World::new(settings, Rules::default());
    for pr in 1..=prs {
        world.submit(pr, None).expect("accepted");
    }
    world
}

fn single(concurrency: u32) -> Settings {
    Settings::new(Mode::Single, concurrency).expect("valid settings")
}

fn of(world: &World, pr: u32, history: &[Span]) -> Estimate {
    estimate(&world.queue, PrNumber(pr), history, world.at)
}

#[test]
fn a_free_slot_takes_the_next_entry() {
    let world = world(single(2), 5);
    let history = [minutes(6), minutes(2), minutes(40)];
    let times: Vec<_> = (1..=5).map(|pr| of(&world, pr, &history).time).collect();
    assert_eq!(times, [6, 6, 12, 12, 18].map(|it| Some(minutes(it))));
    let last = of(&world, 5, &history);
    assert_eq!((last.runs, last.ahead), (3, [1, 2, 3, 4].map(PrNumber).to_vec()));
    assert_eq!(last.basis, Basis::Runs { usual: minutes(6), overdue: None });
}

#[test]
fn elapsed_time_is_subtracted_and_a_long_run_is_compared_with_long_runs() {
    let mut world = world(single(1), 1);
    let history = [minutes(4), minutes(5), minutes(20)];
    world.wait(minutes(3));
    assert_eq!(of(&world, 1, &history).time, Some(minutes(2)));
    world.wait(minutes(3));
    assert_eq!(of(&world, 1, &history).time, Some(minutes(14)));
    world.wait(minutes(30));
    assert_eq!(
        of(&world, 1, &history).time,
        Some(minutes(36)),
        "longer than all earlier runs: as long again"
    );
}

#[test]
fn a_batch_takes_one_run() {
    let settings = Settings { batch: true, batching_min_size: 2, ..single(1) };
    let mut world = world(settings, 0);
    for pr in 1..=5 {
        world.submit(pr, None).expect("accepted");
    }
    let five = of(&world, 5, &[minutes(1)]).time.expect("an estimate");
    assert!(five <= minutes(4), "{five:?}");
    let four = of(&world, 4, &[minutes(1)]).time.expect("an estimate");
    assert!(four <= five);
}

/// Of three pull requests of a queue one fails: one passes with 66 %, two with 44 %.
#[test]
fn what_would_be_pretested_is_tested_twice_and_others_do_not_wait_for_it() {
    let outcomes = Outcomes { merged: 60, failed: 30 };
    let started = |settings| {
        let mut world = World::new(settings, Rules::default()).after(&[("eve", outcomes)]);
        for pr in 1..=4 {
            world.submit(pr, None).expect("accepted");
        }
        world
    };
    let of_slots = |slots| started(single(slots));
    let estimates = |world: &World| (1..=4).map(|pr| of(world, pr, &[minutes(6)]).time).collect();
    let expected = |times: [u32; 4]| times.map(|it| Some(minutes(it))).to_vec();
    // #1 is tested in the line and #2 beside it. When these end, #3 starts in one slot, and the second run
    // of #2 in the other.
    let mut world = of_slots(2);
    let found: Vec<_> = estimates(&world);
    assert_eq!(found, expected([6, 12, 12, 18]));
    let off = SettingsPatch { pretest_threshold: Some(0), ..SettingsPatch::default() };
    world
        .ask(Command::Update {
            settings: Box::new(off),
            state: None,
            reason: None,
            by: Actor::Queue,
            source: ChangeSource::Direct,
        })
        .expect("valid settings");
    let found: Vec<_> = estimates(&world);
    assert_eq!(found, expected([6, 6, 12, 12]));
    // With one slot every test follows on a landing, and contains one pull request, or a batch of two.
    let found: Vec<_> = estimates(&of_slots(1));
    assert_eq!(found, expected([6, 12, 18, 24]));
    let batches = Settings { batch: true, batching_min_size: 2, ..single(1) };
    let found: Vec<_> = estimates(&started(batches));
    assert_eq!(found, expected([12, 12, 24, 24]));
}

#[test]
fn parallel_mode_waits_only_for_shared_targets() {
    let mut world = world(Settings::new(Mode::Parallel, 1).expect("valid settings"), 0);
    for (pr, target) in [(1, "//a"), (2, "//b"), (3, "//a")] {
        world.submit(pr, None).expect("accepted");
        let targets = ReportedTargets::only(None, [target]);
        world.ask(Command::SetTargets { pr: PrNumber(pr), targets }).expect("taken");
    }
    for entry in world.queue.entries_in_order() {
        let expected: Vec<PrNumber> = if entry.pr.0 == 3 { vec![PrNumber(1)] } else { Vec::new() };
        assert_eq!(
            Estimates::new(&world.queue, &[], world.at).waits_for(entry),
            expected,
            "{}",
            entry.pr
        );
    }
}

#[test]
fn there_is_no_estimate_without_history_while_paused_or_outside_the_line() {
    let mut world = world(single(1), 2);
    let none = of(&world, 2, &[]);
    assert_eq!((none.time, none.runs), (None, 0));
    assert_eq!(none.basis, Basis::NoRuns);
    assert_eq!(of(&world, 7, &[minutes(1)]).basis, Basis::NotInQueue);
    let update = Command::Update {
        settings: Box::new(SettingsPatch::default()),
        state: Some(RequestedState::Paused),
        reason: None,
        by: Actor::Queue,
        source: ChangeSource::Direct,
    };
    world.ask(update).expect("accepted");
    let paused = of(&world, 2, &[minutes(1)]);
    assert_eq!((paused.time, paused.basis), (None, Basis::Paused));
    world.submit(3, None).expect("accepted");
    assert_eq!(of(&world, 3, &[minutes(1)]).time, None, "it does not enter the line");
    let mut world = self::world(single(1), 1);
    world.take_in(&World::host_lost());
    let silent = of(&world, 1, &[minutes(1)]);
    let waits = matches!(silent.basis, Basis::Waits(Some(WaitReason::HostUnreachable { .. })));
    assert!(silent.time.is_none() && waits, "{silent:?}");
}

#[test]
fn an_overdue_run_is_reported_and_extends_the_estimate() {
    let mut world = world(single(1), 2);
    let history = [Span::seconds(3), Span::seconds(4)];
    world.wait(Span::minutes(31));
    let first = of(&world, 1, &history);
    assert_eq!(first.time, Some(Span::minutes(31)), "it is expected to take as long again");
    let overdue = |pr| Some(Overdue { pr, running: Span::minutes(31) });
    let basis = |pr| Basis::Runs { usual: Span::seconds(4), overdue: overdue(pr) };
    assert_eq!(first.basis, basis(None));
    let second = of(&world, 2, &history);
    assert_eq!(second.time, Some(Span::seconds(31 * 60 + 4)));
    assert_eq!(second.basis, basis(Some(PrNumber(1))));
    // No later than its deadline.
    world.wait(Span::minutes(200));
    assert_eq!(of(&world, 1, &history).time, Some(Span::minutes(69)));
}

#[test]
fn a_run_counts_once_and_only_if_its_own_checks_passed() {
    let by_run = |run: u128, reason: PassReason, bisection| Move {
        number: 1,
        ordinal: 0,
        at: Timestamp::from_unix_seconds(0),
        entry: EntryId(Uuid::from_u128(1)),
        pr: PrNumber(1),
        from: Some(PrState::Testing),
        to: PrState::TestsPassed,
        reason: reason.into(),
        actor: Actor::Queue,
        run: Some(RunId(Uuid::from_u128(run))),
        bisection,
        after: Span::seconds(u32::try_from(run).expect("small")),
        details: Vec::new(),
    };
    let passes = [
        by_run(1, PassReason::OwnRun, false),
        by_run(1, PassReason::OwnRun, false),
        by_run(2, PassReason::Successor, false),
        by_run(3, PassReason::OwnRun, true),
        by_run(4, PassReason::OwnRun, false),
    ];
    assert_eq!(durations(&passes), [Span::seconds(1), Span::seconds(4)]);
}

proptest! {
    #[test]
    fn merge_times_grow_along_the_line_and_shrink_with_slots(
        prs in 1_u32..12,
        concurrency in 1_u32..6,
        history in proptest::collection::vec(1_u32..500, 1..20),
        waited in 0_u32..600,
    ) {
        let history: Vec<Span> = history.into_iter().map(Span::seconds).collect();
        let mut narrow = world(single(concurrency), prs);
        let mut wide = world(single(concurrency + 1), prs);
        for world in [&mut narrow, &mut wide] {
            world.wait(Span::seconds(waited));
        }
        let times = |world: &World| -> Vec<Span> {
            (1..=prs).map(|pr| of(world, pr, &history).time.expect("an estimate")).collect()
        };
        let (narrow, wide) = (times(&narrow), times(&wide));
        prop_assert!(narrow.is_sorted(), "{narrow:?}");
        prop_assert!(wide.iter().zip(&narrow).all(|(wide, narrow)| wide <= narrow));
    }
}
