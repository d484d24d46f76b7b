//! Reads for API replies and pages.

use std::collections::BTreeMap;

use async_trait::async_trait;
use signalbox_domain::ids::{PrNumber, RunId};
use signalbox_domain::ports::{
    MetricsScope, MoveRecord, QueueDepth, QueueRef, ReadStore, StoreError,
};
use signalbox_domain::queue::{Decision, Entry, JournalRecord, PrState, Stay, TestRun};
use signalbox_domain::time::Timestamp;

use super::MemoryDatabase;
use super::tables::QueueRow;

#[async_trait]
impl ReadStore for MemoryDatabase {
    async fn entry(&self, queue: QueueRef, pr: PrNumber) -> Result<Option<Entry>, StoreError> {
        let tables = self.tables();
        Ok(tables.queue(queue).and_then(|row| {
            let entry = row.entries.values().find(|entry| entry.pr == pr)?;
            Some(row.with_targets(entry))
        }))
    }

    async fn run(&self, queue: QueueRef, run: RunId) -> Result<Option<TestRun>, StoreError> {
        Ok(self.tables().queue(queue).and_then(|row| row.runs.get(&run)).cloned())
    }

    async fn journal(
        &self,
        queue: QueueRef,
        after: u64,
        limit: u32,
    ) -> Result<Vec<JournalRecord>, StoreError> {
        let tables = self.tables();
        let records = tables.queue(queue).into_iter().flat_map(|row| row.journal.values());
        Ok(records.filter(|record| record.number > after).take(count(limit)).cloned().collect())
    }

    async fn moves_since(
        &self,
        queue: QueueRef,
        since: Timestamp,
    ) -> Result<Vec<MoveRecord>, StoreError> {
        let tables = self.tables();
        let row = tables.queue(queue);
        Ok(row.into_iter().flat_map(moves).filter(|seen| seen.at >= since).collect())
    }

    async fn stays_since(
        &self,
        scope: MetricsScope,
        since: Timestamp,
    ) -> Result<Vec<(QueueRef, Stay)>, StoreError> {
        let tables = self.tables();
        let rows = tables.queues.values().filter(|row| is_in(row, scope));
        let moves = rows.flat_map(|row| moves(row).map(|it| (row.reference(), it)));
        let stays = moves.filter_map(|(queue, it)| Some((queue, Stay::of(it.at, &it.decision)?)));
        Ok(stays.filter(|(_, stay)| stay.at >= since).collect())
    }

    async fn depths(&self, scope: MetricsScope) -> Result<Vec<QueueDepth>, StoreError> {
        let tables = self.tables();
        let mut depths: Vec<QueueDepth> = tables
            .queues
            .values()
            .filter(|row| !row.header.deleted && is_in(row, scope))
            .filter_map(|row| {
                Some(QueueDepth {
                    queue: row.reference(),
                    repo: tables.repo_name(&row.header)?.clone(),
                    branch: row.header.branch.clone(),
                    counts: counts(row),
                })
            })
            .collect();
        depths.sort_by(|one, other| (&one.repo, &one.branch).cmp(&(&other.repo, &other.branch)));
        Ok(depths)
    }
}

fn count(limit: u32) -> usize {
    usize::try_from(limit).unwrap_or(usize::MAX)
}

fn is_in(row: &QueueRow, scope: MetricsScope) -> bool {
    row.header.org == scope.org && scope.repo.is_none_or(|repo| row.header.repo == repo)
}

/// A queue's changes of state, oldest first.
fn moves(row: &QueueRow) -> impl Iterator<Item = MoveRecord> {
    row.journal.values().flat_map(|record| {
        record
            .decisions
            .iter()
            .filter(|it| matches!(it, Decision::Moved(_)))
            .map(move |decision| MoveRecord { at: record.at, decision: decision.clone() })
    })
}

fn counts(row: &QueueRow) -> Vec<(PrState, bool, u64)> {
    let mut counts = BTreeMap::<(PrState, bool), u64>::new();
    for entry in row.live() {
        let run = entry.state.run().and_then(|run| row.runs.get(&run));
        let bisection = run.is_some_and(|run| run.bisection);
        *counts.entry((entry.state.name(), bisection)).or_default() += 1;
    }
    counts.into_iter().map(|((state, bisection), count)| (state, bisection, count)).collect()
}
