//! Webhook deliveries from hosts.

use thiserror::Error;

use crate::ids::{BranchName, PrNumber, Sha};

/// Something that may have happened on the host. The object is read from the host before the queue
/// acts on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hint {
    /// A pull request may have changed.
    PullRequest(PrNumber),
    /// A branch may have moved.
    Branch {
        /// Its name.
        name: BranchName,
        /// The new head according to the delivery; a reader that knows this head skips the read.
        at: Option<Sha>,
    },
    /// Something was reported on a commit.
    Checks(Sha),
    /// A comment was written that may be a command.
    Comment {
        /// The pull request.
        pr: PrNumber,
        /// The comment's id.
        id: u64,
    },
    /// A label was added to a pull request.
    Labelled {
        /// The pull request.
        pr: PrNumber,
        /// The label.
        label: String,
        /// The login of the user who changed it.
        by: String,
    },
    /// A label was removed from a pull request.
    Unlabelled {
        /// The pull request.
        pr: PrNumber,
        /// The label.
        label: String,
        /// The login of the user who changed it.
        by: String,
    },
}

/// A delivery with a valid signature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostEvent {
    /// The host's id for it, at most 100 bytes; the same when it is delivered again.
    pub id: String,
    /// The host's name for the kind of event.
    pub event: String,
    /// The owner and name of the repository; `None` for deliveries that are about none.
    pub repository: Option<(String, String)>,
    /// What may have happened; empty if the event is irrelevant to the queue.
    pub hints: Vec<Hint>,
}

/// Why a delivery is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum DecodeError {
    /// The signature is missing or invalid.
    #[error("invalid signature: the delivery is not signed with the secret of this host")]
    WrongSignature,
    /// The signature is valid, but the payload is not.
    #[error("malformed delivery: {0}")]
    Malformed(&'static str),
}

/// Verifies and decodes deliveries of one host.
pub trait WebhookDecoder: Send + Sync {
    /// Whether the headers contain a signature in the form of this host, valid or not. It is called
    /// before the body is received, so that an unsigned body is never held.
    fn has_signature(&self, header: &dyn Fn(&str) -> Option<String>) -> bool;

    /// Decodes a delivery. The signature is verified over the raw bytes before anything is parsed.
    /// `header` returns a header by its lower-case name.
    fn decode(
        &self,
        header: &dyn Fn(&str) -> Option<String>,
        body: &[u8],
    ) -> Result<HostEvent, DecodeError>;
}
