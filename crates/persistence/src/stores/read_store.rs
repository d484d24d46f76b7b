//! Reads for API replies and pages.

use std::collections::BTreeMap;

use async_trait::async_trait;
use diesel::dsl::{exists, not};
use diesel::prelude::*;
use diesel_async::RunQueryDsl;
use signalbox_domain::ids::{BranchName, OrgId, PrNumber, QueueId, RepoName, RunId};
use signalbox_domain::ports::{
    MetricsScope, MoveRecord, QueueDepth, QueueRef, QueueStore, ReadStore, StoreError,
};
use signalbox_domain::queue::{Entry, JournalRecord, PrState, Stay, TestRun};
use signalbox_domain::time::Timestamp;

use super::Store;
use crate::documents::{Kept, MoveDocument, column, number, values};
use crate::error::DbError;
use crate::schema::{entries, entry_moves, journal, queues, repos, runs};
use crate::sql_types::Sql;

/// A queue with its repository and branch: queue, host, owner, name, branch.
type QueuePlaceRow = (QueueId, String, String, String, String);

/// The number of entries of a queue in a state.
type Count = (QueueId, String, i64);
/// A stay: the queue, when it ended, both states, whether the entry was restarted and whether the run
/// belongs to a bisection, microseconds, and when the entry entered the line.
type StayRow = (QueueId, Timestamp, Option<String>, String, bool, bool, i64, Option<Timestamp>);
type Counts = BTreeMap<QueueId, Vec<(PrState, bool, u64)>>;

#[async_trait]
impl ReadStore for Store {
    async fn entry(&self, queue: QueueRef, pr: PrNumber) -> Result<Option<Entry>, StoreError> {
        let row: Option<Kept<Entry>> = {
            let mut conn = self.connection(queue).await?;
            entries::table
                .filter(entries::queue_id.eq(Sql(queue.id)))
                .filter(entries::org_id.eq(Sql(queue.org)))
                .filter(entries::pr_number.eq(i64::from(pr.0)))
                .select(entries::document)
                .first(&mut conn)
                .await
                .optional()
                .map_err(DbError::from)?
        };
        let Some(Kept(mut entry)) = row else { return Ok(None) };
        entry.targets = self.targets(queue, pr).await?.map(std::sync::Arc::new);
        Ok(Some(entry))
    }

    async fn run(&self, queue: QueueRef, run: RunId) -> Result<Option<TestRun>, StoreError> {
        let mut conn = self.connection(queue).await?;
        let row: Option<Kept<TestRun>> = runs::table
            .filter(runs::queue_id.eq(Sql(queue.id)))
            .filter(runs::org_id.eq(Sql(queue.org)))
            .filter(runs::id.eq(Sql(run)))
            .select(runs::document)
            .first(&mut conn)
            .await
            .optional()
            .map_err(DbError::from)?;
        Ok(row.map(|Kept(run)| run))
    }

    async fn journal(
        &self,
        queue: QueueRef,
        after: u64,
        limit: u32,
    ) -> Result<Vec<JournalRecord>, StoreError> {
        let mut conn = self.connection(queue).await?;
        let rows: Vec<Kept<JournalRecord>> = journal::table
            .filter(journal::queue_id.eq(Sql(queue.id)))
            .filter(journal::org_id.eq(Sql(queue.org)))
            .filter(journal::number.gt(column(after)))
            .order(journal::number)
            .limit(i64::from(limit))
            .select(journal::document)
            .load(&mut conn)
            .await
            .map_err(DbError::from)?;
        Ok(values(rows))
    }

    async fn moves_since(
        &self,
        queue: QueueRef,
        since: Timestamp,
    ) -> Result<Vec<MoveRecord>, StoreError> {
        let mut conn = self.connection(queue).await?;
        let rows: Vec<(Timestamp, Kept<MoveDocument>)> = entry_moves::table
            .filter(entry_moves::queue_id.eq(Sql(queue.id)))
            .filter(entry_moves::org_id.eq(Sql(queue.org)))
            .filter(entry_moves::at.ge(Sql(since)))
            .order((entry_moves::at, entry_moves::number, entry_moves::ordinal))
            .select((entry_moves::at, entry_moves::document))
            .load(&mut conn)
            .await
            .map_err(DbError::from)?;
        let read = |(at, Kept(MoveDocument { decision }))| MoveRecord { at, decision };
        Ok(rows.into_iter().map(read).collect())
    }

    async fn stays_since(
        &self,
        scope: MetricsScope,
        since: Timestamp,
    ) -> Result<Vec<(QueueRef, Stay)>, StoreError> {
        let mut conn = self.connection(scope.org).await?;
        let mut query = entry_moves::table
            .filter(entry_moves::org_id.eq(Sql(scope.org)))
            .filter(entry_moves::at.ge(Sql(since)))
            .filter(entry_moves::from_state.is_not_null())
            .select((
                entry_moves::queue_id,
                entry_moves::at,
                entry_moves::from_state,
                entry_moves::to_state,
                entry_moves::restarted,
                entry_moves::bisection,
                entry_moves::after_micros,
                entry_moves::entered_line_at,
            ))
            .into_boxed();
        if let Some(repo) = scope.repo {
            query = query.filter(entry_moves::repo_id.eq(Sql(repo)));
        }
        let rows: Vec<StayRow> = query.load(&mut conn).await.map_err(DbError::from)?;
        let unknown = |word: &str| DbError::corrupt("entry_moves", format!("unknown state {word}"));
        let state = |word: &str| PrState::parse(word).ok_or_else(|| unknown(word));
        let mut stays = Vec::with_capacity(rows.len());
        for (id, at, from, to, restarted, bisection, micros, entered_line_at) in rows {
            let (state, next) = (state(&from.unwrap_or_default())?, state(&to)?);
            let stay = Stay { at, state, next, restarted, bisection, micros, entered_line_at };
            stays.push((QueueRef { org: scope.org, id }, stay));
        }
        Ok(stays)
    }

    async fn depths(&self, scope: MetricsScope) -> Result<Vec<QueueDepth>, StoreError> {
        let mut conn = self.connection(scope.org).await?;
        let mut query = queues::table
            .inner_join(repos::table)
            .filter(queues::org_id.eq(Sql(scope.org)))
            .filter(not(queues::deleted))
            .order((repos::host, repos::owner, repos::name, queues::branch))
            .select((queues::id, repos::host, repos::owner, repos::name, queues::branch))
            .into_boxed();
        if let Some(repo) = scope.repo {
            query = query.filter(queues::repo_id.eq(Sql(repo)));
        }
        let places: Vec<QueuePlaceRow> = query.load(&mut conn).await.map_err(DbError::from)?;
        let live = entries::table.filter(entries::org_id.eq(Sql(scope.org))).filter(entries::live);
        let all: Vec<Count> = live
            .group_by((entries::queue_id, entries::state))
            .select((entries::queue_id, entries::state, diesel::dsl::count_star()))
            .load(&mut conn)
            .await
            .map_err(DbError::from)?;
        let of_bisection = runs::table
            .filter(runs::queue_id.eq(entries::queue_id))
            .filter(runs::id.nullable().eq(entries::run_id))
            .filter(runs::bisection);
        let bisected: Vec<Count> = live
            .filter(exists(of_bisection))
            .group_by((entries::queue_id, entries::state))
            .select((entries::queue_id, entries::state, diesel::dsl::count_star()))
            .load(&mut conn)
            .await
            .map_err(DbError::from)?;
        let mut counts = by_queue(all, bisected)?;
        let mut depths = Vec::with_capacity(places.len());
        for place in places {
            let (queue, repo, branch) = place_of(scope.org, place)?;
            let of_queue = counts.remove(&queue.id).unwrap_or_default();
            depths.push(QueueDepth { queue, repo, branch, counts: of_queue });
        }
        Ok(depths)
    }
}

/// The numbers of live entries by queue and state, separately for bisections.
fn by_queue(all: Vec<Count>, bisected: Vec<Count>) -> Result<Counts, DbError> {
    let mut counts = Counts::new();
    for (rows, bisection) in [(bisected, true), (all, false)] {
        for (queue, state, count) in rows {
            let state = PrState::parse(&state)
                .ok_or_else(|| DbError::corrupt("entry", format!("state {state}")))?;
            let count: u64 = number("entry", count)?;
            let of_queue = counts.entry(queue).or_default();
            let apart = of_queue.iter().find(|it| it.0 == state).map_or(0, |it| it.2);
            of_queue.push((state, bisection, if bisection { count } else { count - apart }));
        }
    }
    Ok(counts)
}

fn place_of(
    org: OrgId,
    (id, host, owner, name, branch): QueuePlaceRow,
) -> Result<(QueueRef, RepoName, BranchName), DbError> {
    let repo =
        RepoName::new(&host, owner, name).map_err(|it| DbError::corrupt("repository", it))?;
    let branch = BranchName::new(branch).map_err(|it| DbError::corrupt("queue", it))?;
    Ok((QueueRef { org, id }, repo, branch))
}
