//! Incidents: kept, read, and what they change of counts.

use std::collections::{BTreeMap, BTreeSet};

use diesel::prelude::*;
use diesel_async::RunQueryDsl;
use signalbox_domain::flaky::{
    FailureHistory, Incident, IncidentId, Origin, Recount, RunRecord, TestId, UploadId,
};
use signalbox_domain::ids::{OrgId, RepoId};
use signalbox_domain::ports::{IncidentChanges, KnownIncidents, RepoRef};
use signalbox_domain::time::{Span, Timestamp};

use super::super::bulk::{Target, bulk_rows};
use super::super::{Conn, bulk};
use super::intake_rows::{BUCKETS, BucketRow, CODES, CodeRow, HOURS, HourRow, code_text, storable};
use crate::documents::{Json, Kept, encode, values};
use crate::error::DbError;
use crate::schema::{flaky_repos, incident_failures, test_incidents, test_runs};
use crate::sql_types::{Sql, each};

bulk_rows! {
    /// An incident.
    INCIDENTS = IncidentRow in "test_incidents" {
        repo_id: RepoId, id: IncidentId, org_id: OrgId, last_at: Timestamp, document: Json,
    } "ON CONFLICT (repo_id, id) DO UPDATE SET last_at = excluded.last_at, \
        document = excluded.document";
    /// A failure of an incident.
    #[expect(clippy::struct_field_names, reason = "named as their columns")]
    FAILURES = FailureRow in "incident_failures" {
        repo_id: RepoId, incident_id: IncidentId, test_id: TestId, upload_id: UploadId,
        org_id: OrgId,
    } "ON CONFLICT DO NOTHING";
    /// A code on which the failures of a test no longer count.
    GONE = GoneRow in "test_codes" {
        repo_id: RepoId, test_id: TestId, code: String, branch: String, origin: String,
    } "";
    /// The last failure of a test that counts.
    LAST = LastRow in "test_cases" {
        repo_id: RepoId, id: TestId, last_failure_at: Option<Timestamp>,
    } "";
}

/// The rows of what a step changes of incidents.
#[derive(Default)]
pub(super) struct IncidentRows {
    history: Option<Json>,
    incidents: Vec<IncidentRow>,
    failures: Vec<FailureRow>,
    hours: Vec<HourRow>,
    buckets: Vec<BucketRow>,
    codes: Vec<CodeRow>,
    gone: Vec<GoneRow>,
    last: Vec<LastRow>,
}

impl IncidentRows {
    pub(super) fn of(repo: RepoRef, changes: &IncidentChanges) -> Result<Self, DbError> {
        let mut rows =
            Self { history: changes.history.as_ref().map(encode).transpose()?, ..Self::default() };
        for step in &changes.steps {
            let incident = &step.incident;
            rows.incidents.push(IncidentRow {
                repo_id: repo.id,
                id: incident.id,
                org_id: repo.org,
                last_at: incident.last_at,
                document: encode(incident)?,
            });
            rows.failures.extend(step.failures.iter().map(|(test_id, upload_id)| FailureRow {
                repo_id: repo.id,
                incident_id: incident.id,
                test_id: *test_id,
                upload_id: *upload_id,
                org_id: repo.org,
            }));
        }
        let mut last: BTreeMap<TestId, Option<Timestamp>> = BTreeMap::new();
        let mut counted = Counted::default();
        for recount in &changes.recounts {
            counted.recount(repo, recount);
            last.insert(recount.test, recount.last_failure_at);
        }
        let Counted { hours, buckets, codes, gone } = counted;
        rows.buckets = buckets.into_values().collect();
        rows.codes = codes.into_values().collect();
        rows.gone = gone.into_values().collect();
        rows.hours.extend(hours.into_iter().map(|((test_id, hour), failed)| HourRow {
            repo_id: repo.id,
            test_id,
            hour,
            org_id: repo.org,
            failed,
            first_failure_at: None,
            last_failure_at: None,
        }));
        rows.last.extend(last.into_iter().map(|(id, last_failure_at)| LastRow {
            repo_id: repo.id,
            id,
            last_failure_at,
        }));
        Ok(rows)
    }

    pub(super) async fn write(&self, conn: &mut Conn, repo: RepoId) -> Result<(), DbError> {
        if let Some(history) = &self.history {
            diesel::update(flaky_repos::table.find(Sql(repo)))
                .set(flaky_repos::failures.eq(Some(history)))
                .execute(conn)
                .await?;
        }
        INCIDENTS.insert(conn, &self.incidents).await?;
        FAILURES.insert(conn, &self.failures).await?;
        HOURS.insert(conn, &self.hours).await?;
        BUCKETS.insert(conn, &self.buckets).await?;
        CODES.insert(conn, &self.codes).await?;
        GONE.update(conn, 5, "first_failure_at = NULL", &self.gone).await?;
        LAST.update(conn, 2, "last_failure_at = new.last_failure_at", &self.last).await
    }
}

/// What recounts change, by the keys of the tables: rows of one statement must differ.
#[derive(Default)]
struct Counted {
    hours: BTreeMap<(TestId, Timestamp), i64>,
    buckets: BTreeMap<(TestId, Timestamp, String), BucketRow>,
    codes: BTreeMap<(TestId, String, String, Origin), CodeRow>,
    gone: BTreeMap<(TestId, String, String, Origin), GoneRow>,
}

impl Counted {
    fn recount(&mut self, repo: RepoRef, recount: &Recount) {
        let test_id = recount.test;
        for bucket in &recount.failures.buckets {
            let failed = i64::from(bucket.failed);
            let failed = if recount.counts { failed } else { -failed };
            let hour = bucket.start.floor(Span::hours(1));
            *self.hours.entry((test_id, hour)).or_default() += failed;
            let branch = storable(&bucket.branch);
            let key = (test_id, bucket.start, branch.clone());
            let row = self.buckets.entry(key).or_insert_with(|| BucketRow {
                repo_id: repo.id,
                test_id,
                start: bucket.start,
                branch,
                org_id: repo.org,
                class: bucket.class.as_str(),
                failed: 0,
                last_run_at: bucket.last_run_at,
                last_failure_at: bucket.last_failure_at.filter(|_| recount.counts),
            });
            row.failed += failed;
        }
        for code in &recount.failures.codes {
            let (text, branch) = (code_text(&code.code), storable(&code.branch));
            let origin = code.origin.to_string();
            let key = (test_id, text.clone(), branch.clone(), code.origin);
            if recount.counts {
                self.codes.insert(
                    key,
                    CodeRow {
                        repo_id: repo.id,
                        test_id,
                        code: text,
                        branch,
                        origin,
                        org_id: repo.org,
                        class: code.class.as_str(),
                        first_success_at: None,
                        first_failure_at: code.first_failure_at,
                        last_at: code.first_failure_at.unwrap_or(recount.since),
                    },
                );
            } else {
                let row = GoneRow { repo_id: repo.id, test_id, code: text, branch, origin };
                self.gone.insert(key, row);
            }
        }
    }
}

/// The incidents with a failure since a time, the newest first.
pub(super) async fn incidents(
    conn: &mut Conn,
    repo: RepoRef,
    since: Timestamp,
    limit: u32,
) -> Result<KnownIncidents, DbError> {
    let history: Option<Option<Kept<FailureHistory>>> = flaky_repos::table
        .filter(flaky_repos::repo_id.eq(Sql(repo.id)))
        .filter(flaky_repos::org_id.eq(Sql(repo.org)))
        .select(flaky_repos::failures)
        .first(conn)
        .await
        .optional()?;
    let history = history.flatten().map(|Kept(history)| history).unwrap_or_default();
    let incidents: Vec<Kept<Incident>> = test_incidents::table
        .filter(test_incidents::repo_id.eq(Sql(repo.id)))
        .filter(test_incidents::org_id.eq(Sql(repo.org)))
        .filter(test_incidents::last_at.ge(Sql(since)))
        .order((test_incidents::last_at.desc(), test_incidents::id))
        .limit(i64::from(limit))
        .select(test_incidents::document)
        .load(conn)
        .await?;
    Ok(KnownIncidents { history, incidents: values(incidents) })
}

pub(super) async fn incident(
    conn: &mut Conn,
    repo: RepoRef,
    id: IncidentId,
) -> Result<Option<Incident>, DbError> {
    let found: Option<Kept<Incident>> = test_incidents::table
        .filter(test_incidents::repo_id.eq(Sql(repo.id)))
        .filter(test_incidents::org_id.eq(Sql(repo.org)))
        .filter(test_incidents::id.eq(Sql(id)))
        .select(test_incidents::document)
        .first(conn)
        .await
        .optional()?;
    Ok(found.map(|Kept(incident)| incident))
}

/// The incidents of a test, the newest first.
pub(super) async fn of_test(
    conn: &mut Conn,
    repo: RepoRef,
    test: TestId,
    limit: u32,
) -> Result<Vec<Incident>, DbError> {
    let ids: Vec<IncidentId> = incident_failures::table
        .filter(incident_failures::repo_id.eq(Sql(repo.id)))
        .filter(incident_failures::org_id.eq(Sql(repo.org)))
        .filter(incident_failures::test_id.eq(Sql(test)))
        .select(incident_failures::incident_id)
        .distinct()
        .load(conn)
        .await?;
    let found: Vec<Kept<Incident>> = test_incidents::table
        .filter(test_incidents::repo_id.eq(Sql(repo.id)))
        .filter(test_incidents::org_id.eq(Sql(repo.org)))
        .filter(test_incidents::id.eq_any(each(&ids)))
        .order((test_incidents::last_at.desc(), test_incidents::id))
        .limit(i64::from(limit))
        .select(test_incidents::document)
        .load(conn)
        .await?;
    Ok(values(found))
}

pub(super) async fn failures(
    conn: &mut Conn,
    repo: RepoRef,
    id: IncidentId,
) -> Result<BTreeSet<(TestId, UploadId)>, DbError> {
    let rows: Vec<(TestId, UploadId)> = incident_failures::table
        .filter(incident_failures::repo_id.eq(Sql(repo.id)))
        .filter(incident_failures::org_id.eq(Sql(repo.org)))
        .filter(incident_failures::incident_id.eq(Sql(id)))
        .select((incident_failures::test_id, incident_failures::upload_id))
        .load(conn)
        .await?;
    Ok(rows.into_iter().collect())
}

pub(super) async fn failing_runs(
    conn: &mut Conn,
    repo: RepoRef,
    failures: &BTreeSet<(TestId, UploadId)>,
    from: Timestamp,
) -> Result<Vec<RunRecord>, DbError> {
    let tests: BTreeSet<TestId> = failures.iter().map(|(test, _)| *test).collect();
    let tests: Vec<TestId> = tests.into_iter().collect();
    let mut found = Vec::new();
    for piece in bulk::pieces(&tests) {
        let rows: Vec<Kept<RunRecord>> = test_runs::table
            .filter(test_runs::repo_id.eq(Sql(repo.id)))
            .filter(test_runs::org_id.eq(Sql(repo.org)))
            .filter(test_runs::test_id.eq_any(each(piece)))
            .filter(test_runs::at.ge(Sql(from)))
            .order((test_runs::test_id, test_runs::at, test_runs::attempt))
            .select(test_runs::document)
            .load(conn)
            .await?;
        let runs = values(rows).into_iter();
        found.extend(runs.filter(|run| failures.contains(&(run.test, run.upload))));
    }
    Ok(found)
}
