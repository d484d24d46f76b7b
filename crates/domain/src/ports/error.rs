//! The error of all stores.

use thiserror::Error;

/// A failed operation of a store. The variant tells the caller how to react.
#[derive(Debug, Error)]
pub enum StoreError {
    /// The database does not answer, is too busy or has no disk space: retry later.
    #[error("the database is not available")]
    Unavailable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The database is damaged: an operator must restore it.
    #[error("the database is damaged")]
    Damaged(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The database holds data that no correct program writes: report a bug.
    #[error("the database holds {what} that cannot be read")]
    Corrupt {
        /// The unreadable row or document.
        what: String,
        /// Why it could not be read.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A statement failed, and a retry would fail too.
    #[error("the database refused a statement")]
    Failed(#[source] Box<dyn std::error::Error + Send + Sync>),
}
