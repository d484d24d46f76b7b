//! A target that is deleted and restored.

use signalbox_domain::ids::{BranchName, OrgId, PrNumber, QueueId, RepoId, Sha, TreeId};
use signalbox_domain::queue::{
    Effect, EntryState, Fact, LandRefusal, Mode, PrState, Queue, Settings, WaitReason, absorb,
    view_entry,
};
use signalbox_domain::testing::{Rules, World};
use signalbox_domain::time::Timestamp;
use uuid::Uuid;

use crate::{run_until, states, waits, world};

/// Two pull requests; the landing of the first finds no target.
fn without_target() -> World {
    let mut world = world(2, Rules::default());
    for pr in [1, 2] {
        world.submit(pr, None).expect("accepted");
    }
    run_until(&mut world, |effect| matches!(effect, Effect::Land(_)));
    let Effect::Land(land) = world.outbox.remove(0).effect else { panic!("a landing") };
    let because = LandRefusal::TargetMissing;
    world.take_in(&Fact::LandRefused { run: land.run, because });
    world
}

#[test]
fn a_tested_candidate_lands_once_the_target_is_restored() {
    let mut world = without_target();
    assert_eq!(waits(&world, 1), WaitReason::TargetBranchMissing);
    assert!(world.queue.header.landing.is_none());
    // The checks of the second continue; nothing lands.
    world.settle();
    assert_eq!(states(&world), [(1, PrState::TestsPassed), (2, PrState::TestsPassed)]);
    assert!(world.landed.is_empty());
    let runs: Vec<_> = world.queue.runs().map(|run| run.id).collect();
    world.take_in(&Fact::TargetMissing);
    world.reconcile();
    let seen = world.facts[0].clone();
    world.take_in(&seen);
    assert!(!world.queue.header.target.missing);
    assert_eq!(world.queue.runs().map(|run| run.id).collect::<Vec<_>>(), runs, "nothing is rerun");
    world.settle();
    assert_eq!(world.landed, [1, 2]);
}

#[test]
fn nothing_starts_without_a_target_and_a_different_target_restarts_everything() {
    let mut world = without_target();
    world.settle();
    world.submit(3, None).expect("accepted");
    world.settle();
    assert_eq!(waits(&world, 3), WaitReason::TargetBranchMissing);
    world.push_target();
    let seen = world.facts.remove(0);
    world.take_in(&seen);
    let entry = view_entry(&world.queue, PrNumber(1)).expect("it is there");
    assert!(matches!(entry.entry.state, EntryState::Testing { .. }), "it is tested again");
    world.settle();
    assert_eq!(world.landed, [1, 2, 3]);
}

/// A read from before the deletion does not apply.
#[test]
fn an_old_read_does_not_restore_the_target() {
    let mut world = without_target();
    world.settle();
    world.reconcile();
    let old = world.facts[0].clone();
    world.facts.clear();
    world.wait(signalbox_domain::time::Span::seconds(5));
    let Fact::TargetSeen { head, tree, read_at } = old else { panic!("{old:?}") };
    let before = read_at.minus(signalbox_domain::time::Span::seconds(60));
    world.take_in(&Fact::TargetSeen { head, tree, read_at: before });
    assert!(world.queue.header.target.missing);
}

#[test]
fn the_target_is_read_again_until_it_is_known_or_missing() {
    let branch = BranchName::new("main").expect("a branch name");
    let id = Uuid::from_u128;
    let settings = Settings::new(Mode::Single, 1).expect("valid settings");
    let at = Timestamp::from_unix_seconds(1_767_225_600);
    let new = Queue::new(QueueId(id(1)), OrgId(id(2)), RepoId(id(3)), branch, settings, at);
    let new = new.expect("valid settings");
    let asks = |queue: &Queue| {
        let effects = absorb(queue, &Fact::TimePassed, at).effects;
        effects.iter().any(|it| matches!(it.effect, Effect::InspectTarget { .. }))
    };
    assert!(asks(&new));
    assert!(!asks(&absorb(&new, &Fact::TargetMissing, at).queue));
    let head = Sha::new("e".repeat(40)).expect("a commit");
    let tree = TreeId::new("f".repeat(40)).expect("a tree");
    let seen = Fact::TargetSeen { head, tree, read_at: at };
    assert!(!asks(&absorb(&new, &seen, at).queue));
}
