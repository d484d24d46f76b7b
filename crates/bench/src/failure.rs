//! Why a run could not be finished.

use thiserror::Error;

/// The operation that failed, and why.
#[derive(Debug, Error)]
#[error("{what}: {why}")]
pub(crate) struct Failure {
    what: String,
    why: String,
}

impl Failure {
    /// A failure of `what`, with the error and its causes.
    pub(crate) fn new(
        what: &str,
        why: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        let why = why.into();
        let mut text = why.to_string();
        let mut source = why.source();
        while let Some(cause) = source {
            text = format!("{text}: {cause}");
            source = cause.source();
        }
        Self { what: what.to_owned(), why: text }
    }
}

/// Turns errors into failures that name the operation.
pub(crate) trait During<T> {
    /// The same result, with the error as the failure of `what`.
    fn during(self, what: &str) -> Result<T, Failure>;
}

impl<T, E: Into<Box<dyn std::error::Error + Send + Sync>>> During<T> for Result<T, E> {
    fn during(self, what: &str) -> Result<T, Failure> {
        self.map_err(|error| Failure::new(what, error))
    }
}
