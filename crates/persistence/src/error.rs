//! Driver errors, and what the ports call them.

use diesel::result::{DatabaseErrorKind, Error as DieselError};
use signalbox_domain::ports::{CommitError, CreateError, StoreError};
use thiserror::Error;

/// What can go wrong inside this crate.
#[derive(Debug, Error)]
pub enum DbError {
    /// A statement failed.
    #[error(transparent)]
    Diesel(#[from] DieselError),
    /// No connection could be had.
    #[error("no connection to the database: {0}")]
    Connection(String),
    /// A row cannot be read.
    #[error("{what} cannot be read")]
    Corrupt {
        /// Which kind of row.
        what: &'static str,
        /// Why.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The version was not the expected one.
    #[error("the version was not the expected one")]
    Conflict,
    /// The task that worked on the database panicked or was stopped.
    #[error("the database task ended early")]
    Stopped(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl DbError {
    /// A row of that kind cannot be read.
    pub(crate) fn corrupt(
        what: &'static str,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        Self::Corrupt { what, source: source.into() }
    }

    /// Whether a unique key was violated.
    pub(crate) const fn is_duplicate(&self) -> bool {
        matches!(
            self,
            Self::Diesel(DieselError::DatabaseError(DatabaseErrorKind::UniqueViolation, _))
        )
    }

    fn passes(&self) -> bool {
        match self {
            Self::Connection(_)
            | Self::Stopped(_)
            | Self::Diesel(DieselError::BrokenTransactionManager) => true,
            Self::Diesel(DieselError::DatabaseError(kind, info)) => {
                matches!(
                    kind,
                    DatabaseErrorKind::SerializationFailure
                        | DatabaseErrorKind::UnableToSendCommand
                        | DatabaseErrorKind::ClosedConnection
                ) || info.message().contains("database is locked")
            }
            Self::Diesel(_) | Self::Corrupt { .. } | Self::Conflict => false,
        }
    }
}

impl From<DbError> for StoreError {
    fn from(error: DbError) -> Self {
        match error {
            error if error.passes() => Self::Unavailable(Box::new(error)),
            DbError::Corrupt { what, source } => Self::Corrupt { what: what.to_owned(), source },
            error => Self::Failed(Box::new(error)),
        }
    }
}

impl From<DbError> for CommitError {
    fn from(error: DbError) -> Self {
        match error {
            DbError::Conflict => Self::Conflict,
            error => Self::Store(error.into()),
        }
    }
}

impl From<DbError> for CreateError {
    fn from(error: DbError) -> Self {
        if error.is_duplicate() { Self::Exists } else { Self::Store(error.into()) }
    }
}
