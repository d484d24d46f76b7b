//! Q10, justified waiting: every live entry waits for something that exists and will end: a run, an
//! answer of the host, a deadline, a setting, an action of a user, or another entry that waits for
//! one of these.

use std::collections::BTreeMap;

use crate::ids::{PrNumber, RunId};

use super::lanes::{Absolver, absolver};
use super::{EntryState, Queue, RunStatus, WaitReason, view_queue};

/// Returns the entries that violate Q10, each with a description: their wait reason names nothing
/// that exists, or they wait for one another in a cycle.
pub fn unjustified(queue: &Queue) -> Vec<(PrNumber, String)> {
    let view = view_queue(queue);
    let waits: BTreeMap<PrNumber, &WaitReason> =
        view.entries.iter().filter_map(|it| Some((it.entry.pr, it.waits.as_ref()?))).collect();
    let mut found = Vec::new();
    for (pr, reason) in &waits {
        if let Some(why) = untrue(queue, *pr, reason) {
            found.push((*pr, why));
        }
    }
    if found.is_empty() {
        found.extend(circle(queue, &waits));
    }
    found
}

/// Describes why a wait reason does not hold for its entry, ignoring other entries; `None` if it
/// holds.
fn untrue(queue: &Queue, pr: PrNumber, reason: &WaitReason) -> Option<String> {
    let entry = queue.entry_of(pr)?;
    let holds = reason.holds(queue, entry);
    (!holds).then(|| format!("#{pr} is {} and waits for {reason:?}", entry.state.name().as_str()))
}

/// Finds a cycle of entries that wait for one another.
fn circle(queue: &Queue, waits: &BTreeMap<PrNumber, &WaitReason>) -> Option<(PrNumber, String)> {
    #[derive(Clone, Copy, PartialEq)]
    enum Seen {
        Open,
        Done,
    }
    let mut seen: BTreeMap<PrNumber, Seen> = BTreeMap::new();
    for start in waits.keys() {
        let mut path = vec![(*start, waits_on(queue, *start, waits))];
        while let Some((pr, next)) = path.last_mut() {
            seen.entry(*pr).or_insert(Seen::Open);
            match next.pop() {
                None => {
                    seen.insert(*pr, Seen::Done);
                    path.pop();
                }
                Some(other) => match seen.get(&other) {
                    Some(Seen::Done) => {}
                    Some(Seen::Open) => {
                        let text = format!("#{pr} and #{other} wait for each other");
                        return Some((*pr, text));
                    }
                    None => path.push((other, waits_on(queue, other, waits))),
                },
            }
        }
    }
    None
}

/// The entries that an entry waits for.
fn waits_on(queue: &Queue, pr: PrNumber, waits: &BTreeMap<PrNumber, &WaitReason>) -> Vec<PrNumber> {
    match waits.get(&pr) {
        Some(
            WaitReason::BehindPrs { prs, .. }
            | WaitReason::PredecessorTesting { prs }
            | WaitReason::SuccessorTesting { prs }
            | WaitReason::BatchBisected { prs },
        ) => prs.clone(),
        Some(WaitReason::ConflictWithAhead { pr }) => vec![*pr],
        Some(WaitReason::Dependencies { .. }) => {
            queue.entry_of(pr).map(|entry| entry.waits_for().collect()).unwrap_or_default()
        }
        Some(WaitReason::SuccessorWindow { .. }) => {
            let run = queue.entry_of(pr).and_then(|entry| queue.run(entry.state.run()?));
            match run.and_then(|run| absolver(queue, run)) {
                Some(Absolver::Next(next)) => vec![next],
                Some(Absolver::Running) | None => Vec::new(),
            }
        }
        Some(_) | None => Vec::new(),
    }
}

/// An answer that the queue waits for; the outbox must hold the effect that it answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Awaited {
    /// The candidate of this run.
    Candidate(RunId),
    /// The landing of this run.
    Landing(RunId),
}

impl Awaited {
    /// The run that waits.
    pub const fn run(self) -> RunId {
        match self {
            Self::Candidate(run) | Self::Landing(run) => run,
        }
    }
}

/// The answers of the host that a queue waits for.
pub fn awaited(queue: &Queue) -> Vec<Awaited> {
    let building = queue.runs().filter(|run| run.status == RunStatus::Building);
    let landing = queue.header.landing.as_ref().map(|landing| Awaited::Landing(landing.run));
    building.map(|run| Awaited::Candidate(run.id)).chain(landing).collect()
}

/// Finds an entry in TESTING whose run has ended.
pub(super) fn tested_by_a_run_that_ended(queue: &Queue) -> Option<PrNumber> {
    queue.entries_in_order().find_map(|entry| {
        let EntryState::Testing { run, .. } = &entry.state else { return None };
        let ends = queue.run(*run).is_some_and(|run| run.status.is_running());
        (!ends).then_some(entry.pr)
    })
}

#[cfg(test)]
mod tests {
    use super::super::{Effect, Mode, Settings};
    use super::*;
    use crate::testing::{Rules, World};

    /// A queue whose first pull request has a candidate that is not built yet.
    fn building() -> World {
        let settings = Settings::new(Mode::Single, 2).expect("valid settings");
        let mut world = World::new(settings, Rules::default());
        world.submit(1, None).expect("accepted");
        while !world.facts.is_empty() || !world.queue.runs().any(|_| true) {
            world.step();
        }
        world
    }

    #[test]
    fn a_reason_that_does_not_hold_is_untrue() {
        let world = building();
        let one = PrNumber(1);
        assert_eq!(unjustified(&world.queue), []);
        assert_eq!(untrue(&world.queue, one, &WaitReason::BuildingCandidate), None);
        for wrong in [
            WaitReason::Landing,
            WaitReason::Draft,
            WaitReason::SlotsFull { used: 0, limit: 2, ahead: 0 },
            WaitReason::ConflictWithAhead { pr: one },
            WaitReason::ConflictWithAhead { pr: PrNumber(2) },
        ] {
            assert!(untrue(&world.queue, one, &wrong).is_some(), "{wrong:?}");
        }
    }

    #[test]
    fn the_queue_waits_for_the_candidate_and_then_for_the_landing() {
        let mut world = building();
        let run = world.queue.runs().next().expect("a run").id;
        assert_eq!(awaited(&world.queue), [Awaited::Candidate(run)]);
        while !world.outbox.iter().any(|it| matches!(it.effect, Effect::Land(_))) {
            world.step();
        }
        assert_eq!(awaited(&world.queue), [Awaited::Landing(run)]);
    }
}
