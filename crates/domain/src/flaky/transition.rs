//! What a decision about a test case leads to: a value that is committed whole or not at all.

use crate::time::Timestamp;

use super::{Decision, Event, Input, JournalRecord, TestCase};

/// The outcome of a decision. It holds once it is committed, not before.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "a transition that is not committed is lost"]
#[non_exhaustive]
pub struct Transition {
    /// The state after.
    pub test: TestCase,
    /// What was decided, and why.
    pub decisions: Vec<Decision>,
    /// The public events.
    pub events: Vec<Event>,
}

impl Transition {
    /// Whether it differs from the state before in nothing worth a commit. The time of a
    /// measurement that changed nothing is not.
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
            && self.decisions.iter().all(|decision| matches!(decision, Decision::Ignored { .. }))
    }

    /// The journal's record of it.
    pub fn record(&self, input: Input, at: Timestamp) -> JournalRecord {
        JournalRecord { number: self.test.sequence, at, input, decisions: self.decisions.clone() }
    }
}
