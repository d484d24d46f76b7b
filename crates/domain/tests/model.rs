//! The queue under everything at once: random commands, host events, effects and facts in any
//! order, repeated and late; the invariants after every step.

use proptest::prelude::*;
use signalbox_domain::ids::PrNumber;
use signalbox_domain::queue::{
    Command, Effect, EntryState, Fact, Mode, PrState, Queue, QueueState, RequestedState, Settings,
    SettingsPatch, check_invariants, fold,
};
use signalbox_domain::testing::{Rules, World};
use signalbox_domain::time::Span;

/// One thing that happens.
#[derive(Clone, Debug)]
enum Op {
    Submit(u32, Option<u32>),
    Cancel(u32),
    Restart(u32),
    Push(u32),
    CloseOrReopen(u32),
    Retarget(u32),
    MergeByHand(u32),
    PushTarget,
    State(RequestedState),
    Concurrency(u32),
    Depth(u32),
    /// Runs a waiting effect; the second says whether it also stays, to be run again.
    Run(usize, bool),
    /// Takes a waiting fact in; the second says whether it also stays, to be told again.
    Tell(usize, bool),
    Wait(u32),
    HostLost,
    HostBack,
    Reconcile,
}

fn op() -> impl Strategy<Value = Op> {
    let pr = 1..6_u32;
    prop_oneof![
        6 => (pr.clone(), prop_oneof![8 => Just(None), 1 => Just(Some(0)), 1 => Just(Some(10)), 1 => Just(Some(200))])
            .prop_map(|(pr, priority)| Op::Submit(pr, priority)),
        1 => pr.clone().prop_map(Op::Cancel),
        1 => pr.clone().prop_map(Op::Restart),
        1 => pr.clone().prop_map(Op::Push),
        1 => pr.clone().prop_map(Op::CloseOrReopen),
        1 => pr.clone().prop_map(Op::Retarget),
        1 => pr.prop_map(Op::MergeByHand),
        1 => Just(Op::PushTarget),
        1 => prop_oneof![
            2 => Just(RequestedState::Running),
            1 => Just(RequestedState::Paused),
            1 => Just(RequestedState::Draining)
        ].prop_map(Op::State),
        1 => (1..4_u32).prop_map(Op::Concurrency),
        1 => (0..3_u32).prop_map(Op::Depth),
        14 => (any::<prop::sample::Index>(), prop::bool::weighted(0.1))
            .prop_map(|(at, stays)| Op::Run(at.index(64), stays)),
        14 => (any::<prop::sample::Index>(), prop::bool::weighted(0.1))
            .prop_map(|(at, stays)| Op::Tell(at.index(64), stays)),
        1 => (1..400_u32).prop_map(Op::Wait),
        1 => Just(Op::HostLost),
        1 => Just(Op::HostBack),
        1 => Just(Op::Reconcile),
    ]
}

fn rules() -> impl Strategy<Value = Rules> {
    let pr = || 1..6_u32;
    (
        prop::collection::btree_set(pr(), 0..3),
        prop::collection::btree_set((pr(), pr()), 0..3),
        prop::collection::btree_set((pr(), pr()), 0..3),
    )
        .prop_map(|(bad, clash, conflict)| {
            let pairs = |set: std::collections::BTreeSet<(u32, u32)>| {
                set.into_iter().filter(|(a, b)| a != b).collect()
            };
            Rules { bad, clash: pairs(clash), conflict: pairs(conflict) }
        })
}

fn apply(world: &mut World, op: &Op) {
    let by = world.caller();
    let update = |world: &mut World, patch: SettingsPatch, state| {
        let by = world.caller();
        let settings = Box::new(patch);
        world.ask(Command::Update { settings, state, reason: None, by }).ok();
    };
    match op {
        Op::Submit(pr, priority) => drop(world.submit(*pr, *priority)),
        Op::Cancel(pr) => drop(world.ask(Command::Cancel { pr: PrNumber(*pr), by })),
        Op::Restart(pr) => drop(world.ask(Command::Restart { pr: PrNumber(*pr), by })),
        Op::Push(pr) => world.push(*pr),
        Op::CloseOrReopen(pr) => world.close_or_reopen(*pr),
        Op::Retarget(pr) => world.retarget(*pr),
        Op::MergeByHand(pr) => world.merge_by_hand(*pr),
        Op::PushTarget => world.push_target(),
        Op::State(state) => update(world, SettingsPatch::default(), Some(*state)),
        Op::Concurrency(limit) => update(
            world,
            SettingsPatch { concurrency: Some(*limit), ..SettingsPatch::default() },
            None,
        ),
        Op::Depth(depth) => update(
            world,
            SettingsPatch { pending_failure_depth: Some(*depth), ..SettingsPatch::default() },
            None,
        ),
        Op::Run(at, stays) => {
            if !world.outbox.is_empty() {
                let at = at % world.outbox.len();
                let effect = world.outbox[at].effect.clone();
                if !stays {
                    world.outbox.remove(at);
                }
                world.run(&effect);
            }
        }
        Op::Tell(at, stays) => {
            if !world.facts.is_empty() {
                let at = at % world.facts.len();
                let fact = if *stays { world.facts[at].clone() } else { world.facts.remove(at) };
                world.take_in(&fact);
            }
        }
        Op::Wait(minutes) => {
            world.wait(Span::minutes(*minutes));
            world.take_in(&Fact::TimePassed);
        }
        Op::HostLost => world.take_in(&Fact::HostUnreachable),
        Op::HostBack => world.take_in(&Fact::HostReachable),
        Op::Reconcile => world.reconcile(),
    }
    // Every step happens at a time of its own, as on a real clock.
    world.wait(Span::seconds(1));
}

/// What must hold between two states, whatever happened.
fn check_step(before: &World, after: &World, op: &Op) {
    let violations = check_invariants(&after.queue);
    assert!(violations.is_empty(), "{violations:?} after {op:?}");
    let new_effects: Vec<&Effect> = after
        .outbox
        .iter()
        .filter(|it| it.number > before.queue.header.sequence)
        .map(|it| &it.effect)
        .collect();
    // Every step that changes anything has a number of its own in the journal.
    if before.queue != after.queue {
        let (was, is) = (before.queue.header.sequence, after.queue.header.sequence);
        assert!(is > was, "the journal has no number for {op:?}");
    }
    // Q1: what the queue landed passes.
    if after.landed.len() > before.landed.len() {
        assert!(after.target_is_green(), "Q1: the target is red after {op:?}");
        let unique: std::collections::BTreeSet<_> = after.landed.iter().collect();
        assert_eq!(unique.len(), after.landed.len(), "Q1: landed twice");
    }
    // Q2: no run starts above the limit.
    let (was, is) = (before.queue.slots_used(), after.queue.slots_used());
    let limit = after.queue.header.settings.concurrency;
    assert!(is <= limit.max(was), "Q2: {is} of {limit} slots, {was} before {op:?}");
    // Q3: nobody vanishes: who was live is live, or has been told to have ended.
    for entry in before.queue.entries_in_order() {
        if after.queue.entry(entry.id).is_none() {
            assert!(ended_in(after, entry.pr), "Q3: #{} is lost by {op:?}", entry.pr);
        }
    }
    // Q5: paused starts nothing and merges nothing; nothing enters but in RUNNING.
    let paused = |queue: &Queue| matches!(queue.header.state, QueueState::Paused { .. });
    if paused(&before.queue) && paused(&after.queue) {
        let starts =
            |effect: &&&Effect| matches!(effect, Effect::BuildCandidate(_) | Effect::Land(_));
        assert_eq!(new_effects.iter().filter(starts).count(), 0, "Q5 after {op:?}");
    }
    if after.queue.header.state != QueueState::Running {
        for entry in after.queue.entries_in_order() {
            let was = before.queue.entry(entry.id).map(|it| it.state.name());
            let entered = was == Some(PrState::NotReady) && entry.state.name() == PrState::Pending;
            assert!(!entered, "Q5: #{} entered by {op:?}", entry.pr);
        }
    }
}

fn ended_in(world: &World, pr: PrNumber) -> bool {
    // The journal's last step tells; ended entries are in its decisions. The world keeps inputs
    // only, so the step is taken once more.
    let (last, earlier) = world.journal.split_last().expect("a step");
    let before = fold(world.new_queue.clone(), earlier);
    let transition = match &last.1 {
        signalbox_domain::queue::Input::Command(command) => {
            signalbox_domain::queue::decide(&before, command, last.0).expect("it was not refused")
        }
        signalbox_domain::queue::Input::Fact(fact) => {
            signalbox_domain::queue::absorb(&before, fact, last.0)
        }
    };
    transition
        .changes
        .entries
        .iter()
        .any(|entry| entry.pr == pr && matches!(entry.state, EntryState::Ended(_)))
}

/// Q8: when the host answers, every check ends and the queue runs, the line empties.
fn check_liveness(world: &mut World) {
    apply(world, &Op::HostBack);
    apply(world, &Op::State(RequestedState::Running));
    for _ in 0..4 {
        world.settle();
        world.wait(Span::seconds(1));
        world.reconcile();
    }
    world.settle();
    for entry in world.queue.entries_in_order() {
        let readiness = entry.readiness(&world.queue.header.branch, Mode::Single);
        assert!(
            entry.state == EntryState::NotReady && !readiness.is_ready(),
            "Q8: #{} stays {:?}",
            entry.pr,
            entry.state
        );
    }
}

fn cases() -> u32 {
    std::env::var("SIGNALBOX_PROPTEST_CASES").ok().and_then(|it| it.parse().ok()).unwrap_or(10_000)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: cases(),
        failure_persistence: Some(Box::new(
            proptest::test_runner::FileFailurePersistence::Direct("tests/model.proptest-regressions")
        )),
        ..ProptestConfig::default()
    })]

    #[test]
    fn the_invariants_hold_whatever_happens(
        rules in rules(),
        concurrency in 1..4_u32,
        ops in prop::collection::vec(op(), 1..80),
    ) {
        let mut world = World::new(Settings::new(Mode::Single, concurrency), rules);
        for op in &ops {
            let before = world.clone();
            apply(&mut world, op);
            check_step(&before, &world, op);
        }
        // Q9: folding the journal gives the state.
        assert_eq!(fold(world.new_queue.clone(), &world.journal), world.queue, "Q9");
        check_liveness(&mut world);
    }

    #[test]
    fn a_fact_that_is_told_twice_changes_nothing_the_second_time(
        rules in rules(),
        ops in prop::collection::vec(op(), 1..60),
    ) {
        let mut world = World::new(Settings::new(Mode::Single, 2), rules);
        for op in &ops {
            apply(&mut world, op);
            if let Op::Tell(..) = op
                && let Some((_, signalbox_domain::queue::Input::Fact(fact))) = world.journal.last()
            {
                let mut again = world.clone();
                again.take_in(&fact.clone());
                let entries = |world: &World| {
                    world.queue.entries_in_order().cloned().collect::<Vec<_>>()
                };
                assert_eq!(entries(&again), entries(&world), "Q9: {fact:?}");
            }
        }
    }
}
