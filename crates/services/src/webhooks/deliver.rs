//! Messages are sent.

use signalbox_domain::ports::{LeasedEndpoint, Outgoing, Posted};
use signalbox_domain::time::{Span, Timestamp};
use signalbox_domain::webhook::{
    ATTEMPTS, Attempt, Jitter, Message, Outcome, Sealed, Sent, Verdict,
};

use super::super::Error;
use super::{WebhookError, WebhookService};

/// How long a lease on an endpoint lasts, in seconds: a turn, the longest try that was begun in it,
/// and the time to write it down.
const LEASE_SECONDS: u32 = 60;
/// How long an endpoint's turn lasts, in seconds; a try that was begun is still ended.
const TURN_SECONDS: u32 = 30;

impl WebhookService {
    /// Leases up to `limit` endpoints that have something to be sent. With `failing` those whose last
    /// try failed, else the others.
    pub async fn lease(&self, limit: u32, failing: bool) -> Result<Vec<LeasedEndpoint>, Error> {
        let now = self.context.clock.now();
        let times = (now, now.plus(Span::seconds(LEASE_SECONDS)));
        Ok(self.store().lease(limit, failing, self.holder, times).await?)
    }

    /// When the turn of an endpoint ends that was leased now.
    pub fn turn_end(&self) -> Timestamp {
        self.context.clock.now().plus(Span::seconds(TURN_SECONDS))
    }

    /// What is to be sent to a leased endpoint now; nothing when its turn is over.
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

    /// Sends one message and writes down what came of it. `false` when the lease was lost.
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
        // A secret that cannot be read is the operator's mistake: no try was made, the message
        // waits, and the log tells why.
        let posted = self.parts.sender.post(&outgoing).await.map_err(WebhookError::from)?;
        let Posted { headers, sent } = posted;
        let took = self.context.clock.now().since(begun);
        let verdict = sent.verdict();
        let outcome = told(&sent, verdict, message);
        let seen = signalbox_domain::ports::Observed::WebhookDelivery { outcome, took };
        self.context.observer.observe(&seen);
        // The store gives it its number.
        let attempt = Attempt::of((message.id, 0), (begun, took), headers, sent);
        Ok(self.store().record(leased.token, &attempt, verdict, self.jitter()).await?)
    }

    /// Ends a lease.
    pub async fn release(&self, leased: &LeasedEndpoint) -> Result<(), Error> {
        Ok(self.store().release(leased.token, self.context.clock.now()).await?)
    }

    /// Ends the leases of this server; everybody's when it is the only one on the database and
    /// starts.
    pub async fn hand_back(&self, all: bool) -> Result<u64, Error> {
        let holder = (!all).then_some(self.holder);
        Ok(self.store().hand_back(holder).await?)
    }

    /// Removes messages that ended longer ago than `kept`. Returns how many; a caller that got any
    /// calls again.
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

/// How a try ended, as it is observed.
fn told(sent: &Sent, verdict: Verdict, message: &Message) -> &'static str {
    match verdict {
        Verdict::Delivered => "delivered",
        Verdict::Abort | Verdict::Gone => "failed",
        Verdict::Retry if sent.outcome() == Outcome::Forbidden => "refused",
        Verdict::Retry if message.failures + 1 >= ATTEMPTS => "failed",
        Verdict::Retry => "retried",
    }
}
