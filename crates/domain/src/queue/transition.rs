//! What a decision leads to: a value that is committed whole or not at all.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::ids::PrNumber;
use crate::time::Timestamp;

use super::{
    Decision, Entry, Event, Input, JournalRecord, NumberedEffect, Queue, ReportedTargets, TestRun,
};

/// The rows that a transition touches. Only these are written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Entries as they are now; those that have ended among them.
    pub entries: Vec<Arc<Entry>>,
    /// Runs as they are now; those that no longer matter to a live entry among them.
    pub runs: Vec<Arc<TestRun>>,
    /// Targets as they were reported.
    pub targets: Vec<(PrNumber, Arc<ReportedTargets>)>,
}

/// The outcome of a decision. It holds once it is committed, not before.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "a transition that is not committed is lost"]
#[non_exhaustive]
pub struct Transition {
    /// The state after.
    pub queue: Queue,
    /// What changed.
    pub changes: Changes,
    /// What must be done outside.
    pub effects: Vec<NumberedEffect>,
    /// What was decided, and why.
    pub decisions: Vec<Decision>,
    /// What is told to the outside.
    pub events: Vec<Event>,
    /// Pull requests whose state, as hosts show it to people, may be another one than before.
    pub shown: BTreeSet<PrNumber>,
}

impl Transition {
    /// Whether it differs from the state before in anything worth a commit.
    pub fn is_empty(&self) -> bool {
        self.changes == Changes::default()
            && self.effects.is_empty()
            && self.events.is_empty()
            && self.decisions.iter().all(|decision| matches!(decision, Decision::Ignored { .. }))
    }

    /// The journal's record of it.
    pub fn record(&self, input: Input, at: Timestamp) -> JournalRecord {
        JournalRecord {
            number: self.queue.header.sequence,
            at,
            input,
            decisions: self.decisions.clone(),
        }
    }
}
