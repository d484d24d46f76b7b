//! Requests that change a test.

use serde::Deserialize;
use signalbox_domain::flaky::{MonitorId, MuteLength, QuarantineOverride, TestId};
use signalbox_domain::ids::RepoName;
use signalbox_domain::time::Timestamp;
use utoipa::ToSchema;

use super::super::field::{Errors, Field, object_form, shown};
use super::super::forms::{Count, Flag, Text};
use super::super::place::{RepoRef, Request, check_repository};
use super::super::words::{MuteLengthWord, QuarantineOverrideWord};
use super::{id, time};

/// The most characters of a ticket's id and of single fields of a CI run.
const MAX_TEXT: usize = 1_000;

/// Reads a text that is neither empty nor too long.
pub(super) fn text(errors: &mut Errors, pointer: &str, field: Field<Text>) -> Option<String> {
    let Text(text) = errors.required(pointer, field)?;
    let good = !text.is_empty() && text.chars().count() <= MAX_TEXT;
    errors.keep(pointer, good.then_some(text).ok_or("must have 1 to 1000 characters"))
}

/// A ticket for a test.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(example = json!({
    "repo": {"host": "github.com", "owner": "acme", "name": "calc"},
    "test_case_id": "06cb6db5-f807-5198-b072-af67a0636f8a", "external_ticket_id": "KAN-123"
}))]
pub(crate) struct TicketRequest {
    /// The repository.
    #[schema(value_type = RepoRef, required)]
    repo: Field<RepoRef>,
    /// The test.
    #[schema(value_type = String, required, format = Uuid)]
    test_case_id: Field<Text>,
    /// The ticket: its key, id or URL.
    #[schema(value_type = String, required, min_length = 1, max_length = 1000)]
    external_ticket_id: Field<Text>,
}

impl Request for TicketRequest {
    type Checked = (RepoName, TestId, String);

    fn check(self, errors: &mut Errors) -> Option<Self::Checked> {
        let repo = check_repository(self.repo, errors);
        let test = id(errors, "/test_case_id", self.test_case_id);
        let ticket = text(errors, "/external_ticket_id", self.external_ticket_id);
        Some((repo?, TestId(test?), ticket?))
    }
}

/// A request to set or remove the flag of a test.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({
    "repo": {"host": "github.com", "owner": "acme", "name": "calc"},
    "testId": "06cb6db5-f807-5198-b072-af67a0636f8a", "flagged": true,
    "reason": "fails on Mondays"
}))]
pub(crate) struct FlagRequest {
    /// The repository.
    #[schema(value_type = RepoRef, required)]
    repo: Field<RepoRef>,
    /// The test.
    #[schema(value_type = String, required, format = Uuid)]
    test_id: Field<Text>,
    /// `true` flags the test as flaky, `false` removes the flag.
    #[schema(value_type = bool, required)]
    flagged: Field<Flag>,
    /// The reason; at most 256 characters.
    #[schema(value_type = Option<String>, max_length = 256)]
    reason: Field<Text>,
}

impl Request for FlagRequest {
    type Checked = (RepoName, TestId, bool, Option<String>);

    fn check(self, errors: &mut Errors) -> Option<Self::Checked> {
        let repo = check_repository(self.repo, errors);
        let test = id(errors, "/testId", self.test_id);
        let flagged = errors.required("/flagged", self.flagged);
        let reason = errors.optional("/reason", self.reason).map(|it| it.0);
        Some((repo?, TestId(test?), flagged?.0, reason))
    }
}

/// A request to mute a monitor for a test.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({
    "repo": {"host": "github.com", "owner": "acme", "name": "calc"},
    "testId": "06cb6db5-f807-5198-b072-af67a0636f8a",
    "monitorId": "0b7d6f5e-6f0e-4f2a-9d58-1d3f6f0f8a11", "length": "24h", "reason": "known"
}))]
pub(crate) struct MuteRequest {
    /// The repository.
    #[schema(value_type = RepoRef, required)]
    repo: Field<RepoRef>,
    /// The test.
    #[schema(value_type = String, required, format = Uuid)]
    test_id: Field<Text>,
    /// The monitor.
    #[schema(value_type = String, required, format = Uuid)]
    monitor_id: Field<Text>,
    /// `1h`, `4h`, `24h`, `7d`, `30d` or `forever`; `none` ends a mute.
    #[schema(value_type = MuteLengthWord, required)]
    length: Field<Text>,
    /// The reason; at most 256 characters.
    #[schema(value_type = Option<String>, max_length = 256)]
    reason: Field<Text>,
}

/// A request to mute or unmute a monitor.
#[derive(Debug)]
pub(crate) struct Muting {
    pub(crate) repo: RepoName,
    pub(crate) test: TestId,
    pub(crate) monitor: MonitorId,
    /// `None` ends it.
    pub(crate) length: Option<MuteLength>,
    pub(crate) reason: Option<String>,
}

impl Request for MuteRequest {
    type Checked = Muting;

    fn check(self, errors: &mut Errors) -> Option<Muting> {
        let repo = check_repository(self.repo, errors);
        let test = id(errors, "/testId", self.test_id);
        let monitor = id(errors, "/monitorId", self.monitor_id);
        let length = errors.required("/length", self.length).and_then(|Text(text)| {
            if text.eq_ignore_ascii_case("none") {
                return Some(None);
            }
            let rule = "must be 1h, 4h, 24h, 7d, 30d, forever or none";
            let wrong = || format!("{rule}, but is {}", shown(&text));
            errors.keep("/length", MuteLength::parse(&text).ok_or_else(wrong)).map(Some)
        });
        let reason = errors.optional("/reason", self.reason).map(|it| it.0);
        let (test, monitor) = (TestId(test?), MonitorId(monitor?));
        Some(Muting { repo: repo?, test, monitor, length: length?, reason })
    }
}

/// A request to override the quarantine of a test.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({
    "repo": {"host": "github.com", "owner": "acme", "name": "calc"},
    "testId": "06cb6db5-f807-5198-b072-af67a0636f8a", "setting": "ALWAYS_QUARANTINE",
    "expiresAt": "2126-01-31T00:00:00Z", "reason": "KAN-123"
}))]
pub(crate) struct OverrideRequest {
    /// The repository.
    #[schema(value_type = RepoRef, required)]
    repo: Field<RepoRef>,
    /// The test.
    #[schema(value_type = String, required, format = Uuid)]
    test_id: Field<Text>,
    /// `ALWAYS_QUARANTINE`, `NEVER_QUARANTINE`, or `UNSPECIFIED` to follow the settings.
    #[schema(value_type = QuarantineOverrideWord, required)]
    setting: Field<Text>,
    /// When `ALWAYS_QUARANTINE` ends; default: never.
    #[schema(value_type = Option<String>, format = DateTime)]
    expires_at: Field<Text>,
    /// The reason; at most 256 characters.
    #[schema(value_type = Option<String>, max_length = 256)]
    reason: Field<Text>,
}

/// A request to override the quarantine of a test.
#[derive(Debug)]
pub(crate) struct Override {
    pub(crate) repo: RepoName,
    pub(crate) test: TestId,
    pub(crate) setting: QuarantineOverride,
    pub(crate) expires_at: Option<Timestamp>,
    pub(crate) reason: Option<String>,
}

impl Request for OverrideRequest {
    type Checked = Override;

    fn check(self, errors: &mut Errors) -> Option<Override> {
        let repo = check_repository(self.repo, errors);
        let test = id(errors, "/testId", self.test_id);
        let setting = errors.required("/setting", self.setting).and_then(|Text(text)| {
            let rule = "must be ALWAYS_QUARANTINE, NEVER_QUARANTINE or UNSPECIFIED";
            let wrong = || format!("{rule}, but is {}", shown(&text));
            errors.keep("/setting", QuarantineOverride::parse(&text).ok_or_else(wrong))
        });
        let expires_at = match self.expires_at {
            Field::Absent => Some(None),
            given => time(errors, "/expiresAt", given).map(Some),
        };
        let reason = errors.optional("/reason", self.reason).map(|it| it.0);
        let (test, expires_at) = (TestId(test?), expires_at?);
        Some(Override { repo: repo?, test, setting: setting?, expires_at, reason })
    }
}

/// A part of a test's history.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({
    "repo": {"host": "github.com", "owner": "acme", "name": "calc"},
    "testId": "06cb6db5-f807-5198-b072-af67a0636f8a"
}))]
pub(crate) struct HistoryRequest {
    /// The repository.
    #[schema(value_type = RepoRef, required)]
    repo: Field<RepoRef>,
    /// The test.
    #[schema(value_type = String, required, format = Uuid)]
    test_id: Field<Text>,
    /// Only steps before the one with this number.
    #[schema(value_type = Option<u32>)]
    before: Field<Count>,
}

impl Request for HistoryRequest {
    type Checked = (RepoName, TestId, Option<u32>);

    fn check(self, errors: &mut Errors) -> Option<Self::Checked> {
        let repo = check_repository(self.repo, errors);
        let test = id(errors, "/testId", self.test_id);
        let before = errors.optional("/before", self.before).map(|it| it.0);
        Some((repo?, TestId(test?), before))
    }
}

object_form!(TicketRequest, FlagRequest, MuteRequest, OverrideRequest, HistoryRequest);
