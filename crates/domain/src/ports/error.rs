//! The one error of all stores.

use thiserror::Error;

/// A store that could not do what was asked. What the caller can do about it is in the variant.
#[derive(Debug, Error)]
pub enum StoreError {
    /// The database does not answer, is too busy, or has no room to write: try again.
    #[error("the database is not available")]
    Unavailable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// What the database has stored is not what was written: an operator must restore it.
    #[error("the database is damaged")]
    Damaged(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The database answered with something that no correct program makes: give up and report.
    #[error("the database holds {what} that cannot be read")]
    Corrupt {
        /// What could not be read.
        what: String,
        /// Why.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The statement failed for a reason that trying again does not cure.
    #[error("the database refused a statement")]
    Failed(#[source] Box<dyn std::error::Error + Send + Sync>),
}
