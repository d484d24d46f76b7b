//! Delivery of webhook messages: address checks, signing and posting.

use async_trait::async_trait;
use uuid::Uuid;

use crate::ports::SecretError;
use crate::time::Timestamp;
use crate::webhook::{EndpointId, Sealed, Sent};

/// A message to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outgoing<'a> {
    /// The endpoint.
    pub endpoint: EndpointId,
    /// The endpoint's URL.
    pub url: &'a str,
    /// The signing secrets, newest first; at least one.
    pub secrets: &'a [Sealed],
    /// The message's id.
    pub id: Uuid,
    /// The signed timestamp.
    pub at: Timestamp,
    /// The body.
    pub payload: &'a str,
}

/// The result of an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Posted {
    /// The headers that were sent, with redacted signatures.
    pub headers: Vec<(String, String)>,
    /// The answer, or the failure.
    pub sent: Sent,
}

/// Posts messages. Never follows redirects, connects only to checked addresses, and takes at most
/// 15 seconds.
#[async_trait]
pub trait WebhookSender: Send + Sync {
    /// Posts a message and returns the result. Fails only if the secrets cannot be opened.
    async fn post(&self, outgoing: &Outgoing<'_>) -> Result<Posted, SecretError>;

    /// Checks whether a URL may be used; fails with the rule that it breaks. Names are resolved at
    /// each attempt, because their addresses may change.
    fn check_url(&self, url: &str) -> Result<(), String>;
}
