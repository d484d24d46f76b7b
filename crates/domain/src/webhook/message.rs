//! Webhook messages: one event for one endpoint.

use uuid::Uuid;

use crate::ids::OrgId;
use crate::time::Timestamp;
use crate::words::words;

use super::{EndpointId, Jitter, Verdict, next_attempt};

words! {
    /// The state of a message.
    MessageState {
        /// It waits for its next attempt.
        Pending = "pending",
        /// The receiver accepted it.
        Delivered = "delivered",
        /// Every attempt failed.
        Failed = "failed",
        /// The receiver refused it.
        Aborted = "aborted",
    }
}

/// The event of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Content {
    /// The event's id.
    pub event: Uuid,
    /// The event's position in the log; 0 for a test message.
    pub position: i64,
    /// The event's public name.
    pub kind: String,
    /// The body, exactly as it is sent.
    pub payload: String,
    /// The id of the request that caused the event.
    pub request: Option<String>,
}

/// A webhook message: one event for one endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The organization.
    pub org: OrgId,
    /// The endpoint.
    pub endpoint: EndpointId,
    /// Its id, the same in every attempt, so that receivers recognize repeats.
    pub id: Uuid,
    /// The event's id.
    pub event: Uuid,
    /// The event's position in the log; 0 for a test message.
    pub position: i64,
    /// The event's public name.
    pub kind: String,
    /// Its state.
    pub state: MessageState,
    /// Failures since it was created or replayed.
    pub failures: u32,
    /// The total number of attempts.
    pub tries: u32,
    /// When it is attempted next; only if it is pending.
    pub next_at: Option<Timestamp>,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was delivered, failed or aborted.
    pub ended_at: Option<Timestamp>,
    /// The body, exactly as it is sent.
    pub payload: String,
    /// The id of the request that caused the event, for logs.
    pub request: Option<String>,
}

impl Message {
    /// Creates a message for an event, due immediately. The id is derived from event and endpoint.
    pub fn new((org, endpoint): (OrgId, EndpointId), content: Content, now: Timestamp) -> Self {
        let Content { event, position, kind, payload, request } = content;
        Self {
            org,
            endpoint,
            id: Uuid::new_v5(&endpoint.0, event.as_bytes()),
            event,
            position,
            kind,
            state: MessageState::Pending,
            failures: 0,
            tries: 0,
            next_at: Some(now),
            created_at: now,
            ended_at: None,
            payload,
            request,
        }
    }

    /// The message after an attempt that ended at this time. `not_before`: the receiver wants no
    /// earlier attempt.
    #[must_use]
    pub fn after(
        self,
        verdict: Verdict,
        at: Timestamp,
        jitter: Jitter,
        not_before: Option<Timestamp>,
    ) -> Self {
        let failures = match verdict {
            Verdict::Delivered => self.failures,
            Verdict::Retry | Verdict::Abort | Verdict::Gone => self.failures.saturating_add(1),
        };
        let next_at = match verdict {
            Verdict::Retry => next_attempt(failures, at, jitter, not_before),
            Verdict::Delivered | Verdict::Abort | Verdict::Gone => None,
        };
        let state = match verdict {
            Verdict::Delivered => MessageState::Delivered,
            Verdict::Abort => MessageState::Aborted,
            Verdict::Gone => MessageState::Failed,
            Verdict::Retry if next_at.is_none() => MessageState::Failed,
            Verdict::Retry => MessageState::Pending,
        };
        let ended_at = next_at.is_none().then_some(at);
        let tries = self.tries.saturating_add(1);
        Self { state, failures, tries, next_at, ended_at, ..self }
    }

    /// Replays the message from the first attempt, under the same id.
    #[must_use]
    pub fn replayed(self, now: Timestamp) -> Self {
        let (state, next_at) = (MessageState::Pending, Some(now));
        Self { state, failures: 0, next_at, ended_at: None, ..self }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::ATTEMPTS;
    use super::*;
    use crate::time::Span;

    const START: Timestamp = Timestamp::from_unix_seconds(1_767_225_600);

    fn message() -> Message {
        let content = Content {
            event: Uuid::from_u128(1),
            position: 7,
            kind: "pull_request.merged".into(),
            payload: "{}".into(),
            request: None,
        };
        let place = (OrgId(Uuid::from_u128(2)), EndpointId(Uuid::from_u128(3)));
        Message::new(place, content, START)
    }

    fn verdict() -> impl Strategy<Value = Verdict> {
        prop_oneof![
            8 => Just(Verdict::Retry),
            1 => Just(Verdict::Delivered),
            1 => Just(Verdict::Abort),
            1 => Just(Verdict::Gone),
        ]
    }

    proptest! {
        #[test]
        fn a_message_is_pending_exactly_while_it_has_a_next_attempt(
            verdicts in prop::collection::vec((verdict(), any::<u16>()), 0..12)
        ) {
            let (mut message, id) = (message(), message().id);
            for (verdict, random) in verdicts {
                let Some(at) = message.next_at else { break };
                message = message.after(verdict, at, Jitter::new(random), None);
                let pending = message.state == MessageState::Pending;
                prop_assert_eq!(pending, message.next_at.is_some());
                prop_assert_eq!(pending, message.ended_at.is_none());
                prop_assert_eq!(message.id, id);
                prop_assert!(message.next_at.is_none_or(|next| next > at));
                prop_assert!(message.tries <= ATTEMPTS);
            }
            let again = message.replayed(START.plus(Span::days(1)));
            prop_assert_eq!((again.state, again.failures), (MessageState::Pending, 0));
        }
    }

    #[test]
    fn after_eight_failures_a_message_has_failed() {
        let mut message = message();
        for number in 1..=ATTEMPTS {
            let at = message.next_at.expect("another attempt");
            message = message.after(Verdict::Retry, at, Jitter::NONE, None);
            assert_eq!(message.tries, number);
        }
        assert_eq!((message.state, message.next_at), (MessageState::Failed, None));
        let replayed = message.replayed(START);
        assert_eq!((replayed.tries, replayed.failures), (ATTEMPTS, 0));
    }
}
