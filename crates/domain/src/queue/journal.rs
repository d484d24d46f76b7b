//! The journal: every input that changed a queue, in order, with what was decided.
//!
//! The planner is deterministic, so folding the inputs gives the state (Q9).

use crate::time::Timestamp;

use super::{Command, Decision, Fact, Queue, absorb, decide};

/// A command or a fact.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Input {
    /// A command that was not refused.
    Command(Command),
    /// A fact, also one that was ignored.
    Fact(Fact),
}

impl Input {
    /// A short name for logs and metrics.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Command(command) => command.name(),
            Self::Fact(fact) => fact.name(),
        }
    }
}

/// One step of a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct JournalRecord {
    /// The queue's sequence number after the step; it grows from record to record.
    pub number: u64,
    /// The time of the step.
    pub at: Timestamp,
    /// The command or fact.
    pub input: Input,
    /// The decisions, in order.
    pub decisions: Vec<Decision>,
}

/// Replays inputs on a new queue and returns the resulting state.
///
/// A refused command changes nothing, in a replay as at the first time.
pub fn fold<'a>(new: Queue, records: impl IntoIterator<Item = &'a (Timestamp, Input)>) -> Queue {
    records.into_iter().fold(new, |queue, (at, input)| match input {
        Input::Command(command) => match decide(&queue, command, *at) {
            Ok(transition) => transition.queue,
            Err(_) => queue,
        },
        Input::Fact(fact) => absorb(&queue, fact, *at).queue,
    })
}
