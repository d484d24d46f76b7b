//! The audit log as clients see it.

use serde::Serialize;
use signalbox_domain::audit::{AuditAction, AuditActor, AuditRecord};
use signalbox_domain::ids::{RepoName, TokenId};
use signalbox_domain::ports::{AuditFilter, AuditPlace};
use signalbox_domain::time::{Timestamp, Window};
use utoipa::ToSchema;

use super::Errors;
use crate::problem::Problem;

/// The most records of one page.
const MAX_PAGE: u32 = 100;
/// The default page size, in records.
const PAGE: u32 = 50;

/// A request for a page of the audit log.
#[derive(Debug)]
pub(crate) struct AuditQuery {
    pub(crate) filter: AuditFilter,
    pub(crate) before: Option<AuditPlace>,
    pub(crate) limit: u32,
}

/// Query parameters that are being read.
struct Parameters<'a> {
    given: &'a [(String, String)],
    errors: Errors,
}

impl Parameters<'_> {
    /// A parameter, if it is present. An invalid one is added to the errors.
    fn read<T>(
        &mut self,
        name: &str,
        rule: &'static str,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Option<T> {
        let pointer = format!("/{name}");
        let mut values = self.given.iter().filter(|(key, _)| key == name);
        let (_, value) = values.next().filter(|(_, value)| !value.is_empty())?;
        if values.next().is_some() {
            self.errors.add(pointer, "must be given once");
            return None;
        }
        self.errors.keep(&pointer, parse(value).ok_or(rule))
    }
}

impl AuditQuery {
    /// Reads query parameters. Unknown ones are ignored.
    pub(crate) fn read(given: &[(String, String)]) -> Result<Self, Problem> {
        let mut all = Parameters { given, errors: Errors::default() };
        let word = "must be an action, such as queue.updated";
        let time = "must be a time such as 2026-11-21T12:00:00Z";
        let size = |text: &str| text.parse().ok().filter(|size| (1..=MAX_PAGE).contains(size));
        let filter = AuditFilter {
            action: all.read("action", word, AuditAction::parse),
            token: all
                .read("token", "must be the id of a token", |text| text.parse().ok().map(TokenId)),
            object: all.read("object", "", |text| Some(text.to_owned())),
            repos: all
                .read("repo", "must have the form host/owner/name", |text| {
                    RepoName::parse(text).ok()
                })
                .into_iter()
                .collect(),
            window: Window {
                since: all.read("since", time, Timestamp::parse),
                until: all.read("until", time, Timestamp::parse),
            },
        };
        let limit = all.read("limit", "must be from 1 to 100", size).unwrap_or(PAGE);
        let before = all.read("cursor", "must be the nextCursor of the previous page", place);
        all.errors.finish(Some(Self { filter, before, limit }))
    }
}

/// A position in the log, from its cursor.
fn place(cursor: &str) -> Option<AuditPlace> {
    let (at, id) = cursor.split_once('.')?;
    Some(AuditPlace { at: Timestamp::from_unix_micros(at.parse().ok()?), id: id.parse().ok()? })
}

/// A changed value.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AuditChangeReply {
    /// The name of the field.
    #[schema(example = "state")]
    field: String,
    /// The old value; null when there was none.
    #[schema(example = "RUNNING")]
    before: Option<String>,
    /// The new value; null when it was removed.
    #[schema(example = "PAUSED")]
    after: Option<String>,
}

/// The actor.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AuditActorReply {
    /// `token`, or `operator` for a command on the server.
    #[schema(example = "token")]
    kind: &'static str,
    /// The token's name at that time.
    #[schema(example = "ci")]
    name: Option<String>,
    /// The token's id.
    token_id: Option<String>,
}

/// One record of the audit log.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AuditRecordReply {
    id: String,
    /// When the change was made.
    #[schema(example = "2026-11-21T12:00:00Z")]
    at: String,
    actor: AuditActorReply,
    /// The action.
    #[schema(example = "queue.updated")]
    action: &'static str,
    /// The changed object.
    #[schema(example = "queue main of github.com/acme/calc")]
    object: String,
    /// The repository that it belongs to, as host/owner/name.
    #[schema(example = "github.com/acme/calc")]
    repo: Option<String>,
    changes: Vec<AuditChangeReply>,
    /// The reason, if one was given.
    reason: Option<String>,
    /// The id of the request.
    request_id: Option<String>,
}

impl AuditRecordReply {
    fn of(record: &AuditRecord) -> Self {
        let actor = match &record.actor {
            AuditActor::Token { id, name } => AuditActorReply {
                kind: "token",
                name: Some(name.clone()),
                token_id: Some(id.to_string()),
            },
            AuditActor::Operator => {
                AuditActorReply { kind: "operator", name: None, token_id: None }
            }
        };
        let changes = record.changes.iter().map(|it| AuditChangeReply {
            field: it.field.clone(),
            before: it.before.clone(),
            after: it.after.clone(),
        });
        Self {
            id: record.id.to_string(),
            at: record.at.to_string(),
            actor,
            action: record.action.as_str(),
            object: record.object.clone(),
            repo: record.repo.as_ref().map(ToString::to_string),
            changes: changes.collect(),
            reason: record.reason.clone(),
            request_id: record.request.clone(),
        }
    }
}

/// A page of the audit log, newest first.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({
    "records": [{
        "id": "0b7d6f5e-6f0e-4f2a-9d58-1d3f6f0f8a11", "at": "2026-11-21T12:00:00.000Z",
        "actor": {"kind": "operator", "name": null, "tokenId": null}, "action": "queue.updated",
        "object": "queue main of github.com/acme/calc", "repo": "github.com/acme/calc",
        "changes": [{"field": "state", "before": "RUNNING", "after": "PAUSED"}],
        "reason": "release freeze", "requestId": null
    }],
    "nextCursor": null
}))]
pub(crate) struct AuditReply {
    records: Vec<AuditRecordReply>,
    /// The cursor of the next page; null on the last one.
    next_cursor: Option<String>,
}

impl AuditReply {
    /// A page of `size` records; one extra record marks a next page.
    pub(crate) fn of(records: &[AuditRecord], limit: u32) -> Self {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let shown = records.get(..limit).unwrap_or(records);
        let last = shown.last().filter(|_| records.len() > limit);
        Self {
            records: shown.iter().map(AuditRecordReply::of).collect(),
            next_cursor: last.map(|it| format!("{}.{}", it.at.unix_micros(), it.id)),
        }
    }
}
