//! Words for messages to webhooks and for endpoints that are off.

use signalbox_domain::webhook::{MessageState, OffReason, Outcome};

use super::{Named, Tone, Word, word};

impl Named for MessageState {
    fn named(&self) -> Word {
        match self {
            Self::Pending => {
                word("Waiting for a try", "clock", Tone::Waiting, "it waits for its next try")
            }
            Self::Delivered => {
                word("Delivered", "check", Tone::Good, "the receiver answered with 2xx")
            }
            Self::Failed => word("Failed", "cross", Tone::Bad, "no try was answered with 2xx"),
            Self::Aborted => word(
                "Declined",
                "minus",
                Tone::Warning,
                "the receiver asked not to be sent this message again",
            ),
        }
    }
}

impl Named for Outcome {
    fn named(&self) -> Word {
        match self {
            Self::Delivered => {
                word("Delivered", "check", Tone::Good, "the receiver answered with 2xx")
            }
            Self::Rejected => word(
                "Rejected",
                "cross",
                Tone::Bad,
                "the receiver answered something else than 2xx",
            ),
            Self::TimedOut => word("Timed out", "clock", Tone::Bad, "there was no answer in time"),
            Self::Unreachable => {
                word("Unreachable", "warning", Tone::Bad, "there was no connection, or it broke")
            }
            Self::Forbidden => word(
                "Not allowed",
                "shield",
                Tone::Bad,
                "the address is one that nothing is sent to",
            ),
        }
    }
}

impl Named for OffReason {
    fn named(&self) -> Word {
        match self {
            Self::Requested => word("Off", "pause", Tone::Quiet, "somebody switched it off"),
            Self::Failing => word(
                "Off after failures",
                "cross",
                Tone::Bad,
                "every try failed for five days, so it was switched off",
            ),
            Self::Gone => word(
                "Off, receiver gone",
                "cross",
                Tone::Bad,
                "the receiver answered that it is gone, so it was switched off",
            ),
        }
    }
}
