//! What hosts tell by themselves.

use thiserror::Error;

use crate::ids::{BranchName, PrNumber, Sha};

/// Something that may have happened. What it says is read again before anything is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hint {
    /// A pull request may have changed.
    PullRequest(PrNumber),
    /// A branch may have moved.
    Branch {
        /// Its name.
        name: BranchName,
        /// Where to, as the delivery says; whoever knows that already need not ask.
        at: Option<Sha>,
    },
    /// Something was reported on a commit.
    Checks(Sha),
    /// A comment was written that may be a command.
    Comment {
        /// On which pull request.
        pr: PrNumber,
        /// The comment.
        id: u64,
    },
    /// A label was put on a pull request.
    Labelled {
        /// Which pull request.
        pr: PrNumber,
        /// The label.
        label: String,
        /// The login of who did it.
        by: String,
    },
    /// A label was taken off a pull request.
    Unlabelled {
        /// Which pull request.
        pr: PrNumber,
        /// The label.
        label: String,
        /// The login of who did it.
        by: String,
    },
}

/// A delivery that the host has signed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostEvent {
    /// The host's id for it, at most 100 bytes; the same when it is delivered again.
    pub id: String,
    /// The kind of event, as the host calls it.
    pub event: String,
    /// The owner and name of the repository; `None` for deliveries that are about none.
    pub repository: Option<(String, String)>,
    /// What may have happened; empty when it is nothing that matters here.
    pub hints: Vec<Hint>,
}

/// Why a delivery is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum DecodeError {
    /// It is not signed, or not by whoever shares our secret.
    #[error("the delivery is not signed with the secret of this host")]
    WrongSignature,
    /// It is signed, and cannot be read.
    #[error("the delivery cannot be read: {0}")]
    Malformed(&'static str),
}

/// Checks and reads deliveries of one host.
pub trait WebhookDecoder: Send + Sync {
    /// Reads a delivery. The signature is checked over the bytes as they came, before anything
    /// else is looked at. `header` finds a header by its lower-case name.
    fn decode(
        &self,
        header: &dyn Fn(&str) -> Option<String>,
        body: &[u8],
    ) -> Result<HostEvent, DecodeError>;
}
