//! Transitions: the outcome of a step, committed whole or not at all.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::ids::PrNumber;
use crate::time::Timestamp;

use super::{
    Decision, Entry, Event, Input, JournalRecord, NumberedEffect, Queue, ReportedTargets, TestRun,
};

/// The rows that a transition changes. Only these are written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Changed entries, including ended ones.
    pub entries: Vec<Arc<Entry>>,
    /// Changed runs, including runs that no live entry refers to any more.
    pub runs: Vec<Arc<TestRun>>,
    /// Newly reported targets.
    pub targets: Vec<(PrNumber, Arc<ReportedTargets>)>,
}

/// The outcome of a step. It takes effect when it is committed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "a transition that is not committed is lost"]
#[non_exhaustive]
pub struct Transition {
    /// The state after the step.
    pub queue: Queue,
    /// The changed rows.
    pub changes: Changes,
    /// The effects to run after the commit.
    pub effects: Vec<NumberedEffect>,
    /// The decisions, with their reasons.
    pub decisions: Vec<Decision>,
    /// The public events.
    pub events: Vec<Event>,
    /// The pull requests whose state on the host (status, comment, labels) may have changed.
    pub shown: BTreeSet<PrNumber>,
}

impl Transition {
    /// Whether nothing changed that must be committed.
    pub fn is_empty(&self) -> bool {
        self.changes == Changes::default()
            && self.effects.is_empty()
            && self.events.is_empty()
            && self.decisions.iter().all(|decision| matches!(decision, Decision::Ignored { .. }))
    }

    /// The journal record of the step.
    pub fn record(&self, input: Input, at: Timestamp) -> JournalRecord {
        JournalRecord {
            number: self.queue.header.sequence,
            at,
            input,
            decisions: self.decisions.clone(),
        }
    }
}
