//! Errors of webhook operations.

use thiserror::Error;
use uuid::Uuid;

use signalbox_domain::ports::SecretError;
use signalbox_domain::webhook::{EndpointId, SettingsError};

/// Errors of webhook operations.
#[derive(Debug, Error)]
pub enum WebhookError {
    /// The organization has no such endpoint.
    #[error("webhook endpoint {0} not found")]
    UnknownEndpoint(EndpointId),
    /// The endpoint has no such message.
    #[error("message {message} of webhook endpoint {endpoint} not found")]
    UnknownMessage {
        /// The endpoint.
        endpoint: EndpointId,
        /// The message.
        message: Uuid,
    },
    /// The message is already pending.
    #[error("message {0} is already pending")]
    Pending(Uuid),
    /// The organization has the maximum number of endpoints.
    #[error("an organization has at most {0} webhook endpoints")]
    TooMany(u32),
    /// Webhooks cover every repository, and the token is limited to some.
    #[error("webhooks need a token that is not limited to repositories")]
    LimitedToken,
    /// The endpoint is off, and the operation requires one that is on.
    #[error("webhook endpoint {0} is off")]
    Off(EndpointId),
    /// A setting is invalid.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// A secret could not be created or opened.
    #[error(transparent)]
    Secret(#[from] SecretError),
}
