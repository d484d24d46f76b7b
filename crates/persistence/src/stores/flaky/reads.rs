//! Reads for replies, lists and pages.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use diesel::dsl::sql;
use diesel::prelude::*;
use diesel::sql_types::{Bool, Text};
use diesel_async::RunQueryDsl;
use signalbox_domain::flaky::{CodeSummary, Incident, JournalRecord, RunRecord, TestId};
use signalbox_domain::ids::{PrNumber, Sha};
use signalbox_domain::ports::{
    FlakyReads, RepoRef, Seek, SettingsStep, StoreError, TestList, TestNumbers, TestRecord,
};
use signalbox_domain::time::Timestamp;

use super::super::Store;
use super::{incidents, lists, numbers, packed, summaries};
use crate::documents::{Kept, SettingsChange, column, values};
use crate::error::DbError;
use crate::schema::{flaky_settings_log, test_journal, test_runs};
use crate::sql_types::Sql;

#[async_trait]
impl FlakyReads for Store {
    async fn list(
        &self,
        repo: RepoRef,
        list: TestList,
        seek: Seek,
        limit: u32,
    ) -> Result<Vec<TestRecord>, StoreError> {
        let mut conn = self.connection(repo).await?;
        Ok(lists::list(&mut conn, repo, list, seek, limit).await?)
    }

    async fn count(&self, repo: RepoRef, list: TestList) -> Result<u64, StoreError> {
        let mut conn = self.connection(repo).await?;
        Ok(lists::count(&mut conn, repo, list).await?)
    }

    async fn ids(&self, repo: RepoRef, list: TestList) -> Result<Vec<TestId>, StoreError> {
        let mut conn = self.connection(repo).await?;
        Ok(lists::ids(&mut conn, repo, list).await?)
    }

    async fn numbers(
        &self,
        repo: RepoRef,
        ids: &[TestId],
        at: Timestamp,
    ) -> Result<BTreeMap<TestId, TestNumbers>, StoreError> {
        let mut conn = self.connection(repo).await?;
        Ok(numbers::numbers(&mut conn, repo, ids, at).await?)
    }

    async fn pull_requests(
        &self,
        repo: RepoRef,
        ids: &[TestId],
        at: Timestamp,
    ) -> Result<BTreeMap<TestId, BTreeSet<PrNumber>>, StoreError> {
        let mut conn = self.connection(repo).await?;
        Ok(numbers::pull_requests(&mut conn, repo, ids, at).await?)
    }

    async fn failed_codes(
        &self,
        repo: RepoRef,
        ids: &[TestId],
        since: Timestamp,
    ) -> Result<BTreeMap<TestId, Vec<CodeSummary>>, StoreError> {
        let mut conn = self.connection(repo).await?;
        Ok(summaries::failed_codes(&mut conn, repo, ids, since).await?)
    }

    async fn test_journal(
        &self,
        repo: RepoRef,
        test: TestId,
        before: Option<u64>,
        limit: u32,
    ) -> Result<Vec<JournalRecord>, StoreError> {
        let mut conn = self.connection(repo).await?;
        let rows: Vec<Kept<JournalRecord>> = test_journal::table
            .filter(test_journal::repo_id.eq(Sql(repo.id)))
            .filter(test_journal::org_id.eq(Sql(repo.org)))
            .filter(test_journal::test_id.eq(Sql(test)))
            .filter(test_journal::number.lt(before.map_or(i64::MAX, column)))
            .order(test_journal::number.desc())
            .limit(i64::from(limit))
            .select(test_journal::document)
            .load(&mut conn)
            .await
            .map_err(DbError::from)?;
        Ok(values(rows))
    }

    async fn incidents_of(
        &self,
        repo: RepoRef,
        test: TestId,
        limit: u32,
    ) -> Result<Vec<Incident>, StoreError> {
        let mut conn = self.connection(repo).await?;
        Ok(incidents::of_test(&mut conn, repo, test, limit).await?)
    }

    async fn recent_runs(
        &self,
        repo: RepoRef,
        test: TestId,
        limit: u32,
    ) -> Result<Vec<RunRecord>, StoreError> {
        let mut conn = self.connection(repo).await?;
        let rows: Vec<Kept<RunRecord>> = test_runs::table
            .filter(test_runs::repo_id.eq(Sql(repo.id)))
            .filter(test_runs::org_id.eq(Sql(repo.org)))
            .filter(test_runs::test_id.eq(Sql(test)))
            .order((test_runs::at.desc(), test_runs::attempt.desc()))
            .limit(i64::from(limit))
            .select(test_runs::document)
            .load(&mut conn)
            .await
            .map_err(DbError::from)?;
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let mut runs = values(rows);
        runs.extend(packed::recent(&mut conn, repo, test, limit).await?);
        runs.sort_by_key(|run| std::cmp::Reverse((run.at, run.attempt, run.upload)));
        runs.truncate(limit);
        Ok(runs)
    }

    async fn failed_runs(
        &self,
        repo: RepoRef,
        sha: &Sha,
        (from, until): (Timestamp, Timestamp),
        limit: u32,
    ) -> Result<Vec<RunRecord>, StoreError> {
        let mut conn = self.connection(repo).await?;
        // The commit is in the document only: the index finds what failed within the time.
        let of_commit = sql::<Bool>("document ->> 'sha' = ").bind::<Text, _>(sha.as_str());
        let rows: Vec<Kept<RunRecord>> = test_runs::table
            .filter(test_runs::repo_id.eq(Sql(repo.id)))
            .filter(test_runs::org_id.eq(Sql(repo.org)))
            .filter(test_runs::at.ge(Sql(from)))
            .filter(test_runs::at.lt(Sql(until)))
            .filter(of_commit)
            .order((test_runs::at.desc(), test_runs::attempt.desc(), test_runs::test_id))
            .limit(i64::from(limit))
            .select(test_runs::document)
            .load(&mut conn)
            .await
            .map_err(DbError::from)?;
        Ok(values(rows))
    }

    async fn settings_history(
        &self,
        repo: RepoRef,
        limit: u32,
    ) -> Result<Vec<SettingsStep>, StoreError> {
        let mut conn = self.connection(repo).await?;
        let rows: Vec<(Timestamp, Kept<SettingsChange>)> = flaky_settings_log::table
            .filter(flaky_settings_log::repo_id.eq(Sql(repo.id)))
            .filter(flaky_settings_log::org_id.eq(Sql(repo.org)))
            .order(flaky_settings_log::version.desc())
            .limit(i64::from(limit))
            .select((flaky_settings_log::at, flaky_settings_log::document))
            .load(&mut conn)
            .await
            .map_err(DbError::from)?;
        let step = |(at, Kept(SettingsChange { settings, by }))| SettingsStep { settings, by, at };
        Ok(rows.into_iter().map(step).collect())
    }
}
