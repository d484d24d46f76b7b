//! Fan-out: events become messages.

use std::collections::BTreeMap;

use signalbox_domain::ids::OrgId;
use signalbox_domain::ports::PublicEvent;
use signalbox_domain::time::Timestamp;
use signalbox_domain::webhook::{Content, Endpoint, Message};

use super::super::Error;
use super::WebhookService;

/// The most messages in one write.
const AT_ONCE: u32 = 250;
/// The most endpoints in one read.
const PAGE: u32 = 200;

impl WebhookService {
    /// Creates messages of new events for every endpoint that is on; returns their number. Call
    /// again until it returns 0.
    pub async fn fan_out(&self) -> Result<u64, Error> {
        let (mut after, mut made) = (None, 0);
        let mut newest: BTreeMap<OrgId, i64> = BTreeMap::new();
        loop {
            let page = self.store().every(after, PAGE).await?;
            let Some(last) = page.last() else { return Ok(made) };
            after = Some(last.id);
            for endpoint in page.iter().filter(|it| it.health.is_on()) {
                let known = newest.get(&endpoint.org).copied();
                let end = if let Some(end) = known {
                    end
                } else {
                    let end = self.parts.log.newest(endpoint.org).await?;
                    newest.insert(endpoint.org, end);
                    end
                };
                if end > endpoint.cursor {
                    made += self.feed(endpoint, end).await?;
                }
            }
        }
    }

    /// Creates messages for one endpoint, as many as its backlog allows.
    async fn feed(&self, endpoint: &Endpoint, end: i64) -> Result<u64, Error> {
        let (org, id) = (endpoint.org, endpoint.id);
        let waiting = u32::try_from(self.store().waiting(org, id).await?).unwrap_or(u32::MAX);
        let room = self.limits.backlog.saturating_sub(waiting).min(AT_ONCE);
        if room == 0 {
            return Ok(0);
        }
        let listed = &endpoint.settings.kinds;
        let kinds = if listed.is_empty() { self.default_kinds() } else { listed.clone() };
        let events = self.parts.log.after(org, endpoint.cursor, Some(&kinds), room).await?;
        let all = u32::try_from(events.len()).unwrap_or(u32::MAX) < room;
        let seen = events.last().map_or(endpoint.cursor, |event| event.position);
        // If all matching events were read, the filtered ones up to `end` are done, too.
        let to = if all { seen.max(end) } else { seen };
        let now: Timestamp = self.context.clock.now();
        let message = |event: PublicEvent| {
            let PublicEvent { id: event, position, kind, payload, request, .. } = event;
            Message::new((org, id), Content { event, position, kind, payload, request }, now)
        };
        let messages: Vec<Message> = events.into_iter().map(message).collect();
        let written = self.store().enqueue(org, id, (endpoint.cursor, to), &messages, None).await?;
        Ok(if written { u64::try_from(messages.len()).unwrap_or(0) } else { 0 })
    }
}
