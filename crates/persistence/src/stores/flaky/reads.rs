//! Reads for replies, lists and pages.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use diesel::prelude::*;
use diesel_async::RunQueryDsl;
use signalbox_domain::flaky::{JournalRecord, RunRecord, TestId};
use signalbox_domain::ids::{PrNumber, Sha};
use signalbox_domain::ports::{
    FlakyReads, RepoRef, Seek, SettingsStep, StoreError, TestList, TestNumbers, TestRecord,
};
use signalbox_domain::time::Timestamp;

use super::super::Store;
use super::{lists, numbers};
use crate::documents::{FORMAT, column, decode};
use crate::error::DbError;
use crate::schema::{flaky_settings_log, test_journal, test_runs};

#[async_trait]
impl FlakyReads for Store {
    async fn list(
        &self,
        repo: RepoRef,
        list: TestList,
        seek: Seek,
        limit: u32,
    ) -> Result<Vec<TestRecord>, StoreError> {
        let mut conn = self.connection().await?;
        Ok(lists::list(&mut conn, repo, list, seek, limit).await?)
    }

    async fn count(&self, repo: RepoRef, list: TestList) -> Result<u64, StoreError> {
        let mut conn = self.connection().await?;
        Ok(lists::count(&mut conn, repo, list).await?)
    }

    async fn ids(&self, repo: RepoRef, list: TestList) -> Result<Vec<TestId>, StoreError> {
        let mut conn = self.connection().await?;
        Ok(lists::ids(&mut conn, repo, list).await?)
    }

    async fn numbers(
        &self,
        repo: RepoRef,
        ids: &[TestId],
        at: Timestamp,
    ) -> Result<BTreeMap<TestId, TestNumbers>, StoreError> {
        let mut conn = self.connection().await?;
        Ok(numbers::numbers(&mut conn, repo, ids, at).await?)
    }

    async fn pull_requests(
        &self,
        repo: RepoRef,
        ids: &[TestId],
        at: Timestamp,
    ) -> Result<BTreeMap<TestId, BTreeSet<PrNumber>>, StoreError> {
        let mut conn = self.connection().await?;
        Ok(numbers::pull_requests(&mut conn, repo, ids, at).await?)
    }

    async fn test_journal(
        &self,
        repo: RepoRef,
        test: TestId,
        before: Option<u64>,
        limit: u32,
    ) -> Result<Vec<JournalRecord>, StoreError> {
        let mut conn = self.connection().await?;
        let rows: Vec<(i32, String)> = test_journal::table
            .filter(test_journal::repo_id.eq(repo.id.to_string()))
            .filter(test_journal::org_id.eq(repo.org.to_string()))
            .filter(test_journal::test_id.eq(test.to_string()))
            .filter(test_journal::number.lt(before.map_or(i64::MAX, column)))
            .order(test_journal::number.desc())
            .limit(i64::from(limit))
            .select((test_journal::format, test_journal::document))
            .load(&mut conn)
            .await
            .map_err(DbError::from)?;
        let record = |(format, text): &(i32, String)| decode("journal record", *format, text);
        Ok(rows.iter().map(record).collect::<Result<_, DbError>>()?)
    }

    async fn recent_runs(
        &self,
        repo: RepoRef,
        test: TestId,
        limit: u32,
    ) -> Result<Vec<RunRecord>, StoreError> {
        let mut conn = self.connection().await?;
        let rows: Vec<(i32, String)> = test_runs::table
            .filter(test_runs::repo_id.eq(repo.id.to_string()))
            .filter(test_runs::org_id.eq(repo.org.to_string()))
            .filter(test_runs::test_id.eq(test.to_string()))
            .order((test_runs::at.desc(), test_runs::attempt.desc()))
            .limit(i64::from(limit))
            .select((test_runs::format, test_runs::document))
            .load(&mut conn)
            .await
            .map_err(DbError::from)?;
        let run = |(format, text): &(i32, String)| decode("run", *format, text);
        Ok(rows.iter().map(run).collect::<Result<_, DbError>>()?)
    }

    async fn failed_runs(
        &self,
        repo: RepoRef,
        sha: &Sha,
        (from, until): (Timestamp, Timestamp),
        limit: u32,
    ) -> Result<Vec<RunRecord>, StoreError> {
        let mut conn = self.connection().await?;
        // The commit is in the document only: the index finds what failed within the time. A
        // commit's name has no signs that mean something in a pattern.
        let names_commit = format!("%\"{sha}\"%");
        let rows: Vec<(i32, String)> = test_runs::table
            .filter(test_runs::repo_id.eq(repo.id.to_string()))
            .filter(test_runs::org_id.eq(repo.org.to_string()))
            .filter(test_runs::failed)
            .filter(test_runs::at.ge(from.unix_micros()))
            .filter(test_runs::at.lt(until.unix_micros()))
            .filter(test_runs::document.like(names_commit))
            .order((test_runs::at.desc(), test_runs::attempt.desc(), test_runs::test_id))
            .limit(i64::from(limit))
            .select((test_runs::format, test_runs::document))
            .load(&mut conn)
            .await
            .map_err(DbError::from)?;
        let run = |(format, text): &(i32, String)| decode("run", *format, text);
        let runs: Vec<RunRecord> = rows.iter().map(run).collect::<Result<_, DbError>>()?;
        let of_commit = |run: &RunRecord| run.sha.as_deref() == Some(sha.as_str());
        Ok(runs.into_iter().filter(of_commit).collect())
    }

    async fn settings_history(
        &self,
        repo: RepoRef,
        limit: u32,
    ) -> Result<Vec<SettingsStep>, StoreError> {
        let mut conn = self.connection().await?;
        let rows: Vec<(i64, String, i32, String)> = flaky_settings_log::table
            .filter(flaky_settings_log::repo_id.eq(repo.id.to_string()))
            .filter(flaky_settings_log::org_id.eq(repo.org.to_string()))
            .order(flaky_settings_log::version.desc())
            .limit(i64::from(limit))
            .select((
                flaky_settings_log::at,
                flaky_settings_log::actor,
                flaky_settings_log::format,
                flaky_settings_log::document,
            ))
            .load(&mut conn)
            .await
            .map_err(DbError::from)?;
        let step = |(at, actor, format, text): (i64, String, i32, String)| {
            Ok(SettingsStep {
                settings: decode("settings", format, &text)?,
                by: decode("actor", FORMAT, &actor)?,
                at: Timestamp::from_unix_micros(at),
            })
        };
        Ok(rows.into_iter().map(step).collect::<Result<_, DbError>>()?)
    }
}
