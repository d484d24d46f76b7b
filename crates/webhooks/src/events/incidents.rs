//! Events of incidents: many tests that fail together.

use schemars::JsonSchema;
use serde::Serialize;
use signalbox_domain::flaky::{INCIDENT_CHANGED, Incident, IncidentState};
use signalbox_domain::ids::RepoName;

use super::catalog::EventType;
use super::shapes::{Id, IncidentCauseWord, IncidentStateWord, Time, Url};
use super::test_case::repository_url;
use super::{PublicEvent, public_event};

/// The events that are declared here.
pub(super) static EVENTS: &[EventType] = &[EventType::of::<IncidentStatusChanged>()];

public_event! {
    /// An incident was recognized, or its status changed: its tests passed again, it is a regression,
    /// or a user confirmed or dismissed it.
    IncidentStatusChanged = INCIDENT_CHANGED;
    {
        timestamp: Time,
        incident: KnownIncident,
        repository: IncidentRepository,
    }
    optional {
        previous_status: IncidentStateWord,
    }
}

/// An incident.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct KnownIncident {
    id: Id,
    status: IncidentStateWord,
    cause: IncidentCauseWord,
    summary: String,
    started_at: Time,
    last_failure_at: Time,
    uploads: u32,
    failures: u32,
    failures_excluded: bool,
}

/// The repository of an incident.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct IncidentRepository {
    id: Id,
    html_url: Url,
}

/// What leaves the house for an event.
pub(super) fn payload(
    repo: &RepoName,
    before: Option<IncidentState>,
    incident: &Incident,
) -> String {
    IncidentStatusChanged {
        name: IncidentStatusChanged::NAME,
        timestamp: incident.since.into(),
        incident: KnownIncident {
            id: Id(incident.id.to_string()),
            status: IncidentStateWord(incident.state.as_str()),
            cause: IncidentCauseWord(incident.cause.as_str()),
            summary: incident.summary.clone(),
            started_at: incident.started_at.into(),
            last_failure_at: incident.last_at.into(),
            uploads: incident.uploads,
            failures: incident.failures,
            failures_excluded: incident.state.excludes(),
        },
        repository: IncidentRepository {
            id: Id(incident.repo.to_string()),
            html_url: repository_url(repo),
        },
        previous_status: before.map(|it| IncidentStateWord(it.as_str())),
    }
    .payload()
}
