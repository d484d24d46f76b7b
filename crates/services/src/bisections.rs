//! How a failed batch was bisected, for display.

use std::collections::BTreeSet;

use signalbox_domain::ids::{EntryId, RunId};
use signalbox_domain::ports::{HistoryStore, QueueRef};
use signalbox_domain::queue::{Move, PrState, QueuedReason, TestRun};

use super::Error;

/// The largest batch whose bisection is read.
const MAX_MEMBERS: usize = 100;
/// The most runs of parts that are read, the last ones; a batch of 100 has at most 198 unless some are
/// started again.
const MAX_PARTS: usize = 200;

/// A failed batch and the parts of it that were tested.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bisection {
    /// The run that failed.
    pub batch: TestRun,
    /// The runs of its parts, in the order in which they were started.
    pub parts: Vec<TestRun>,
}

/// The last bisection among the moves of an entry, which are ordered newest first. `None` if there was none,
/// or if its batch had more than 100 pull requests.
pub(super) async fn last(
    history: &dyn HistoryStore,
    queue: QueueRef,
    moves: &[Move],
) -> Result<Option<Bisection>, Error> {
    let Some((number, run)) = moves.iter().find_map(start) else { return Ok(None) };
    let found = history.runs(queue, &[run]).await?.into_iter().next();
    let Some(batch) = found.filter(|it| (2..=MAX_MEMBERS).contains(&it.group.len())) else {
        return Ok(None);
    };
    let members: BTreeSet<EntryId> = batch.group.iter().map(|it| it.entry).collect();
    let entries: Vec<EntryId> = members.iter().copied().collect();
    let moves = history.moves_from(queue, &entries, number).await?;
    let runs = runs_of_parts(run, members.clone(), &moves);
    let runs = runs.get(runs.len().saturating_sub(MAX_PARTS)..).unwrap_or_default();
    let mut parts = history.runs(queue, runs).await?;
    parts.retain(|it| it.group.iter().all(|member| members.contains(&member.entry)));
    Ok(Some(Bisection { batch, parts }))
}

/// The journal's number and the run, if the move begins the bisection of a failed batch. The parts of a
/// batch are split by moves with the same reason, which name a run of the bisection or none.
fn start(it: &Move) -> Option<(u64, RunId)> {
    let is_start = it.reason == QueuedReason::BisectionRequired.into() && !it.bisection;
    Some((it.number, it.run.filter(|_| is_start)?))
}

/// The runs of a batch's parts, by the moves of its members since it failed, oldest first. A member that was
/// submitted again, or is tested in the line again, is no longer a part of it.
fn runs_of_parts(batch: RunId, mut members: BTreeSet<EntryId>, moves: &[Move]) -> Vec<RunId> {
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
    use signalbox_domain::ids::PrNumber;
    use signalbox_domain::queue::{Actor, Reason};
    use signalbox_domain::time::{Span, Timestamp};
    use uuid::Uuid;

    use super::*;

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
        assert_eq!(start(&split(Some(9), false)), Some((7, run(9))));
        assert_eq!(start(&split(Some(9), true)), None, "a part is split again");
        assert_eq!(start(&split(None, false)), None, "a part whose failure is implied is split");
        assert_eq!(start(&moved(1, PrState::Pending, Some(9), false)), None);
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
