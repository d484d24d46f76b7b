//! Changes of state as the journal keeps them. Timelines, test results and estimates are computed
//! from them.

use crate::ids::{EntryId, PrNumber, RunId};
use crate::time::{Span, Timestamp};

use super::{Actor, Decision, PrState, Reason};

/// A change of an entry's state and its position in the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Move {
    /// The number of the journal's record.
    pub number: u64,
    /// Its place within that record; later changes have higher ones.
    pub ordinal: u64,
    /// The time of the change.
    pub at: Timestamp,
    /// The entry.
    pub entry: EntryId,
    /// Its pull request.
    pub pr: PrNumber,
    /// The state before; `None` for a submission.
    pub from: Option<PrState>,
    /// The state after.
    pub to: PrState,
    /// Why the state changed.
    pub reason: Reason,
    /// Who caused the change.
    pub actor: Actor,
    /// The run that caused the change, or that the entry is now in.
    pub run: Option<RunId>,
    /// Whether that run belongs to a bisection.
    pub bisection: bool,
    /// How long the entry was in the state before.
    pub after: Span,
    /// Details: failed statuses, conflicting paths.
    pub details: Vec<String>,
}

impl Move {
    /// Converts a decision; `None` unless it is a [`Decision::Moved`].
    pub fn of(number: u64, ordinal: u64, at: Timestamp, decision: &Decision) -> Option<Self> {
        let Decision::Moved(moved) = decision else { return None };
        Some(Self {
            number,
            ordinal,
            at,
            entry: moved.entry,
            pr: moved.pr,
            from: moved.from,
            to: moved.to,
            reason: moved.reason,
            actor: moved.actor.clone(),
            run: moved.run,
            bisection: moved.bisection,
            after: Span::from_micros(moved.after_micros),
            details: moved.details.clone(),
        })
    }

    /// Its place in the queue's history: later changes have higher ones.
    pub const fn place(&self) -> (u64, u64) {
        (self.number, self.ordinal)
    }
}
