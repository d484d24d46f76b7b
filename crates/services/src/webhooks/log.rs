//! The delivery log, and replays.

use uuid::Uuid;

use signalbox_domain::audit::{AuditAction, AuditRecord};
use signalbox_domain::ids::OrgId;
use signalbox_domain::ports::MessageFilter;
use signalbox_domain::time::{Timestamp, Window};
use signalbox_domain::token::Caller;
use signalbox_domain::webhook::{Attempt, EndpointId, Message, MessageState};

use super::super::Error;
use super::{WebhookError, WebhookService};

/// The most messages that one call replays.
const MOST_REPLAYED: u32 = 10_000;

/// A page of messages with their attempts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeliveryPage {
    /// The messages, newest first, each with its attempts, oldest first.
    pub messages: Vec<(Message, Vec<Attempt>)>,
    /// Whether there is a next page.
    pub more: bool,
}

/// The messages to replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replay {
    /// This message.
    One(Uuid),
    /// Failed messages that were created in this window.
    Failed(Window),
    /// All ended messages that were created in this window, whatever their outcome.
    All(Window),
}

/// The result of a replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replayed {
    /// The number of replayed messages.
    pub messages: u64,
    /// Whether the limit of one call was reached, so that more messages may match.
    pub more: bool,
}

impl WebhookService {
    /// Messages of an endpoint with their attempts, newest first.
    pub async fn deliveries(
        &self,
        caller: &Caller,
        id: EndpointId,
        filter: &MessageFilter,
        after: Option<(Timestamp, Uuid)>,
        limit: u32,
    ) -> Result<DeliveryPage, Error> {
        Self::may(caller)?;
        self.known(caller.org, id).await?;
        let more = limit.saturating_add(1);
        let mut found = self.store().messages(caller.org, id, filter, after, more).await?;
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let more = found.len() > limit;
        found.truncate(limit);
        let ids: Vec<Uuid> = found.iter().map(|message| message.id).collect();
        let attempts = self.store().attempts(caller.org, id, &ids).await?;
        let with_tries = |message: Message| {
            let own = attempts.iter().filter(|attempt| attempt.message == message.id);
            let own = own.cloned().collect();
            (message, own)
        };
        Ok(DeliveryPage { messages: found.into_iter().map(with_tries).collect(), more })
    }

    /// A message with its attempts, oldest first.
    pub async fn delivery(
        &self,
        caller: &Caller,
        id: EndpointId,
        message: Uuid,
    ) -> Result<(Message, Vec<Attempt>), Error> {
        Self::may(caller)?;
        self.known(caller.org, id).await?;
        let found = self.store().message(caller.org, id, message).await?;
        let found = found.ok_or(WebhookError::UnknownMessage { endpoint: id, message })?;
        let attempts = self.store().attempts(caller.org, id, &[message]).await?;
        Ok((found, attempts))
    }

    /// Replays messages, under the same ids.
    pub async fn replay(
        &self,
        caller: &Caller,
        id: EndpointId,
        what: Replay,
    ) -> Result<Replayed, Error> {
        Self::may(caller)?;
        let endpoint = self.known(caller.org, id).await?;
        if !endpoint.health.is_on() {
            return Err(WebhookError::Off(id).into());
        }
        let (org, now) = (caller.org, self.context.clock.now());
        let record = self.note((caller, id), AuditAction::WebhookReplayed, audit_fields(what));
        let filter = match what {
            Replay::One(message) => return self.replay_one((org, id), message, now, &record).await,
            Replay::Failed(made) => {
                MessageFilter { state: Some(MessageState::Failed), kind: None, made }
            }
            Replay::All(made) => MessageFilter { state: None, kind: None, made },
        };
        let messages =
            self.store().replay(org, id, &filter, (now, MOST_REPLAYED), Some(&record)).await?;
        Ok(Replayed { messages, more: messages >= u64::from(MOST_REPLAYED) })
    }

    async fn replay_one(
        &self,
        (org, id): (OrgId, EndpointId),
        message: Uuid,
        now: Timestamp,
        record: &AuditRecord,
    ) -> Result<Replayed, Error> {
        if self.store().replay_one(org, id, message, now, Some(record)).await? {
            return Ok(Replayed { messages: 1, more: false });
        }
        let error = match self.store().message(org, id, message).await? {
            Some(_) => WebhookError::Pending(message),
            None => WebhookError::UnknownMessage { endpoint: id, message },
        };
        Err(error.into())
    }
}

/// The fields of a replay in the audit log.
fn audit_fields(what: Replay) -> [(&'static str, String); 2] {
    let (which, made) = match what {
        Replay::One(message) => {
            return [("replay", "one message".to_owned()), ("messageId", message.to_string())];
        }
        Replay::Failed(made) => ("failed messages", made),
        Replay::All(made) => ("all messages", made),
    };
    let time = |at: Option<Timestamp>| at.map_or("…".to_owned(), |at| at.to_string());
    let made = format!("{} to {}", time(made.since), time(made.until));
    [("replay", which.to_owned()), ("made", made)]
}
