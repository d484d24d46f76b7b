//! The agenda store.

use async_trait::async_trait;
use signalbox_domain::ports::{Agenda, AgendaStore, StoreError, Work};
use signalbox_domain::queue::EffectClass;
use signalbox_domain::time::Timestamp;
use uuid::Uuid;

use super::MemoryDatabase;
use super::tables::Lease;

fn later(due: Timestamp, lease: Option<&Lease>) -> Timestamp {
    lease.map_or(due, |lease| due.max(lease.until))
}

#[async_trait]
impl AgendaStore for MemoryDatabase {
    async fn agenda(&self, server: Uuid) -> Result<Agenda, StoreError> {
        let tables = self.tables();
        let mut newest_events = std::collections::BTreeMap::new();
        for event in tables.events.values() {
            newest_events.insert(event.org, event.position);
        }
        let of_class = |class: EffectClass| {
            let of = tables.outbox.values().filter(|row| row.effect.class() == class);
            of.map(|row| later(row.due_at, row.lease.as_ref())).min()
        };
        let living = tables.queues.values().filter(|row| !row.header.deleted);
        let uploads = tables.upload_jobs.values();
        let due = [
            (Work::Deadlines, living.filter_map(|row| row.next_deadline).min()),
            (Work::HostEffects, of_class(EffectClass::Host)),
            (Work::Checks, of_class(EffectClass::Checks)),
            (Work::Announcements, tables.announcements.values().filter_map(|it| it.due_at).min()),
            (Work::Uploads, uploads.map(|row| later(row.due_at, row.lease.as_ref())).min()),
            (Work::FanOut, tables.webhooks.behind(&newest_events)),
            (Work::Deliveries, tables.webhooks.next_delivery()),
            (Work::Jobs, tables.jobs.values().map(|row| row.due_for(server)).min()),
        ];
        let due = due.into_iter().filter_map(|(work, at)| Some((work, at?))).collect();
        Ok(Agenda { due, newest_events })
    }
}
