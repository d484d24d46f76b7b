//! Audit records: who changed what. A record is written in the transaction of its change and never
//! modified.

mod fields;

use std::fmt;

use uuid::Uuid;

use crate::ids::{OrgId, RepoName, TokenId};
use crate::time::Timestamp;
use crate::token::Caller;
use crate::words::words;

pub use fields::{AuditFields, of_flaky_settings, of_queue, of_test, of_token, of_webhook};

/// The most bytes of one value in a record; longer values are truncated.
pub const MAX_VALUE: usize = 2_048;

words!(
    /// The audited action.
    AuditAction {
        /// An organization was created.
        OrganizationCreated = "organization.created",
        /// A token was created.
        TokenCreated = "token.created",
        /// A token was replaced by another.
        TokenRotated = "token.rotated",
        /// A token was revoked.
        TokenRevoked = "token.revoked",
        /// An expired or revoked token was used. At most one record an hour for each token.
        TokenRefused = "token.refused",
        /// A repository was registered.
        RepositoryRegistered = "repository.registered",
        /// A queue was created.
        QueueCreated = "queue.created",
        /// The settings or the state of a queue were changed, for example by a pause.
        QueueUpdated = "queue.updated",
        /// A queue was deleted.
        QueueDeleted = "queue.deleted",
        /// Settings of quarantine or monitors were changed.
        TestSettingsUpdated = "test_settings.updated",
        /// A test was flagged as flaky by a user.
        TestFlagged = "test.flagged",
        /// The flag of a user was removed from a test.
        TestUnflagged = "test.unflagged",
        /// A monitor was muted for a test.
        MonitorMuted = "monitor.muted",
        /// A monitor was unmuted for a test.
        MonitorUnmuted = "monitor.unmuted",
        /// A user overrode the quarantine of a test.
        QuarantineOverridden = "quarantine.overridden",
        /// A label was added to a test.
        LabelAdded = "label.added",
        /// A label was removed from a test.
        LabelRemoved = "label.removed",
        /// An incident was confirmed or dismissed.
        IncidentDecided = "incident.decided",
        /// A ticket was linked to a test.
        TicketLinked = "ticket.linked",
        /// A webhook endpoint was created.
        WebhookCreated = "webhook.created",
        /// A webhook endpoint was changed, enabled or disabled.
        WebhookUpdated = "webhook.updated",
        /// A webhook endpoint was deleted.
        WebhookDeleted = "webhook.deleted",
        /// The secret of a webhook endpoint was rotated.
        WebhookSecretRotated = "webhook.secret_rotated",
        /// A test message was sent to a webhook endpoint.
        WebhookTestSent = "webhook.test_sent",
        /// Messages were replayed to a webhook endpoint.
        WebhookReplayed = "webhook.replayed",
    }
);

/// Who performed an audited action.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum AuditActor {
    /// A caller of the API.
    Token {
        /// The token's id.
        id: TokenId,
        /// Its name at the time of the action.
        name: String,
    },
    /// An operator of the server, by a command.
    Operator,
}

impl AuditActor {
    /// The token's id; `None` for an operator.
    pub const fn token(&self) -> Option<TokenId> {
        match self {
            Self::Token { id, .. } => Some(*id),
            Self::Operator => None,
        }
    }
}

impl fmt::Display for AuditActor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Token { name, .. } => write!(f, "token {name}"),
            Self::Operator => f.write_str("operator"),
        }
    }
}

/// A changed field.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct AuditChange {
    /// The field's name in the API.
    pub field: String,
    /// The value before, at most [`MAX_VALUE`] bytes; `None` if it was not set.
    pub before: Option<String>,
    /// The value after, at most [`MAX_VALUE`] bytes; `None` if it is not set.
    pub after: Option<String>,
}

/// A record of the audit log.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct AuditRecord {
    /// Its id.
    pub id: Uuid,
    /// The organization.
    pub org: OrgId,
    /// The time of the change.
    pub at: Timestamp,
    /// Who made the change.
    pub actor: AuditActor,
    /// The audited action.
    pub action: AuditAction,
    /// The changed object: `queue main of git.local/acme/calc`, `token 4f6c…`.
    pub object: String,
    /// The repository of the object, if it belongs to one.
    pub repo: Option<RepoName>,
    /// The changed fields, without secrets.
    pub changes: Vec<AuditChange>,
    /// The caller's reason, if given.
    pub reason: Option<String>,
    /// The id of the request that made the change.
    pub request: Option<String>,
}

impl AuditActor {
    /// The actor for an authenticated caller.
    pub fn caller(caller: &Caller) -> Self {
        Self::Token { id: caller.token, name: caller.name.clone() }
    }
}

/// The fields that differ, ordered by name.
pub fn differences(before: &AuditFields, after: &AuditFields) -> Vec<AuditChange> {
    let fields: std::collections::BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let value = |fields: &AuditFields, field: &String| fields.get(field).map(|value| cut(value));
    fields
        .into_iter()
        .filter(|field| before.get(*field) != after.get(*field))
        .map(|field| AuditChange {
            field: field.clone(),
            before: value(before, field),
            after: value(after, field),
        })
        .collect()
}

fn cut(value: &str) -> String {
    value[..value.floor_char_boundary(MAX_VALUE)].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_include_added_and_removed_fields() {
        let fields = |list: &[(&str, &str)]| -> AuditFields {
            list.iter().map(|(field, value)| ((*field).to_owned(), (*value).to_owned())).collect()
        };
        let long = "é".repeat(MAX_VALUE);
        let before = fields(&[("kept", "1"), ("changed", "1"), ("gone", "1")]);
        let after = fields(&[("kept", "1"), ("changed", &long), ("new", "1")]);
        let found = differences(&before, &after);
        let fields: Vec<&str> = found.iter().map(|it| it.field.as_str()).collect();
        assert_eq!(fields, ["changed", "gone", "new"]);
        assert_eq!(found[0].after.as_ref().map(String::len), Some(MAX_VALUE));
        assert_eq!((&found[1].after, &found[2].before), (&None, &None));
        assert!(differences(&before, &before).is_empty());
    }
}
