//! Why something about webhooks was refused.

use thiserror::Error;
use uuid::Uuid;

use signalbox_domain::ports::SecretError;
use signalbox_domain::webhook::{EndpointId, SettingsError};

/// Why something about webhooks was refused.
#[derive(Debug, Error)]
pub enum WebhookError {
    /// The organization has no such endpoint.
    #[error("webhook endpoint {0} not found")]
    UnknownEndpoint(EndpointId),
    /// The endpoint has no such message, or no longer.
    #[error("message {message} of webhook endpoint {endpoint} not found")]
    UnknownMessage {
        /// The endpoint.
        endpoint: EndpointId,
        /// The message.
        message: Uuid,
    },
    /// The message is on its way already.
    #[error("message {0} is pending already")]
    Pending(Uuid),
    /// The organization has as many endpoints as it may.
    #[error("an organization has at most {0} webhook endpoints")]
    TooMany(u32),
    /// Webhooks tell of every repository, and the token may not see them all.
    #[error("webhooks need a token that is not limited to repositories")]
    LimitedToken,
    /// The endpoint is off, and what is asked needs one that is on.
    #[error("webhook endpoint {0} is off")]
    Off(EndpointId),
    /// A setting breaks a rule.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// A secret could not be made or read.
    #[error(transparent)]
    Secret(#[from] SecretError),
}
