//! The way out for webhooks: looking where an address leads, signing, posting.

use async_trait::async_trait;
use uuid::Uuid;

use crate::ports::SecretError;
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
