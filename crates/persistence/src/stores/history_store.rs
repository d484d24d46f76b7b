//! The store of lists and histories.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use diesel::prelude::*;
use diesel_async::RunQueryDsl;
use futures_util::FutureExt;
use signalbox_domain::ids::{EntryId, PrNumber, RunId};
use signalbox_domain::ports::{
    EntryFilter, HistoryStore, QueueRef, StoreError, SubmissionPlace, TestEnds,
};
use signalbox_domain::queue::{Entry, Move, PrState, ReportedTargets, TestRun};
use signalbox_domain::time::{Timestamp, Window};

use super::{Conn, Store};
use crate::documents::{Kept, MoveDocument, column, number, values};
use crate::error::DbError;
use crate::schema::{entries, entry_moves, impacted_targets, runs};
use crate::sql_types::{FIRST, LAST, Sql, each};

/// A move: number, ordinal, time, document.
type MoveRow = (i64, i64, Timestamp, Kept<MoveDocument>);

/// The terminal states.
const TERMINAL: [PrState; 3] = [PrState::Merged, PrState::Failed, PrState::Cancelled];

/// Selects the entries of a queue.
macro_rules! entries_of {
    ($queue:expr) => {
        entries::table
            .filter(entries::queue_id.eq(Sql($queue.id)))
            .filter(entries::org_id.eq(Sql($queue.org)))
    };
}

/// Selects the moves of a queue.
macro_rules! moves_of {
    ($queue:expr) => {
        entry_moves::table
            .filter(entry_moves::queue_id.eq(Sql($queue.id)))
            .filter(entry_moves::org_id.eq(Sql($queue.org)))
    };
}

/// The columns of a [`MoveRow`].
macro_rules! move_columns {
    () => {
        (entry_moves::number, entry_moves::ordinal, entry_moves::at, entry_moves::document)
    };
}

#[async_trait]
impl HistoryStore for Store {
    async fn entries_by_submission(
        &self,
        queue: QueueRef,
        filter: &EntryFilter,
        before: Option<SubmissionPlace>,
        limit: u32,
    ) -> Result<Vec<Entry>, StoreError> {
        let mut query = entries_of!(queue)
            .order((entries::submitted_at.desc(), entries::pr_number.desc()))
            .limit(i64::from(limit))
            .select(entries::document)
            .into_boxed();
        if let Some(state) = filter.state {
            query = query.filter(entries::state.eq(state.as_str()));
        }
        if let Some(window) = filter.concluded {
            let (since, until) = bounds(window);
            // The entries are filtered by organization. Filtered here, too, SQLite would read the moves of
            // all queues of the organization.
            let concluded = entry_moves::table
                .filter(entry_moves::queue_id.eq(Sql(queue.id)))
                .filter(entry_moves::to_state.eq_any(TERMINAL.map(PrState::as_str)))
                .filter(entry_moves::at.between(Sql(since), Sql(until)))
                .select(entry_moves::entry_id);
            query = query.filter(entries::id.eq_any(concluded));
        }
        if let Some(SubmissionPlace { submitted_at, pr }) = before {
            let (at, pr) = (submitted_at, i64::from(pr.0));
            let same = entries::submitted_at.eq(Sql(at)).and(entries::pr_number.lt(pr));
            // The first condition is implied by the second, and is the one that an index has.
            query = query
                .filter(entries::submitted_at.le(Sql(at)))
                .filter(entries::submitted_at.lt(Sql(at)).or(same));
        }
        let mut conn = self.connection(queue).await?;
        let rows: Vec<Kept<Entry>> = query.load(&mut conn).await.map_err(DbError::from)?;
        Ok(values(rows))
    }

    async fn entries(&self, queue: QueueRef, prs: &[PrNumber]) -> Result<Vec<Entry>, StoreError> {
        let numbers: Vec<i64> = prs.iter().map(|pr| i64::from(pr.0)).collect();
        let entries = self.snapshot(
            queue,
            Box::new(move |conn| {
                async move {
                    let rows: Vec<Kept<Entry>> = entries_of!(queue)
                        .filter(entries::pr_number.eq_any(&numbers))
                        .order(entries::pr_number)
                        .select(entries::document)
                        .load(conn)
                        .await?;
                    let mut found = values(rows);
                    let mut targets = targets_of(conn, queue, &numbers).await?;
                    for entry in &mut found {
                        entry.targets = targets.remove(&i64::from(entry.pr.0));
                    }
                    Ok(found)
                }
                .boxed()
            }),
        );
        Ok(entries.await?)
    }

    async fn entries_of_branch(
        &self,
        queue: QueueRef,
        head_branch: &str,
        limit: u32,
    ) -> Result<Vec<Entry>, StoreError> {
        let mut conn = self.connection(queue).await?;
        let rows: Vec<Kept<Entry>> = entries_of!(queue)
            .filter(entries::head_branch.eq(head_branch))
            .order((entries::submitted_at.desc(), entries::pr_number.desc()))
            .limit(i64::from(limit))
            .select(entries::document)
            .load(&mut conn)
            .await
            .map_err(DbError::from)?;
        Ok(values(rows))
    }

    async fn runs(&self, queue: QueueRef, wanted: &[RunId]) -> Result<Vec<TestRun>, StoreError> {
        let mut conn = self.connection(queue).await?;
        let rows: Vec<Kept<TestRun>> = runs::table
            .filter(runs::queue_id.eq(Sql(queue.id)))
            .filter(runs::org_id.eq(Sql(queue.org)))
            .filter(runs::id.eq_any(each(wanted)))
            .select(runs::document)
            .load(&mut conn)
            .await
            .map_err(DbError::from)?;
        let mut found = values(rows);
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
        let ends = self.snapshot(
            queue,
            Box::new(move |conn| {
                async move {
                    let (since, until) = bounds(within);
                    let all = moves_of!(queue)
                        .filter(entry_moves::from_state.eq(PrState::Testing.as_str()))
                        .filter(entry_moves::at.between(Sql(since), Sql(until)));
                    let total: i64 = all.count().get_result(conn).await?;
                    let rows: Vec<MoveRow> = all
                        .order((
                            entry_moves::at.desc(),
                            entry_moves::number.desc(),
                            entry_moves::ordinal.desc(),
                        ))
                        .offset(i64::from(offset))
                        .limit(i64::from(limit))
                        .select(move_columns!())
                        .load(conn)
                        .await?;
                    Ok(TestEnds { moves: read_all(rows)?, total: number("move", total)? })
                }
                .boxed()
            }),
        );
        Ok(ends.await?)
    }

    async fn moves_from(
        &self,
        queue: QueueRef,
        of: &[EntryId],
        number: u64,
    ) -> Result<Vec<Move>, StoreError> {
        let mut conn = self.connection(queue).await?;
        let rows: Vec<MoveRow> = moves_of!(queue)
            .filter(entry_moves::entry_id.eq_any(each(of)))
            .filter(entry_moves::number.ge(column(number)))
            .order((entry_moves::number, entry_moves::ordinal))
            .select(move_columns!())
            .load(&mut conn)
            .await
            .map_err(DbError::from)?;
        Ok(read_all(rows)?)
    }

    async fn moves_of(
        &self,
        queue: QueueRef,
        entry: EntryId,
        limit: u32,
    ) -> Result<Vec<Move>, StoreError> {
        let mut conn = self.connection(queue).await?;
        let rows: Vec<MoveRow> = moves_of!(queue)
            .filter(entry_moves::entry_id.eq(Sql(entry)))
            .order((entry_moves::number.desc(), entry_moves::ordinal.desc()))
            .limit(i64::from(limit))
            .select(move_columns!())
            .load(&mut conn)
            .await
            .map_err(DbError::from)?;
        Ok(read_all(rows)?)
    }

    async fn passes(&self, queue: QueueRef, limit: u32) -> Result<Vec<Move>, StoreError> {
        let mut conn = self.connection(queue).await?;
        let rows: Vec<MoveRow> = moves_of!(queue)
            .filter(entry_moves::from_state.eq(PrState::Testing.as_str()))
            .filter(entry_moves::to_state.eq(PrState::TestsPassed.as_str()))
            .order((
                entry_moves::at.desc(),
                entry_moves::number.desc(),
                entry_moves::ordinal.desc(),
            ))
            .limit(i64::from(limit))
            .select(move_columns!())
            .load(&mut conn)
            .await
            .map_err(DbError::from)?;
        Ok(read_all(rows)?)
    }
}

/// The ends of a window as columns; an open end is the earliest or latest time.
fn bounds(window: Window) -> (Timestamp, Timestamp) {
    (window.since.unwrap_or(FIRST), window.until.unwrap_or(LAST))
}

fn read_all(rows: Vec<MoveRow>) -> Result<Vec<Move>, DbError> {
    let read = |(record, ordinal, at, Kept(MoveDocument { decision })): MoveRow| {
        let (record, ordinal) = (number("move", record)?, number("move", ordinal)?);
        Move::of(record, ordinal, at, &decision)
            .ok_or_else(|| DbError::corrupt("move", "not a move"))
    };
    rows.into_iter().map(read).collect()
}

async fn targets_of(
    conn: &mut Conn,
    queue: QueueRef,
    prs: &[i64],
) -> Result<BTreeMap<i64, Arc<ReportedTargets>>, DbError> {
    let rows: Vec<(i64, Kept<ReportedTargets>)> = impacted_targets::table
        .filter(impacted_targets::queue_id.eq(Sql(queue.id)))
        .filter(impacted_targets::org_id.eq(Sql(queue.org)))
        .filter(impacted_targets::pr_number.eq_any(prs))
        .select((impacted_targets::pr_number, impacted_targets::document))
        .load(conn)
        .await?;
    Ok(rows.into_iter().map(|(pr, Kept(targets))| (pr, Arc::new(targets))).collect())
}
