//! The audit log.

use async_trait::async_trait;
use signalbox_domain::audit::AuditRecord;
use signalbox_domain::ids::OrgId;
use signalbox_domain::ports::{AuditFilter, AuditLog, AuditPlace, StoreError};
use signalbox_domain::time::Timestamp;

use super::MemoryDatabase;
use super::tables::Tables;

impl Tables {
    /// Writes a record, if there is one.
    pub(super) fn audit(&mut self, record: Option<&AuditRecord>) {
        if let Some(record) = record {
            let place = AuditPlace { at: record.at, id: record.id };
            self.audit.insert(place, record.clone());
        }
    }
}

fn wanted(filter: &AuditFilter, record: &AuditRecord) -> bool {
    let named = |repo: &signalbox_domain::ids::RepoName| {
        filter.repos.iter().any(|it| it.key(true) == repo.key(true))
    };
    filter.action.is_none_or(|action| record.action == action)
        && filter.token.is_none_or(|token| record.actor.token() == Some(token))
        && filter.object.as_ref().is_none_or(|object| record.object == *object)
        && (filter.repos.is_empty() || record.repo.as_ref().is_some_and(named))
        && filter.window.since.is_none_or(|since| record.at >= since)
        && filter.window.until.is_none_or(|until| record.at < until)
}

#[async_trait]
impl AuditLog for MemoryDatabase {
    async fn append(&self, record: &AuditRecord) -> Result<(), StoreError> {
        self.tables().audit(Some(record));
        Ok(())
    }

    async fn list(
        &self,
        org: Option<OrgId>,
        filter: &AuditFilter,
        before: Option<AuditPlace>,
        limit: u32,
    ) -> Result<Vec<AuditRecord>, StoreError> {
        let tables = self.tables();
        let records = tables.audit.iter().rev();
        let records = records
            .filter(|(place, _)| before.is_none_or(|before| **place < before))
            .map(|(_, record)| record)
            .filter(|record| org.is_none_or(|org| record.org == org) && wanted(filter, record));
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        Ok(records.take(limit).cloned().collect())
    }

    async fn prune(&self, before: Timestamp, limit: u32) -> Result<u64, StoreError> {
        let mut tables = self.tables();
        let mut gone = 0;
        while gone < u64::from(limit) {
            let oldest = tables.audit.first_entry().filter(|entry| entry.key().at < before);
            let Some(oldest) = oldest else { break };
            oldest.remove();
            gone += 1;
        }
        Ok(gone)
    }
}
