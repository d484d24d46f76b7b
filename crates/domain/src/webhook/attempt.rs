//! Delivery attempts and their consequences.

use uuid::Uuid;

use crate::time::{Span, Timestamp};
use crate::words::words;

/// The most bytes of a response body that are stored.
pub const MAX_RESPONSE: usize = 4_096;

words! {
    /// The outcome of an attempt.
    Outcome {
        /// The receiver answered 2xx.
        Delivered = "delivered",
        /// The receiver answered with another status.
        Rejected = "rejected",
        /// The receiver did not answer in time.
        TimedOut = "timed_out",
        /// The connection failed or broke.
        Unreachable = "unreachable",
        /// The address is not allowed.
        Forbidden = "forbidden",
    }
}

/// The result of sending a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sent {
    /// The receiver answered.
    Answered {
        /// The status, 100 to 599.
        status: u16,
        /// Whether the receiver asked not to receive this message again.
        abort: bool,
        /// The delay from `Retry-After`; only with status 429 or 503.
        retry_after: Option<Span>,
        /// The beginning of the body, at most [`MAX_RESPONSE`] bytes.
        body: String,
    },
    /// The receiver did not answer in time.
    TimedOut,
    /// The connection failed or broke; holds the error.
    Unreachable(String),
    /// The address is not allowed; holds the rule.
    Forbidden(String),
}

/// The consequence of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The message is delivered.
    Delivered,
    /// The message is retried while the schedule has attempts left.
    Retry,
    /// The receiver refused this message: it is not retried.
    Abort,
    /// The receiver answered 410: its endpoint is disabled.
    Gone,
}

impl Sent {
    /// The outcome of the attempt.
    pub const fn outcome(&self) -> Outcome {
        match self {
            Self::Answered { status: 200..=299, .. } => Outcome::Delivered,
            Self::Answered { .. } => Outcome::Rejected,
            Self::TimedOut => Outcome::TimedOut,
            Self::Unreachable(_) => Outcome::Unreachable,
            Self::Forbidden(_) => Outcome::Forbidden,
        }
    }

    /// The consequence. Redirects are not followed and count as failures.
    pub const fn verdict(&self) -> Verdict {
        match self {
            Self::Answered { status: 200..=299, .. } => Verdict::Delivered,
            Self::Answered { status: 410, .. } => Verdict::Gone,
            Self::Answered { abort: true, .. } => Verdict::Abort,
            Self::Answered { .. } | Self::TimedOut | Self::Unreachable(_) | Self::Forbidden(_) => {
                Verdict::Retry
            }
        }
    }
}

/// A recorded attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Attempt {
    /// The message.
    pub message: Uuid,
    /// The number of the attempt for this message, from 1; replays continue the count.
    pub number: u32,
    /// When it started.
    pub at: Timestamp,
    /// Its duration.
    pub took: Span,
    /// Its outcome.
    pub outcome: Outcome,
    /// The status of the answer, if any.
    pub status: Option<u16>,
    /// The error, if there was no answer.
    pub error: Option<String>,
    /// The headers that were sent, with redacted signatures.
    pub headers: Vec<(String, String)>,
    /// The beginning of the response body, at most [`MAX_RESPONSE`] bytes.
    pub response: String,
    /// The time before which the receiver wants no further attempt.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub not_before: Option<Timestamp>,
}

impl Attempt {
    /// Records an attempt and its result.
    pub fn of(
        (message, number): (Uuid, u32),
        (at, took): (Timestamp, Span),
        headers: Vec<(String, String)>,
        sent: Sent,
    ) -> Self {
        let outcome = sent.outcome();
        let not_before = match &sent {
            Sent::Answered { retry_after, .. } => retry_after.map(|wait| at.plus(took).plus(wait)),
            Sent::TimedOut | Sent::Unreachable(_) | Sent::Forbidden(_) => None,
        };
        let (status, error, response) = match sent {
            Sent::Answered { status, body, .. } => (Some(status), None, cut(body)),
            Sent::TimedOut => (None, Some("no answer in time".to_owned()), String::new()),
            Sent::Unreachable(why) | Sent::Forbidden(why) => (None, Some(why), String::new()),
        };
        Self { message, number, at, took, outcome, status, error, headers, response, not_before }
    }
}

/// Truncates a text, and replaces NUL, which PostgreSQL does not store.
fn cut(text: String) -> String {
    let mut text = if text.contains('\0') { text.replace('\0', "\u{fffd}") } else { text };
    let end = (0..=MAX_RESPONSE.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
    text.truncate(end.unwrap_or(0));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(status: u16, abort: bool) -> Verdict {
        Sent::Answered { status, abort, retry_after: None, body: String::new() }.verdict()
    }

    #[test]
    fn only_2xx_statuses_deliver() {
        for status in 100..600 {
            let verdict = answered(status, false);
            assert_eq!(verdict == Verdict::Delivered, (200..300).contains(&status), "{status}");
            assert_eq!(verdict == Verdict::Gone, status == 410, "{status}");
        }
        assert_eq!(answered(200, true), Verdict::Delivered);
        assert_eq!(answered(410, true), Verdict::Gone);
        for status in [302, 400, 500] {
            assert_eq!(answered(status, true), Verdict::Abort, "{status}");
        }
        for sent in [Sent::TimedOut, Sent::Unreachable("x".into()), Sent::Forbidden("x".into())] {
            assert_eq!(sent.verdict(), Verdict::Retry);
        }
    }

    #[test]
    fn a_response_is_truncated_between_characters() {
        let body = "ä".repeat(3_000);
        let sent = Sent::Answered { status: 500, abort: false, retry_after: None, body };
        let times = (Timestamp::from_unix_seconds(0), Span::ZERO);
        let kept = Attempt::of((Uuid::nil(), 1), times, Vec::new(), sent);
        assert_eq!((kept.response.len(), kept.outcome), (MAX_RESPONSE, Outcome::Rejected));
        assert_eq!(cut(format!("x{}", "ä".repeat(3_000))).len(), MAX_RESPONSE - 1);
        assert_eq!(cut("a\0b".into()), "a\u{fffd}b");
    }
}
