//! Whether the git host of a queue can be used.

use crate::time::Timestamp;
use crate::words::words;

words!(
    /// Why a git host cannot be used. None of these is related to a change.
    HostTroubleKind {
        /// The host does not answer, or reports an internal failure.
        Unreachable = "UNREACHABLE",
        /// The host denies this installation a permission.
        AccessDenied = "ACCESS_DENIED",
        /// The host rejects the credential.
        CredentialRejected = "CREDENTIAL_REJECTED",
    }
);

/// An outage of the host.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct HostTrouble {
    /// The kind of outage.
    pub kind: HostTroubleKind,
    /// The host's or the system's message, cut to 500 characters.
    pub words: String,
}

/// Whether the host can be used.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct HostHealth {
    /// When the outage began; `None` without one.
    pub unreachable_since: Option<Timestamp>,
    /// The last error of the outage; `None` without one.
    #[cfg_attr(feature = "serde", serde(default))]
    pub trouble: Option<HostTrouble>,
}
