//! The log of events.

use futures_util::Stream;
use serde::{Deserialize, Serialize};

use crate::paging::pages;
use crate::{Client, ClientError, Reply};

/// Which events are read.
#[derive(Clone, Debug, Serialize)]
pub struct EventsQuery {
    /// After this position; `0` is the start.
    pub after: String,
    /// The most that are read, 1 to 1,000.
    pub limit: u32,
    /// Only events with these names, separated by commas.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kinds: Option<String>,
}

/// A page of events.
#[derive(Clone, Debug, Deserialize)]
pub struct EventsPage {
    /// The oldest first.
    pub events: Vec<Reply<Event>>,
    /// The position to continue from.
    pub next: Option<String>,
    /// The newest position of the log.
    pub newest: Option<String>,
}

/// An event.
#[derive(Clone, Debug, Deserialize)]
pub struct Event {
    /// Its position in the log.
    pub position: String,
    /// Its name.
    #[serde(rename = "type")]
    pub kind: String,
    /// When it happened.
    pub timestamp: String,
    /// Its payload.
    pub payload: Payload,
}

/// The fields that payloads of all events share.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Payload {
    /// The pull request.
    pub pr_number: Option<u64>,
    /// The pull requests of a batch.
    pub pr_numbers: Option<Vec<u64>>,
    /// The test.
    pub test_case: Option<NamedTest>,
    /// The target branch of the queue.
    pub target_branch: Option<String>,
    /// The state of the queue.
    pub state: Option<String>,
    /// Why a pull request waits.
    pub queued_reason: Option<String>,
    /// Why it failed.
    pub failure_reason: Option<String>,
    /// Why it was cancelled.
    pub cancellation_reason: Option<String>,
    /// How it was merged.
    pub merged_reason: Option<String>,
}

/// A test.
#[derive(Clone, Debug, Deserialize)]
pub struct NamedTest {
    /// Its name.
    pub name: String,
}

impl Client {
    /// A page of events.
    pub async fn events(&self, query: &EventsQuery) -> Result<Reply<EventsPage>, ClientError> {
        self.read("events", query).await
    }

    /// The events after a position, page by page, until the newest one.
    pub fn all_events(
        &self,
        query: EventsQuery,
    ) -> impl Stream<Item = Result<Reply<Event>, ClientError>> + use<> {
        let client = self.clone();
        pages(query.after.clone(), async move |after| {
            let query = EventsQuery { after: after.clone(), ..query.clone() };
            let page = client.events(&query).await?.value;
            let more = page.next != page.newest;
            Ok((page.events, page.next.filter(|next| more && *next != after)))
        })
    }
}
