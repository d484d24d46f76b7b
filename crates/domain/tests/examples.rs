//! The examples work as documented, and the list of facts that answer effects is complete.

#[expect(dead_code, reason = "its main prints what the test reads")]
#[path = "../examples/quarantine_rule.rs"]
mod quarantine_rule;
#[expect(dead_code, reason = "its main prints what the test reads")]
#[path = "../examples/queue_in_memory.rs"]
mod queue_in_memory;

use std::collections::BTreeSet;

use signalbox_domain::queue::{ANSWERS, Mode, Settings};
use signalbox_domain::testing::{Rules, World};

#[test]
fn the_queue_in_memory_names_the_culprit_and_lands_the_others() {
    let lines = queue_in_memory::run().expect("the example runs");
    let with = |end: &str| lines.iter().filter(|line| line.contains(end)).cloned().collect();
    let landed: Vec<String> = with("MERGED");
    assert_eq!(landed, ["#1 MERGED: MERGE_GRAPH_MERGE", "#3 MERGED: MERGE_GRAPH_MERGE"]);
    let culprits: Vec<String> = with("culprit");
    assert_eq!(culprits, ["#2 is the culprit"]);
}

#[test]
fn the_quarantine_rule_excuses_only_quarantined_tests() {
    let lines = quarantine_rule::run().expect("the example runs");
    assert_eq!(
        lines,
        [
            "opens the door: flaky",
            "quarantined: true",
            "the check passes: only quarantined tests failed: opens the door (flaky by monitor Flaky in \
             the merge queue)",
            "the check fails: tests failed: closes the door",
        ]
    );
}

#[test]
fn effects_are_answered_by_the_facts_in_the_list() {
    let rules = Rules { bad: [2].into(), conflict: [(1, 4)].into(), ..Rules::default() };
    let mut seen = BTreeSet::new();
    for mode in [Mode::Single, Mode::Parallel] {
        let settings = Settings::new(mode, 3).expect("valid settings");
        let mut world = World::new(settings, rules.clone());
        for pr in 1..=5 {
            world.submit(pr, None).expect("submitted");
        }
        world.push(5);
        world.push_target();
        for _ in 0..1_000 {
            if !world.facts.is_empty() {
                let fact = world.facts.remove(0);
                world.take_in(&fact);
            } else if !world.outbox.is_empty() {
                let effect = world.outbox.remove(0).effect;
                world.run(&effect);
                let facts = world.facts.iter().map(|fact| (effect.name(), fact.name()));
                seen.extend(facts.collect::<Vec<_>>());
            }
        }
    }
    assert!(seen.len() >= 5, "{seen:?}");
    for (effect, fact) in seen {
        let listed = ANSWERS.iter().find(|answer| answer.effect == effect);
        let facts = listed.expect("every effect is in the list").facts;
        assert!(facts.contains(&fact), "{effect} is answered by {fact}");
    }
}
