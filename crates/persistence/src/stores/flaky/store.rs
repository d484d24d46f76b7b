//! Flaky tests: settings, tests and summaries.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use diesel::prelude::*;
use diesel_async::RunQueryDsl;
use futures_util::FutureExt;
use signalbox_domain::flaky::{
    CodeSummary, Imported, Incident, IncidentId, IngestOutcome, Presence, Progress, RunRecord,
    SameCode, Settings, Summary, TestId, UploadId,
};
use signalbox_domain::ids::{OrgId, RepoId};
use signalbox_domain::ports::{
    CiRun, CommitError, FlakyCommit, FlakyDraft, FlakyRepo, FlakyStore, KnownIncidents, KnownTest,
    NewIntake, RepoRef, StoreError, TestRecord, Version,
};
use signalbox_domain::time::{Span, Timestamp};

use super::super::super::prepare_day;
use super::super::{Store, bulk};
use super::draft::Draft;
use super::records::{self, RECORD, RecordRow, record};
use super::rows::{CommitRows, DUE, DUE_SET, DueRow};
use super::{commit, incidents, prune, summaries};
use crate::among::among;
use crate::documents::{CiRunDocument, Kept, encode, number};
use crate::error::DbError;
use crate::reach::Reach;
use crate::schema::{
    ci_runs, flaky_repos, result_uploads, server_keys, test_aliases, test_cases, test_presences,
};
use crate::sql_types::Sql;

/// What was imported since the last summary: uploads, runs, first and last time.
type ImportedColumns = (Option<i64>, Option<i64>, Option<Timestamp>, Option<Timestamp>);
type RepoRow = (i64, i64, Option<Kept<Settings>>, Option<Timestamp>, ImportedColumns);

#[async_trait]
impl FlakyStore for Store {
    async fn repo(&self, repo: RepoRef) -> Result<FlakyRepo, StoreError> {
        let mut conn = self.connection(repo).await?;
        let row: Option<RepoRow> = flaky_repos::table
            .filter(flaky_repos::repo_id.eq(Sql(repo.id)))
            .filter(flaky_repos::org_id.eq(Sql(repo.org)))
            .select((
                flaky_repos::version,
                flaky_repos::marks,
                flaky_repos::document,
                flaky_repos::judged_at,
                (
                    flaky_repos::imported_uploads,
                    flaky_repos::imported_runs,
                    flaky_repos::imported_from,
                    flaky_repos::imported_until,
                ),
            ))
            .first(&mut conn)
            .await
            .optional()
            .map_err(DbError::from)?;
        let Some((version, revision, settings, judged_at, imported)) = row else {
            let progress = Progress::default();
            return Ok(FlakyRepo { version: Version(0), revision: 0, settings: None, progress });
        };
        let settings = settings.map(|Kept(settings)| settings);
        let imported = match imported {
            (Some(uploads), Some(runs), Some(from), Some(until)) => Some(Imported {
                uploads: number("repository", uploads)?,
                runs: number("repository", runs)?,
                from,
                until,
            }),
            _ => None,
        };
        let progress = Progress { judged_at, imported };
        Ok(FlakyRepo { version: Version(version), revision, settings, progress })
    }

    async fn tests(&self, repo: RepoRef, ids: &[TestId]) -> Result<Vec<TestRecord>, StoreError> {
        let mut conn = self.connection(repo).await?;
        Ok(records::tests(&mut conn, repo, ids).await?)
    }

    async fn known_tests(
        &self,
        repo: RepoRef,
        ids: &[TestId],
    ) -> Result<Vec<KnownTest>, StoreError> {
        let mut conn = self.connection(repo).await?;
        Ok(records::known_tests(&mut conn, repo, ids).await?)
    }

    async fn watched(&self, repo: RepoRef) -> Result<Vec<TestRecord>, StoreError> {
        let mut conn = self.connection(repo).await?;
        let rows: Vec<RecordRow> = test_cases::table
            .filter(test_cases::repo_id.eq(Sql(repo.id)))
            .filter(test_cases::org_id.eq(Sql(repo.org)))
            .filter(test_cases::watched)
            .order(test_cases::id)
            .select(RECORD)
            .load(&mut conn)
            .await
            .map_err(DbError::from)?;
        Ok(rows.into_iter().map(|row| record(repo, row)).collect())
    }

    async fn presences(
        &self,
        repo: RepoRef,
        places: &[String],
    ) -> Result<BTreeMap<TestId, Presence>, StoreError> {
        let mut conn = self.connection(repo).await?;
        let mut found = BTreeMap::new();
        for piece in bulk::pieces(places) {
            let rows: Vec<(TestId, Kept<Presence>)> = test_presences::table
                .filter(test_presences::repo_id.eq(Sql(repo.id)))
                .filter(test_presences::org_id.eq(Sql(repo.org)))
                .filter(test_presences::place.eq_any(piece))
                .select((test_presences::test_id, test_presences::document))
                .load(&mut conn)
                .await
                .map_err(DbError::from)?;
            found.extend(rows.into_iter().map(|(test, Kept(presence))| (test, presence)));
        }
        Ok(found)
    }

    async fn ids_by_alias(
        &self,
        repo: RepoRef,
        aliases: &[String],
    ) -> Result<Vec<(String, TestId)>, StoreError> {
        let mut conn = self.connection(repo).await?;
        let mut ids_by_alias = Vec::new();
        for piece in bulk::pieces(aliases) {
            let rows: Vec<(String, TestId)> = test_aliases::table
                .filter(test_aliases::repo_id.eq(Sql(repo.id)))
                .filter(test_aliases::org_id.eq(Sql(repo.org)))
                .filter(test_aliases::alias.eq_any(piece))
                .select((test_aliases::alias, test_aliases::test_id))
                .load(&mut conn)
                .await
                .map_err(DbError::from)?;
            ids_by_alias.extend(rows);
        }
        ids_by_alias.sort();
        Ok(ids_by_alias)
    }

    async fn aliases(&self, repo: RepoRef, tests: &[TestId]) -> Result<Vec<String>, StoreError> {
        let mut conn = self.connection(repo).await?;
        let mut aliases = Vec::new();
        for piece in bulk::pieces(tests) {
            let rows: Vec<String> = test_aliases::table
                .filter(test_aliases::repo_id.eq(Sql(repo.id)))
                .filter(test_aliases::org_id.eq(Sql(repo.org)))
                .filter(among(test_aliases::test_id, piece))
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
        let mut conn = self.connection(repo).await?;
        Ok(summaries::summaries(&mut conn, repo, ids, since).await?)
    }

    async fn codes(
        &self,
        repo: RepoRef,
        ids: &[TestId],
        code: &SameCode,
    ) -> Result<BTreeMap<TestId, Vec<CodeSummary>>, StoreError> {
        let mut conn = self.connection(repo).await?;
        Ok(summaries::codes(&mut conn, repo, ids, &[code]).await?)
    }

    async fn incidents(
        &self,
        repo: RepoRef,
        since: Timestamp,
        limit: u32,
    ) -> Result<KnownIncidents, StoreError> {
        let mut conn = self.connection(repo).await?;
        Ok(incidents::incidents(&mut conn, repo, since, limit).await?)
    }

    async fn incident(
        &self,
        repo: RepoRef,
        id: IncidentId,
    ) -> Result<Option<Incident>, StoreError> {
        let mut conn = self.connection(repo).await?;
        Ok(incidents::incident(&mut conn, repo, id).await?)
    }

    async fn incident_failures(
        &self,
        repo: RepoRef,
        id: IncidentId,
    ) -> Result<BTreeSet<(TestId, UploadId)>, StoreError> {
        let mut conn = self.connection(repo).await?;
        Ok(incidents::failures(&mut conn, repo, id).await?)
    }

    async fn failing_runs(
        &self,
        repo: RepoRef,
        failures: &BTreeSet<(TestId, UploadId)>,
        from: Timestamp,
    ) -> Result<Vec<RunRecord>, StoreError> {
        let mut conn = self.connection(repo).await?;
        Ok(incidents::failing_runs(&mut conn, repo, failures, from).await?)
    }

    async fn ingest_outcome(
        &self,
        repo: RepoRef,
        id: UploadId,
    ) -> Result<Option<IngestOutcome>, StoreError> {
        let mut conn = self.connection(repo).await?;
        let row: Option<Kept<IngestOutcome>> = result_uploads::table
            .filter(result_uploads::repo_id.eq(Sql(repo.id)))
            .filter(result_uploads::org_id.eq(Sql(repo.org)))
            .filter(result_uploads::id.eq(Sql(id)))
            .select(result_uploads::taken_in)
            .first(&mut conn)
            .await
            .optional()
            .map_err(DbError::from)?;
        Ok(row.map(|Kept(taken_in)| taken_in))
    }

    async fn draft(&self, new: &NewIntake<'_>) -> Result<Box<dyn FlakyDraft>, StoreError> {
        Ok(Box::new(Draft::new(self, new).await?))
    }

    async fn commit(&self, step: &FlakyCommit<'_>) -> Result<Version, CommitError> {
        let rows = CommitRows::of(step, None)?;
        let job = self.write(step.repo, Box::new(move |conn| commit::write(conn, rows).boxed()));
        Ok(Version(job.await?))
    }

    async fn due(&self, at: Timestamp, limit: u32) -> Result<Vec<(RepoRef, TestId)>, StoreError> {
        let mut conn = self.connection(Reach::ALL).await?;
        let rows: Vec<(OrgId, RepoId, TestId)> = test_cases::table
            .filter(test_cases::due_at.le(Sql(at)))
            .filter(test_cases::due_at.is_not_null())
            .order((test_cases::due_at, test_cases::id))
            .limit(i64::from(limit))
            .select((test_cases::org_id, test_cases::repo_id, test_cases::id))
            .load(&mut conn)
            .await
            .map_err(DbError::from)?;
        let place = |(org, id, test)| (RepoRef { org, id }, test);
        Ok(rows.into_iter().map(place).collect())
    }

    async fn postpone(
        &self,
        repo: RepoRef,
        tests: &[(TestId, Option<Timestamp>)],
    ) -> Result<(), StoreError> {
        let due = |(test, due_at): &(TestId, Option<Timestamp>)| DueRow {
            repo_id: repo.id,
            id: *test,
            org_id: repo.org,
            due_at: *due_at,
        };
        let rows: Vec<DueRow> = tests.iter().map(due).collect();
        let job = self.write(
            repo,
            Box::new(move |conn| async move { DUE.update(conn, 3, DUE_SET, &rows).await }.boxed()),
        );
        Ok(job.await?)
    }

    async fn link_ticket(
        &self,
        repo: RepoRef,
        test: TestId,
        ticket: &str,
    ) -> Result<bool, StoreError> {
        let ticket = ticket.replace('\0', "\u{fffd}");
        let job = self.write(
            repo,
            Box::new(move |conn| {
                async move {
                    let row = test_cases::table
                        .filter(test_cases::repo_id.eq(Sql(repo.id)))
                        .filter(test_cases::org_id.eq(Sql(repo.org)))
                        .filter(test_cases::id.eq(Sql(test)));
                    let update = diesel::update(row).set(test_cases::ticket.eq(ticket));
                    Ok(update.execute(conn).await? == 1)
                }
                .boxed()
            }),
        );
        Ok(job.await?)
    }

    async fn page_key(&self, new: [u8; 32]) -> Result<[u8; 32], StoreError> {
        {
            let mut conn = self.connection(Reach::ALL).await?;
            let kept = server_keys::table.find("pages").select(server_keys::value);
            let kept: Option<String> =
                kept.first(&mut conn).await.optional().map_err(DbError::from)?;
            if let Some(key) = kept.as_deref().and_then(key_of) {
                return Ok(key);
            }
        }
        let job = self.write(
            Reach::ALL,
            Box::new(move |conn| {
                async move {
                    let name = server_keys::name.eq("pages");
                    let digits = digits_of(&new);
                    diesel::insert_into(server_keys::table)
                        .values((name, server_keys::value.eq(digits)))
                        .on_conflict_do_nothing()
                        .execute(conn)
                        .await?;
                    let kept: String = server_keys::table
                        .find("pages")
                        .select(server_keys::value)
                        .first(conn)
                        .await?;
                    key_of(&kept).ok_or_else(|| DbError::corrupt("key", "it has no 64 digits"))
                }
                .boxed()
            }),
        );
        Ok(job.await?)
    }

    async fn add_ci_run(&self, repo: RepoRef, run: &CiRun) -> Result<(), StoreError> {
        let run = run.clone();
        // What is no JSON is kept as the text that it is.
        let sent = serde_json::from_str(&run.document)
            .unwrap_or_else(|_| serde_json::Value::String(run.document.clone()));
        let document = encode(&CiRunDocument { sent })?;
        let job = self.write(
            repo,
            Box::new(move |conn| {
                async move {
                    let row = (
                        ci_runs::id.eq(Sql(run.id)),
                        ci_runs::org_id.eq(Sql(repo.org)),
                        ci_runs::repo_id.eq(Sql(repo.id)),
                        ci_runs::at.eq(Sql(run.at)),
                        ci_runs::document.eq(document),
                    );
                    diesel::insert_into(ci_runs::table).values(row).execute(conn).await?;
                    Ok(())
                }
                .boxed()
            }),
        );
        Ok(job.await?)
    }

    async fn prepare_days(&self, at: Timestamp) -> Result<(), StoreError> {
        for ahead in 0..4 {
            let day = at.plus(Span::hours(24 * ahead)).floor(Span::hours(24));
            let job = Store::write(
                self,
                Reach::ALL,
                Box::new(move |conn| prepare_day(conn, day).boxed()),
            );
            job.await?;
        }
        Ok(())
    }

    async fn prune(&self, before: Timestamp, limit: u32) -> Result<u64, StoreError> {
        let mut conn = self.connection(Reach::ALL).await?;
        Ok(prune::prune(&mut conn, before, i64::from(limit)).await?)
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
