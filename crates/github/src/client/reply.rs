//! The result of a call.

use std::sync::Arc;

use serde::de::DeserializeOwned;
use signalbox_domain::ports::HostError;

/// An answer that was not an error.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(super) body: Arc<[u8]>,
    pub(super) next: Option<String>,
    /// The scopes of a classic token, or the granted permissions of an app, when the reply has
    /// them.
    pub(crate) scopes: Option<String>,
}

impl Answer {
    /// The host's error, decoded leniently.
    pub(crate) fn decoded<T: DeserializeOwned>(&self, what: &str) -> Result<T, HostError> {
        serde_json::from_slice(&self.body).map_err(|error| unreadable(what, &error))
    }
}

/// A call whose refusals the caller distinguishes.
#[derive(Debug)]
pub(crate) struct Refused {
    pub(crate) status: u16,
    pub(crate) words: String,
    pub(crate) error: HostError,
}

impl From<Refused> for HostError {
    fn from(refused: Refused) -> Self {
        refused.error
    }
}

impl From<HostError> for Refused {
    fn from(error: HostError) -> Self {
        Self { status: 0, words: error.to_string(), error }
    }
}

pub(super) fn unreadable(what: &str, error: &serde_json::Error) -> HostError {
    HostError::Unavailable { words: format!("{what}: could not decode the response: {error}") }
}

/// A call without a reply. The address is omitted from the error: `what` has it.
pub(super) fn silent(what: &str, error: reqwest::Error) -> HostError {
    let error = error.without_url();
    let mut words = format!("{what}: {error}");
    let mut source = std::error::Error::source(&error);
    while let Some(cause) = source {
        words = format!("{words}: {cause}");
        source = cause.source();
    }
    HostError::Unavailable { words }
}
