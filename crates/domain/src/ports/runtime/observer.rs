//! What happens inside, for metrics, logs and traces.

use crate::ports::QueueRef;
use crate::queue::Decision;
use crate::time::{Span, Timestamp};

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
    /// A request was turned away because the server has enough to do.
    RequestShed {
        /// The share of the work that was full: `read`, `write`, `upload`, `hook`.
        share: &'static str,
    },
    /// A loop of background work, or the work on a request, panicked.
    Panicked {
        /// The loop's name, or `request`.
        what: &'static str,
    },
    /// A git host was called.
    HostCall {
        /// The host's name, as it is configured.
        host: &'a str,
        /// What was asked: one of a few names.
        call: &'static str,
        /// How it ended: `ok`, `not_found`, `rejected`, `conflict`, `rate_limited`, `unavailable`.
        outcome: &'static str,
        /// How long it took.
        took: Span,
    },
    /// A git host said how much may still be asked of it.
    HostQuota {
        /// The host's name, as it is configured.
        host: &'a str,
        /// What is counted: `core`, `graphql`, …
        resource: &'static str,
        /// Calls that are allowed in a period.
        limit: u64,
        /// Calls that are left.
        remaining: u64,
        /// When the next period begins.
        resets_at: Timestamp,
    },
    /// The watch over waiting entries has looked at all queues.
    Waits {
        /// Entries that wait for nothing that is known: a fault of this program.
        unexplained: u64,
        /// Effects that were gone without an answer and were asked for again.
        lost: u64,
    },
    /// A try at reading an upload ended.
    Upload {
        /// How it ended: `read`, `failed`, `retried`, `lost`.
        outcome: &'static str,
        /// How long it took.
        took: Span,
    },
    /// A try at delivering a webhook ended.
    WebhookDelivery {
        /// How it ended: `delivered`, `retried`, `failed`, `refused`.
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
