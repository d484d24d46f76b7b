//! The checks of the invariants detect violations: each runs on a state that violates it.

use std::collections::BTreeSet;

use super::super::{
    CancelReason, Effect, Exit, Header, Landing, PassReason, QueuedReason, ReportedTargets,
    Settings,
};
use super::*;
use crate::testing::{Rules, World};

/// A queue with these settings in which every candidate that can be built is under test.
fn under_test(settings: Settings, targets: &[&[u32]]) -> World {
    let mut rules = Rules::default();
    for (pr, names) in (1..).zip(targets) {
        rules.targets.insert(pr, names.iter().copied().collect::<BTreeSet<u32>>());
    }
    let mut world = World::new(settings, rules);
    for (pr, _) in (1..).zip(targets) {
        world.submit(pr, None).expect("accepted");
    }
    loop {
        let running = |effect: &Effect| matches!(effect, Effect::RunChecks(_));
        if !world.facts.is_empty() {
            let fact = world.facts.remove(0);
            world.take_in(&fact);
        } else if let Some(at) = world.outbox.iter().position(|it| !running(&it.effect)) {
            let next = world.outbox.remove(at);
            world.run(&next.effect);
        } else {
            assert_eq!(check(&world.queue), [], "no violation before the change");
            return world;
        }
    }
}

fn single(prs: u32) -> World {
    let every = (0..prs).map(|_| [1].as_slice()).collect::<Vec<_>>();
    under_test(Settings::new(Mode::Single, 5).expect("valid settings"), &every)
}

fn parallel(targets: &[&[u32]]) -> World {
    under_test(Settings::new(Mode::Parallel, 8).expect("valid settings"), targets)
}

/// The parts of a queue, for changes by a test.
struct Parts {
    header: Header,
    entries: Vec<Entry>,
    runs: Vec<TestRun>,
}

impl Parts {
    fn entry(&mut self, pr: u32) -> &mut Entry {
        self.entries.iter_mut().find(|entry| entry.pr.0 == pr).expect("a live entry")
    }

    /// Changes what the candidate contains that this pull request is tested in.
    fn change_ahead(&mut self, pr: u32, change: impl FnOnce(&mut Vec<(RunId, PrNumber)>)) {
        let run = self.run(pr);
        let mut ahead = run.ahead.to_vec();
        change(&mut ahead);
        run.ahead = ahead.into();
    }

    /// The run that the entry of this pull request is in.
    fn run(&mut self, pr: u32) -> &mut TestRun {
        let id = self.entry(pr).state.run().expect("an entry with a run");
        self.runs.iter_mut().find(|run| run.id == id).expect("a run")
    }
}

fn changed(queue: &Queue, change: impl FnOnce(&mut Parts)) -> Queue {
    let mut parts = Parts {
        header: queue.header.clone(),
        entries: queue.entries_in_order().cloned().collect(),
        runs: queue.runs().cloned().collect(),
    };
    change(&mut parts);
    Queue::restore(parts.header, parts.entries, parts.runs)
}

fn broken(world: &World, change: impl FnOnce(&mut Parts)) -> Vec<Violation> {
    check(&changed(&world.queue, change))
}

fn texts(violations: &[Violation]) -> Vec<String> {
    violations.iter().map(|(id, text)| format!("{id}: {text}")).collect()
}

#[test]
fn a_candidate_contains_everything_ahead_in_the_order_of_the_line() {
    let world = single(3);
    let without =
        broken(&world, |parts| parts.change_ahead(3, |it| it.retain(|(_, pr)| pr.0 != 1)));
    assert_eq!(texts(&without), ["Q1: #3 is tested without #1 ahead of it"]);
    let swapped = broken(&world, |parts| parts.change_ahead(3, |it| it.swap(0, 1)));
    assert_eq!(texts(&swapped), ["Q1: #3 is tested on #1 out of order"]);
    let stranger = broken(&world, |parts| {
        let third = parts.run(3).id;
        parts.change_ahead(2, |it| it.push((third, PrNumber(3))));
    });
    assert_eq!(texts(&stranger), ["Q1: #2 is tested on #3 out of order"]);
}

#[test]
fn an_entry_held_by_a_conflict_is_not_missed_in_a_candidate() {
    let world = single(2);
    let held = broken(&world, |parts| {
        parts.change_ahead(2, Vec::clear);
        parts.entry(1).state = EntryState::Pending {
            reason: QueuedReason::NowReady,
            held_by: Some(PrNumber(2)),
            was_held_by: None,
        };
    });
    assert!(!held.iter().any(|(id, _)| *id == "Q1"), "{held:?}");
}

#[test]
fn an_entry_under_test_is_in_its_run() {
    let world = single(2);
    let elsewhere = broken(&world, |parts| {
        let first = parts.run(1).id;
        parts.entry(2).state = EntryState::Testing { run: first, was_held_by: None };
    });
    assert_eq!(texts(&elsewhere), ["Q1: #2 is in no run of its own"]);
    let in_the_next = broken(&world, |parts| {
        let second = parts.run(2).id;
        parts.entry(1).state = EntryState::Testing { run: second, was_held_by: None };
    });
    assert_eq!(in_the_next, [], "absolved by the run behind it");
}

#[test]
fn only_a_passed_candidate_lands_and_a_late_urgent_entry_does_not_stop_it() {
    let world = single(2);
    let landing = |parts: &mut Parts, passed: bool| {
        let runs = vec![parts.run(1).id];
        let (run, since) = (runs[0], parts.header.created_at);
        parts.header.landing = Some(Landing { run, runs, since, exact: true });
        if passed {
            parts.run(1).status = RunStatus::Passed;
            let reason = PassReason::OwnRun;
            parts.entry(1).state = EntryState::TestsPassed { run, reason };
        }
    };
    let untested = broken(&world, |parts| landing(parts, false));
    assert!(texts(&untested).contains(&"Q1: what is landing has not passed".to_owned()));
    assert_eq!(broken(&world, |parts| landing(parts, true)), []);
    let overtaken = broken(&world, |parts| {
        landing(parts, true);
        parts.entry(2).place = LinePosition::Front { number: 0 };
    });
    assert!(!texts(&overtaken).iter().any(|text| text.contains("#1 is tested")), "{overtaken:?}");
}

#[test]
fn a_candidate_contains_nothing_of_another_lane() {
    let world = parallel(&[&[1], &[2], &[1, 2], &[3]]);
    let foreign = broken(&world, |parts| {
        let first = parts.run(1).id;
        parts.change_ahead(4, |it| it.push((first, PrNumber(1))));
    });
    assert!(texts(&foreign).iter().any(|text| text.ends_with("contains #1 for nothing")));
    let linked = broken(&world, |parts| {
        let (first, second) = (parts.run(1).id, parts.run(2).id);
        assert_eq!(*parts.run(3).ahead, [(first, PrNumber(1)), (second, PrNumber(2))]);
    });
    assert_eq!(linked, []);
    let missed = broken(&world, |parts| parts.change_ahead(3, |it| it.retain(|(_, pr)| pr.0 != 2)));
    assert_eq!(texts(&missed), ["Q1: #3 is tested without #2 ahead of it"]);
    let link_left = broken(&world, |parts| {
        let (first, gone) = (parts.run(1).id, RunId(uuid::Uuid::from_u128(9)));
        parts.run(4).ahead = [(first, PrNumber(1)), (gone, PrNumber(7))].into();
    });
    assert!(
        !link_left.iter().any(|(id, _)| *id == "Q6"),
        "a pull request that left may have linked them"
    );
}

#[test]
fn members_of_a_batch_share_targets() {
    let settings = Settings {
        batch: true,
        batching_min_size: 2,
        ..Settings::new(Mode::Parallel, 4).expect("valid settings")
    };
    let world = under_test(settings, &[&[1], &[1], &[2]]);
    assert_eq!(
        world
            .queue
            .entry_of(PrNumber(1))
            .and_then(|it| it.state.run())
            .map(|run| { world.queue.run(run).expect("a run").group.len() }),
        Some(2)
    );
    let apart = broken(&world, |parts| {
        let targets = ReportedTargets::only(None, ["t9"]);
        parts.entry(2).targets = Some(std::sync::Arc::new(targets));
    });
    let text = "Q6: #1 and #2 share a batch but no target";
    assert_eq!(texts(&apart), [text, text], "once per member");
    let one_left = broken(&world, |parts| {
        let id = parts.entry(3).id;
        parts.entries.retain(|entry| entry.id != id);
        let first = parts.run(1).id;
        parts.change_ahead(1, |it| it.push((first, PrNumber(3))));
    });
    assert!(!one_left.iter().any(|(id, _)| *id == "Q6"), "{one_left:?}");
}

#[test]
fn a_lost_pull_request_is_detected() {
    let world = single(2);
    let lost = |parts: &[Violation]| texts(parts).contains(&"Q3: #2 is Testing".to_owned());
    let outside = broken(&world, |parts| parts.entry(2).place = LinePosition::Outside);
    assert!(lost(&outside), "{outside:?}");
    let stranger = broken(&world, |parts| {
        parts.entry(2).id = crate::ids::EntryId(uuid::Uuid::from_u128(77));
    });
    assert!(lost(&stranger), "{stranger:?}");
    let without_run = broken(&world, |parts| {
        let second = parts.run(2).id;
        parts.runs.retain(|run| run.id != second);
    });
    assert!(lost(&without_run), "{without_run:?}");
    let in_line = broken(&world, |parts| parts.entry(2).state = EntryState::NotReady);
    assert!(texts(&in_line).contains(&"Q3: #2 is NotReady".to_owned()), "{in_line:?}");
    let mut unlisted = world.queue.clone();
    let first = *unlisted.line.first().expect("an entry");
    unlisted.line.remove(&first);
    assert!(texts(&check(&unlisted)).contains(&"Q3: 1 in order, 2 live".to_owned()));
    let ended = broken(&world, |parts| {
        let by = parts.entry(2).submitted_by.clone();
        parts.entry(2).state =
            EntryState::Ended(Exit::Cancelled { reason: CancelReason::UserRequested, by });
    });
    assert!(texts(&ended).contains(&"Q3: #2 is Cancelled".to_owned()), "{ended:?}");
}

#[test]
fn a_waiting_entry_is_not_overtaken() {
    let world = single(3);
    let wait = |parts: &mut Parts, pr: u32| {
        let (since, entry) = (parts.header.created_at, parts.entry(pr));
        entry.state = EntryState::Pending {
            reason: QueuedReason::NowReady,
            held_by: None,
            was_held_by: None,
        };
        entry.place = LinePosition::Waiting { since, number: u64::from(pr), turn: 0 };
    };
    let overtaken = broken(&world, |parts| {
        wait(parts, 1);
        let (since, second) = (parts.header.created_at, parts.entry(2));
        second.place = LinePosition::Waiting { since, number: 2, turn: 0 };
    });
    assert!(texts(&overtaken).contains(&"Q4: #2 overtook #1".to_owned()), "{overtaken:?}");
    let urgent = broken(&world, |parts| {
        wait(parts, 3);
        parts.entry(2).place = LinePosition::Front { number: 1 };
    });
    assert!(!urgent.iter().any(|(id, _)| *id == "Q4"), "{urgent:?}");
}

#[test]
fn an_entry_is_tested_by_a_run_that_ends() {
    let world = single(2);
    let over = broken(&world, |parts| parts.run(2).status = RunStatus::Passed);
    assert!(
        texts(&over).contains(&"Q10: #2 is under test by a run that has ended".to_owned()),
        "{over:?}"
    );
}

#[test]
fn entries_that_hold_each_other_are_detected() {
    let world = single(3);
    let hold = |parts: &mut Parts, pr: u32, by: u32| {
        parts.entry(pr).state = EntryState::Pending {
            reason: QueuedReason::NowReady,
            held_by: Some(PrNumber(by)),
            was_held_by: None,
        };
    };
    let circle = broken(&world, |parts| {
        hold(parts, 1, 2);
        hold(parts, 2, 3);
        hold(parts, 3, 1);
    });
    assert_eq!(texts(&circle), ["Q10: #3 and #1 wait for each other"]);
    let chain = broken(&world, |parts| {
        hold(parts, 3, 1);
        hold(parts, 2, 1);
    });
    assert!(!chain.iter().any(|(id, _)| *id == "Q10"), "{chain:?}");
    let alone = broken(&world, |parts| hold(parts, 1, 1));
    assert!(alone.iter().any(|(id, _)| *id == "Q10"), "{alone:?}");
}

#[test]
fn a_reason_names_other_live_pull_requests() {
    let world = single(2);
    let holds = |prs: &[u32]| {
        let prs = prs.iter().copied().map(PrNumber).collect();
        let entry = world.queue.entry_of(PrNumber(2)).expect("a live entry");
        super::super::WaitReason::BehindPrs { prs, ahead: 1 }.holds(&world.queue, entry)
    };
    assert!(holds(&[1]));
    assert!(!holds(&[]), "no pull request");
    assert!(!holds(&[2]), "the entry itself");
    assert!(!holds(&[1, 9]), "a pull request that is not in the queue");
}

#[test]
fn a_run_that_nothing_needs_is_detected() {
    let world = single(2);
    let unused = broken(&world, |parts| {
        let run = parts.run(2);
        run.status = RunStatus::Passed;
        let id = run.id;
        let reason = QueuedReason::NowReady;
        parts.entry(2).state = EntryState::Pending { reason, held_by: None, was_held_by: None };
        assert!(parts.runs.iter().any(|run| run.id == id));
    });
    let kept = |it: &Violation| it.0 == "Q3" && it.1.ends_with("is kept for nothing");
    assert!(unused.iter().any(kept), "{unused:?}");
}

#[test]
fn a_batch_whose_member_has_left_may_contain_what_only_that_member_shared() {
    // #2 and #3 are a batch on top of #1, which only #2 shares a target with.
    let mut settings = Settings::new(Mode::Parallel, 8).expect("valid settings");
    settings.batch = true;
    settings.batching_min_size = 2;
    let world = under_test(settings, &[&[1, 9], &[9], &[1, 2], &[2]]);
    let batch = world.queue.runs().find(|run| run.group.len() == 2 && !run.ahead.is_empty());
    let Some(batch) = batch else { panic!("a batch on top of another") };
    let (link, other) = (batch.group[0].pr, batch.group[1].pr);
    let left = broken(&world, |parts| parts.entries.retain(|entry| entry.pr != link));
    let of_it = |it: &&Violation| it.0 == "Q6" && it.1.contains(&batch.id.to_string());
    assert_eq!(left.iter().find(of_it), None, "{other} was linked through {link}");
}
