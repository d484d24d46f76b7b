//! Webhook endpoints.

use std::fmt;

use thiserror::Error;
use uuid::Uuid;

use crate::ids::OrgId;
use crate::time::{Span, Timestamp};

use super::Health;

/// The most bytes of an endpoint's URL.
pub const MAX_URL: usize = 2_048;
/// The most characters of an endpoint's description.
pub const MAX_DESCRIPTION: usize = 500;
/// The most names in an endpoint's filter.
pub const MAX_KINDS: usize = 100;
/// The most secrets of an endpoint; a further one ends the oldest.
pub const MAX_SECRETS: usize = 4;

/// An endpoint's id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(transparent))]
pub struct EndpointId(pub Uuid);

impl fmt::Display for EndpointId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A stored secret: sealed with a key that is not in the database.
#[derive(Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Sealed {
    /// The name of the key.
    pub key: String,
    /// The sealed secret, as text.
    pub text: String,
}

impl fmt::Debug for Sealed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sealed(under {})", self.key)
    }
}

/// A signing secret of an endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Secret {
    /// The secret.
    pub sealed: Sealed,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it expires, once it was replaced.
    pub until: Option<Timestamp>,
}

/// An invalid setting of an endpoint.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{field} {rule}")]
pub struct SettingsError {
    /// The setting: `url`, `description` or `events`.
    pub field: &'static str,
    /// The rule that it breaks: `must …`.
    pub rule: String,
}

/// The settings of an endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct EndpointSettings {
    /// The URL that messages are posted to, at most [`MAX_URL`] bytes.
    pub url: String,
    /// A description, at most [`MAX_DESCRIPTION`] characters.
    pub description: String,
    /// The names of the events that it receives; empty for
    /// [the default ones](crate::ports::EventCatalog::defaults).
    pub kinds: Vec<String>,
}

impl EndpointSettings {
    /// Checks lengths, and that every name is one of `known`.
    /// [`WebhookSender::check_url`](crate::ports::WebhookSender::check_url) checks the URL itself.
    pub fn check(&self, known: &[String]) -> Result<(), SettingsError> {
        let refuse = |field, rule: String| Err(SettingsError { field, rule });
        if self.url.is_empty() || self.url.len() > MAX_URL {
            return refuse("url", format!("must have 1 to {MAX_URL} bytes"));
        }
        if self.description.chars().count() > MAX_DESCRIPTION {
            return refuse(
                "description",
                format!("must have at most {MAX_DESCRIPTION} characters"),
            );
        }
        if self.description.chars().any(char::is_control) {
            return refuse("description", "must have no control characters".into());
        }
        if self.kinds.len() > MAX_KINDS {
            return refuse("events", format!("must have at most {MAX_KINDS} names"));
        }
        match self.kinds.iter().find(|kind| !known.contains(kind)) {
            Some(kind) => {
                let shown: String = kind.chars().take(100).collect();
                refuse("events", format!("must contain names of events: unknown event {shown:?}"))
            }
            None => Ok(()),
        }
    }
}

/// A webhook endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Its id.
    pub id: EndpointId,
    /// The organization.
    pub org: OrgId,
    /// The version, incremented by every change.
    pub version: i64,
    /// Its settings.
    pub settings: EndpointSettings,
    /// Its signing secrets, newest first; at least one.
    pub secrets: Vec<Secret>,
    /// Whether it is on, and its recent failures.
    pub health: Health,
    /// The position in the event log up to which messages were created.
    pub cursor: i64,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
}

impl Endpoint {
    /// The secrets that sign messages at this time, newest first.
    pub fn signing(&self, at: Timestamp) -> impl Iterator<Item = &Sealed> {
        let good = move |secret: &&Secret| secret.until.is_none_or(|until| at < until);
        self.secrets.iter().filter(good).map(|secret| &secret.sealed)
    }

    /// Adds a new secret. Earlier ones expire after `overlap`, or at their earlier expiry.
    #[must_use]
    pub fn rotated(mut self, sealed: Sealed, overlap: Span, at: Timestamp) -> Self {
        let end = at.plus(overlap);
        for secret in &mut self.secrets {
            secret.until = Some(secret.until.map_or(end, |until| until.min(end)));
        }
        self.secrets.retain(|secret| secret.until.is_none_or(|until| at < until));
        self.secrets.insert(0, Secret { sealed, created_at: at, until: None });
        self.secrets.truncate(MAX_SECRETS);
        Self { updated_at: at, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Timestamp = Timestamp::from_unix_seconds(1_767_225_600);

    fn sealed(text: &str) -> Sealed {
        Sealed { key: "k".into(), text: text.into() }
    }

    fn endpoint() -> Endpoint {
        Endpoint {
            id: EndpointId(Uuid::nil()),
            org: OrgId(Uuid::nil()),
            version: 0,
            settings: EndpointSettings {
                url: "https://a.test/".into(),
                description: String::new(),
                kinds: Vec::new(),
            },
            secrets: vec![Secret { sealed: sealed("0"), created_at: START, until: None }],
            health: Health::default(),
            cursor: 0,
            created_at: START,
            updated_at: START,
        }
    }

    fn texts(endpoint: &Endpoint, at: Timestamp) -> Vec<&str> {
        endpoint.signing(at).map(|sealed| sealed.text.as_str()).collect()
    }

    #[test]
    fn a_replaced_secret_signs_until_the_overlap_ends() {
        let day = Span::days(1);
        let rotated = endpoint().rotated(sealed("1"), day, START);
        assert_eq!(texts(&rotated, START), ["1", "0"]);
        assert_eq!(texts(&rotated, START.plus(day)), ["1"]);
        let at_once = rotated.rotated(sealed("2"), Span::ZERO, START);
        assert_eq!(texts(&at_once, START), ["2"]);
    }

    #[test]
    fn a_second_rotation_does_not_lengthen_the_first_overlap() {
        let rotated = endpoint().rotated(sealed("1"), Span::hours(1), START);
        let again = rotated.rotated(sealed("2"), Span::days(9), START);
        assert_eq!(texts(&again, START.plus(Span::hours(1))), ["2", "1"]);
        let mut many = again;
        for number in 3..20 {
            many = many.rotated(sealed(&number.to_string()), Span::days(9), START);
        }
        assert_eq!(many.secrets.len(), MAX_SECRETS);
        assert_eq!(texts(&many, START).first(), Some(&"19"));
    }

    #[test]
    fn invalid_settings_are_named_with_their_rule() {
        let known = ["a.b".to_owned()];
        let check = |change: fn(&mut EndpointSettings)| {
            let mut settings = endpoint().settings;
            change(&mut settings);
            settings.check(&known).err().map(|error| error.field)
        };
        assert_eq!(check(|it| it.kinds = vec!["a.b".into()]), None);
        assert_eq!(check(|it| it.kinds = vec!["a.c".into()]), Some("events"));
        assert_eq!(check(|it| it.kinds = vec!["a.b".into(); 101]), Some("events"));
        assert_eq!(check(|it| it.url = "x".repeat(2_049)), Some("url"));
        assert_eq!(check(|it| it.url = String::new()), Some("url"));
        assert_eq!(check(|it| it.description = "x".repeat(501)), Some("description"));
        assert_eq!(check(|it| it.description = "a\nb".into()), Some("description"));
        assert!(!format!("{:?}", endpoint().secrets).contains("\"0\""));
    }
}
