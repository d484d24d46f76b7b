//! Webhook endpoints and their messages.

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
    /// The organization.
    pub org: OrgId,
    /// The endpoint.
    pub endpoint: EndpointId,
    /// The lease; a new one each time the endpoint is leased.
    pub lease: Uuid,
}

/// A leased endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeasedEndpoint {
    /// Proof of the lease.
    pub token: EndpointLease,
    /// The endpoint at the time of the lease.
    pub endpoint: Endpoint,
}

/// A filter for messages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MessageFilter {
    /// Only messages in this state.
    pub state: Option<MessageState>,
    /// Only messages of events with this name.
    pub kind: Option<String>,
    /// Only messages that were created in this window.
    pub made: Window,
}

/// Stores endpoints and messages. A method with an organization sees only its rows. Deleting an
/// endpoint deletes its messages and attempts. A method with an audit record writes it in the
/// transaction of the change, and only if something changes.
#[async_trait]
pub trait WebhookStore: Send + Sync {
    /// Writes a new endpoint; `false`, and nothing is written, if its organization already has
    /// `most`.
    async fn create(
        &self,
        endpoint: &Endpoint,
        most: u32,
        record: Option<&AuditRecord>,
    ) -> Result<bool, StoreError>;

    /// One endpoint.
    async fn endpoint(&self, org: OrgId, id: EndpointId) -> Result<Option<Endpoint>, StoreError>;

    /// The endpoints of an organization, oldest first.
    async fn endpoints(&self, org: OrgId) -> Result<Vec<Endpoint>, StoreError>;

    /// Endpoints of all organizations, ordered by id, after one, at most `limit`.
    async fn every(
        &self,
        after: Option<EndpointId>,
        limit: u32,
    ) -> Result<Vec<Endpoint>, StoreError>;

    /// Writes settings, secrets, health and cursor of an endpoint if its version is that of
    /// `endpoint`, and increments the version. `false`, and nothing is written, if the version
    /// differs or the endpoint does not exist.
    async fn save(
        &self,
        endpoint: &Endpoint,
        record: Option<&AuditRecord>,
    ) -> Result<bool, StoreError>;

    /// Deletes an endpoint; `false` if it does not exist.
    async fn delete(
        &self,
        org: OrgId,
        id: EndpointId,
        record: Option<&AuditRecord>,
    ) -> Result<bool, StoreError>;

    /// The number of pending messages of an endpoint.
    async fn waiting(&self, org: OrgId, id: EndpointId) -> Result<u64, StoreError>;

    /// Writes messages and moves the cursor from `from` to `to`, in one transaction, which
    /// increments the version if the cursor moves. Existing messages stay unchanged. `false`, and
    /// nothing is written, if the cursor is not at `from`, or the endpoint is off or deleted.
    async fn enqueue(
        &self,
        org: OrgId,
        id: EndpointId,
        (from, to): (i64, i64),
        messages: &[Message],
        record: Option<&AuditRecord>,
    ) -> Result<bool, StoreError>;

    /// Leases up to `limit` endpoints that are on, have a message due at `now` and are not under a
    /// valid lease, longest wait first. With `failing`, only endpoints whose last attempt failed,
    /// otherwise only the others. No endpoint has two valid leases.
    async fn lease(
        &self,
        limit: u32,
        failing: bool,
        holder: Uuid,
        (now, until): (Timestamp, Timestamp),
    ) -> Result<Vec<LeasedEndpoint>, StoreError>;

    /// Messages of a leased endpoint that are due at `now`, longest wait first; none if the lease
    /// was lost or the endpoint is off.
    async fn due(
        &self,
        token: EndpointLease,
        now: Timestamp,
        limit: u32,
    ) -> Result<Vec<Message>, StoreError>;

    /// Records an attempt under the next number, and updates its message and, if it is on, its
    /// endpoint by [`Message::after`] and [`crate::webhook::Health::after`]. `false`, and nothing
    /// is written, if the lease was lost; the message is then attempted again.
    async fn record(
        &self,
        token: EndpointLease,
        attempt: &Attempt,
        verdict: Verdict,
        jitter: Jitter,
    ) -> Result<bool, StoreError>;

    /// Ends a lease; the endpoint goes to the end of the line. Does nothing if the lease was lost.
    async fn release(&self, token: EndpointLease, now: Timestamp) -> Result<(), StoreError>;

    /// Ends every lease of `holder`, or all leases for `None`, which is only valid at the start of
    /// the only server on a database. Returns the number of ended leases.
    async fn hand_back(&self, holder: Option<Uuid>) -> Result<u64, StoreError>;

    /// Messages of an endpoint, newest first: up to `limit` after `after`, the last of the previous
    /// page.
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

    /// The attempts of messages of an endpoint, ordered by message and number.
    async fn attempts(
        &self,
        org: OrgId,
        id: EndpointId,
        messages: &[Uuid],
    ) -> Result<Vec<Attempt>, StoreError>;

    /// Replays up to `limit` messages that match the filter and are not pending, oldest first; each
    /// is due at `now`. Returns the number of replayed messages.
    async fn replay(
        &self,
        org: OrgId,
        id: EndpointId,
        filter: &MessageFilter,
        (now, limit): (Timestamp, u32),
        record: Option<&AuditRecord>,
    ) -> Result<u64, StoreError>;

    /// Replays a message; `false` if it is pending or does not exist.
    async fn replay_one(
        &self,
        org: OrgId,
        id: EndpointId,
        message: Uuid,
        now: Timestamp,
        record: Option<&AuditRecord>,
    ) -> Result<bool, StoreError>;

    /// Deletes up to `limit` messages that ended before a time, with their attempts; returns the
    /// number of deleted messages.
    async fn prune(&self, before: Timestamp, limit: u32) -> Result<u64, StoreError>;
}
