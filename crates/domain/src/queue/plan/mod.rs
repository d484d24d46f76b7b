//! The planner.

use crate::time::Timestamp;

use super::{Command, Fact, Queue, Refusal, Transition};

/// Answers a command.
pub fn decide(_queue: &Queue, _command: &Command, _at: Timestamp) -> Result<Transition, Refusal> {
    unimplemented!()
}

/// Takes in a fact.
pub fn absorb(_queue: &Queue, _fact: &Fact, _at: Timestamp) -> Transition {
    unimplemented!()
}

/// When time alone changes something.
pub fn next_deadline(_queue: &Queue) -> Option<Timestamp> {
    None
}
