//! Requests and replies about flaky tests.

mod ci_run;
mod commands;
mod decisions;
mod evidence;
mod imports;
mod incidents;
mod lists;
mod monitor_change;
mod monitor_parameters;
mod monitor_requests;
mod monitors;
mod quarantined;
mod run_failures;
mod settings;
mod test_case;

pub(crate) use ci_run::{CAUSES, CONCLUSIONS, CiRunReply, CiRunRequest, PROVIDERS};
pub(crate) use commands::{
    FlagRequest, HistoryRequest, MuteRequest, OverrideRequest, TicketRequest,
};
pub(crate) use decisions::{HistoryReply, SettingsHistoryReply, decision};
pub(crate) use imports::FinishedImportReply;
pub(crate) use incidents::{DecideIncidentRequest, IncidentReply, IncidentsReply};
pub(crate) use lists::{
    DetailsRequest, FailingRequest, Listing, QuarantinedRequest, RepositoryRequest,
    UnhealthyRequest,
};
pub(crate) use monitor_parameters::{DescribeParameters, WithParameters};
pub(crate) use monitor_requests::{
    CreateMonitorRequest, MonitorRequest, PreviewMonitorRequest, UpdateMonitorRequest,
};
pub(crate) use monitors::{MonitorReply, MonitorsReply, PreviewReply};
pub(crate) use run_failures::{RunFailureReply, RunFailuresReply, RunFailuresRequest};
pub(crate) use settings::{FlakySettingsReply, UpdateSettingsRequest};
pub use test_case::TestLinks;
pub(crate) use test_case::{
    FailingReply, QuarantinedReply, TestCaseReply, TestReply, UnhealthyReply,
};

use signalbox_domain::ids::OrgSlug;
use signalbox_domain::time::Timestamp;

use super::field::{Errors, Field, shown};
use super::forms::Text;

/// Reads a time.
pub(super) fn time(errors: &mut Errors, pointer: &str, field: Field<Text>) -> Option<Timestamp> {
    let Text(text) = errors.required(pointer, field)?;
    let wrong = || format!("must be a time like 2026-01-31T12:00:00Z, but is {}", shown(&text));
    errors.keep(pointer, Timestamp::parse(&text).ok_or_else(wrong))
}

/// Reads the id of a test or a monitor.
pub(super) fn id(errors: &mut Errors, pointer: &str, field: Field<Text>) -> Option<uuid::Uuid> {
    let Text(text) = errors.required(pointer, field)?;
    let wrong = |_| format!("must be a UUID, but is {}", shown(&text));
    errors.keep(pointer, text.parse().map_err(wrong))
}

/// The organization that a request names; a malformed slug matches no organization.
#[derive(Debug)]
pub(crate) struct NamedOrg(Option<OrgSlug>);

impl NamedOrg {
    /// Whether it is that one.
    pub(crate) fn is(&self, slug: &OrgSlug) -> bool {
        self.0.as_ref() == Some(slug)
    }
}

/// Reads the slug of an organization.
pub(super) fn slug(errors: &mut Errors, field: Field<Text>) -> Option<NamedOrg> {
    let Text(text) = errors.required("/org_url_slug", field)?;
    Some(NamedOrg(OrgSlug::new(text).ok()))
}
