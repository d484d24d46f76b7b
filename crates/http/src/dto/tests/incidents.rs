//! Incidents on the wire.

use serde::{Deserialize, Serialize};
use signalbox_domain::flaky::{Incident, IncidentId};
use signalbox_domain::ids::RepoName;
use utoipa::ToSchema;

use super::super::field::{Errors, Field, object_form, shown};
use super::super::forms::Text;
use super::super::place::{RepoRef, Request, check_repository};
use super::super::words::{IncidentCauseWord, IncidentDecisionWord, IncidentStateWord};
use super::id;

/// Many tests that failed together.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({
    "id": "5a0d2f1c-4c3e-5f6b-8f6e-2f1d0c9b8a77", "status": "recovered",
    "cause": "failure_jump", "summary": "host db.internal", "failuresExcluded": true,
    "startedAt": "2026-01-31T12:00:00.000Z", "lastFailureAt": "2026-01-31T12:40:00.000Z",
    "statusSince": "2026-01-31T12:10:00.000Z", "uploads": 4, "failures": 301
}))]
pub(crate) struct IncidentReply {
    /// Its id.
    id: String,
    /// Its status.
    #[schema(value_type = IncidentStateWord)]
    status: &'static str,
    /// How it was recognized.
    #[schema(value_type = IncidentCauseWord)]
    cause: &'static str,
    /// What its failures have in common, or the most frequent failure.
    summary: String,
    /// Whether its failures feed neither monitors nor rates.
    failures_excluded: bool,
    /// The first failure, RFC 3339.
    started_at: String,
    /// The last upload with a failure, RFC 3339.
    last_failure_at: String,
    /// When the status last changed, RFC 3339.
    status_since: String,
    /// Uploads with a failure.
    uploads: u32,
    /// Failures: tests, counted once for each upload in which they failed.
    failures: u32,
    /// Who confirmed or dismissed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    decided_by: Option<String>,
    /// Why.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

impl IncidentReply {
    pub(crate) fn of(incident: &Incident) -> Self {
        let decision = incident.decision.as_ref();
        Self {
            id: incident.id.to_string(),
            status: incident.state.as_str(),
            cause: incident.cause.as_str(),
            summary: incident.summary.clone(),
            failures_excluded: incident.state.excludes(),
            started_at: incident.started_at.to_string(),
            last_failure_at: incident.last_at.to_string(),
            status_since: incident.since.to_string(),
            uploads: incident.uploads,
            failures: incident.failures,
            decided_by: decision.map(|it| it.by.full_name.clone()),
            reason: decision.and_then(|it| it.reason.clone()),
        }
    }
}

/// Incidents of a repository.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct IncidentsReply {
    /// The newest first, at most 100.
    pub(crate) incidents: Vec<IncidentReply>,
}

/// A decision about an incident.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({
    "repo": {"host": "github.com", "owner": "acme", "name": "calc"},
    "incidentId": "5a0d2f1c-4c3e-5f6b-8f6e-2f1d0c9b8a77", "decision": "confirm",
    "reason": "the database host was down"
}))]
pub(crate) struct DecideIncidentRequest {
    /// The repository.
    #[schema(value_type = RepoRef, required)]
    repo: Field<RepoRef>,
    /// The incident.
    #[schema(value_type = String, required, format = Uuid)]
    incident_id: Field<Text>,
    /// `confirm`: its failures stay excluded. `dismiss`: they count.
    #[schema(value_type = IncidentDecisionWord, required)]
    decision: Field<Text>,
    /// Why; at most 256 characters.
    #[schema(value_type = Option<String>, max_length = 256)]
    reason: Field<Text>,
}

impl Request for DecideIncidentRequest {
    type Checked = (RepoName, IncidentId, bool, Option<String>);

    fn check(self, errors: &mut Errors) -> Option<Self::Checked> {
        let repo = check_repository(self.repo, errors);
        let incident = id(errors, "/incidentId", self.incident_id);
        let decision = errors.required("/decision", self.decision).and_then(|Text(word)| {
            let confirm = match word.as_str() {
                "confirm" => Ok(true),
                "dismiss" => Ok(false),
                _ => Err(format!("must be confirm or dismiss, but is {}", shown(&word))),
            };
            errors.keep("/decision", confirm)
        });
        let reason = errors.optional("/reason", self.reason).map(|it| it.0);
        Some((repo?, IncidentId(incident?), decision?, reason))
    }
}

object_form!(DecideIncidentRequest);
