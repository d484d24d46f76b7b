//! Driver errors, and their mapping to errors of the ports.

use diesel::ConnectionError;
use diesel::result::{DatabaseErrorKind, DeserializeFieldError, Error as DieselError};
use signalbox_domain::ports::{CommitError, CreateError, StoreError};
use thiserror::Error;

use crate::documents::Unreadable;
use crate::trouble::Trouble;

/// The internal error of this crate.
#[derive(Debug, Error)]
pub enum DbError {
    /// A statement failed.
    #[error(transparent)]
    Diesel(DieselError),
    /// No connection is available.
    #[error("no connection to the database: {0}")]
    Connection(String),
    /// A row cannot be read.
    #[error("could not read {what}")]
    Corrupt {
        /// The kind of row.
        what: &'static str,
        /// The cause.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The version was not the expected one.
    #[error("the version was not the expected one")]
    Conflict,
    /// The task of the transaction panicked or was cancelled.
    #[error("the database task panicked or was cancelled")]
    Stopped(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl From<DieselError> for DbError {
    fn from(error: DieselError) -> Self {
        match error {
            DieselError::DeserializationError(source) => unreadable(source),
            error => Self::Diesel(error),
        }
    }
}

/// The error of an unreadable value; a document's error names its kind.
fn unreadable(source: Box<dyn std::error::Error + Send + Sync>) -> DbError {
    let field = match source.downcast::<DeserializeFieldError>() {
        Ok(field) => *field,
        Err(source) => return DbError::corrupt("row", source),
    };
    match field.error.downcast::<Unreadable>() {
        Ok(document) => DbError::corrupt(document.kind(), document),
        Err(error) => DbError::corrupt("row", error),
    }
}

impl DbError {
    /// The error of an unreadable row of this kind.
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

    /// The error of a refused connection.
    pub(crate) fn refused(error: ConnectionError) -> Self {
        match error {
            ConnectionError::BadConnection(words) => Self::Connection(words),
            ConnectionError::CouldntSetupConfiguration(error) => Self::Diesel(error),
            // These may quote the URL.
            _ => Self::Connection("the database does not accept connections".to_owned()),
        }
    }

    /// The trouble of the database that it indicates, if any.
    pub(crate) fn trouble(&self) -> Option<Trouble> {
        match self {
            Self::Connection(words) => Some(Trouble::of(words).unwrap_or(Trouble::Gone)),
            Self::Diesel(error) => of_diesel(error),
            Self::Stopped(_) | Self::Corrupt { .. } | Self::Conflict => None,
        }
    }

    /// Whether the connection must not be reused. A connection to a standby that was the primary
    /// would stay read-only.
    pub(crate) fn ends_connection(&self) -> bool {
        match self.trouble() {
            Some(
                Trouble::Full
                | Trouble::ReadOnly
                | Trouble::Disk
                | Trouble::Gone
                | Trouble::Damaged,
            ) => true,
            Some(Trouble::Late | Trouble::Busy) | None => false,
        }
    }

    /// A short message without details, for users without access to the log.
    pub(crate) fn in_short(&self) -> &'static str {
        self.trouble().map_or("the database refused a statement", Trouble::words)
    }

    fn passes(&self) -> bool {
        match self {
            Self::Stopped(_) => true,
            Self::Connection(_) | Self::Diesel(_) => {
                self.trouble().is_some_and(|trouble| trouble != Trouble::Damaged)
            }
            Self::Corrupt { .. } | Self::Conflict => false,
        }
    }
}

fn of_diesel(error: &DieselError) -> Option<Trouble> {
    match error {
        DieselError::BrokenTransactionManager => Some(Trouble::Gone),
        DieselError::RollbackErrorOnCommit { commit_error, .. } => of_diesel(commit_error),
        DieselError::DatabaseError(kind, info) => match kind {
            DatabaseErrorKind::SerializationFailure => Some(Trouble::Busy),
            DatabaseErrorKind::ReadOnlyTransaction => Some(Trouble::ReadOnly),
            DatabaseErrorKind::UnableToSendCommand | DatabaseErrorKind::ClosedConnection => {
                Some(Trouble::of(info.message()).unwrap_or(Trouble::Gone))
            }
            DatabaseErrorKind::Unknown => Trouble::of(info.message()),
            _ => None,
        },
        _ => None,
    }
}

/// A short message of a store's error, for users without access to the log.
pub(crate) fn in_short(error: &StoreError) -> String {
    let cause = std::error::Error::source(error);
    let known = cause.and_then(|it| it.downcast_ref::<DbError>()).map(DbError::in_short);
    known.map_or_else(|| error.to_string(), ToOwned::to_owned)
}

impl From<DbError> for StoreError {
    fn from(error: DbError) -> Self {
        match error {
            error if error.passes() => Self::Unavailable(Box::new(error)),
            error if error.trouble() == Some(Trouble::Damaged) => Self::Damaged(Box::new(error)),
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
