//! The store of lists and histories.

use async_trait::async_trait;
use signalbox_domain::ids::{EntryId, PrNumber, RunId};
use signalbox_domain::ports::{
    EntryFilter, HistoryStore, QueueRef, StoreError, SubmissionPlace, TestEnds,
};
use signalbox_domain::queue::{Entry, Move, PrState, TestRun};
use signalbox_domain::time::Window;

use super::MemoryDatabase;
use super::tables::QueueRow;

#[async_trait]
impl HistoryStore for MemoryDatabase {
    async fn entries_by_submission(
        &self,
        queue: QueueRef,
        filter: &EntryFilter,
        before: Option<SubmissionPlace>,
        limit: u32,
    ) -> Result<Vec<Entry>, StoreError> {
        let tables = self.tables();
        let Some(row) = tables.queue(queue) else { return Ok(Vec::new()) };
        let moves = moves(row);
        let concluded = |entry: &Entry, window: Window| {
            let ended = |it: &&Move| it.to.is_terminal() && window.contains(it.at);
            moves.iter().filter(ended).any(|it| it.entry == entry.id)
        };
        let found = row
            .entries
            .values()
            .filter(|entry| filter.state.is_none_or(|state| entry.state.name() == state))
            .filter(|entry| filter.concluded.is_none_or(|window| concluded(entry, window)))
            .filter(|entry| before.is_none_or(|before| SubmissionPlace::of(entry) < before));
        Ok(by_submission(found, limit))
    }

    async fn entries(&self, queue: QueueRef, prs: &[PrNumber]) -> Result<Vec<Entry>, StoreError> {
        let tables = self.tables();
        let Some(row) = tables.queue(queue) else { return Ok(Vec::new()) };
        let wanted = row.entries.values().filter(|entry| prs.contains(&entry.pr));
        let mut found: Vec<Entry> = wanted.map(|entry| row.with_targets(entry)).collect();
        found.sort_by_key(|entry| entry.pr);
        Ok(found)
    }

    async fn entries_of_branch(
        &self,
        queue: QueueRef,
        head_branch: &str,
        limit: u32,
    ) -> Result<Vec<Entry>, StoreError> {
        let tables = self.tables();
        let all = tables.queue(queue).into_iter().flat_map(|row| row.entries.values());
        let from_there =
            |entry: &&Entry| entry.pull_request.head_branch.as_deref() == Some(head_branch);
        Ok(by_submission(all.filter(from_there), limit))
    }

    async fn runs(&self, queue: QueueRef, runs: &[RunId]) -> Result<Vec<TestRun>, StoreError> {
        let tables = self.tables();
        let all = tables.queue(queue).into_iter().flat_map(|row| row.runs.values());
        let mut found: Vec<TestRun> = all.filter(|run| runs.contains(&run.id)).cloned().collect();
        found.sort_by_key(|run| run.number);
        Ok(found)
    }

    async fn test_ends(
        &self,
        queue: QueueRef,
        within: Window,
        offset: u32,
        limit: u32,
    ) -> Result<TestEnds, StoreError> {
        let tables = self.tables();
        let mut ends = tables.queue(queue).map(moves).unwrap_or_default();
        ends.retain(|it| it.from == Some(PrState::Testing) && within.contains(it.at));
        newest_first(&mut ends);
        let total = u64::try_from(ends.len()).unwrap_or(u64::MAX);
        let page = ends.into_iter().skip(count(offset)).take(count(limit));
        Ok(TestEnds { moves: page.collect(), total })
    }

    async fn moves_from(
        &self,
        queue: QueueRef,
        entries: &[EntryId],
        number: u64,
    ) -> Result<Vec<Move>, StoreError> {
        let tables = self.tables();
        let mut found = tables.queue(queue).map(moves).unwrap_or_default();
        found.retain(|it| entries.contains(&it.entry) && it.number >= number);
        Ok(found)
    }

    async fn moves_of(
        &self,
        queue: QueueRef,
        entry: EntryId,
        limit: u32,
    ) -> Result<Vec<Move>, StoreError> {
        let tables = self.tables();
        let mut found = tables.queue(queue).map(moves).unwrap_or_default();
        found.retain(|it| it.entry == entry);
        found.reverse();
        found.truncate(count(limit));
        Ok(found)
    }

    async fn passes(&self, queue: QueueRef, limit: u32) -> Result<Vec<Move>, StoreError> {
        let tables = self.tables();
        let mut found = tables.queue(queue).map(moves).unwrap_or_default();
        found.retain(|it| it.from == Some(PrState::Testing) && it.to == PrState::TestsPassed);
        newest_first(&mut found);
        found.truncate(count(limit));
        Ok(found)
    }
}

fn count(limit: u32) -> usize {
    usize::try_from(limit).unwrap_or(usize::MAX)
}

/// Entries, most recently submitted first, without their targets.
fn by_submission<'a>(entries: impl Iterator<Item = &'a Entry>, limit: u32) -> Vec<Entry> {
    let mut found: Vec<Entry> = entries.cloned().collect();
    found.sort_by_key(|entry| std::cmp::Reverse(SubmissionPlace::of(entry)));
    found.truncate(count(limit));
    found
}

fn newest_first(moves: &mut [Move]) {
    moves.sort_by_key(|it| std::cmp::Reverse((it.at, it.place())));
}

/// A queue's changes of state, oldest first.
fn moves(row: &QueueRow) -> Vec<Move> {
    let of_record = |record: &signalbox_domain::queue::JournalRecord| {
        let numbered = (0_u64..).zip(&record.decisions);
        numbered
            .filter_map(|(ordinal, it)| Move::of(record.number, ordinal, record.at, it))
            .collect::<Vec<_>>()
    };
    row.journal.values().flat_map(of_record).collect()
}
