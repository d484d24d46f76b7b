//! Model tests: random commands, host events, effects and facts in any order, repeated and late, in
//! both modes and with changing settings. The invariants are checked after every step.

mod ops;
mod steps;

use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;
use signalbox_domain::queue::{Fact, Input, Queue, absorb, decide, fold};
use signalbox_domain::testing::{AnyPolicy, World};

use ops::{Op, apply, op, outcomes, rules, settings};
use steps::{Before, check_liveness, check_step, check_urgent_during_freeze};

fn cases() -> u32 {
    std::env::var("SIGNALBOX_PROPTEST_CASES").ok().and_then(|it| it.parse().ok()).unwrap_or(3_000)
}

fn config(cases: u32) -> ProptestConfig {
    let kept = FileFailurePersistence::Direct("tests/model/regressions.txt");
    ProptestConfig { cases, failure_persistence: Some(Box::new(kept)), ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config(cases()))]

    #[test]
    fn the_invariants_hold_in_random_histories(
        rules in rules(),
        settings in settings(),
        outcomes in outcomes(),
        ops in prop::collection::vec(op(), 1..80),
    ) {
        let mut world = World::new(settings, rules).after(&outcomes);
        for op in &ops {
            let before = Before::of(&world);
            apply(&mut world, op);
            check_step(&before, &world, op);
        }
        // Q9: folding the journal gives the state.
        assert_eq!(fold(world.new_queue.clone(), &world.journal), world.queue, "Q9");
        check_liveness(&mut world);
    }

}

proptest! {
    #![proptest_config(config(cases() / 4))]

    #[test]
    fn a_repeated_fact_changes_nothing(
        rules in rules(),
        settings in settings(),
        outcomes in outcomes(),
        ops in prop::collection::vec(op(), 1..60),
    ) {
        let mut world = World::new(settings, rules).after(&outcomes);
        for op in &ops {
            apply(&mut world, op);
            if let Op::Tell(..) = op
                && let Some((_, Input::Fact(fact))) = world.journal.last()
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

    #[test]
    fn the_invariants_hold_whatever_a_policy_answers(
        rules in rules(),
        settings in settings(),
        policies in prop::collection::vec(0..1_000_u32, 1..3),
        ops in prop::collection::vec(op(), 1..80),
    ) {
        let mut world = World::new(settings, rules);
        let mut folded = fold(world.new_queue.clone(), &world.journal);
        for (policy, ops) in policies.iter().zip(ops.chunks(ops.len().div_ceil(policies.len()))) {
            let steps = world.journal.len();
            world.queue = world.queue.with_policy(AnyPolicy(*policy).into());
            world.take_in(&Fact::TimePassed);
            for op in ops {
                let before = Before::of(&world);
                apply(&mut world, op);
                check_step(&before, &world, op);
            }
            folded = fold(folded.with_policy(AnyPolicy(*policy).into()), &world.journal[steps..]);
        }
        assert_eq!(folded, world.queue, "Q9");
        check_liveness(&mut world);
    }

    #[test]
    fn urgent_pull_requests_land_during_a_freeze(
        rules in rules(),
        settings in settings(),
        outcomes in outcomes(),
        ops in prop::collection::vec(op(), 1..60),
        urgent in prop::collection::btree_set(1..10_u32, 1..3),
    ) {
        let mut world = World::new(settings, rules).after(&outcomes);
        for op in &ops {
            apply(&mut world, op);
        }
        check_urgent_during_freeze(&mut world, &urgent);
    }

    #[test]
    fn a_restored_queue_decides_like_the_original(
        rules in rules(),
        settings in settings(),
        outcomes in outcomes(),
        ops in prop::collection::vec(op(), 1..60),
    ) {
        let mut world = World::new(settings, rules).after(&outcomes);
        for op in &ops {
            let (before, steps) = (world.queue.clone(), world.journal.len());
            apply(&mut world, op);
            // Restoring a queue drops its cache, which must make no difference.
            let mut loaded = Queue::restore(
                before.header.clone(),
                before.entries_in_order().cloned(),
                before.runs().cloned(),
            );
            for (at, input) in &world.journal[steps..] {
                loaded = match input {
                    Input::Command(command) => {
                        decide(&loaded, command, *at).expect("it was not refused").queue
                    }
                    Input::Fact(fact) => absorb(&loaded, fact, *at).queue,
                };
            }
            assert_eq!(loaded, world.queue, "Q9 after {op:?}");
        }
    }
}
