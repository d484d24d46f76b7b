//! Endpoints of webhooks, and the messages on their way to them.

use async_trait::async_trait;
use uuid::Uuid;

use crate::audit::AuditRecord;
use crate::ids::OrgId;
use crate::ports::StoreError;
use crate::time::{Timestamp, Window};
use crate::webhook::{Attempt, Endpoint, EndpointId, Jitter, Message, MessageState, Verdict};

/// Proof of a lease on an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndpointLease {
    /// Whose.
    pub org: OrgId,
    /// The endpoint.
    pub endpoint: EndpointId,
    /// The lease; a new one each time the endpoint is leased.
    pub lease: Uuid,
}

/// An endpoint that was leased.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeasedEndpoint {
    /// Proof of the lease.
    pub token: EndpointLease,
    /// The endpoint as it was then.
    pub endpoint: Endpoint,
}

/// Messages that are asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MessageFilter {
    /// Only those in this state.
    pub state: Option<MessageState>,
    /// Only those of events with this name.
    pub kind: Option<String>,
    /// Only those that were made in this part of time.
    pub made: Window,
}

/// Keeps endpoints and messages. Whatever names an organization sees only what belongs to it.
/// Deleting an endpoint deletes its messages and tries. What takes an audit record writes it in the
/// transaction of the change, and not at all when nothing is changed.
#[async_trait]
pub trait WebhookStore: Send + Sync {
    /// Writes a new endpoint. `false` when its organization has `most` already; then nothing is
    /// written.
    async fn create(
        &self,
        endpoint: &Endpoint,
        most: u32,
        record: Option<&AuditRecord>,
    ) -> Result<bool, StoreError>;

    /// One endpoint.
    async fn endpoint(&self, org: OrgId, id: EndpointId) -> Result<Option<Endpoint>, StoreError>;

    /// The endpoints of an organization, in the order in which they were made.
    async fn endpoints(&self, org: OrgId) -> Result<Vec<Endpoint>, StoreError>;

    /// Endpoints of every organization by their id, after one, at most `limit`.
    async fn every(
        &self,
        after: Option<EndpointId>,
        limit: u32,
    ) -> Result<Vec<Endpoint>, StoreError>;

    /// Writes settings, secrets, health and cursor of an endpoint whose version is still that of
    /// `endpoint`; the version goes up by one. `false` when it is another, or there is no such
    /// endpoint: nothing is written.
    async fn save(
        &self,
        endpoint: &Endpoint,
        record: Option<&AuditRecord>,
    ) -> Result<bool, StoreError>;

    /// Deletes an endpoint. `false` when there is none.
    async fn delete(
        &self,
        org: OrgId,
        id: EndpointId,
        record: Option<&AuditRecord>,
    ) -> Result<bool, StoreError>;

    /// How many messages of an endpoint are pending.
    async fn waiting(&self, org: OrgId, id: EndpointId) -> Result<u64, StoreError>;

    /// Writes messages and moves the cursor from `from` to `to`, in one transaction; a cursor that
    /// moves is a new version. A message that is there already stays as it is. `false` when the
    /// cursor is elsewhere, or the endpoint is off or gone: nothing is written.
    async fn enqueue(
        &self,
        org: OrgId,
        id: EndpointId,
        (from, to): (i64, i64),
        messages: &[Message],
        record: Option<&AuditRecord>,
    ) -> Result<bool, StoreError>;

    /// Leases up to `limit` endpoints that are on, have a message due at `now` and are not under a
    /// lease that is still good, those first that have waited longest for their turn. With
    /// `failing` only those whose last try failed, else only the others. None is given to two at
    /// once.
    async fn lease(
        &self,
        limit: u32,
        failing: bool,
        holder: Uuid,
        (now, until): (Timestamp, Timestamp),
    ) -> Result<Vec<LeasedEndpoint>, StoreError>;

    /// Messages of a leased endpoint that are due at `now`, the one that waits longest first; none
    /// when the lease was lost or the endpoint is off.
    async fn due(
        &self,
        token: EndpointLease,
        now: Timestamp,
        limit: u32,
    ) -> Result<Vec<Message>, StoreError>;

    /// Keeps a try under the next free number, and writes what it does to its message and its
    /// endpoint, if that is on, by [`Message::after`] and [`crate::webhook::Health::after`]. `false` when the
    /// lease was lost: nothing is written, and the message comes again.
    async fn record(
        &self,
        token: EndpointLease,
        attempt: &Attempt,
        verdict: Verdict,
        jitter: Jitter,
    ) -> Result<bool, StoreError>;

    /// Ends a lease; the endpoint goes to the end of the line. Nothing happens when it was lost.
    async fn release(&self, token: EndpointLease, now: Timestamp) -> Result<(), StoreError>;

    /// Ends every lease of `holder`; everybody's for `None`, which only the start of the only server
    /// on a database may ask for. Returns how many.
    async fn hand_back(&self, holder: Option<Uuid>) -> Result<u64, StoreError>;

    /// Messages of an endpoint, newest first: up to `limit` that come after `after`, which is the
    /// last of the page before.
    async fn messages(
        &self,
        org: OrgId,
        id: EndpointId,
        filter: &MessageFilter,
        after: Option<(Timestamp, Uuid)>,
        limit: u32,
    ) -> Result<Vec<Message>, StoreError>;

    /// One message.
    async fn message(
        &self,
        org: OrgId,
        id: EndpointId,
        message: Uuid,
    ) -> Result<Option<Message>, StoreError>;

    /// The tries of messages of an endpoint, by message and number.
    async fn attempts(
        &self,
        org: OrgId,
        id: EndpointId,
        messages: &[Uuid],
    ) -> Result<Vec<Attempt>, StoreError>;

    /// Replays up to `limit` messages that are not pending and fit the filter, the oldest first:
    /// each is due at `now`. Returns how many.
    async fn replay(
        &self,
        org: OrgId,
        id: EndpointId,
        filter: &MessageFilter,
        (now, limit): (Timestamp, u32),
        record: Option<&AuditRecord>,
    ) -> Result<u64, StoreError>;

    /// Replays one message that is not pending. `false` when it is, or there is none.
    async fn replay_one(
        &self,
        org: OrgId,
        id: EndpointId,
        message: Uuid,
        now: Timestamp,
        record: Option<&AuditRecord>,
    ) -> Result<bool, StoreError>;

    /// Deletes up to `limit` messages that ended before that time, with their tries. Returns how
    /// many.
    async fn prune(&self, before: Timestamp, limit: u32) -> Result<u64, StoreError>;
}
