//! The store of the outbox.

use async_trait::async_trait;
use signalbox_domain::ids::RunId;
use signalbox_domain::ports::{
    Backlog, Failing, FailingEffect, LeaseToken, Leased, Outbox, QueueRef, StoreError,
};
use signalbox_domain::queue::{Effect, EffectClass};
use signalbox_domain::time::Timestamp;
use uuid::Uuid;

use super::MemoryDatabase;
use super::tables::{Lease, OutboxRow, Tables};

#[async_trait]
impl Outbox for MemoryDatabase {
    async fn lease(
        &self,
        class: EffectClass,
        limit: u32,
        holder: Uuid,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<Vec<Leased>, StoreError> {
        let mut tables = self.tables();
        let mut free: Vec<(Timestamp, i64)> = tables
            .outbox
            .iter()
            .filter(|(_, row)| row.is_free(class, now))
            .map(|(id, row)| (row.due_at, *id))
            .collect();
        free.sort_unstable();
        free.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        let mut leased = Vec::with_capacity(free.len());
        for (_, id) in free {
            tables.last_lease += 1;
            let lease = Uuid::from_u128(tables.last_lease);
            if let Some(row) = tables.outbox.get_mut(&id) {
                leased.push(Leased {
                    token: LeaseToken { row: id, lease },
                    queue: row.queue,
                    number: row.number,
                    effect: row.effect.clone(),
                    attempts: row.attempts,
                    failing_since: row.failing_since,
                    request: row.request.clone(),
                });
                row.attempts += 1;
                row.lease = Some(Lease { id: lease, holder, until });
            }
        }
        Ok(leased)
    }

    async fn renew(&self, token: LeaseToken, until: Timestamp) -> Result<bool, StoreError> {
        let mut tables = self.tables();
        let lease = leased_row(&mut tables, token).and_then(|row| row.lease.as_mut());
        Ok(lease.map(|lease| lease.until = until).is_some())
    }

    async fn finish(&self, token: LeaseToken) -> Result<bool, StoreError> {
        let mut tables = self.tables();
        let held = leased_row(&mut tables, token).is_some();
        if held {
            tables.outbox.remove(&token.row);
        }
        Ok(held)
    }

    async fn retry(
        &self,
        token: LeaseToken,
        at: Timestamp,
        failing_since: Timestamp,
        error: &str,
    ) -> Result<bool, StoreError> {
        let mut tables = self.tables();
        let Some(row) = leased_row(&mut tables, token) else { return Ok(false) };
        row.due_at = at;
        row.failing_since = Some(failing_since);
        row.last_error = Some(error.replace('\0', ""));
        row.lease = None;
        Ok(true)
    }

    async fn revoke_checks(&self, queue: QueueRef, run: RunId) -> Result<u64, StoreError> {
        Ok(remove(&mut self.tables(), |row| {
            row.queue == queue
                && matches!(&row.effect, Effect::RunChecks(checks) if checks.run == run)
        }))
    }

    async fn answering(&self, queue: QueueRef) -> Result<Vec<RunId>, StoreError> {
        let tables = self.tables();
        let answers = |row: &&OutboxRow| {
            row.queue == queue && matches!(row.effect, Effect::BuildCandidate(_) | Effect::Land(_))
        };
        Ok(tables.outbox.values().filter(answers).filter_map(|row| row.effect.run()).collect())
    }

    async fn hand_back(&self, holder: Option<Uuid>) -> Result<u64, StoreError> {
        let mut tables = self.tables();
        let mut given_back = 0;
        for row in tables.outbox.values_mut() {
            // It was due when it was leased, so without its lease it is due immediately.
            if row.lease.take_if(|lease| holder.is_none_or(|it| lease.holder == it)).is_some() {
                given_back += 1;
            }
        }
        Ok(given_back)
    }

    async fn failing(
        &self,
        queue: Option<QueueRef>,
        before: Timestamp,
        limit: u32,
    ) -> Result<Failing, StoreError> {
        let tables = self.tables();
        let mut longest: Vec<(i64, FailingEffect)> = tables
            .outbox
            .iter()
            .filter(|(_, row)| queue.is_none_or(|queue| row.queue == queue))
            .filter_map(|(id, row)| {
                let since = row.failing_since.filter(|since| *since <= before)?;
                let failing = FailingEffect {
                    queue: row.queue,
                    number: row.number,
                    effect: row.effect.clone(),
                    since,
                    attempts: row.attempts,
                    error: row.last_error.clone().unwrap_or_default(),
                };
                Some((*id, failing))
            })
            .collect();
        longest.sort_unstable_by_key(|(id, it)| (it.since, *id));
        let count = u64::try_from(longest.len()).unwrap_or(u64::MAX);
        longest.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        Ok(Failing { count, longest: longest.into_iter().map(|(_, it)| it).collect() })
    }

    async fn backlog(&self, class: EffectClass, now: Timestamp) -> Result<Backlog, StoreError> {
        let tables = self.tables();
        let due = || tables.outbox.values().filter(|row| row.is_free(class, now));
        let count = u64::try_from(due().count()).unwrap_or(u64::MAX);
        Ok(Backlog { due: count, oldest: due().map(|row| row.due_at).min() })
    }
}

impl MemoryDatabase {
    /// The effects in the outbox, leased or not, in commit order, each with its last error, if any.
    pub fn waiting(&self) -> Vec<(Effect, Option<String>)> {
        let tables = self.tables();
        tables.outbox.values().map(|row| (row.effect.clone(), row.last_error.clone())).collect()
    }
}

impl OutboxRow {
    fn is_free(&self, class: EffectClass, now: Timestamp) -> bool {
        self.effect.class() == class
            && self.due_at <= now
            && self.lease.as_ref().is_none_or(|lease| lease.until <= now)
    }
}

/// The row of a lease, if the lease is valid.
fn leased_row(tables: &mut Tables, token: LeaseToken) -> Option<&mut OutboxRow> {
    let row = tables.outbox.get_mut(&token.row)?;
    row.lease.as_ref().is_some_and(|lease| lease.id == token.lease).then_some(row)
}

fn remove(tables: &mut Tables, unwanted: impl Fn(&OutboxRow) -> bool) -> u64 {
    let before = tables.outbox.len();
    tables.outbox.retain(|_, row| !unwanted(row));
    u64::try_from(before - tables.outbox.len()).unwrap_or(u64::MAX)
}
