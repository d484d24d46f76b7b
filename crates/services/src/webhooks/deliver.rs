//! Delivery of messages.

use signalbox_domain::ports::{LeasedEndpoint, Outgoing, Posted};
use signalbox_domain::time::{Span, Timestamp};
use signalbox_domain::webhook::{
    ATTEMPTS, Attempt, Jitter, Message, Outcome, Sealed, Sent, Verdict,
};

use super::super::Error;
use super::{WebhookError, WebhookService};

/// The duration of a lease on an endpoint, in seconds: a turn, the longest attempt started in it,
/// and the time to record it.
const LEASE_SECONDS: u32 = 60;
/// The duration of an endpoint's turn, in seconds; an attempt that has started is completed.
const TURN_SECONDS: u32 = 30;

impl WebhookService {
    /// Leases up to `limit` endpoints with due messages: with `failing` the endpoints whose last
    /// attempt failed, otherwise the others.
    pub async fn lease(&self, limit: u32, failing: bool) -> Result<Vec<LeasedEndpoint>, Error> {
        let now = self.context.clock.now();
        let times = (now, now.plus(Span::seconds(LEASE_SECONDS)));
        Ok(self.store().lease(limit, failing, self.holder, times).await?)
    }

    /// When the turn of an endpoint that is leased now ends.
    pub fn turn_end(&self) -> Timestamp {
        self.context.clock.now().plus(Span::seconds(TURN_SECONDS))
    }

    /// The due messages of a leased endpoint; none when its turn is over.
    pub async fn due(
        &self,
        leased: &LeasedEndpoint,
        turn_end: Timestamp,
        limit: u32,
    ) -> Result<Vec<Message>, Error> {
        let now = self.context.clock.now();
        if now >= turn_end {
            return Ok(Vec::new());
        }
        Ok(self.store().due(leased.token, now, limit).await?)
    }

    /// Sends one message and records the attempt; `false` if the lease was lost.
    pub async fn deliver(&self, leased: &LeasedEndpoint, message: &Message) -> Result<bool, Error> {
        let endpoint = &leased.endpoint;
        let begun = self.context.clock.now();
        let secrets: Vec<Sealed> = endpoint.signing(begun).cloned().collect();
        let outgoing = Outgoing {
            endpoint: endpoint.id,
            url: &endpoint.settings.url,
            secrets: &secrets,
            id: message.id,
            at: begun,
            payload: &message.payload,
        };
        // A secret that cannot be opened is a configuration error: no attempt is recorded, the
        // message waits, and the error is logged.
        let posted = self.parts.sender.post(&outgoing).await.map_err(WebhookError::from)?;
        let Posted { headers, sent } = posted;
        let took = self.context.clock.now().since(begun);
        let verdict = sent.verdict();
        let outcome = outcome_name(&sent, verdict, message);
        let seen = signalbox_domain::ports::Observed::WebhookDelivery { outcome, took };
        self.context.observer.observe(&seen);
        // The store assigns the number.
        let attempt = Attempt::of((message.id, 0), (begun, took), headers, sent);
        Ok(self.store().record(leased.token, &attempt, verdict, self.jitter()).await?)
    }

    /// Ends a lease.
    pub async fn release(&self, leased: &LeasedEndpoint) -> Result<(), Error> {
        Ok(self.store().release(leased.token, self.context.clock.now()).await?)
    }

    /// Ends the leases of this server; with `all`, every lease, which is only valid at the start of
    /// the only server on a database.
    pub async fn hand_back(&self, all: bool) -> Result<u64, Error> {
        let holder = (!all).then_some(self.holder);
        Ok(self.store().hand_back(holder).await?)
    }

    /// Deletes messages that ended longer than `kept` ago; returns their number. Call again until
    /// it returns 0.
    pub async fn prune(&self, kept: Span) -> Result<u64, Error> {
        let before = self.context.clock.now().minus(kept);
        Ok(self.store().prune(before, 1_000).await?)
    }

    fn jitter(&self) -> Jitter {
        let id = self.context.ids.new_id();
        let [one, two, ..] = *id.as_bytes();
        Jitter::new(u16::from_be_bytes([one, two]))
    }
}

/// The name of an attempt's outcome in observations.
fn outcome_name(sent: &Sent, verdict: Verdict, message: &Message) -> &'static str {
    match verdict {
        Verdict::Delivered => "delivered",
        Verdict::Abort | Verdict::Gone => "failed",
        Verdict::Retry if sent.outcome() == Outcome::Forbidden => "refused",
        Verdict::Retry if message.failures + 1 >= ATTEMPTS => "failed",
        Verdict::Retry => "retried",
    }
}
