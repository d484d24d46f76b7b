//! Why the planner did what it did: product, not debug output. Decisions are kept in the journal;
//! timelines and metrics are made from them.

use crate::ids::{EntryId, PrNumber, RunId};
use crate::time::Timestamp;

use super::{PrState, QueueStateName};
use crate::words::words;

words!(
    /// Why a fact changed nothing.
    IgnoredBecause {
        /// It is about a pull request that is not in the queue.
        NoSuchEntry = "NO_SUCH_ENTRY",
        /// It is about a run that has ended or was never started.
        NoSuchRun = "NO_SUCH_RUN",
        /// It is about a commit that is no longer under test.
        Superseded = "SUPERSEDED",
        /// It says what is known already.
        Known = "KNOWN",
        /// It names a pull request or a run that has no part in the run that it is about.
        NotOfRun = "NOT_OF_RUN",
        /// No landing of that run is under way.
        NoSuchLanding = "NO_SUCH_LANDING",
    }
);

/// One thing that the planner decided.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Decision {
    /// An entry changed its state.
    Moved {
        /// Which entry.
        entry: EntryId,
        /// Its pull request.
        pr: PrNumber,
        /// The state before; `None` for a submission.
        from: Option<PrState>,
        /// The state after.
        to: PrState,
        /// The reason's word, upper case.
        reason: String,
        /// Who caused it.
        actor: String,
        /// The run that it is about.
        run: Option<RunId>,
        /// Whether that run belongs to a bisection.
        bisection: bool,
        /// How long the entry was in the state before.
        after_micros: i64,
        /// When it entered the line, for the time in queue.
        entered_line_at: Option<Timestamp>,
        /// Particulars: failed statuses, conflicting paths, culprits.
        details: Vec<String>,
    },
    /// A live entry was changed in place.
    Changed {
        /// Its pull request.
        pr: PrNumber,
        /// What was changed, and to what.
        what: String,
    },
    /// A run was given up.
    RunCancelled {
        /// Which run.
        run: RunId,
        /// Why.
        reason: String,
    },
    /// A failed batch is split in two; the right part is tested on top of the left one.
    Bisected {
        /// The failed run; `None` when the failure followed from other runs.
        run: Option<RunId>,
        /// The left part.
        left: Vec<PrNumber>,
        /// The right part.
        right: Vec<PrNumber>,
    },
    /// Nothing was heard of required statuses for too long.
    StatusesSilent {
        /// Of which run.
        run: RunId,
        /// Their names.
        names: Vec<String>,
    },
    /// The queue changed its state.
    QueueMoved {
        /// Before.
        from: QueueStateName,
        /// After.
        to: QueueStateName,
        /// Who caused it.
        actor: String,
        /// Why, if it was said.
        reason: Option<String>,
    },
    /// Settings were changed.
    SettingsChanged {
        /// Who did it.
        actor: String,
    },
    /// The landed tree is not the tested one: a breach of Q1 outside the queue's power.
    LandedTreeDiffers {
        /// Of which run.
        run: RunId,
        /// What was tested.
        tested: String,
        /// What landed.
        landed: String,
    },
    /// A fact changed nothing.
    Ignored {
        /// Why.
        because: IgnoredBecause,
    },
}
