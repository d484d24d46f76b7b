//! Steps that could not be executed.

use std::any::Any;
use std::error::Error as _;

use signalbox_domain::ports::{StoreError, Version};

use super::Outcome;
use crate::Error;

/// What a step panicked with.
pub(super) type Panic = Box<dyn Any + Send>;

/// Why an attempt failed.
pub(super) enum Failed {
    /// A read failed; nothing was written.
    Load(StoreError),
    /// The commit on this version failed.
    Commit(Version, StoreError),
    /// A step panicked; nothing was written.
    Panicked(Panic),
    /// A commit of another server came first each time.
    Busy,
}

impl Failed {
    /// Whether each step would fail in the same way.
    pub(super) const fn concerns_all(&self) -> bool {
        match self {
            Self::Load(error) | Self::Commit(_, error) => {
                matches!(error, StoreError::Unavailable(_) | StoreError::Damaged(_))
            }
            Self::Panicked(_) => false,
            Self::Busy => true,
        }
    }

    /// The outcome of the step.
    pub(super) fn into_outcome(self) -> Result<Outcome, Panic> {
        match self {
            Self::Load(error) | Self::Commit(_, error) => Ok(Err(error.into())),
            Self::Panicked(panic) => Err(panic),
            Self::Busy => Ok(Err(Error::Busy)),
        }
    }

    /// A copy of the error, for the other steps that failed with it.
    pub(super) fn again(&self) -> Error {
        let (Self::Load(error) | Self::Commit(_, error)) = self else { return Error::Busy };
        let source = error.source().map_or_else(String::new, ToString::to_string).into();
        let error = match error {
            StoreError::Unavailable(_) => StoreError::Unavailable(source),
            StoreError::Damaged(_) => StoreError::Damaged(source),
            StoreError::Failed(_) => StoreError::Failed(source),
            StoreError::Corrupt { what, .. } => StoreError::Corrupt { what: what.clone(), source },
        };
        error.into()
    }
}
