//! Fakes of all ports of webhooks: event log, sender, secrets and catalog.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use signalbox_domain::ids::OrgId;
use signalbox_domain::ports::{
    EventCatalog, EventLog, NewSecret, Outgoing, Posted, PublicEvent, SecretError, StoreError,
    WebhookSecrets, WebhookSender,
};
use signalbox_domain::time::Timestamp;
use signalbox_domain::webhook::{EndpointId, Sealed, Sent};
use uuid::Uuid;

/// The kinds of events in the catalog.
const KINDS: [&str; 3] = ["pull_request.merged", "pull_request.failed", "queue.state_changed"];

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The event log, sender, secrets and catalog of webhooks, in memory.
#[derive(Debug, Default)]
pub struct FakeWebhooks {
    events: Mutex<Vec<PublicEvent>>,
    answers: Mutex<VecDeque<Sent>>,
    posted: Mutex<Vec<(String, Uuid, String)>>,
    secrets: Mutex<u32>,
}

impl FakeWebhooks {
    /// Appends an event to the log; returns its id.
    pub fn happens(&self, org: OrgId, kind: &str, at: Timestamp) -> Uuid {
        let mut events = locked(&self.events);
        let number = events.len() + 1;
        let id = Uuid::new_v5(&org.0, format!("{number}").as_bytes());
        let position = i64::try_from(number).unwrap_or(i64::MAX) * 10;
        let payload = format!("{{\"type\":\"{kind}\",\"number\":{number}}}");
        let kind = kind.to_owned();
        events.push(PublicEvent {
            position,
            id,
            org,
            repo: None,
            kind,
            at,
            payload,
            request: None,
        });
        id
    }

    /// Sets the next answers of receivers; after these, every message is accepted.
    pub fn answer(&self, answers: impl IntoIterator<Item = Sent>) {
        locked(&self.answers).extend(answers);
    }

    /// The messages posted since the last call: URL, id, body.
    pub fn posted(&self) -> Vec<(String, Uuid, String)> {
        std::mem::take(&mut locked(&self.posted))
    }
}

#[async_trait]
impl EventLog for FakeWebhooks {
    async fn after(
        &self,
        org: OrgId,
        position: i64,
        kinds: Option<&[String]>,
        limit: u32,
    ) -> Result<Vec<PublicEvent>, StoreError> {
        let events = locked(&self.events);
        let found = events.iter().filter(|it| it.org == org && it.position > position);
        let found = found.filter(|it| kinds.is_none_or(|kinds| kinds.contains(&it.kind)));
        Ok(found.take(usize::try_from(limit).unwrap_or(usize::MAX)).cloned().collect())
    }

    async fn event(&self, org: OrgId, id: Uuid) -> Result<Option<PublicEvent>, StoreError> {
        Ok(locked(&self.events).iter().find(|it| it.org == org && it.id == id).cloned())
    }

    async fn newest(&self, org: OrgId) -> Result<i64, StoreError> {
        let events = locked(&self.events);
        Ok(events.iter().rev().find(|it| it.org == org).map_or(0, |it| it.position))
    }

    async fn prune(&self, before: Timestamp, _: u32) -> Result<u64, StoreError> {
        let mut events = locked(&self.events);
        let kept = events.len();
        events.retain(|it| it.at >= before);
        Ok(u64::try_from(kept - events.len()).unwrap_or(0))
    }
}

#[async_trait]
impl WebhookSender for FakeWebhooks {
    async fn post(&self, outgoing: &Outgoing<'_>) -> Result<Posted, SecretError> {
        let post = (outgoing.url.to_owned(), outgoing.id, outgoing.payload.to_owned());
        locked(&self.posted).push(post);
        let taken = Sent::Answered {
            status: 200,
            abort: false,
            retry_after: None,
            body: "taken".to_owned(),
        };
        let sent = locked(&self.answers).pop_front().unwrap_or(taken);
        let headers = vec![
            ("webhook-id".to_owned(), outgoing.id.to_string()),
            ("webhook-signature".to_owned(), format!("{} hidden", outgoing.secrets.len())),
        ];
        Ok(Posted { headers, sent })
    }

    fn check_url(&self, url: &str) -> Result<(), String> {
        if url.starts_with("https://") {
            Ok(())
        } else {
            Err("must start with https://".to_owned())
        }
    }
}

impl WebhookSecrets for FakeWebhooks {
    fn create(&self, endpoint: EndpointId) -> Result<NewSecret, SecretError> {
        let mut made = locked(&self.secrets);
        *made += 1;
        let text = format!("whsec_{made}");
        let sealed = Sealed { key: "k".to_owned(), text: format!("{endpoint} {made}") };
        Ok(NewSecret { text, sealed })
    }

    fn reseal(&self, _: EndpointId, sealed: &Sealed) -> Result<Option<Sealed>, SecretError> {
        let fresh = || Sealed { key: "k".to_owned(), text: sealed.text.clone() };
        Ok((sealed.key != "k").then(fresh))
    }
}

impl EventCatalog for FakeWebhooks {
    fn kinds(&self) -> Vec<String> {
        KINDS.map(str::to_owned).to_vec()
    }

    fn defaults(&self) -> Vec<String> {
        KINDS.map(str::to_owned).into_iter().filter(|it| it.starts_with("pull_request.")).collect()
    }

    fn example(&self, kind: &str) -> Option<String> {
        KINDS.contains(&kind).then(|| format!("{{\"type\":\"{kind}\"}}"))
    }
}
