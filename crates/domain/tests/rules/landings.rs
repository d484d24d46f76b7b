//! Landings that add nothing, and landings that a push removed from the target.

use signalbox_domain::ids::{PrNumber, Sha, TreeId};
use signalbox_domain::queue::{
    Candidate, Effect, Entry, Fact, PullRequestState, SettingsPatch, Submission, absorb,
};
use signalbox_domain::testing::{Rules, World};

use crate::reasons::{emitted, is_build, is_land, set, submitted};
use crate::{is_checks, run_until, world};

/// Builds the next candidate, and changes what the host reports of it: the candidate, and the pull
/// requests that add nothing.
fn build_next(world: &mut World, change: impl FnOnce(&mut Candidate, &mut Vec<PrNumber>)) {
    run_until(world, is_build);
    let effect = world.outbox.remove(0).effect;
    world.run(&effect);
    match world.facts.last_mut() {
        Some(Fact::CandidateBuilt { candidate, empty, .. }) => change(candidate, empty),
        other => panic!("{other:?}"),
    }
}

/// A batch of two, one of which adds no changes.
fn batch_with_empty(pr: u32) -> World {
    let mut world = world(1, Rules::default());
    set(
        &mut world,
        SettingsPatch { batch: Some(true), batching_min_size: Some(2), ..SettingsPatch::default() },
    );
    for pr in 1..=2 {
        world.submit(pr, None).expect("submitted");
    }
    build_next(&mut world, |_, empty| *empty = vec![PrNumber(pr)]);
    world.settle();
    world
}

#[test]
fn a_pull_request_that_adds_nothing_to_the_target_leaves_its_group() {
    let world = batch_with_empty(1);
    assert_eq!(emitted(&world, 1).last(), Some(&("merged", "ALREADY_MERGED".to_owned())));
    assert_eq!(emitted(&world, 2).last(), Some(&("merged", "MERGE_GRAPH_MERGE".to_owned())));
    assert_eq!(world.landed, [2], "the rest is built without it");
}

/// The group may still fail, so the pull request is tested and lands with it.
#[test]
fn a_pull_request_that_adds_nothing_to_its_group_lands_with_it() {
    let world = batch_with_empty(2);
    assert_eq!(emitted(&world, 1).last(), Some(&("merged", "MERGE_GRAPH_MERGE".to_owned())));
    assert_eq!(emitted(&world, 2).last(), Some(&("merged", "ALREADY_MERGED".to_owned())));
    assert_eq!(world.landed, [1, 2]);
}

#[test]
fn a_pull_request_that_adds_nothing_is_not_tested() {
    let mut world = submitted(1, Rules::default(), 1);
    build_next(&mut world, |_, empty| *empty = vec![PrNumber(1)]);
    world.settle();
    assert_eq!(emitted(&world, 1).last(), Some(&("merged", "ALREADY_MERGED".to_owned())));
    assert_eq!(world.landed, []);
}

#[test]
fn a_pull_request_that_adds_nothing_to_those_ahead_lands_with_them() {
    let mut world = submitted(2, Rules::default(), 2);
    run_until(&mut world, is_checks);
    let checks = world.outbox.remove(0);
    let tree = world.queue.runs().find_map(|run| Some(run.candidate.as_ref()?.tree.clone()));
    build_next(&mut world, |candidate, _| {
        candidate.tree = tree.expect("the first has a candidate");
    });
    let built = world.facts.remove(0);
    world.take_in(&built);
    let second = world.queue.entry_of(PrNumber(2)).and_then(|entry| entry.state.run());
    let second = second.and_then(|run| world.queue.run(run)).expect("a run");
    assert_eq!((second.empty.as_slice(), second.status.is_running()), (&[PrNumber(2)][..], true));
    world.outbox.push(checks);
    world.settle();
    assert_eq!(emitted(&world, 1).last(), Some(&("merged", "MERGE_GRAPH_MERGE".to_owned())));
    assert_eq!(emitted(&world, 2).last(), Some(&("merged", "ALREADY_MERGED".to_owned())));
}

#[test]
fn a_candidate_does_not_wait_for_a_resubmission_of_what_it_contains() {
    let mut world = submitted(2, Rules::default(), 2);
    run_until(&mut world, is_checks);
    let first = world.outbox.remove(0);
    run_until(&mut world, is_checks);
    let second = world.outbox.remove(0);
    world.outbox.push(first);
    world.settle();
    assert_eq!(world.landed, [1]);
    // The host opens it again, with another commit.
    let mut pull_request = world.pull_request(1);
    pull_request.state = PullRequestState::Open;
    pull_request.head = Sha::new("a".repeat(40)).expect("a commit");
    let submission = Submission::builder(pull_request, world.caller(), world.at).build();
    world.ask(submission.into()).expect("not refused");
    assert!(waits_only_for_checks(&world, 2));
    world.outbox = vec![second];
    run_until(&mut world, is_land);
    assert!(is_land(&world.outbox[0].effect), "#2 does not wait for the new #1");
}

fn waits_only_for_checks(world: &World, pr: u32) -> bool {
    let entry = world.queue.entry_of(PrNumber(pr));
    let run = entry.and_then(|entry| world.queue.run(entry.state.run()?));
    run.is_some_and(|run| run.ahead.is_empty())
}

#[test]
fn a_landing_removed_from_the_target_is_reported_once_and_recognized_when_restored() {
    let mut world = submitted(1, Rules::default(), 1);
    run_until(&mut world, is_land);
    let effect = world.outbox.remove(0).effect;
    world.run(&effect);
    let landed = world.facts.remove(0);
    let step = absorb(&world.queue, &landed, world.at);
    let merged = step.changes.entries[0].as_ref().clone();
    world.take_in(&landed);
    world.outbox.clear();
    let was = world.queue.header.target.head.clone().expect("a head");
    let head = Sha::new("e".repeat(40)).expect("a commit");
    let tree = TreeId::new("f".repeat(40)).expect("a tree");
    world.take_in(&Fact::TargetSeen { head: head.clone(), tree: tree.clone(), read_at: world.at });
    let asked = |world: &World| {
        let asked = world.outbox.iter().find_map(|it| {
            let Effect::CheckLandings { was, head, off_target, .. } = &it.effect else {
                return None;
            };
            Some((was.clone(), head.clone(), off_target.clone()))
        });
        asked.expect("the host is queried")
    };
    assert_eq!(asked(&world), (was.clone(), head.clone(), Vec::new()));
    let checked = |lost: &[Entry], back: &[Entry], head: &Sha| Fact::LandingsChecked {
        was: was.clone(),
        head: head.clone(),
        lost: lost.to_vec(),
        back: back.to_vec(),
    };
    let lost = checked(std::slice::from_ref(&merged), &[], &head);
    let step = absorb(&world.queue, &lost, world.at);
    let kinds: Vec<&str> = step.events.iter().map(|event| event.kind.as_str()).collect();
    assert_eq!(kinds, ["pull_request.removed_from_target"]);
    let marked = step.changes.entries[0].as_ref().clone();
    assert_eq!((marked.off_target_since, &marked.state), (Some(world.at), &merged.state));
    assert_eq!(step.queue.header.off_target, [PrNumber(1)]);
    let again = checked(std::slice::from_ref(&marked), &[], &head);
    let again = absorb(&step.queue, &again, world.at);
    assert!(again.events.is_empty() && again.changes.entries.is_empty(), "it is known");
    let back = checked(&[], &[marked], &head);
    let step = absorb(&step.queue, &back, world.at);
    assert_eq!(step.changes.entries[0].off_target_since, None);
    assert!(step.queue.header.off_target.is_empty());

    // A pull request that was resubmitted since is not marked; it lands again.
    let mut resubmitted = world.clone();
    resubmitted.submit(2, None).expect("accepted");
    let earlier = Entry { pr: PrNumber(2), ..merged.clone() };
    let lost_earlier = checked(&[earlier], &[], &head);
    let step = absorb(&resubmitted.queue, &lost_earlier, resubmitted.at);
    assert!(step.events.is_empty() && step.queue.header.off_target.is_empty());

    // The target moved before the answer arrived: the host is queried about its new head.
    let next = Sha::new("d".repeat(40)).expect("a commit");
    world.take_in(&Fact::TargetSeen { head: next.clone(), tree, read_at: world.at });
    world.outbox.clear();
    world.take_in(&lost);
    assert_eq!(asked(&world), (was.clone(), next, Vec::new()));
}
