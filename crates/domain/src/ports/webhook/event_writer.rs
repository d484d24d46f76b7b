//! The published payloads of events.

use uuid::Uuid;

use crate::ids::{BranchName, RepoId, RepoName};
use crate::ports::{TestNumbers, TestRecord};
use crate::time::Timestamp;
use crate::{flaky, queue};
use flaky::{ImportSummary, Incident, IncidentState};

/// A queue as clients name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueuePlace {
    /// The repository.
    pub repo: RepoName,
    /// The target branch.
    pub branch: BranchName,
}

/// A test as clients see it at one time.
#[derive(Clone, Debug, PartialEq)]
pub struct TestSnapshot {
    /// The repository.
    pub repo: RepoName,
    /// The test.
    pub record: TestRecord,
    /// Its counts of runs and failures.
    pub numbers: TestNumbers,
    /// Whether it is quarantined.
    pub quarantined: bool,
    /// When it was quarantined; `None` if it is not.
    pub quarantined_since: Option<Timestamp>,
}

/// A public event to append to the log, with its rendered payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventRecord {
    /// Its id, the same in every delivery and read.
    pub id: Uuid,
    /// Its public name, such as `pull_request.merged`.
    pub kind: &'static str,
    /// When it happened.
    pub at: Timestamp,
    /// The payload as JSON.
    pub payload: String,
    /// The id of the request that caused it.
    pub request: Option<String>,
}

/// Renders payloads. They are rendered before the commit and stored with it, so that an event
/// describes the state at its time.
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

    /// The payload of the event that an import is finished. `repo` is the repository's id and `at`
    /// the time of the summary.
    fn import_event(
        &self,
        repo: (RepoId, &RepoName),
        summary: &ImportSummary,
        at: Timestamp,
    ) -> String;
}
