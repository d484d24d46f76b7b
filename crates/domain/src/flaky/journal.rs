//! The journal of a test case: every input that changed it, in order, with what was decided.
//!
//! The planner is deterministic, so folding the inputs gives the state (F4).

use crate::time::Timestamp;

use super::{Command, Decision, Fact, Settings, TestCase, absorb, decide};

/// A command or a fact.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Input {
    /// A command that was not refused.
    Command(Command),
    /// Something that happened.
    Fact(Fact),
}

/// One step of a test case.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct JournalRecord {
    /// The test's sequence number after the step; it grows from record to record.
    pub number: u64,
    /// When.
    pub at: Timestamp,
    /// What came in.
    pub input: Input,
    /// What was decided.
    pub decisions: Vec<Decision>,
}

/// The state that a new test case comes to by these inputs, each under the settings of its time.
///
/// A command that is refused on the way is skipped, as it was then.
pub fn fold<'a>(
    new: TestCase,
    inputs: impl IntoIterator<Item = (Timestamp, &'a Settings, &'a Input)>,
) -> TestCase {
    inputs.into_iter().fold(new, |test, (at, settings, input)| match input {
        Input::Command(command) => match decide(&test, settings, command, at) {
            Ok(transition) => transition.test,
            Err(_) => test,
        },
        Input::Fact(fact) => absorb(&test, settings, fact, at).test,
    })
}
