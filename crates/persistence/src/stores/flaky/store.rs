//! Flaky tests: settings, tests and summaries.

use std::collections::BTreeMap;

use async_trait::async_trait;
use diesel::prelude::*;
use diesel_async::RunQueryDsl;
use futures_util::FutureExt;
use signalbox_domain::flaky::{Summary, TakenIn, TestId, UploadId};
use signalbox_domain::ids::{OrgId, RepoId};
use signalbox_domain::ports::{
    CiRun, CommitError, FlakyCommit, FlakyRepo, FlakyStore, RepoRef, StoreError, TestRecord,
    Version,
};
use signalbox_domain::time::{Span, Timestamp};

use super::super::super::prepare_day;
use super::super::{Store, bulk};
use super::records::{self, RECORD, RecordRow, record};
use super::rows::CommitRows;
use super::{commit, prune, summaries};
use crate::documents::{decode, uuid};
use crate::error::DbError;
use crate::schema::{ci_runs, flaky_repos, result_uploads, server_keys, test_aliases, test_cases};

#[async_trait]
impl FlakyStore for Store {
    async fn repo(&self, repo: RepoRef) -> Result<FlakyRepo, StoreError> {
        let mut conn = self.connection().await?;
        let row: Option<(i64, i64, i32, Option<String>)> = flaky_repos::table
            .filter(flaky_repos::repo_id.eq(repo.id.to_string()))
            .filter(flaky_repos::org_id.eq(repo.org.to_string()))
            .select((
                flaky_repos::version,
                flaky_repos::marks,
                flaky_repos::format,
                flaky_repos::document,
            ))
            .first(&mut conn)
            .await
            .optional()
            .map_err(DbError::from)?;
        let Some((version, marks, format, document)) = row else {
            return Ok(FlakyRepo { version: Version(0), marks: 0, settings: None });
        };
        let settings = document.map(|text| decode("settings", format, &text)).transpose()?;
        Ok(FlakyRepo { version: Version(version), marks, settings })
    }

    async fn tests(&self, repo: RepoRef, ids: &[TestId]) -> Result<Vec<TestRecord>, StoreError> {
        let mut conn = self.connection().await?;
        Ok(records::tests(&mut conn, repo, ids).await?)
    }

    async fn watched(&self, repo: RepoRef) -> Result<Vec<TestRecord>, StoreError> {
        let mut conn = self.connection().await?;
        let rows: Vec<RecordRow> = test_cases::table
            .filter(test_cases::repo_id.eq(repo.id.to_string()))
            .filter(test_cases::org_id.eq(repo.org.to_string()))
            .filter(test_cases::watched)
            .order(test_cases::id)
            .select(RECORD)
            .load(&mut conn)
            .await
            .map_err(DbError::from)?;
        Ok(rows.into_iter().map(record).collect::<Result<_, DbError>>()?)
    }

    async fn holders(
        &self,
        repo: RepoRef,
        aliases: &[String],
    ) -> Result<Vec<(String, TestId)>, StoreError> {
        let mut conn = self.connection().await?;
        let mut holders = Vec::new();
        for piece in bulk::pieces(aliases) {
            let rows: Vec<(String, String)> = test_aliases::table
                .filter(test_aliases::repo_id.eq(repo.id.to_string()))
                .filter(test_aliases::org_id.eq(repo.org.to_string()))
                .filter(test_aliases::alias.eq_any(piece))
                .select((test_aliases::alias, test_aliases::test_id))
                .load(&mut conn)
                .await
                .map_err(DbError::from)?;
            for (alias, id) in rows {
                holders.push((alias, TestId(uuid("alias", &id)?)));
            }
        }
        holders.sort();
        Ok(holders)
    }

    async fn aliases(&self, repo: RepoRef, tests: &[TestId]) -> Result<Vec<String>, StoreError> {
        let mut conn = self.connection().await?;
        let ids: Vec<String> = tests.iter().map(ToString::to_string).collect();
        let mut aliases = Vec::new();
        for piece in bulk::pieces(&ids) {
            let rows: Vec<String> = test_aliases::table
                .filter(test_aliases::repo_id.eq(repo.id.to_string()))
                .filter(test_aliases::org_id.eq(repo.org.to_string()))
                .filter(test_aliases::test_id.eq_any(piece))
                .select(test_aliases::alias)
                .load(&mut conn)
                .await
                .map_err(DbError::from)?;
            aliases.extend(rows);
        }
        aliases.sort();
        aliases.dedup();
        Ok(aliases)
    }

    async fn summaries(
        &self,
        repo: RepoRef,
        ids: &[TestId],
        since: Timestamp,
    ) -> Result<BTreeMap<TestId, Summary>, StoreError> {
        let mut conn = self.connection().await?;
        Ok(summaries::summaries(&mut conn, repo, ids, since).await?)
    }

    async fn taken_in(&self, repo: RepoRef, id: UploadId) -> Result<Option<TakenIn>, StoreError> {
        let mut conn = self.connection().await?;
        let row: Option<(i32, String)> = result_uploads::table
            .filter(result_uploads::repo_id.eq(repo.id.to_string()))
            .filter(result_uploads::org_id.eq(repo.org.to_string()))
            .filter(result_uploads::id.eq(id.to_string()))
            .select((result_uploads::format, result_uploads::taken_in))
            .first(&mut conn)
            .await
            .optional()
            .map_err(DbError::from)?;
        Ok(row.map(|(format, text)| decode("upload's result", format, &text)).transpose()?)
    }

    async fn commit(&self, step: &FlakyCommit<'_>) -> Result<Version, CommitError> {
        let rows = CommitRows::of(step)?;
        let job = self.write(Box::new(move |conn| commit::write(conn, rows).boxed()));
        Ok(Version(job.await?))
    }

    async fn due(&self, at: Timestamp, limit: u32) -> Result<Vec<(RepoRef, TestId)>, StoreError> {
        let mut conn = self.connection().await?;
        let rows: Vec<(String, String, String)> = test_cases::table
            .filter(test_cases::due_at.le(at.unix_micros()))
            .filter(test_cases::due_at.is_not_null())
            .order((test_cases::due_at, test_cases::id))
            .limit(i64::from(limit))
            .select((test_cases::org_id, test_cases::repo_id, test_cases::id))
            .load(&mut conn)
            .await
            .map_err(DbError::from)?;
        let place = |(org, repo, test): (String, String, String)| {
            let repo =
                RepoRef { org: OrgId(uuid("test", &org)?), id: RepoId(uuid("test", &repo)?) };
            Ok((repo, TestId(uuid("test", &test)?)))
        };
        Ok(rows.into_iter().map(place).collect::<Result<_, DbError>>()?)
    }

    async fn postpone(
        &self,
        repo: RepoRef,
        tests: &[(TestId, Option<Timestamp>)],
    ) -> Result<(), StoreError> {
        let tests = tests.to_vec();
        let job = self.write(Box::new(move |conn| {
            async move {
                for (test, due_at) in tests {
                    let row = test_cases::table
                        .filter(test_cases::repo_id.eq(repo.id.to_string()))
                        .filter(test_cases::org_id.eq(repo.org.to_string()))
                        .filter(test_cases::id.eq(test.to_string()));
                    let due_at = due_at.map(Timestamp::unix_micros);
                    diesel::update(row).set(test_cases::due_at.eq(due_at)).execute(conn).await?;
                }
                Ok(())
            }
            .boxed()
        }));
        Ok(job.await?)
    }

    async fn link_ticket(
        &self,
        repo: RepoRef,
        test: TestId,
        ticket: &str,
    ) -> Result<bool, StoreError> {
        let ticket = ticket.replace('\0', "\u{fffd}");
        let job = self.write(Box::new(move |conn| {
            async move {
                let row = test_cases::table
                    .filter(test_cases::repo_id.eq(repo.id.to_string()))
                    .filter(test_cases::org_id.eq(repo.org.to_string()))
                    .filter(test_cases::id.eq(test.to_string()));
                let update = diesel::update(row).set(test_cases::ticket.eq(ticket));
                Ok(update.execute(conn).await? == 1)
            }
            .boxed()
        }));
        Ok(job.await?)
    }

    async fn page_key(&self, new: [u8; 32]) -> Result<[u8; 32], StoreError> {
        {
            let mut conn = self.connection().await?;
            let kept = server_keys::table.find("pages").select(server_keys::value);
            let kept: Option<String> =
                kept.first(&mut conn).await.optional().map_err(DbError::from)?;
            if let Some(key) = kept.as_deref().and_then(key_of) {
                return Ok(key);
            }
        }
        let job = self.write(Box::new(move |conn| {
            async move {
                let name = server_keys::name.eq("pages");
                let digits = digits_of(&new);
                diesel::insert_into(server_keys::table)
                    .values((name, server_keys::value.eq(digits)))
                    .on_conflict_do_nothing()
                    .execute(conn)
                    .await?;
                let kept: String =
                    server_keys::table.find("pages").select(server_keys::value).first(conn).await?;
                key_of(&kept).ok_or_else(|| DbError::corrupt("key", "it has no 64 digits"))
            }
            .boxed()
        }));
        Ok(job.await?)
    }

    async fn add_ci_run(&self, repo: RepoRef, run: &CiRun) -> Result<(), StoreError> {
        let run = run.clone();
        let job = self.write(Box::new(move |conn| {
            async move {
                let row = (
                    ci_runs::id.eq(run.id.to_string()),
                    ci_runs::org_id.eq(repo.org.to_string()),
                    ci_runs::repo_id.eq(repo.id.to_string()),
                    ci_runs::at.eq(run.at.unix_micros()),
                    ci_runs::document.eq(run.document),
                );
                diesel::insert_into(ci_runs::table).values(row).execute(conn).await?;
                Ok(())
            }
            .boxed()
        }));
        Ok(job.await?)
    }

    async fn prepare_days(&self, at: Timestamp) -> Result<(), StoreError> {
        for ahead in 0..4 {
            let day = at.plus(Span::hours(24 * ahead)).floor(Span::hours(24)).unix_micros();
            let job = Store::write(self, Box::new(move |conn| prepare_day(conn, day).boxed()));
            job.await?;
        }
        Ok(())
    }

    async fn prune(&self, before: Timestamp, limit: u32) -> Result<u64, StoreError> {
        let mut conn = self.connection().await?;
        Ok(prune::prune(&mut conn, before.unix_micros(), i64::from(limit)).await?)
    }
}

fn digits_of(key: &[u8; 32]) -> String {
    let pair = |byte: &u8| [byte >> 4, byte & 15].map(|it| char::from_digit(it.into(), 16));
    key.iter().flat_map(pair).flatten().collect()
}

fn key_of(digits: &str) -> Option<[u8; 32]> {
    let pairs = digits.as_bytes().chunks(2).map(|pair| {
        std::str::from_utf8(pair).ok().and_then(|pair| u8::from_str_radix(pair, 16).ok())
    });
    pairs.collect::<Option<Vec<u8>>>()?.try_into().ok()
}
