//! What happens inside, for metrics, logs and traces.

use crate::queue::Decision;
use crate::time::Span;

use super::QueueRef;

/// Something seen.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Observed<'a> {
    /// A step of a queue was committed.
    Step {
        /// Which queue.
        queue: QueueRef,
        /// The kind of command or fact.
        input: &'static str,
        /// What was decided.
        decisions: &'a [Decision],
        /// How long the decision and the commit took.
        took: Span,
    },
    /// A commit met another one; the step is decided again.
    CommitConflict {
        /// Which queue.
        queue: QueueRef,
    },
    /// An effect was run.
    EffectRun {
        /// Which queue.
        queue: QueueRef,
        /// The effect's name.
        effect: &'static str,
        /// How it ended: `done`, `retried`, `lost`.
        outcome: &'static str,
        /// How long the call took.
        took: Span,
    },
    /// A request was answered.
    Request {
        /// The operation's id.
        operation: &'a str,
        /// The status.
        status: u16,
        /// How long it took.
        took: Span,
    },
    /// A webhook was posted, or was to be.
    WebhookDelivery {
        /// How it ended, as [`crate::webhook::Outcome::word`].
        outcome: &'static str,
        /// How long it took.
        took: Span,
    },
}

/// Sees what happens. Must be quick and must not fail; it runs on the caller's thread.
pub trait Observer: Send + Sync {
    /// Takes note.
    fn observe(&self, seen: &Observed<'_>);
}
