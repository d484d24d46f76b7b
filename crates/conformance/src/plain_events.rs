//! Plain payloads for tests: one line of text per event.

use signalbox_domain::flaky::{
    IMPORT_FINISHED, INCIDENT_CHANGED, ImportSummary, Incident, IncidentState,
};
use signalbox_domain::ids::{RepoId, RepoName};
use signalbox_domain::ports::{EventWriter, QueuePlace, TestSnapshot};
use signalbox_domain::queue::Subject;
use signalbox_domain::time::Timestamp;
use signalbox_domain::{flaky, queue};

/// Renders the state at the time of an event as one line of text.
#[derive(Clone, Copy, Debug)]
pub struct PlainEvents;

impl EventWriter for PlainEvents {
    fn queue_event(&self, place: &QueuePlace, event: &queue::Event) -> String {
        let about = match &event.subject {
            Subject::PullRequest { pr, .. } => pr.to_string(),
            Subject::Batch { prs, together } => format!("{} of {}", prs.len(), together.len()),
            Subject::TestRun { prs, checks } => format!("{} of {}", checks.join(", "), prs.len()),
            Subject::Composition { mismatch, .. } => mismatch.paths.join(", "),
            Subject::Queue { from, to, .. } => format!("{} to {}", from.as_str(), to.as_str()),
        };
        format!("{} {about} for {} of {}", event.kind.as_str(), place.branch, place.repo)
    }

    fn test_event(&self, test: &TestSnapshot, event: &flaky::Event) -> String {
        format!(
            "{} {} {} of {} failed, {} pull requests",
            event.kind.name(),
            test.record.test.standing.value.as_str(),
            test.numbers.failures_7d,
            test.numbers.runs_7d,
            test.numbers.pull_requests_7d.len()
        )
    }

    fn incident_event(
        &self,
        repo: &RepoName,
        before: Option<IncidentState>,
        incident: &Incident,
    ) -> String {
        let before = before.map_or("new", IncidentState::as_str);
        let state = incident.state.as_str();
        format!("{} of {repo} {before} {state}, {} failures", INCIDENT_CHANGED, incident.failures)
    }

    fn import_event(
        &self,
        (_, repo): (RepoId, &RepoName),
        summary: &ImportSummary,
        _: Timestamp,
    ) -> String {
        let uploads = summary.imported.map_or(0, |it| it.uploads);
        let ImportSummary { flaky, broken, .. } = summary;
        format!("{IMPORT_FINISHED} of {repo}: {uploads} uploads, {flaky} flaky, {broken} broken")
    }
}
