//! The test runs of a bisection, computed from the journal.

use std::collections::BTreeSet;

use crate::ids::{EntryId, RunId};

use super::{Move, PrState, QueuedReason};

/// The run of a failed batch, if the move begins its bisection. The parts of a batch are split by moves with
/// the same reason, which name a run of the bisection or none.
pub fn bisected_run(it: &Move) -> Option<RunId> {
    let is_start = it.reason == QueuedReason::BisectionRequired.into() && !it.bisection;
    it.run.filter(|_| is_start)
}

/// The runs of a batch's parts in the order of their starts, by the moves of its members since it failed,
/// oldest first. A member that was submitted again, or is tested in the line again, is no longer a part of it.
pub fn runs_of_parts(batch: RunId, mut members: BTreeSet<EntryId>, moves: &[Move]) -> Vec<RunId> {
    let (mut runs, mut seen) = (Vec::new(), BTreeSet::new());
    for it in moves.iter().filter(|it| it.run != Some(batch)) {
        if it.from.is_none() || (it.to == PrState::Testing && !it.bisection) {
            members.remove(&it.entry);
        }
        let run = it.run.filter(|_| it.bisection && members.contains(&it.entry));
        runs.extend(run.filter(|run| seen.insert(*run)));
    }
    runs
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::ids::PrNumber;
    use crate::queue::{Actor, Reason};
    use crate::time::{Span, Timestamp};

    const fn run(number: u128) -> RunId {
        RunId(Uuid::from_u128(number))
    }

    const fn entry(number: u128) -> EntryId {
        EntryId(Uuid::from_u128(number))
    }

    fn moved(of: u128, to: PrState, by: Option<u128>, bisection: bool) -> Move {
        Move {
            number: 7,
            ordinal: 0,
            at: Timestamp::from_unix_seconds(0),
            entry: entry(of),
            pr: PrNumber(1),
            from: Some(PrState::Pending),
            to,
            reason: Reason::Started,
            actor: Actor::Queue,
            run: by.map(run),
            bisection,
            after: Span::ZERO,
            details: Vec::new(),
        }
    }

    #[test]
    fn only_a_move_of_the_failed_batch_starts_a_bisection() {
        let reason: Reason = QueuedReason::BisectionRequired.into();
        let split = |by, bisection| Move { reason, ..moved(1, PrState::Pending, by, bisection) };
        assert_eq!(bisected_run(&split(Some(9), false)), Some(run(9)));
        assert_eq!(bisected_run(&split(Some(9), true)), None, "a part is split again");
        assert_eq!(
            bisected_run(&split(None, false)),
            None,
            "a part whose failure is implied is split"
        );
        assert_eq!(bisected_run(&moved(1, PrState::Pending, Some(9), false)), None);
    }

    #[test]
    fn a_member_that_has_returned_to_the_line_is_no_longer_a_part() {
        use PrState::{Pending, Testing, TestsPassed};
        let members = || BTreeSet::from([entry(1), entry(2), entry(3)]);
        let moves = [
            moved(1, Pending, Some(9), false),
            moved(1, Testing, Some(10), true),
            moved(2, Testing, Some(10), true),
            moved(3, Testing, Some(11), true),
            moved(1, TestsPassed, Some(10), true),
            // Both return, one of them in a new batch, which fails and is bisected.
            moved(2, Testing, Some(20), false),
            moved(2, Testing, Some(21), true),
            Move { from: None, ..moved(3, Pending, None, false) },
            moved(3, Testing, Some(22), true),
            moved(1, Testing, Some(12), true),
        ];
        let found = runs_of_parts(run(9), members(), &moves);
        assert_eq!(found, [run(10), run(11), run(12)]);
    }
}
