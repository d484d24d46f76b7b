//! What leaves the house for an event of a test.

use crate::flaky::Event;
use crate::ids::RepoName;

use super::{TestNumbers, TestRecord};

/// A test as the outside sees it at one time.
#[derive(Clone, Debug, PartialEq)]
pub struct TestSnapshot {
    /// The repository.
    pub repo: RepoName,
    /// The test.
    pub record: TestRecord,
    /// What is counted of it.
    pub numbers: TestNumbers,
    /// Whether it is quarantined.
    pub quarantined: bool,
}

/// Writes payloads. They are written before the commit and kept with it, so that what is told is
/// what was true.
pub trait TestEventWriter: Send + Sync {
    /// The payload of an event as JSON.
    fn payload(&self, snapshot: &TestSnapshot, event: &Event) -> String;
}
