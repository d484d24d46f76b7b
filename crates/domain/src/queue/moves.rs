//! Changes of state as the journal keeps them: what timelines, results and estimates are made from.

use crate::ids::{EntryId, PrNumber, RunId};
use crate::time::{Span, Timestamp};

use super::{Actor, Decision, PrState, Reason};

/// A change of an entry's state, and where it stands in the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Move {
    /// The number of the journal's record.
    pub number: u64,
    /// Its place within that record; later changes have higher ones.
    pub ordinal: u64,
    /// When.
    pub at: Timestamp,
    /// The entry.
    pub entry: EntryId,
    /// Its pull request.
    pub pr: PrNumber,
    /// The state before; `None` for a submission.
    pub from: Option<PrState>,
    /// The state after.
    pub to: PrState,
    /// Why.
    pub reason: Reason,
    /// Who caused it.
    pub actor: Actor,
    /// The run that it is about.
    pub run: Option<RunId>,
    /// Whether that run belongs to a bisection.
    pub bisection: bool,
    /// How long the entry was in the state before.
    pub after: Span,
    /// Particulars: failed statuses, conflicting paths.
    pub details: Vec<String>,
}

impl Move {
    /// Takes it out of a decision. `None` when that is about something else.
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
