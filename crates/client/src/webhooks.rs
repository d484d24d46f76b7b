//! Webhooks.

use futures_util::Stream;
use serde::{Deserialize, Serialize};

use crate::paging::{next, pages};
use crate::{Client, ClientError, Done, Reply};

/// A new endpoint.
#[derive(Clone, Debug, Serialize)]
pub struct NewWebhook {
    /// Where messages are posted.
    pub url: String,
    /// The events that it gets; none means all.
    pub events: Vec<String>,
    /// A description.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Whether it gets messages.
    pub enabled: bool,
}

/// A change of an endpoint; an omitted field is unchanged.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WebhookChange {
    /// The endpoint.
    pub webhook_id: String,
    /// Where messages are posted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The events that it gets; none means all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub events: Option<Vec<String>>,
    /// A description.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Whether it gets messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// Whether it also gets what happened while it was off.
    pub catch_up: bool,
}

/// Which deliveries are listed.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DeliveriesQuery {
    /// The endpoint.
    pub webhook_id: String,
    /// Only those in this state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// The most that are listed, 1 to 100.
    pub page_size: u32,
    /// The page; empty for the first one.
    pub page_token: String,
}

/// Which messages to resend: one, the failed ones, or all since a time.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReplayQuery {
    /// The endpoint.
    pub webhook_id: String,
    /// This message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_id: Option<String>,
    /// The failed ones that were created at this time or later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed_since: Option<String>,
    /// All that were made at this time or later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// With `since`: all that were made at this time or earlier.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
}

/// An endpoint.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Webhook {
    /// Its id.
    pub id: String,
    /// Where messages are posted.
    pub url: String,
    /// Whether it gets messages.
    pub enabled: bool,
    /// Why it does not.
    pub off_reason: Option<String>,
    /// Since when messages do not arrive.
    pub failing_since: Option<String>,
    /// The events that it gets; none means all.
    #[serde(default)]
    pub events: Vec<String>,
}

/// An endpoint with its secret, which is shown once.
#[derive(Clone, Debug, Deserialize)]
pub struct WebhookSecret {
    /// The secret.
    pub secret: String,
    /// The endpoint.
    pub webhook: Webhook,
}

/// The endpoints.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Webhooks {
    /// In the order of creation.
    pub webhooks: Vec<Reply<Webhook>>,
    /// The names of all events.
    pub known_events: Vec<String>,
}

/// A message that was made as a test.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TestMessage {
    /// Its id.
    pub message_id: String,
}

/// A page of deliveries.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Deliveries {
    /// Newest first.
    pub deliveries: Vec<Reply<Delivery>>,
    /// The token of the next page; nothing or empty on the last one.
    pub next_page_token: Option<String>,
}

/// The state of a message.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Delivery {
    /// The message.
    pub id: String,
    /// When it was made.
    pub created_at: String,
    /// The event.
    pub event: String,
    /// Its state: `pending`, `delivered`, `failed` or `aborted`.
    pub state: String,
    /// When it is tried again.
    pub next_attempt_at: Option<String>,
    /// The attempts.
    #[serde(default)]
    pub attempts: Vec<Attempt>,
}

/// A delivery attempt.
#[derive(Clone, Debug, Deserialize)]
pub struct Attempt {
    /// The status that the receiver answered with.
    pub status: Option<u16>,
    /// Its outcome.
    #[serde(default)]
    pub outcome: String,
}

/// How many messages are resent.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct Replayed {
    /// How many.
    pub messages: u64,
    /// Whether another call has more to do.
    pub more: bool,
}

/// A request about an endpoint.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Of<'a> {
    webhook_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    overlap_hours: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    event: Option<&'a str>,
}

impl<'a> Of<'a> {
    const fn id(webhook_id: &'a str) -> Self {
        Self { webhook_id, overlap_hours: None, event: None }
    }
}

#[derive(Serialize)]
struct Nothing {}

impl Client {
    /// The endpoints of the organization.
    pub async fn webhooks(&self) -> Result<Reply<Webhooks>, ClientError> {
        self.call("webhooks/list", &Nothing {}).await
    }

    /// Creates an endpoint.
    pub async fn create_webhook(
        &self,
        new: &NewWebhook,
    ) -> Result<Reply<WebhookSecret>, ClientError> {
        self.call("webhooks/create", new).await
    }

    /// Changes an endpoint.
    pub async fn update_webhook(&self, change: &WebhookChange) -> Result<Reply<Done>, ClientError> {
        self.call("webhooks/update", change).await
    }

    /// Deletes an endpoint with its deliveries.
    pub async fn delete_webhook(&self, id: &str) -> Result<Reply<Done>, ClientError> {
        self.call("webhooks/delete", &Of::id(id)).await
    }

    /// Replaces the secret of an endpoint; the old one stays valid for the overlap.
    pub async fn rotate_webhook_secret(
        &self,
        id: &str,
        overlap_hours: u32,
    ) -> Result<Reply<WebhookSecret>, ClientError> {
        let request = Of { overlap_hours: Some(overlap_hours), ..Of::id(id) };
        self.call("webhooks/rotate-secret", &request).await
    }

    /// Sends an example of an event.
    pub async fn test_webhook(
        &self,
        id: &str,
        event: Option<&str>,
    ) -> Result<Reply<TestMessage>, ClientError> {
        self.call("webhooks/test", &Of { event, ..Of::id(id) }).await
    }

    /// A page of deliveries.
    pub async fn deliveries(
        &self,
        query: &DeliveriesQuery,
    ) -> Result<Reply<Deliveries>, ClientError> {
        self.call("webhooks/deliveries", query).await
    }

    /// Deliveries page by page, from that of the query on.
    pub fn all_deliveries(
        &self,
        query: DeliveriesQuery,
    ) -> impl Stream<Item = Result<Reply<Delivery>, ClientError>> + use<> {
        let client = self.clone();
        pages(query.page_token.clone(), async move |page_token| {
            let query = DeliveriesQuery { page_token, ..query.clone() };
            let page = client.deliveries(&query).await?.value;
            Ok((page.deliveries, page.next_page_token.and_then(next)))
        })
    }

    /// Resends messages, as many as one call handles.
    pub async fn replay(&self, query: &ReplayQuery) -> Result<Reply<Replayed>, ClientError> {
        self.call("webhooks/replay", query).await
    }
}
