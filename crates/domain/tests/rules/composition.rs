//! Candidates that are not their base with the changes of their pull requests.

use std::collections::BTreeMap;

use proptest::prelude::*;
use signalbox_domain::queue::{
    Comparison, Composition, CompositionCheck, Contribution, Decision, Effect, Entry, EntryState,
    EventKind, Exit, Fact, LandRefusal, LandingProof, Listing, Object, PrState, QueueState,
    RequestedState, SettingsPatch, compare_trees,
};
use signalbox_domain::testing::{Rules, World};

use crate::reasons::{is_build, is_land, submitted};
use crate::{decisions, exit, run_until, states, update};

fn paused_because(world: &World) -> Option<&str> {
    match &world.queue.header.state {
        QueueState::Paused { reason, .. } => reason.as_deref(),
        QueueState::Running | QueueState::Draining | QueueState::SwitchingModes { .. } => None,
    }
}

/// A pull request whose candidate, or whose landing, the host composes wrongly.
fn miscomposed(at: fn(&Effect) -> bool) -> World {
    let mut world = submitted(1, Rules::default(), 1);
    run_until(&mut world, at);
    let place = world.outbox.iter().position(|it| at(&it.effect)).expect("it waits");
    let effect = world.outbox.remove(place).effect;
    world.miscompose(&effect);
    let fact = world.facts.pop().expect("a fact");
    world.take_in(&fact);
    world
}

#[test]
fn a_wrong_candidate_is_never_tested_and_the_queue_is_paused() {
    for at in [is_build, is_land] {
        let mut world = miscomposed(at);
        assert_eq!(states(&world), [(1, PrState::Pending)]);
        let events: Vec<EventKind> = world.events.iter().map(|event| event.kind).collect();
        assert!(events.contains(&EventKind::CompositionMismatch), "{events:?}");
        assert!(events.contains(&EventKind::QueueStateChanged), "{events:?}");
        let reason = paused_because(&world).expect("it is paused").to_owned();
        assert!(reason.starts_with("the candidate of #1 is not its base "), "{reason}");
        assert!(reason.ends_with("; it differs in file"), "{reason}");
        let all = decisions(&world);
        let mismatches = all.iter().filter(|it| {
            matches!(it, Decision::CompositionMismatch { mismatch, .. } if mismatch.paths == ["file"])
        });
        assert_eq!(mismatches.count(), 1);
        // Nothing starts until a user has resumed the queue; then it is built and tested again.
        world.settle();
        assert!(world.landed.is_empty(), "{:?}", world.landed);
        update(&mut world, SettingsPatch::default(), Some(RequestedState::Running));
        world.settle();
        assert_eq!(world.landed, [1]);
    }
}

#[test]
fn a_late_report_of_a_wrong_candidate_changes_nothing() {
    let mut world = submitted(2, Rules::default(), 1);
    run_until(&mut world, is_build);
    let effect = world.outbox.remove(0).effect;
    world.miscompose(&effect);
    let late = world.facts.pop().expect("a fact");
    world.run(&effect);
    world.settle();
    world.take_in(&late);
    assert_eq!(paused_because(&world), None);
    let Fact::CandidateMismatch { run, mismatch } = late else { panic!("{late:?}") };
    world.take_in(&Fact::LandRefused { run, because: LandRefusal::Mismatch(mismatch) });
    assert_eq!(paused_because(&world), None);
}

#[test]
fn a_landing_is_recorded_with_what_it_consists_of() {
    let mut world = submitted(2, Rules::default(), 2);
    let base = world.queue.header.target.head.clone().expect("it was read");
    run_until(&mut world, is_land);
    let effect = world.outbox.remove(0).effect;
    world.run(&effect);
    let mut fact = world.facts.pop().expect("a fact");
    let Fact::Landed { composition, .. } = &mut fact else { panic!("{fact:?}") };
    *composition = Some(Composition::recomputed());
    world.take_in(&fact);
    let Effect::Land(land) = effect else { panic!("{effect:?}") };
    let Exit::Merged { proof: Some(proof), .. } = exit(&world, 1) else { panic!("no proof") };
    let LandingProof { base: from, changes, method, exact, composition, mismatch } = *proof;
    assert_eq!(mismatch, None);
    assert_eq!((from, method, exact), (base, land.method, true));
    let landed: Vec<_> = land.changes.iter().map(|it| (it.pr, it.head.clone())).collect();
    assert_eq!(changes, landed);
    assert_eq!(composition.map(|it| it.check), Some(CompositionCheck::Recomputed));
}

#[test]
fn an_audit_that_finds_a_wrong_landing_pauses_the_queue_and_reports_it_once() {
    let mut world = submitted(2, Rules::default(), 2);
    world.settle();
    assert_eq!(world.landed, [1, 2]);
    let healthy = world.audited(usize::MAX);
    world.take_in(&healthy);
    assert_eq!((paused_because(&world), world.events.len()), (None, 0));
    let audited = Decision::LandingsAudited { proved: 2, not_checked: 0, wrong: 0 };
    assert_eq!(world.decisions, [audited]);

    let wrong = world.audited(0);
    world.take_in(&wrong);
    let reason = paused_because(&world).expect("it is paused").to_owned();
    assert!(reason.contains(", which landed #2, is not its base "), "{reason}");
    assert!(reason.ends_with("; it differs in file"), "{reason}");
    let found = world.events.iter().filter(|it| it.kind == EventKind::LandingMismatch);
    assert_eq!(found.count(), 1, "{:?}", world.events);
    let marked = |entry: &Entry| match &entry.state {
        EntryState::Ended(Exit::Merged { proof: Some(proof), .. }) => proof.mismatch.is_some(),
        other => panic!("{other:?}"),
    };
    let marked = world.merged.values().map(|entry| (entry.pr.0, marked(entry)));
    assert_eq!(marked.collect::<BTreeMap<_, _>>(), BTreeMap::from([(1, false), (2, true)]));

    // A user has read it and resumes the queue. The next audit finds the same and says nothing.
    update(&mut world, SettingsPatch::default(), Some(RequestedState::Running));
    let again = world.audited(0);
    world.take_in(&again);
    assert_eq!((paused_because(&world), world.events.len()), (None, 0));
}

fn listing(objects: &[(&str, &str)]) -> Listing {
    let object = |id: &str| Object { mode: "100644".to_owned(), id: id.to_owned() };
    objects.iter().map(|(path, id)| ((*path).to_owned(), object(id))).collect()
}

fn compared(
    base: &[(&str, &str)],
    ancestor: &[(&str, &str)],
    head: &[(&str, &str)],
    candidate: &[(&str, &str)],
) -> (Vec<String>, Vec<String>) {
    let (ancestor, head) = (listing(ancestor), listing(head));
    let change = Contribution { ancestor: &ancestor, head: &head };
    let Comparison { wrong, merged_by_host } =
        compare_trees(&listing(base), &[change], &listing(candidate));
    (wrong, merged_by_host)
}

fn paths(of: &[&str]) -> Vec<String> {
    of.iter().map(|path| (*path).to_owned()).collect()
}

#[test]
fn what_one_side_alone_has_changed_is_compared() {
    let was = [("a", "1"), ("b", "1"), ("c", "1")];
    // The target has changed `a`, the pull request `b`, and it has removed `c`.
    let (base, head) = ([("a", "2"), ("b", "1"), ("c", "1")], [("a", "1"), ("b", "2")]);
    let right = [("a", "2"), ("b", "2")];
    assert_eq!(compared(&base, &was, &head, &right), (paths(&[]), paths(&[])));
    // The pull request reverts what the target has changed: a wrong merge base.
    assert_eq!(compared(&base, &was, &head, &head), (paths(&["a"]), paths(&[])));
    // Its change is missing, and so is its removal.
    assert_eq!(compared(&base, &was, &head, &base), (paths(&["b", "c"]), paths(&[])));
    // An unchanged file is dropped, or added.
    assert_eq!(compared(&base, &was, &head, &[("b", "2")]), (paths(&["a"]), paths(&[])));
    let more = [("a", "2"), ("b", "2"), ("d", "1")];
    assert_eq!(compared(&base, &was, &head, &more), (paths(&["d"]), paths(&[])));
}

#[test]
fn what_both_sides_have_changed_is_left_to_the_host() {
    let (was, base, head) = ([("a", "1")], [("a", "2")], [("a", "3")]);
    assert_eq!(compared(&base, &was, &head, &[("a", "4")]), (paths(&[]), paths(&["a"])));
    // Both have made the same change.
    assert_eq!(compared(&base, &was, &base, &base), (paths(&[]), paths(&[])));
}

#[test]
fn changes_follow_renames() {
    let was = [("a", "1"), ("other", "1")];
    // The target has renamed `a`, the pull request has changed it.
    let (base, head) = ([("b", "1"), ("other", "1")], [("a", "2"), ("other", "1")]);
    let right = [("b", "2"), ("other", "1")];
    assert_eq!(compared(&base, &was, &head, &right), (paths(&[]), paths(&["b"])));
    // The other way round.
    assert_eq!(compared(&head, &was, &base, &right), (paths(&[]), paths(&["a", "b"])));
    // A wrong path beside it is still found.
    let wrong = [("b", "2"), ("other", "2")];
    assert_eq!(compared(&base, &was, &head, &wrong).0, paths(&["other"]));
}

/// What a side does to a path.
fn edits() -> impl Strategy<Value = BTreeMap<u8, Option<(bool, u8)>>> {
    prop::collection::btree_map(0..12_u8, prop::option::of((any::<bool>(), 2..5_u8)), 0..6)
}

fn edited(listing: &Listing, edits: &BTreeMap<u8, Option<(bool, u8)>>) -> Listing {
    let mut edited = listing.clone();
    for (path, edit) in edits {
        let path = format!("{}/{path}", path % 3);
        match edit {
            Some((program, id)) => {
                let mode = if *program { "100755" } else { "100644" };
                edited.insert(path, Object { mode: mode.to_owned(), id: id.to_string() });
            }
            None => drop(edited.remove(&path)),
        }
    }
    edited
}

proptest! {
    /// Several pull requests from one commit, each of which changes paths of its own. Any other
    /// object, mode or path of the candidate is found.
    #[test]
    fn every_change_of_a_candidate_is_found(
        there in edits(),
        target in edits(),
        changes in prop::collection::vec(edits(), 1..4),
        at in 0..12_u8,
        to in prop::option::of((any::<bool>(), 2..6_u8)),
    ) {
        let ancestor = edited(&Listing::new(), &there);
        let base = edited(&ancestor, &target);
        let mut taken: Vec<u8> = target.keys().copied().collect();
        let mut own = Vec::new();
        for mut change in changes {
            change.retain(|path, _| !taken.contains(path));
            taken.extend(change.keys());
            own.push(change);
        }
        let heads: Vec<Listing> = own.iter().map(|change| edited(&ancestor, change)).collect();
        let contributions: Vec<Contribution<'_>> =
            heads.iter().map(|head| Contribution { ancestor: &ancestor, head }).collect();
        let right = own.iter().fold(base.clone(), |so_far, change| edited(&so_far, change));
        let none = Comparison::default();
        prop_assert_eq!(compare_trees(&base, &contributions, &right), none);
        let wrong = edited(&right, &BTreeMap::from([(at, to)]));
        let found = compare_trees(&base, &contributions, &wrong);
        if wrong == right {
            prop_assert_eq!(found, Comparison::default());
        } else {
            prop_assert_eq!(found.wrong, [format!("{}/{at}", at % 3)]);
        }
    }
}
