//! Periodic jobs.

use async_trait::async_trait;
use signalbox_domain::ports::{JOB_GRACE, JobLease, JobStore, LeasedJob, StoreError};
use signalbox_domain::time::Timestamp;
use uuid::Uuid;

use super::MemoryDatabase;

/// A periodic job.
#[derive(Clone, Debug)]
pub(super) struct JobRow {
    due_at: Timestamp,
    server: Option<Uuid>,
    lease: Option<(Uuid, Timestamp)>,
    failures: u32,
}

impl JobRow {
    /// When a server may lease it.
    pub(super) fn due_for(&self, by: Uuid) -> Timestamp {
        match (self.lease, self.server) {
            (Some((_, until)), _) => until,
            (None, Some(other)) if other != by => self.due_at.plus(JOB_GRACE),
            (None, _) => self.due_at,
        }
    }

    fn may_be_leased(&self, by: Uuid, now: Timestamp) -> bool {
        let own = self.server.is_none_or(|server| server == by);
        self.due_at <= now
            && self.lease.is_none_or(|(_, until)| until <= now)
            && (own || self.due_at.plus(JOB_GRACE) <= now)
    }
}

#[async_trait]
impl JobStore for MemoryDatabase {
    async fn declare(&self, jobs: &[(&str, Timestamp)], now: Timestamp) -> Result<(), StoreError> {
        let mut tables = self.tables();
        for (kind, latest) in jobs {
            let fresh = || JobRow { due_at: now, server: None, lease: None, failures: 0 };
            let row = tables.jobs.entry((*kind).to_owned()).or_insert_with(fresh);
            row.due_at = row.due_at.min(*latest);
        }
        Ok(())
    }

    async fn lease(
        &self,
        kinds: &[&str],
        server: Uuid,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<Vec<LeasedJob>, StoreError> {
        let mut tables = self.tables();
        let known = tables.jobs.iter_mut().filter(|(kind, _)| kinds.contains(&kind.as_str()));
        let mut due: Vec<_> = known.filter(|(_, row)| row.may_be_leased(server, now)).collect();
        due.sort_by_key(|(kind, row)| (row.due_at, (*kind).clone()));
        let lease = |(kind, row): (&String, &mut JobRow)| {
            let lease = Uuid::new_v5(&server, format!("{kind}:{}", now.unix_micros()).as_bytes());
            (row.server, row.lease) = (Some(server), Some((lease, until)));
            let token = JobLease { kind: kind.clone(), lease };
            LeasedJob { token, failures: row.failures }
        };
        Ok(due.into_iter().map(lease).collect())
    }

    async fn renew(&self, token: &JobLease, until: Timestamp) -> Result<bool, StoreError> {
        let mut tables = self.tables();
        let held = tables.jobs.get_mut(&token.kind).and_then(|row| row.lease.as_mut());
        let Some((_, end)) = held.filter(|(lease, _)| *lease == token.lease) else {
            return Ok(false);
        };
        *end = until;
        Ok(true)
    }

    async fn finish(
        &self,
        token: &JobLease,
        _: Timestamp,
        due_at: Timestamp,
        error: Option<&str>,
    ) -> Result<bool, StoreError> {
        let mut tables = self.tables();
        let row = tables.jobs.get_mut(&token.kind);
        let row = row.filter(|row| row.lease.is_some_and(|(lease, _)| lease == token.lease));
        let Some(row) = row else { return Ok(false) };
        row.failures = error.map_or(0, |_| row.failures + 1);
        (row.due_at, row.lease) = (due_at, None);
        Ok(true)
    }

    async fn hand_back(&self, server: Option<Uuid>) -> Result<u64, StoreError> {
        let mut tables = self.tables();
        let held = tables.jobs.values_mut().filter(|row| row.server.is_some());
        let mut freed = 0;
        for row in held.filter(|row| server.is_none() || row.server == server) {
            (row.server, row.lease) = (None, None);
            freed += 1;
        }
        Ok(freed)
    }
}
