//! Labels for webhook messages and for endpoints that are off.

use signalbox_domain::webhook::{MessageState, OffReason, Outcome};

use super::{Named, Tone, Word, word};

impl Named for MessageState {
    fn named(&self) -> Word {
        match self {
            Self::Pending => word(
                "Waiting to be sent",
                "clock",
                Tone::Waiting,
                "it waits for its next delivery attempt",
            ),
            Self::Delivered => {
                word("Delivered", "check", Tone::Good, "the receiver responded with 2xx")
            }
            Self::Failed => {
                word("Failed", "cross", Tone::Bad, "no delivery attempt got a 2xx response")
            }
            Self::Aborted => {
                word("Declined", "minus", Tone::Warning, "the receiver declined this message")
            }
        }
    }
}

impl Named for Outcome {
    fn named(&self) -> Word {
        match self {
            Self::Delivered => {
                word("Delivered", "check", Tone::Good, "the receiver responded with 2xx")
            }
            Self::Rejected => word(
                "Rejected",
                "cross",
                Tone::Bad,
                "the receiver responded with another status than 2xx",
            ),
            Self::TimedOut => {
                word("Timed out", "clock", Tone::Bad, "the receiver did not respond in time")
            }
            Self::Unreachable => {
                word("Unreachable", "warning", Tone::Bad, "the connection failed or was lost")
            }
            Self::Forbidden => {
                word("Not allowed", "shield", Tone::Bad, "the address is not allowed")
            }
        }
    }
}

impl Named for OffReason {
    fn named(&self) -> Word {
        match self {
            Self::Requested => word("Off", "pause", Tone::Quiet, "a user turned it off"),
            Self::Failing => word(
                "Off after failures",
                "cross",
                Tone::Bad,
                "all delivery attempts failed for five days",
            ),
            Self::Gone => word(
                "Off, receiver gone",
                "cross",
                Tone::Bad,
                "the receiver responded with 410 Gone",
            ),
        }
    }
}
