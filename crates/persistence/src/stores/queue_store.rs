//! The store of queues.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use async_trait::async_trait;
use diesel::dsl::not;
use diesel::prelude::*;
use diesel_async::RunQueryDsl;
use futures_util::FutureExt;
use signalbox_domain::ids::{BranchName, OrgId, PrNumber, QueueId, RepoId, RepoName, RunId};
use signalbox_domain::ports::{
    Commit, CommitError, CreateError, Loaded, Located, QueueKey, QueueRef, QueueStore, StoreError,
    Version,
};
use signalbox_domain::queue::{Entry, Header, Queue, ReportedTargets, TestRun};
use signalbox_domain::time::Timestamp;

use super::repo_store::{RepoRow, candidates, chosen};
use super::rows::{CommitStatements, QueueRow};
use super::{Conn, Store};
use crate::documents::{Kept, number, values};
use crate::error::DbError;
use crate::reach::Reach;
use crate::schema::{entries, impacted_targets, queues, repos, runs};
use crate::sql_types::Sql;

#[async_trait]
impl QueueStore for Store {
    async fn create(&self, queue: &Queue) -> Result<(), CreateError> {
        let row = QueueRow::of(queue)?;
        self.write(
            queue.header.org,
            Box::new(move |conn| {
                async move {
                    diesel::insert_into(queues::table).values(&row).execute(conn).await?;
                    Ok(())
                }
                .boxed()
            }),
        )
        .await
        .map_err(CreateError::from)
    }

    async fn find(
        &self,
        org: OrgId,
        repo: RepoId,
        branch: &BranchName,
    ) -> Result<Option<QueueRef>, StoreError> {
        let mut conn = self.connection(org).await?;
        let found: Option<QueueId> = queues::table
            .filter(queues::org_id.eq(Sql(org)))
            .filter(queues::repo_id.eq(Sql(repo)))
            .filter(queues::branch.eq(branch.as_str()))
            .filter(not(queues::deleted))
            .select(queues::id)
            .first(&mut conn)
            .await
            .optional()
            .map_err(DbError::from)?;
        Ok(found.map(|id| QueueRef { org, id }))
    }

    async fn locate(
        &self,
        org: OrgId,
        name: &RepoName,
        any_case: bool,
        branch: &BranchName,
        pr: Option<PrNumber>,
    ) -> Result<Option<Located>, StoreError> {
        let mut conn = self.connection(org).await?;
        let of_branch = queues::repo_id
            .eq(repos::id)
            .and(queues::branch.eq(branch.to_string()))
            .and(not(queues::deleted));
        let of_pr = impacted_targets::queue_id
            .eq(queues::id)
            .and(impacted_targets::pr_number.eq(pr.map_or(NO_PR, |pr| i64::from(pr.0))));
        let joined = repos::table
            .left_join(queues::table.on(of_branch))
            .left_join(impacted_targets::table.on(of_pr));
        let rows: Vec<(RepoRow, Option<(QueueId, i64)>, Option<Kept<ReportedTargets>>)> =
            candidates!(joined, org, name)
                .select((
                    RepoRow::as_select(),
                    (queues::id, queues::version).nullable(),
                    impacted_targets::document.nullable(),
                ))
                .load(&mut conn)
                .await
                .map_err(DbError::from)?;
        let row = chosen(rows, name, any_case, |(row, _, _)| row);
        let located = row.map(|(row, queue, targets)| {
            let queue = queue.map(|(id, version)| (QueueRef { org, id }, Version(version)));
            let targets = targets.map(|Kept(targets)| targets);
            Ok(Located { repository: row.into_repository()?, queue, targets })
        });
        Ok(located.transpose().map_err(|error: DbError| error)?)
    }

    async fn load(
        &self,
        queue: QueueRef,
        known: Option<Version>,
    ) -> Result<Option<Loaded>, StoreError> {
        if let Some(known) = known {
            let mut conn = self.connection(queue).await?;
            match version_of(&mut conn, queue).await? {
                None => return Ok(None),
                Some(version) if version == known.0 => return Ok(Some(Loaded::Current)),
                Some(_) => {}
            }
        }
        let job = self.snapshot(queue, Box::new(move |conn| load_whole(conn, queue).boxed()));
        Ok(job.await?.map(|(queue, version)| Loaded::Fresh(Box::new(queue), version)))
    }

    async fn load_with_targets(
        &self,
        queue: QueueRef,
        known: Option<Version>,
        prs: &[PrNumber],
    ) -> Result<Option<(Loaded, BTreeMap<PrNumber, ReportedTargets>)>, StoreError> {
        let numbers = prs.iter().map(|pr| i64::from(pr.0));
        if let Some(known) = known {
            let mut conn = self.connection(queue).await?;
            let of_prs = impacted_targets::queue_id
                .eq(queues::id)
                .and(impacted_targets::pr_number.eq_any(numbers.clone()));
            let rows: Vec<(i64, Option<ReportedRow>)> = queues::table
                .left_join(impacted_targets::table.on(of_prs))
                .filter(queues::id.eq(Sql(queue.id)))
                .filter(queues::org_id.eq(Sql(queue.org)))
                .filter(not(queues::deleted))
                .select((
                    queues::version,
                    (impacted_targets::pr_number, impacted_targets::document).nullable(),
                ))
                .load(&mut conn)
                .await
                .map_err(DbError::from)?;
            match &rows[..] {
                [] => return Ok(None),
                [(version, _), ..] if *version == known.0 => {
                    let rows = rows.into_iter().filter_map(|(_, row)| row);
                    return Ok(Some((Loaded::Current, reported(rows)?)));
                }
                [_, ..] => {}
            }
        }
        let Some(loaded) = QueueStore::load(self, queue, None).await? else { return Ok(None) };
        let mut conn = self.connection(queue).await?;
        let rows: Vec<ReportedRow> = impacted_targets::table
            .filter(impacted_targets::queue_id.eq(Sql(queue.id)))
            .filter(impacted_targets::org_id.eq(Sql(queue.org)))
            .filter(impacted_targets::pr_number.eq_any(numbers))
            .select((impacted_targets::pr_number, impacted_targets::document))
            .load(&mut conn)
            .await
            .map_err(DbError::from)?;
        Ok(Some((loaded, reported(rows)?)))
    }

    async fn commit(&self, steps: &[Commit<'_>]) -> Result<Version, CommitError> {
        let CommitStatements { queue, version, first, others } = CommitStatements::of(steps)?;
        self.write_if(queue, first, others).await?;
        Ok(version)
    }

    async fn list(
        &self,
        org: Option<OrgId>,
        repo: Option<RepoId>,
    ) -> Result<Vec<QueueKey>, StoreError> {
        let mut conn = self.connection(org).await?;
        let mut query = queues::table
            .filter(not(queues::deleted))
            .select((queues::org_id, queues::id, queues::repo_id, queues::branch))
            .order(queues::id)
            .into_boxed();
        if let Some(org) = org {
            query = query.filter(queues::org_id.eq(Sql(org)));
        }
        if let Some(repo) = repo {
            query = query.filter(queues::repo_id.eq(Sql(repo)));
        }
        let rows: Vec<KeyRow> = query.load(&mut conn).await.map_err(DbError::from)?;
        Ok(rows.into_iter().map(key).collect::<Result<_, DbError>>()?)
    }

    async fn versions(
        &self,
        watched_at: Option<Timestamp>,
    ) -> Result<Vec<(QueueKey, Version)>, StoreError> {
        let mut conn = self.connection(Reach::ALL).await?;
        let mut query = queues::table
            .filter(not(queues::deleted))
            .select((
                (queues::org_id, queues::id, queues::repo_id, queues::branch),
                queues::version,
            ))
            .into_boxed();
        if let Some(at) = watched_at {
            query = query.filter(queues::watched_until.gt(Sql(at)));
        }
        let mut rows: Vec<(KeyRow, i64)> = query.load(&mut conn).await.map_err(DbError::from)?;
        // Sorted here: SQLite would read all queues in this order, and not the few that are watched.
        rows.sort_unstable_by_key(|((_, id, ..), _)| *id);
        let version = |(row, version): (KeyRow, i64)| Ok((key(row)?, Version(version)));
        Ok(rows.into_iter().map(version).collect::<Result<_, DbError>>()?)
    }

    async fn due(&self, at: Timestamp, limit: u32) -> Result<Vec<QueueRef>, StoreError> {
        let mut conn = self.connection(Reach::ALL).await?;
        let rows: Vec<(OrgId, QueueId)> = queues::table
            .filter(queues::next_deadline.le(Sql(at)))
            .filter(not(queues::deleted))
            .select((queues::org_id, queues::id))
            .order((queues::next_deadline, queues::id))
            .limit(i64::from(limit))
            .load(&mut conn)
            .await
            .map_err(DbError::from)?;
        Ok(rows.into_iter().map(|(org, id)| QueueRef { org, id }).collect())
    }

    async fn targets(
        &self,
        queue: QueueRef,
        pr: PrNumber,
    ) -> Result<Option<ReportedTargets>, StoreError> {
        let mut conn = self.connection(queue).await?;
        let row: Option<Kept<ReportedTargets>> = impacted_targets::table
            .filter(impacted_targets::queue_id.eq(Sql(queue.id)))
            .filter(impacted_targets::org_id.eq(Sql(queue.org)))
            .filter(impacted_targets::pr_number.eq(i64::from(pr.0)))
            .select(impacted_targets::document)
            .first(&mut conn)
            .await
            .optional()
            .map_err(DbError::from)?;
        Ok(row.map(|Kept(targets)| targets))
    }
}

/// The number of no pull request.
const NO_PR: i64 = -1;

/// The number of a pull request, and its targets.
type ReportedRow = (i64, Kept<ReportedTargets>);

fn reported(
    rows: impl IntoIterator<Item = ReportedRow>,
) -> Result<BTreeMap<PrNumber, ReportedTargets>, DbError> {
    let reported = |(pr, Kept(targets))| Ok((PrNumber(number("targets", pr)?), targets));
    rows.into_iter().map(reported).collect()
}

/// Organization, queue, repository, branch.
type KeyRow = (OrgId, QueueId, RepoId, String);

fn key((org, id, repo, branch): KeyRow) -> Result<QueueKey, DbError> {
    Ok(QueueKey {
        queue: QueueRef { org, id },
        repo,
        branch: BranchName::new(branch).map_err(|it| DbError::corrupt("queue", it))?,
    })
}

async fn version_of(conn: &mut Conn, queue: QueueRef) -> Result<Option<i64>, DbError> {
    Ok(queues::table
        .filter(queues::id.eq(Sql(queue.id)))
        .filter(queues::org_id.eq(Sql(queue.org)))
        .filter(not(queues::deleted))
        .select(queues::version)
        .first(conn)
        .await
        .optional()?)
}

async fn load_whole(conn: &mut Conn, queue: QueueRef) -> Result<Option<(Queue, Version)>, DbError> {
    let row: Option<(i64, Kept<Header>)> = queues::table
        .filter(queues::id.eq(Sql(queue.id)))
        .filter(queues::org_id.eq(Sql(queue.org)))
        .filter(not(queues::deleted))
        .select((queues::version, queues::document))
        .first(conn)
        .await
        .optional()?;
    let Some((version, Kept(header))) = row else { return Ok(None) };
    let live: Vec<Kept<Entry>> = entries::table
        .filter(entries::queue_id.eq(Sql(queue.id)))
        .filter(entries::org_id.eq(Sql(queue.org)))
        .filter(entries::live)
        .select(entries::document)
        .load(conn)
        .await?;
    let mut live = values(live);
    let mut targets = targets_of_live(conn, queue).await?;
    for entry in &mut live {
        entry.targets = targets.remove(&i64::from(entry.pr.0));
    }
    let runs = runs_that_matter(conn, queue.id, &header, &live).await?;
    Ok(Some((Queue::restore(header, live, runs), Version(version))))
}

async fn targets_of_live(
    conn: &mut Conn,
    queue: QueueRef,
) -> Result<BTreeMap<i64, Arc<ReportedTargets>>, DbError> {
    let live = entries::table
        .filter(entries::queue_id.eq(Sql(queue.id)))
        .filter(entries::org_id.eq(Sql(queue.org)))
        .filter(entries::live)
        .select(entries::pr_number);
    let rows: Vec<(i64, Kept<ReportedTargets>)> = impacted_targets::table
        .filter(impacted_targets::queue_id.eq(Sql(queue.id)))
        .filter(impacted_targets::pr_number.eq_any(live))
        .select((impacted_targets::pr_number, impacted_targets::document))
        .load(conn)
        .await?;
    Ok(rows.into_iter().map(|(pr, Kept(targets))| (pr, Arc::new(targets))).collect())
}

/// Runs that are building or testing, or that a live entry or the landing refers to.
async fn runs_that_matter(
    conn: &mut Conn,
    queue: QueueId,
    header: &Header,
    live: &[Entry],
) -> Result<Vec<TestRun>, DbError> {
    let mut named: BTreeSet<RunId> = live.iter().filter_map(|it| it.state.run()).collect();
    if let Some(landing) = &header.landing {
        named.extend(landing.runs.iter().copied());
    }
    let of_queue = runs::table.filter(runs::queue_id.eq(Sql(queue))).select(runs::document);
    let mut found: Vec<TestRun> = values(of_queue.filter(runs::running).load(conn).await?);
    for run in &found {
        named.remove(&run.id);
    }
    // With one query for both, SQLite would read every run that the queue ever had.
    if !named.is_empty() {
        let of_ids = of_queue.filter(runs::id.eq_any(named.into_iter().map(Sql)));
        found.extend(values(of_ids.load(conn).await?));
    }
    Ok(found)
}
