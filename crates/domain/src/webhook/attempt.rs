//! One try at delivering a message, and what follows from it.

use uuid::Uuid;

use crate::time::{Span, Timestamp};
use crate::words::words;

/// The most bytes of an answer that are kept.
pub const MAX_RESPONSE: usize = 4_096;

words! {
    /// How a try ended.
    Outcome {
        /// The receiver took the message.
        Delivered = "delivered",
        /// The receiver answered something else than 2xx.
        Rejected = "rejected",
        /// There was no answer in time.
        TimedOut = "timed_out",
        /// There was no connection, or it broke.
        Unreachable = "unreachable",
        /// The address is one that messages are not sent to.
        Forbidden = "forbidden",
    }
}

/// What came back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sent {
    /// The receiver answered.
    Answered {
        /// The status, 100 to 599.
        status: u16,
        /// Whether it asked not to be sent this message again.
        abort: bool,
        /// How long it asked to be left alone; only statuses 429 and 503 ask.
        retry_after: Option<Span>,
        /// The beginning of its body, [`MAX_RESPONSE`] bytes at most.
        body: String,
    },
    /// There was no answer in time.
    TimedOut,
    /// There was no connection, or it broke; why.
    Unreachable(String),
    /// The address is one that messages are not sent to; why.
    Forbidden(String),
}

/// What follows from a try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The message is done.
    Delivered,
    /// It is tried again while the schedule has tries left.
    Retry,
    /// The receiver does not want this message: it is not tried again.
    Abort,
    /// The receiver is gone for good: its endpoint is switched off.
    Gone,
}

impl Sent {
    /// How the try ended.
    pub const fn outcome(&self) -> Outcome {
        match self {
            Self::Answered { status: 200..=299, .. } => Outcome::Delivered,
            Self::Answered { .. } => Outcome::Rejected,
            Self::TimedOut => Outcome::TimedOut,
            Self::Unreachable(_) => Outcome::Unreachable,
            Self::Forbidden(_) => Outcome::Forbidden,
        }
    }

    /// What follows. Redirects are not followed: they are failures as every other status.
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

/// A try as it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Attempt {
    /// Which message.
    pub message: Uuid,
    /// Which try of this message, from 1; counted over replays.
    pub number: u32,
    /// When it began.
    pub at: Timestamp,
    /// How long it took.
    pub took: Span,
    /// How it ended.
    pub outcome: Outcome,
    /// The status of the answer, if there was one.
    pub status: Option<u16>,
    /// Why there was none.
    pub error: Option<String>,
    /// The headers that were sent, signatures hidden.
    pub headers: Vec<(String, String)>,
    /// The beginning of the answer's body, [`MAX_RESPONSE`] bytes at most.
    pub response: String,
    /// Until when the receiver asked to be left alone.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub not_before: Option<Timestamp>,
}

impl Attempt {
    /// A try with what came of it.
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

/// The beginning of a text. NUL is no text to every database.
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
    fn only_two_hundreds_deliver() {
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
    fn an_answer_is_cut_between_characters() {
        let body = "ä".repeat(3_000);
        let sent = Sent::Answered { status: 500, abort: false, retry_after: None, body };
        let times = (Timestamp::from_unix_seconds(0), Span::ZERO);
        let kept = Attempt::of((Uuid::nil(), 1), times, Vec::new(), sent);
        assert_eq!((kept.response.len(), kept.outcome), (MAX_RESPONSE, Outcome::Rejected));
        assert_eq!(cut(format!("x{}", "ä".repeat(3_000))).len(), MAX_RESPONSE - 1);
        assert_eq!(cut("a\0b".into()), "a\u{fffd}b");
    }
}
