//! Who changed what: the records of the audit log. They are written with the change and never
//! changed.

mod fields;

use std::fmt;

use uuid::Uuid;

use crate::ids::{OrgId, RepoName, TokenId};
use crate::time::Timestamp;
use crate::token::Caller;
use crate::words::words;

pub use fields::{AuditFields, of_flaky_settings, of_queue, of_test, of_token, of_webhook};

/// The most bytes of one value in a record; the rest is cut.
pub const MAX_VALUE: usize = 2_048;

words!(
    /// What was done.
    AuditAction {
        /// An organization was made.
        OrganizationCreated = "organization.created",
        /// A token was made.
        TokenCreated = "token.created",
        /// A token was replaced by another.
        TokenRotated = "token.rotated",
        /// A token was revoked.
        TokenRevoked = "token.revoked",
        /// A repository was registered.
        RepositoryRegistered = "repository.registered",
        /// A queue was made.
        QueueCreated = "queue.created",
        /// The settings or the state of a queue were changed: pausing is one of these.
        QueueUpdated = "queue.updated",
        /// A queue was deleted.
        QueueDeleted = "queue.deleted",
        /// Settings of quarantine or monitors were changed.
        TestSettingsUpdated = "test_settings.updated",
        /// A test was called flaky by hand.
        TestFlagged = "test.flagged",
        /// That was taken back.
        TestUnflagged = "test.unflagged",
        /// A monitor was muted for a test.
        MonitorMuted = "monitor.muted",
        /// It counts again.
        MonitorUnmuted = "monitor.unmuted",
        /// The quarantine of a test was decided by hand.
        QuarantineOverridden = "quarantine.overridden",
        /// A label was put on a test.
        LabelAdded = "label.added",
        /// A label was taken off a test.
        LabelRemoved = "label.removed",
        /// An incident was confirmed or dismissed.
        IncidentDecided = "incident.decided",
        /// A ticket was linked to a test.
        TicketLinked = "ticket.linked",
        /// An endpoint of webhooks was made.
        WebhookCreated = "webhook.created",
        /// An endpoint was changed, or switched on or off.
        WebhookUpdated = "webhook.updated",
        /// An endpoint was deleted.
        WebhookDeleted = "webhook.deleted",
        /// An endpoint got a new secret.
        WebhookSecretRotated = "webhook.secret_rotated",
        /// An example was sent to an endpoint.
        WebhookTestSent = "webhook.test_sent",
        /// Messages were sent to an endpoint once more.
        WebhookReplayed = "webhook.replayed",
    }
);

/// Who did it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum AuditActor {
    /// A caller of the API.
    Token {
        /// The token's id.
        id: TokenId,
        /// Its name at that time.
        name: String,
    },
    /// Somebody with a shell on the server, by a command.
    Operator,
}

impl AuditActor {
    /// The token, if it was one.
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

/// One value that is another one now.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct AuditChange {
    /// What it is called in the API.
    pub field: String,
    /// Before, at most [`MAX_VALUE`] bytes; `None`: it was not there.
    pub before: Option<String>,
    /// After, at most [`MAX_VALUE`] bytes; `None`: it is gone.
    pub after: Option<String>,
}

/// One record.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct AuditRecord {
    /// Its id.
    pub id: Uuid,
    /// Whose.
    pub org: OrgId,
    /// When.
    pub at: Timestamp,
    /// Who.
    pub actor: AuditActor,
    /// What was done.
    pub action: AuditAction,
    /// To what: `queue main of git.local/acme/calc`, `token 4f6c…`.
    pub object: String,
    /// The repository that it belongs to, if to one.
    pub repo: Option<RepoName>,
    /// What differs, by field. No secrets.
    pub changes: Vec<AuditChange>,
    /// Why, if it was said.
    pub reason: Option<String>,
    /// The request that did it.
    pub request: Option<String>,
}

impl AuditActor {
    /// The caller of a use case.
    pub fn caller(caller: &Caller) -> Self {
        Self::Token { id: caller.token, name: caller.name.clone() }
    }
}

/// What differs between two lists of fields, in the order of the fields.
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
    fn only_what_differs_is_told_also_what_came_and_went() {
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
