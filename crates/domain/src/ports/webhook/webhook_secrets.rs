//! Signing secrets of webhook endpoints.

use thiserror::Error;

use crate::webhook::{EndpointId, Sealed};

/// Why a secret could not be created or opened.
#[derive(Debug, Error)]
pub enum SecretError {
    /// The key that sealed it is not in the key file.
    #[error("unknown webhook key {0}: it is not in the key file")]
    UnknownKey(String),
    /// The key file cannot be read.
    #[error("could not read the keys of webhook secrets")]
    Unavailable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// It was modified, or belongs to another endpoint.
    #[error("could not open a webhook secret: it was modified or belongs to another endpoint")]
    Broken,
    /// The system's random number generator failed.
    #[error("could not generate random bytes for a webhook secret")]
    NoRandomness,
}

/// A new secret.
pub struct NewSecret {
    /// Its text, `whsec_` and base64. Shown once, never stored.
    pub text: String,
    /// Its stored form.
    pub sealed: Sealed,
}

/// Creates secrets, and seals them with a key that is not in the database. A secret sealed for one
/// endpoint cannot be opened for another.
pub trait WebhookSecrets: Send + Sync {
    /// Creates a secret for an endpoint.
    fn create(&self, endpoint: EndpointId) -> Result<NewSecret, SecretError>;

    /// Seals a secret again with the newest key; `None` if it already is.
    fn reseal(&self, endpoint: EndpointId, sealed: &Sealed) -> Result<Option<Sealed>, SecretError>;
}
