//! The way out for webhooks: signing, looking where an address leads, posting.

use async_trait::async_trait;
use thiserror::Error;
use uuid::Uuid;

use crate::time::Timestamp;
use crate::webhook::{EndpointId, Sealed, Sent};

/// A message that is about to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outgoing<'a> {
    /// To which endpoint.
    pub endpoint: EndpointId,
    /// Where it is.
    pub url: &'a str,
    /// The secrets that it is signed with, the newest first; never none.
    pub secrets: &'a [Sealed],
    /// The message's id.
    pub id: Uuid,
    /// The time that is signed.
    pub at: Timestamp,
    /// The body.
    pub payload: &'a str,
}

/// What became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Posted {
    /// The headers that were sent, signatures hidden.
    pub headers: Vec<(String, String)>,
    /// What came back.
    pub sent: Sent,
}

/// Why a secret could not be made or read.
#[derive(Debug, Error)]
pub enum SecretError {
    /// The key that it is sealed under is not there.
    #[error("the key {0} of webhook secrets is not in the key file")]
    UnknownKey(String),
    /// The keys cannot be had.
    #[error("the keys of webhook secrets cannot be read")]
    Unavailable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// It was changed, or belongs to another endpoint.
    #[error("a webhook secret cannot be opened")]
    Broken,
    /// The system has no random bytes.
    #[error("there are no random bytes for a webhook secret")]
    NoRandomness,
}

/// A new secret.
pub struct NewSecret {
    /// Its text, `whsec_` and base64. Shown once, never kept.
    pub text: String,
    /// As it is kept.
    pub sealed: Sealed,
}

/// Posts messages. Never follows a redirect, never connects to an address that was not checked,
/// and takes 15 seconds at most.
#[async_trait]
pub trait WebhookSender: Send + Sync {
    /// Posts a message and says what came back. An error is that the secrets cannot be read.
    async fn post(&self, outgoing: &Outgoing<'_>) -> Result<Posted, SecretError>;

    /// Whether a URL may be used at all; the rule that it breaks. Names are looked up on each try
    /// only, as they may lead elsewhere by then.
    fn check_url(&self, url: &str) -> Result<(), String>;
}

/// Makes secrets, and seals them under a key that is not in the database. What is sealed for one
/// endpoint cannot be opened for another.
pub trait WebhookSecrets: Send + Sync {
    /// A new secret for an endpoint.
    fn create(&self, endpoint: EndpointId) -> Result<NewSecret, SecretError>;

    /// The same secret under the newest key; `None` when it is under that already.
    fn reseal(&self, endpoint: EndpointId, sealed: &Sealed) -> Result<Option<Sealed>, SecretError>;
}

/// Which events there are.
pub trait EventCatalogue: Send + Sync {
    /// Their public names.
    fn kinds(&self) -> Vec<String>;

    /// A payload as an event of that name has it; `None`: there is none.
    fn example(&self, kind: &str) -> Option<String>;
}
