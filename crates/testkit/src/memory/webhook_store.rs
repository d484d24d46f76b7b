//! The store of webhook endpoints and messages.

use std::collections::BTreeMap;

use async_trait::async_trait;
use signalbox_domain::audit::AuditRecord;
use signalbox_domain::ids::OrgId;
use signalbox_domain::ports::{
    EndpointLease, LeasedEndpoint, MessageFilter, StoreError, WebhookStore,
};
use signalbox_domain::time::Timestamp;
use signalbox_domain::webhook::{
    Attempt, Endpoint, EndpointId, Jitter, Message, MessageState, Verdict,
};
use uuid::Uuid;

use super::MemoryDatabase;
use super::database::refused;
use super::tables::Lease;

/// The tables of webhooks.
#[derive(Debug, Default)]
pub(super) struct WebhookTables {
    endpoints: BTreeMap<EndpointId, Row>,
    messages: BTreeMap<(EndpointId, Uuid), Message>,
    attempts: BTreeMap<(EndpointId, Uuid, u32), Attempt>,
}

#[derive(Debug)]
struct Row {
    endpoint: Endpoint,
    lease: Option<Lease>,
    turn: u64,
    served_at: Timestamp,
}

impl WebhookTables {
    fn own(&self, org: OrgId, id: EndpointId) -> Option<&Row> {
        self.endpoints.get(&id).filter(|row| row.endpoint.org == org)
    }

    fn own_mut(&mut self, org: OrgId, id: EndpointId) -> Option<&mut Row> {
        self.endpoints.get_mut(&id).filter(|row| row.endpoint.org == org)
    }

    fn held(&mut self, token: EndpointLease) -> Option<&mut Row> {
        let held = |lease: &Lease| lease.id == token.lease;
        self.own_mut(token.org, token.endpoint).filter(|row| row.lease.as_ref().is_some_and(held))
    }

    fn messages_of(&self, org: OrgId, id: EndpointId) -> impl Iterator<Item = &Message> {
        let of = move |(key, message): &(&(EndpointId, Uuid), &Message)| {
            key.0 == id && message.org == org
        };
        self.messages.iter().filter(of).map(|(_, message)| message)
    }

    /// When an endpoint that is on first lacked messages for new events; `None` if all have been
    /// created.
    pub(super) fn behind(&self, newest: &BTreeMap<OrgId, i64>) -> Option<Timestamp> {
        let on = self.endpoints.values().map(|row| &row.endpoint).filter(|it| it.health.is_on());
        let behind = on.filter(|it| newest.get(&it.org).is_some_and(|end| *end > it.cursor));
        behind.map(|it| it.created_at).min()
    }

    /// When the next message of an endpoint that is on is due.
    pub(super) fn next_delivery(&self) -> Option<Timestamp> {
        let on = self.endpoints.values().filter(|row| row.endpoint.health.is_on());
        let next = on.filter_map(|row| {
            let endpoint = &row.endpoint;
            let messages = self.messages_of(endpoint.org, endpoint.id);
            let next = messages.filter_map(|message| message.next_at).min()?;
            Some(row.lease.as_ref().map_or(next, |lease| lease.until.max(next)))
        });
        next.min()
    }

    fn is_due(&self, endpoint: &Endpoint, now: Timestamp) -> bool {
        self.messages_of(endpoint.org, endpoint.id).any(|it| it.next_at.is_some_and(|at| at <= now))
    }
}

fn cut<T>(mut rows: Vec<T>, limit: u32) -> Vec<T> {
    rows.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
    rows
}

fn fits(filter: &MessageFilter, message: &Message) -> bool {
    filter.state.is_none_or(|state| state == message.state)
        && filter.kind.as_ref().is_none_or(|kind| *kind == message.kind)
        && filter.made.contains(message.created_at)
}

#[async_trait]
impl WebhookStore for MemoryDatabase {
    async fn create(
        &self,
        endpoint: &Endpoint,
        most: u32,
        record: Option<&AuditRecord>,
    ) -> Result<bool, StoreError> {
        let mut tables = self.tables();
        let endpoints = &mut tables.webhooks.endpoints;
        let there = endpoints.values().filter(|row| row.endpoint.org == endpoint.org).count();
        if u32::try_from(there).unwrap_or(u32::MAX) >= most {
            return Ok(false);
        }
        if endpoints.contains_key(&endpoint.id) {
            return Err(refused(format!("duplicate endpoint {}", endpoint.id)));
        }
        let served_at = endpoint.created_at;
        let row = Row { endpoint: endpoint.clone(), lease: None, turn: 0, served_at };
        endpoints.insert(endpoint.id, row);
        tables.audit(record);
        Ok(true)
    }

    async fn endpoint(&self, org: OrgId, id: EndpointId) -> Result<Option<Endpoint>, StoreError> {
        Ok(self.tables().webhooks.own(org, id).map(|row| row.endpoint.clone()))
    }

    async fn endpoints(&self, org: OrgId) -> Result<Vec<Endpoint>, StoreError> {
        let tables = self.tables();
        let all = tables.webhooks.endpoints.values().map(|row| &row.endpoint);
        let mut own: Vec<Endpoint> = all.filter(|it| it.org == org).cloned().collect();
        own.sort_by_key(|it| (it.created_at, it.id));
        Ok(own)
    }

    async fn every(
        &self,
        after: Option<EndpointId>,
        limit: u32,
    ) -> Result<Vec<Endpoint>, StoreError> {
        let tables = self.tables();
        let all = tables.webhooks.endpoints.values().map(|row| row.endpoint.clone());
        Ok(cut(all.filter(|it| after.is_none_or(|after| it.id > after)).collect(), limit))
    }

    async fn save(
        &self,
        endpoint: &Endpoint,
        record: Option<&AuditRecord>,
    ) -> Result<bool, StoreError> {
        let mut tables = self.tables();
        let row = tables.webhooks.own_mut(endpoint.org, endpoint.id);
        let Some(row) = row.filter(|row| row.endpoint.version == endpoint.version) else {
            return Ok(false);
        };
        let (version, created_at) = (endpoint.version + 1, row.endpoint.created_at);
        row.endpoint = Endpoint { version, created_at, ..endpoint.clone() };
        tables.audit(record);
        Ok(true)
    }

    async fn delete(
        &self,
        org: OrgId,
        id: EndpointId,
        record: Option<&AuditRecord>,
    ) -> Result<bool, StoreError> {
        let mut tables = self.tables();
        let webhooks = &mut tables.webhooks;
        if webhooks.own(org, id).is_none() {
            return Ok(false);
        }
        webhooks.endpoints.remove(&id);
        webhooks.messages.retain(|(of, _), _| *of != id);
        webhooks.attempts.retain(|(of, _, _), _| *of != id);
        tables.audit(record);
        Ok(true)
    }

    async fn waiting(&self, org: OrgId, id: EndpointId) -> Result<u64, StoreError> {
        let tables = self.tables();
        let waiting = tables.webhooks.messages_of(org, id).filter(|it| it.next_at.is_some());
        Ok(u64::try_from(waiting.count()).unwrap_or(u64::MAX))
    }

    async fn enqueue(
        &self,
        org: OrgId,
        id: EndpointId,
        (from, to): (i64, i64),
        messages: &[Message],
        record: Option<&AuditRecord>,
    ) -> Result<bool, StoreError> {
        let mut tables = self.tables();
        let webhooks = &mut tables.webhooks;
        let row = webhooks.own_mut(org, id).map(|row| &mut row.endpoint);
        let Some(endpoint) = row.filter(|it| it.cursor == from && it.health.is_on()) else {
            return Ok(false);
        };
        endpoint.cursor = to;
        endpoint.version += i64::from(from != to);
        for message in messages.iter().filter(|it| it.org == org && it.endpoint == id) {
            webhooks.messages.entry((id, message.id)).or_insert_with(|| message.clone());
        }
        tables.audit(record);
        Ok(true)
    }

    async fn lease(
        &self,
        limit: u32,
        failing: bool,
        holder: Uuid,
        (now, until): (Timestamp, Timestamp),
    ) -> Result<Vec<LeasedEndpoint>, StoreError> {
        let mut tables = self.tables();
        let webhooks = &mut tables.webhooks;
        let free = |row: &&Row| {
            let health = row.endpoint.health;
            health.is_on()
                && health.failing_since.is_some() == failing
                && row.lease.as_ref().is_none_or(|lease| lease.until <= now)
                && webhooks.is_due(&row.endpoint, now)
        };
        let free = webhooks.endpoints.values().filter(free);
        let mut free: Vec<_> = free.map(|row| (row.served_at, row.endpoint.id)).collect();
        free.sort_unstable();
        let mut leased = Vec::new();
        for (_, id) in cut(free, limit) {
            let Some(row) = webhooks.endpoints.get_mut(&id) else { continue };
            row.turn += 1;
            let lease = Uuid::new_v5(&holder, format!("{id}:{}", row.turn).as_bytes());
            row.lease = Some(Lease { id: lease, holder, until });
            let endpoint = row.endpoint.clone();
            let token = EndpointLease { org: endpoint.org, endpoint: id, lease };
            leased.push(LeasedEndpoint { token, endpoint });
        }
        Ok(leased)
    }

    async fn due(
        &self,
        token: EndpointLease,
        now: Timestamp,
        limit: u32,
    ) -> Result<Vec<Message>, StoreError> {
        let mut tables = self.tables();
        let webhooks = &mut tables.webhooks;
        if !webhooks.held(token).is_some_and(|row| row.endpoint.health.is_on()) {
            return Ok(Vec::new());
        }
        let all = webhooks.messages_of(token.org, token.endpoint);
        let due = all.filter(|it| it.next_at.is_some_and(|at| at <= now));
        let mut due: Vec<Message> = due.cloned().collect();
        due.sort_by_key(|it| (it.next_at, it.position, it.id));
        Ok(cut(due, limit))
    }

    async fn record(
        &self,
        token: EndpointLease,
        attempt: &Attempt,
        verdict: Verdict,
        jitter: Jitter,
    ) -> Result<bool, StoreError> {
        let mut tables = self.tables();
        let webhooks = &mut tables.webhooks;
        let (key, at) = ((token.endpoint, attempt.message), attempt.at.plus(attempt.took));
        let message = webhooks.messages.get(&key).filter(|it| it.org == token.org).cloned();
        let (Some(row), Some(message)) = (webhooks.held(token), message) else { return Ok(false) };
        let endpoint = &mut row.endpoint;
        if endpoint.health.is_on() {
            let health = endpoint.health.after(verdict, at);
            endpoint.version += i64::from(health != endpoint.health);
            endpoint.health = health;
        }
        let after = message.after(verdict, at, jitter, attempt.not_before);
        let kept = Attempt { number: after.tries, ..attempt.clone() };
        webhooks.attempts.insert((key.0, key.1, kept.number), kept);
        webhooks.messages.insert(key, after);
        Ok(true)
    }

    async fn release(&self, token: EndpointLease, now: Timestamp) -> Result<(), StoreError> {
        if let Some(row) = self.tables().webhooks.held(token) {
            (row.lease, row.served_at) = (None, now);
        }
        Ok(())
    }

    async fn hand_back(&self, holder: Option<Uuid>) -> Result<u64, StoreError> {
        let mut ended = 0;
        for row in self.tables().webhooks.endpoints.values_mut() {
            let of = |lease: &Lease| holder.is_none_or(|holder| lease.holder == holder);
            if row.lease.as_ref().is_some_and(of) {
                row.lease = None;
                ended += 1;
            }
        }
        Ok(ended)
    }

    async fn messages(
        &self,
        org: OrgId,
        id: EndpointId,
        filter: &MessageFilter,
        after: Option<(Timestamp, Uuid)>,
        limit: u32,
    ) -> Result<Vec<Message>, StoreError> {
        let tables = self.tables();
        let wanted = |it: &&Message| {
            fits(filter, it) && after.is_none_or(|after| (it.created_at, it.id) < after)
        };
        let found = tables.webhooks.messages_of(org, id).filter(wanted);
        let mut found: Vec<Message> = found.cloned().collect();
        found.sort_by_key(|it| std::cmp::Reverse((it.created_at, it.id)));
        Ok(cut(found, limit))
    }

    async fn message(
        &self,
        org: OrgId,
        id: EndpointId,
        message: Uuid,
    ) -> Result<Option<Message>, StoreError> {
        let tables = self.tables();
        let found = tables.webhooks.messages.get(&(id, message));
        Ok(found.filter(|it| it.org == org).cloned())
    }

    async fn attempts(
        &self,
        org: OrgId,
        id: EndpointId,
        messages: &[Uuid],
    ) -> Result<Vec<Attempt>, StoreError> {
        let tables = self.tables();
        if tables.webhooks.own(org, id).is_none() {
            return Ok(Vec::new());
        }
        let wanted =
            |(of, message, _): &(EndpointId, Uuid, u32)| *of == id && messages.contains(message);
        let found = tables.webhooks.attempts.iter().filter(|(key, _)| wanted(key));
        Ok(found.map(|(_, attempt)| attempt.clone()).collect())
    }

    async fn replay(
        &self,
        org: OrgId,
        id: EndpointId,
        filter: &MessageFilter,
        (now, limit): (Timestamp, u32),
        record: Option<&AuditRecord>,
    ) -> Result<u64, StoreError> {
        let mut tables = self.tables();
        let webhooks = &mut tables.webhooks;
        let ended = |it: &&Message| it.state != MessageState::Pending && fits(filter, it);
        let found = webhooks.messages_of(org, id).filter(ended);
        let mut found: Vec<_> = found.map(|it| (it.created_at, it.id)).collect();
        found.sort_unstable();
        let found = cut(found, limit);
        for (_, message) in &found {
            if let Some(it) = webhooks.messages.get_mut(&(id, *message)) {
                *it = it.clone().replayed(now);
            }
        }
        tables.audit(record.filter(|_| !found.is_empty()));
        Ok(u64::try_from(found.len()).unwrap_or(u64::MAX))
    }

    async fn replay_one(
        &self,
        org: OrgId,
        id: EndpointId,
        message: Uuid,
        now: Timestamp,
        record: Option<&AuditRecord>,
    ) -> Result<bool, StoreError> {
        let mut tables = self.tables();
        let found = tables.webhooks.messages.get_mut(&(id, message));
        let found = found.filter(|it| it.org == org && it.state != MessageState::Pending);
        let Some(found) = found else { return Ok(false) };
        *found = found.clone().replayed(now);
        tables.audit(record);
        Ok(true)
    }

    async fn prune(&self, before: Timestamp, limit: u32) -> Result<u64, StoreError> {
        let mut tables = self.tables();
        let webhooks = &mut tables.webhooks;
        let old = webhooks.messages.iter().filter_map(|(key, it)| Some((it.ended_at?, *key)));
        let mut old: Vec<_> = old.filter(|(at, _)| *at < before).collect();
        old.sort_unstable();
        let old = cut(old, limit);
        for (_, key) in &old {
            webhooks.messages.remove(key);
            webhooks.attempts.retain(|(id, message, _), _| (*id, *message) != *key);
        }
        Ok(u64::try_from(old.len()).unwrap_or(u64::MAX))
    }
}
