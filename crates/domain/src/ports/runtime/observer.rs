//! Observations for metrics, logs and traces.

use std::net::IpAddr;

use crate::ports::QueueRef;
use crate::queue::Decision;
use crate::time::{Span, Timestamp};

/// An observation.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Observed<'a> {
    /// A step of a queue was committed.
    Step {
        /// The queue.
        queue: QueueRef,
        /// The name of the command or fact.
        input: &'static str,
        /// The decisions.
        decisions: &'a [Decision],
        /// The time for decision and commit.
        took: Span,
    },
    /// A commit conflicted with another one; the step is decided again.
    CommitConflict {
        /// The queue.
        queue: QueueRef,
    },
    /// An effect was run.
    EffectRun {
        /// The queue.
        queue: QueueRef,
        /// The effect's name.
        effect: &'static str,
        /// The outcome: `done`, `retried`, `lost`.
        outcome: &'static str,
        /// The duration of the call.
        took: Span,
    },
    /// A request was answered.
    Request {
        /// The operation's id.
        operation: &'a str,
        /// The HTTP status.
        status: u16,
        /// The duration.
        took: Span,
    },
    /// A request was shed because the server is overloaded.
    RequestShed {
        /// The exhausted class of requests: `read`, `write`, `upload`, `hook`; or `connection`.
        share: &'static str,
    },
    /// A token was refused.
    TokenRefused {
        /// The reason: `malformed`, `unknown`, `expired`, `revoked`, `throttled`, `identity`.
        reason: &'static str,
        /// Which rule an identity token of CI breaks.
        detail: Option<&'a str>,
        /// The address of the client.
        from: IpAddr,
        /// Refused tokens of this client in the current minute.
        count: u32,
    },
    /// A background task or the handler of a request panicked.
    Panicked {
        /// The task's name, or `request`.
        what: &'static str,
    },
    /// A git host was called.
    HostCall {
        /// The host's name, as it is configured.
        host: &'a str,
        /// The kind of call: one of a few names.
        call: &'static str,
        /// The outcome: `ok`, `not_found`, `rejected`, `conflict`, `rate_limited`, `unavailable`.
        outcome: &'static str,
        /// The duration.
        took: Span,
    },
    /// A git host reported its rate limit.
    HostQuota {
        /// The host's name, as it is configured.
        host: &'a str,
        /// The limited resource: `core`, `graphql`, …
        resource: &'static str,
        /// The calls allowed per period.
        limit: u64,
        /// The calls left in this period.
        remaining: u64,
        /// When the next period begins.
        resets_at: Timestamp,
    },
    /// The watch over waiting entries has checked all queues.
    Waits {
        /// Entries whose wait has no explanation: a bug.
        unexplained: u64,
        /// Effects that were lost without an answer and repeated.
        lost: u64,
    },
    /// An attempt to process an upload ended.
    Upload {
        /// The outcome: `read`, `failed`, `retried`, `lost`.
        outcome: &'static str,
        /// The duration.
        took: Span,
    },
    /// An attempt to deliver a webhook ended.
    WebhookDelivery {
        /// The outcome: `delivered`, `retried`, `failed`, `refused`.
        outcome: &'static str,
        /// The duration.
        took: Span,
    },
}

/// Receives observations. It runs on the caller's thread, so it must be fast and must not fail.
pub trait Observer: Send + Sync {
    /// Receives an observation.
    fn observe(&self, seen: &Observed<'_>);
}
