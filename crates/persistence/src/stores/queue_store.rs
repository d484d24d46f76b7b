//! Queues: loaded whole, committed as a value.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use async_trait::async_trait;
use diesel::prelude::*;
use diesel_async::RunQueryDsl;
use futures_util::FutureExt;
use signalbox_domain::ids::{BranchName, OrgId, PrNumber, QueueId, RepoId};
use signalbox_domain::ports::{
    Commit, CommitError, CreateError, Loaded, QueueKey, QueueRef, QueueStore, StoreError, Version,
};
use signalbox_domain::queue::{Entry, Header, Queue, ReportedTargets, TestRun};
use signalbox_domain::time::Timestamp;

use super::rows::{CommitRows, QueueRow};
use super::{Conn, Store, commit};
use crate::documents::{decode, uuid};
use crate::error::DbError;
use crate::schema::{entries, impacted_targets, queues, runs};

#[async_trait]
impl QueueStore for Store {
    async fn create(&self, queue: &Queue) -> Result<(), CreateError> {
        let row = QueueRow::of(queue)?;
        self.write(Box::new(move |conn| {
            async move {
                diesel::insert_into(queues::table).values(&row).execute(conn).await?;
                Ok(())
            }
            .boxed()
        }))
        .await
        .map_err(CreateError::from)
    }

    async fn find(
        &self,
        org: OrgId,
        repo: RepoId,
        branch: &BranchName,
    ) -> Result<Option<QueueRef>, StoreError> {
        let mut conn = self.connection().await?;
        let found: Option<String> = queues::table
            .filter(queues::org_id.eq(org.to_string()))
            .filter(queues::repo_id.eq(repo.to_string()))
            .filter(queues::branch.eq(branch.as_str()))
            .filter(queues::deleted.eq(false))
            .select(queues::id)
            .first(&mut conn)
            .await
            .optional()
            .map_err(DbError::from)?;
        let queue = found.map(|id| uuid("queue", &id)).transpose()?;
        Ok(queue.map(|id| QueueRef { org, id: QueueId(id) }))
    }

    async fn load(
        &self,
        queue: QueueRef,
        known: Option<Version>,
    ) -> Result<Option<Loaded>, StoreError> {
        if let Some(known) = known {
            let mut conn = self.connection().await?;
            match version_of(&mut conn, queue).await? {
                None => return Ok(None),
                Some(version) if version == known.0 => return Ok(Some(Loaded::Current)),
                Some(_) => {}
            }
        }
        let job = self.snapshot(Box::new(move |conn| load_whole(conn, queue).boxed()));
        Ok(job.await?.map(|(queue, version)| Loaded::Fresh(Box::new(queue), version)))
    }

    async fn commit(&self, commit: &Commit<'_>) -> Result<Version, CommitError> {
        let rows = CommitRows::of(commit)?;
        let job = self.write(Box::new(move |conn| commit::write(conn, rows).boxed()));
        Ok(Version(job.await?))
    }

    async fn list(
        &self,
        org: Option<OrgId>,
        repo: Option<RepoId>,
    ) -> Result<Vec<QueueKey>, StoreError> {
        let mut conn = self.connection().await?;
        let mut query = queues::table
            .filter(queues::deleted.eq(false))
            .select((queues::org_id, queues::id, queues::repo_id, queues::branch))
            .order(queues::id)
            .into_boxed();
        if let Some(org) = org {
            query = query.filter(queues::org_id.eq(org.to_string()));
        }
        if let Some(repo) = repo {
            query = query.filter(queues::repo_id.eq(repo.to_string()));
        }
        let rows: Vec<(String, String, String, String)> =
            query.load(&mut conn).await.map_err(DbError::from)?;
        Ok(rows.into_iter().map(key).collect::<Result<_, DbError>>()?)
    }

    async fn versions(
        &self,
        watched_at: Option<Timestamp>,
    ) -> Result<Vec<(QueueKey, Version)>, StoreError> {
        let mut conn = self.connection().await?;
        let mut query = queues::table
            .filter(queues::deleted.eq(false))
            .select((queues::org_id, queues::id, queues::repo_id, queues::branch, queues::version))
            .order(queues::id)
            .into_boxed();
        if let Some(at) = watched_at {
            query = query.filter(queues::watched_until.gt(at.unix_micros()));
        }
        let rows: Vec<(String, String, String, String, i64)> =
            query.load(&mut conn).await.map_err(DbError::from)?;
        let version = |(org, id, repo, branch, version): (String, String, String, String, i64)| {
            Ok((key((org, id, repo, branch))?, Version(version)))
        };
        Ok(rows.into_iter().map(version).collect::<Result<_, DbError>>()?)
    }

    async fn due(&self, at: Timestamp, limit: u32) -> Result<Vec<QueueRef>, StoreError> {
        let mut conn = self.connection().await?;
        let rows: Vec<(String, String)> = queues::table
            .filter(queues::next_deadline.le(at.unix_micros()))
            .filter(queues::deleted.eq(false))
            .select((queues::org_id, queues::id))
            .order((queues::next_deadline, queues::id))
            .limit(i64::from(limit))
            .load(&mut conn)
            .await
            .map_err(DbError::from)?;
        let queue = |(org, id): (String, String)| {
            Ok(QueueRef { org: OrgId(uuid("queue", &org)?), id: QueueId(uuid("queue", &id)?) })
        };
        Ok(rows.into_iter().map(queue).collect::<Result<_, DbError>>()?)
    }

    async fn targets(
        &self,
        queue: QueueRef,
        pr: PrNumber,
    ) -> Result<Option<ReportedTargets>, StoreError> {
        let mut conn = self.connection().await?;
        let row: Option<(i32, String)> = impacted_targets::table
            .filter(impacted_targets::queue_id.eq(queue.id.to_string()))
            .filter(impacted_targets::org_id.eq(queue.org.to_string()))
            .filter(impacted_targets::pr_number.eq(i64::from(pr.0)))
            .select((impacted_targets::format, impacted_targets::document))
            .first(&mut conn)
            .await
            .optional()
            .map_err(DbError::from)?;
        Ok(row.map(|(format, text)| decode("targets", format, &text)).transpose()?)
    }
}

fn key((org, id, repo, branch): (String, String, String, String)) -> Result<QueueKey, DbError> {
    Ok(QueueKey {
        queue: QueueRef { org: OrgId(uuid("queue", &org)?), id: QueueId(uuid("queue", &id)?) },
        repo: RepoId(uuid("queue", &repo)?),
        branch: BranchName::new(branch).map_err(|it| DbError::corrupt("queue", it))?,
    })
}

async fn version_of(conn: &mut Conn, queue: QueueRef) -> Result<Option<i64>, DbError> {
    Ok(queues::table
        .filter(queues::id.eq(queue.id.to_string()))
        .filter(queues::org_id.eq(queue.org.to_string()))
        .filter(queues::deleted.eq(false))
        .select(queues::version)
        .first(conn)
        .await
        .optional()?)
}

async fn load_whole(conn: &mut Conn, queue: QueueRef) -> Result<Option<(Queue, Version)>, DbError> {
    let id = queue.id.to_string();
    let row: Option<(i64, i32, String)> = queues::table
        .filter(queues::id.eq(&id))
        .filter(queues::org_id.eq(queue.org.to_string()))
        .filter(queues::deleted.eq(false))
        .select((queues::version, queues::format, queues::document))
        .first(conn)
        .await
        .optional()?;
    let Some((version, format, text)) = row else { return Ok(None) };
    let header: Header = decode("queue", format, &text)?;
    let live: Vec<(i32, String)> = entries::table
        .filter(entries::queue_id.eq(&id))
        .filter(entries::live.eq(true))
        .select((entries::format, entries::document))
        .load(conn)
        .await?;
    let mut live = live
        .iter()
        .map(|(format, text)| decode("entry", *format, text))
        .collect::<Result<Vec<Entry>, _>>()?;
    let mut targets = targets_of_live(conn, &id).await?;
    for entry in &mut live {
        entry.targets = targets.remove(&i64::from(entry.pr.0));
    }
    let runs = runs_that_matter(conn, &id, &header, &live).await?;
    Ok(Some((Queue::restore(header, live, runs), Version(version))))
}

async fn targets_of_live(
    conn: &mut Conn,
    queue: &str,
) -> Result<BTreeMap<i64, Arc<ReportedTargets>>, DbError> {
    let live = entries::table
        .filter(entries::queue_id.eq(queue))
        .filter(entries::live.eq(true))
        .select(entries::pr_number);
    let rows: Vec<(i64, i32, String)> = impacted_targets::table
        .filter(impacted_targets::queue_id.eq(queue))
        .filter(impacted_targets::pr_number.eq_any(live))
        .select((impacted_targets::pr_number, impacted_targets::format, impacted_targets::document))
        .load(conn)
        .await?;
    rows.into_iter()
        .map(|(pr, format, text)| Ok((pr, Arc::new(decode("targets", format, &text)?))))
        .collect()
}

/// Runs that are building or testing, that live entries refer to, or that land.
async fn runs_that_matter(
    conn: &mut Conn,
    queue: &str,
    header: &Header,
    live: &[Entry],
) -> Result<Vec<TestRun>, DbError> {
    let mut named: BTreeSet<String> =
        live.iter().filter_map(|it| it.state.run()).map(|run| run.to_string()).collect();
    if let Some(landing) = &header.landing {
        named.extend(landing.runs.iter().map(ToString::to_string));
    }
    let rows: Vec<(i32, String)> = runs::table
        .filter(runs::queue_id.eq(queue))
        .filter(runs::running.eq(true).or(runs::id.eq_any(named)))
        .select((runs::format, runs::document))
        .load(conn)
        .await?;
    rows.iter().map(|(format, text)| decode("test run", *format, text)).collect()
}
