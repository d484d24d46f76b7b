//! The secrets that messages are signed with.

use thiserror::Error;

use crate::webhook::{EndpointId, Sealed};

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

/// Makes secrets, and seals them under a key that is not in the database. What is sealed for one
/// endpoint cannot be opened for another.
pub trait WebhookSecrets: Send + Sync {
    /// A new secret for an endpoint.
    fn create(&self, endpoint: EndpointId) -> Result<NewSecret, SecretError>;

    /// The same secret under the newest key; `None` when it is under that already.
    fn reseal(&self, endpoint: EndpointId, sealed: &Sealed) -> Result<Option<Sealed>, SecretError>;
}
