//! What leaves the house for an event.

use uuid::Uuid;

use crate::ids::{BranchName, RepoName};
use crate::ports::{TestNumbers, TestRecord};
use crate::time::Timestamp;
use crate::{flaky, queue};
use flaky::{Incident, IncidentState};

/// A queue as the outside names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueuePlace {
    /// The repository.
    pub repo: RepoName,
    /// The target branch.
    pub branch: BranchName,
}

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
    /// Since when it is quarantined; `None` when it is not.
    pub quarantined_since: Option<Timestamp>,
}

/// A public event as it goes into the log: what leaves the house is made before the commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventRecord {
    /// Its id, the same wherever and however often it is told.
    pub id: Uuid,
    /// Its public name, such as `pull_request.merged`.
    pub kind: &'static str,
    /// When it happened.
    pub at: Timestamp,
    /// The payload as JSON.
    pub payload: String,
    /// The request that has caused it.
    pub request: Option<String>,
}

/// Writes payloads. They are written before the commit and kept with it, so that what is told is
/// what was true.
pub trait EventWriter: Send + Sync {
    /// The payload of a queue's event as JSON.
    fn queue_event(&self, place: &QueuePlace, event: &queue::Event) -> String;

    /// The payload of a test's event as JSON.
    fn test_event(&self, snapshot: &TestSnapshot, event: &flaky::Event) -> String;

    /// The payload of the event that an incident is new or has another state.
    fn incident_event(
        &self,
        repo: &RepoName,
        before: Option<IncidentState>,
        incident: &Incident,
    ) -> String;
}
