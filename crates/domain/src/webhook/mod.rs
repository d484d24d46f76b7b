//! Webhooks: endpoints, the retry schedule of their messages, and when an endpoint is disabled.
//! Pure, like [`crate::queue`].

mod attempt;
mod endpoint;
mod health;
mod message;
mod schedule;

pub use attempt::{Attempt, MAX_RESPONSE, Outcome, Sent, Verdict};
pub use endpoint::{
    Endpoint, EndpointId, EndpointSettings, MAX_DESCRIPTION, MAX_KINDS, MAX_SECRETS, MAX_URL,
    Sealed, Secret, SettingsError,
};
pub use health::{FAILING_DAYS, Health, Off, OffReason};
pub use message::{Content, Message, MessageState};
pub use schedule::{ATTEMPTS, Jitter, LONGEST_WAIT, next_attempt};
