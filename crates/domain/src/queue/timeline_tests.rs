//! Timelines of small queues.

use std::collections::BTreeSet;

use super::*;
use crate::queue::{Effect, Mode, Settings, absorb, decide, view_entry};
use crate::testing::{Rules, World};

/// A world whose moves and runs are recorded as a store records them.
struct Kept {
    world: World,
    moves: Vec<Move>,
    runs: Vec<TestRun>,
    entries: Vec<Entry>,
}

impl Kept {
    /// Replays a world's inputs and records the moves and runs of each step.
    fn of(world: World) -> Self {
        let mut kept =
            Self { moves: Vec::new(), runs: Vec::new(), entries: Vec::new(), world: world.clone() };
        let mut queue = world.new_queue;
        for (at, input) in &world.journal {
            let transition = match input {
                crate::queue::Input::Command(command) => match decide(&queue, command, *at) {
                    Ok(transition) => transition,
                    Err(_) => continue,
                },
                crate::queue::Input::Fact(fact) => absorb(&queue, fact, *at),
            };
            let number = transition.queue.header.sequence;
            let decisions = (0_u64..).zip(&transition.decisions);
            kept.moves.extend(decisions.filter_map(|(place, it)| Move::of(number, place, *at, it)));
            for run in &transition.changes.runs {
                kept.runs.retain(|known| known.id != run.id);
                kept.runs.push(run.as_ref().clone());
            }
            for entry in &transition.changes.entries {
                kept.entries.retain(|known| known.id != entry.id);
                kept.entries.push(entry.as_ref().clone());
            }
            queue = transition.queue;
        }
        kept
    }

    fn timeline(&self, pr: u32) -> Vec<Step> {
        let entry = self.entries.iter().find(|entry| entry.pr.0 == pr).expect("submitted");
        let mut moves: Vec<Move> = self.moves.iter().filter(|it| it.pr.0 == pr).cloned().collect();
        moves.reverse();
        let waits = view_entry(&self.world.queue, PrNumber(pr)).and_then(|view| view.waits);
        timeline(entry, waits.as_ref(), &moves, &self.runs)
    }
}

fn world(rules: Rules) -> World {
    World::new(Settings::new(Mode::Single, 2).expect("valid settings"), rules)
}

#[test]
fn a_merged_pull_request_shows_every_step_newest_first_with_its_run() {
    let mut world = world(Rules::default());
    world.submit(1, None).expect("accepted");
    world.submit(2, Some(10)).expect("accepted");
    world.settle();
    let steps = Kept::of(world).timeline(2);
    let states: Vec<PrState> = steps.iter().map(|it| it.state).collect();
    assert_eq!(states.first(), Some(&PrState::Merged));
    assert_eq!(states.last(), Some(&PrState::NotReady));
    assert!(steps.is_sorted_by_key(|it| std::cmp::Reverse(it.at)));
    let terms: Vec<_> = steps.iter().filter_map(|it| it.terms).collect();
    assert_eq!(terms, [Terms { priority: Priority::number(10), no_batch: false }]);
    let testing = steps.iter().find(|it| it.state == PrState::Testing).expect("it was tested");
    assert!(testing.run.as_ref().is_some_and(|run| run.candidate.is_some()));
    let ahead: Vec<u32> = testing.prerequisites.iter().map(|it| it.pr.0).collect();
    assert_eq!(ahead, [1]);
    let pending = steps.iter().find(|it| it.state == PrState::Pending).expect("it waited");
    assert_eq!(pending.prerequisites, testing.prerequisites);
    assert!(steps.iter().all(|it| it.failed_statuses.is_empty() && it.block_reason.is_none()));
}

#[test]
fn a_failed_pull_request_names_the_failed_status_and_the_culprit() {
    let mut world = world(Rules { bad: BTreeSet::from([1]), ..Rules::default() });
    world.submit(1, None).expect("accepted");
    world.settle();
    let steps = Kept::of(world).timeline(1);
    let failed = &steps[0];
    assert_eq!((failed.state, failed.reason), (PrState::Failed, FailReason::RequiredStatus.into()));
    assert_eq!(failed.failed_statuses.len(), 1);
    assert_eq!(failed.failed_statuses[0].conclusion, Some(CheckConclusion::Failure));
    assert_eq!(failed.block_reason, Some(BlockReason::FailingRequiredCheck));
    assert_eq!(failed.culprit, Some(Culprit::Itself));
}

#[test]
fn a_waiting_pull_request_names_the_pull_requests_that_it_waits_for() {
    let mut world = world(Rules::default());
    for pr in 1..=2 {
        world.submit(pr, None).expect("accepted");
    }
    let steps = Kept::of(world).timeline(2);
    let waiting: Vec<u32> = steps[0].waiting_for.iter().map(|it| it.pr.0).collect();
    assert_eq!((steps[0].state, waiting), (PrState::Pending, vec![1]));
    assert_eq!(steps[0].prerequisites, steps[0].waiting_for);
    assert!(steps[1].waiting_for.is_empty(), "past steps wait for no pull request");
}

#[test]
fn a_conflict_with_the_target_names_the_culprit_only_on_the_last_exit() {
    let rules = Rules { conflict: BTreeSet::from([(0, 1)]), ..Rules::default() };
    let mut world = world(rules);
    world.push_target();
    world.submit(1, None).expect("accepted");
    world.settle();
    world.submit(1, None).expect("accepted");
    world.settle();
    let steps = Kept::of(world).timeline(1);
    let failed: Vec<&Step> = steps.iter().filter(|it| it.state == PrState::Failed).collect();
    assert_eq!(failed.len(), 2);
    assert!(failed.iter().all(|it| it.block_reason == Some(BlockReason::MergeConflict)));
    assert_eq!(failed[0].culprit, Some(Culprit::TargetBranch));
    assert_eq!(failed[1].culprit, None);
    assert!(steps.iter().filter(|it| it.terms.is_some()).count() == 1);
}

#[test]
fn a_timeout_names_the_required_statuses_that_did_not_finish() {
    let mut world = world(Rules::default());
    let settings = crate::queue::SettingsPatch {
        required_statuses: Some(vec!["test".into(), "lint".into()]),
        testing_timeout_minutes: Some(30),
        ..crate::queue::SettingsPatch::default()
    };
    let by = world.caller();
    let command = crate::queue::Command::Update {
        settings: Box::new(settings),
        state: None,
        reason: None,
        by,
        source: crate::queue::ChangeSource::Direct,
    };
    world.ask(command).expect("accepted");
    world.submit(1, None).expect("accepted");
    world.settle();
    world.wait(crate::time::Span::minutes(31));
    world.take_in(&crate::queue::Fact::TimePassed);
    world.settle();
    let steps = Kept::of(world).timeline(1);
    let failed = steps.first().expect("a last step");
    assert_eq!(failed.state, PrState::Failed);
    let names: Vec<&str> = failed.failed_statuses.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["lint"], "the check `test` has passed");
}

/// Runs all effects but checks, and absorbs all facts.
fn build_all(world: &mut World) {
    loop {
        let checks = |effect: &Effect| matches!(effect, Effect::RunChecks(_));
        if !world.facts.is_empty() {
            let fact = world.facts.remove(0);
            world.take_in(&fact);
        } else if let Some(at) = world.outbox.iter().position(|it| !checks(&it.effect)) {
            let next = world.outbox.remove(at);
            world.run(&next.effect);
        } else {
            return;
        }
    }
}

#[test]
fn a_pull_request_that_a_later_run_proved_names_the_last_entry_of_that_run() {
    let settings = Settings::builder().concurrency(2_u32).can_optimistically_merge(true);
    let mut world = World::new(settings.build().expect("valid settings"), Rules::default());
    for pr in 1..=2 {
        world.submit(pr, None).expect("accepted");
    }
    build_all(&mut world);
    let second = world.queue.entry_of(PrNumber(2)).expect("it is tested").id;
    let checks = world.outbox.remove(1);
    world.run(&checks.effect);
    build_all(&mut world);
    let kept = Kept::of(world);
    let proved = |pr: u32| {
        let steps = kept.timeline(pr).into_iter();
        steps.filter(|it| it.state == PrState::TestsPassed).map(|it| it.successor).next()
    };
    assert_eq!(proved(1), Some(Some(second)));
    assert_eq!(proved(2), Some(None), "its own run");
    let others = kept.timeline(1).into_iter().filter(|it| it.state != PrState::TestsPassed);
    assert!(others.into_iter().all(|it| it.successor.is_none()));
}

#[test]
fn a_landing_that_was_removed_is_the_newest_step() {
    let mut world = world(Rules::default());
    world.submit(1, None).expect("accepted");
    world.settle();
    let at = world.at;
    let kept = Kept::of(world);
    let merged = kept.entries.iter().find(|it| it.pr == PrNumber(1)).expect("an entry").clone();
    let removed = Entry { off_target_since: Some(at), ..merged.clone() };
    let newest = |entry: &Entry| timeline(entry, None, &[], &[]).first().map(|it| it.reason);
    assert_eq!(newest(&removed), Some(LandingChange::Removed.into()));
    assert_eq!(newest(&merged), None);
}

#[test]
fn a_step_names_the_other_pull_requests_of_its_batch() {
    let settings = Settings::builder().concurrency(2_u32).batch(true).batching_min_size(3_u32);
    let mut world = World::new(settings.build().expect("valid settings"), Rules::default());
    for pr in 1..=3 {
        world.submit(pr, None).expect("accepted");
    }
    world.settle();
    let steps = Kept::of(world).timeline(2);
    let testing = steps.iter().find(|it| it.state == PrState::Testing).expect("it was tested");
    let others: Vec<u32> = testing.tested_with(PrNumber(2)).map(|member| member.pr.0).collect();
    assert_eq!(others, [1, 3]);
}
