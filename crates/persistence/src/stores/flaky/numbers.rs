//! What is counted of tests, from rows whose number does not depend on the results.

use std::collections::{BTreeMap, BTreeSet};

use diesel::prelude::*;
use diesel::sql_types::{BigInt, Text};
use diesel_async::RunQueryDsl;
use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde::de::value::StringDeserializer;
use signalbox_domain::flaky::{FailureCluster, Fingerprint, TestId};
use signalbox_domain::ids::PrNumber;
use signalbox_domain::ports::{RepoRef, TestNumbers};
use signalbox_domain::time::{Span, Timestamp};

use super::super::super::rows_of_json;
use super::super::bulk::{Target, bulk_rows};
use super::super::{Conn, bulk};
use super::packed;
use crate::among::among;
use crate::documents::number;
use crate::error::DbError;
use crate::schema::{test_hours, test_pull_requests};
use crate::sql_types::{Id, Moment, Sql};

#[derive(QueryableByName)]
struct Cluster {
    #[diesel(sql_type = Id)]
    test_id: TestId,
    #[diesel(sql_type = Text)]
    fingerprint: String,
    #[diesel(sql_type = Text)]
    summary: String,
    #[diesel(sql_type = BigInt)]
    occurrences: i64,
    #[diesel(sql_type = Moment)]
    last_at: Timestamp,
}

bulk_rows! {
    /// A requested test.
    ASKED = AskedRow in "asked" { id: TestId } "";
}

pub(super) async fn numbers(
    conn: &mut Conn,
    repo: RepoRef,
    ids: &[TestId],
    at: Timestamp,
) -> Result<BTreeMap<TestId, TestNumbers>, DbError> {
    let week = at.minus(Span::hours(7 * 24));
    let mut found: BTreeMap<TestId, TestNumbers> = BTreeMap::new();
    // Parameters are numbered in the order in which they appear: SQLite counts them so. A cross
    // join keeps it from walking the whole repository for each requested test.
    let asked = rows_of_json(ASKED.columns);
    for ids in bulk::pieces(ids) {
        let piece: Vec<AskedRow> = ids.iter().map(|id| AskedRow { id: *id }).collect();
        let json = bulk::array(&piece)?;
        for (test, runs) in packed::since(conn, repo, ids, week).await? {
            let counted = runs.iter().filter(|run| run.is_counted_pass());
            count(&mut found, test, counted.map(|run| (run.at.floor(Span::hours(1)), 1, 0)), at);
        }
        let failing: Vec<(TestId, Timestamp, i64)> = test_hours::table
            .filter(test_hours::repo_id.eq(Sql(repo.id)))
            .filter(test_hours::org_id.eq(Sql(repo.org)))
            .filter(among(test_hours::test_id, ids))
            .filter(test_hours::hour.gt(Sql(week)))
            .select((test_hours::test_id, test_hours::hour, test_hours::failed))
            .load(conn)
            .await?;
        for (test, hour, failed) in failing {
            // Excluded failures may be older than the stored hours.
            let failed = number("hours", failed.max(0))?;
            count(&mut found, test, [(hour, failed, failed)], at);
        }
        let sql = format!(
            "WITH asked AS ({asked}) SELECT test_id, fingerprint, MIN(summary) AS summary, \
             CAST(SUM(occurrences) AS BIGINT) AS occurrences, MAX(last_at) AS last_at \
             FROM asked CROSS JOIN test_failures \
             WHERE test_id = asked.id AND repo_id = $2 AND org_id = $3 GROUP BY test_id, fingerprint"
        );
        let clusters: Vec<Cluster> = diesel::sql_query(sql)
            .bind::<Text, _>(&json)
            .bind::<Id, _>(repo.id)
            .bind::<Id, _>(repo.org)
            .load(conn)
            .await?;
        for row in clusters {
            let numbers = found.entry(row.test_id).or_default();
            numbers.failures.push(FailureCluster {
                fingerprint: fingerprint(row.fingerprint)?,
                summary: row.summary,
                occurrence_count: number("failures", row.occurrences)?,
                last_occurrence: row.last_at,
            });
        }
    }
    for (test, impacted) in pull_requests(conn, repo, ids, at).await? {
        found.entry(test).or_default().pull_requests_7d = impacted;
    }
    for numbers in found.values_mut() {
        TestNumbers::rank(&mut numbers.failures);
    }
    found.retain(|_, numbers| *numbers != TestNumbers::default());
    Ok(found)
}

/// Adds the runs and failures of hours of a test.
fn count(
    found: &mut BTreeMap<TestId, TestNumbers>,
    test: TestId,
    hours: impl IntoIterator<Item = (Timestamp, u32, u32)>,
    at: Timestamp,
) {
    let (day, week) = (at.minus(Span::hours(24)), at.minus(Span::hours(7 * 24)));
    let numbers = found.entry(test).or_default();
    for (hour, runs, failures) in hours {
        if hour > day {
            numbers.runs_24h = numbers.runs_24h.saturating_add(runs);
            numbers.failures_24h = numbers.failures_24h.saturating_add(failures);
        }
        if hour > week {
            numbers.runs_7d = numbers.runs_7d.saturating_add(runs);
            numbers.failures_7d = numbers.failures_7d.saturating_add(failures);
        }
    }
}

pub(super) async fn pull_requests(
    conn: &mut Conn,
    repo: RepoRef,
    ids: &[TestId],
    at: Timestamp,
) -> Result<BTreeMap<TestId, BTreeSet<PrNumber>>, DbError> {
    let week = at.minus(Span::hours(7 * 24));
    let mut found: BTreeMap<TestId, BTreeSet<PrNumber>> = BTreeMap::new();
    for piece in bulk::pieces(ids) {
        let impacted: Vec<(TestId, i64)> = test_pull_requests::table
            .filter(test_pull_requests::repo_id.eq(Sql(repo.id)))
            .filter(test_pull_requests::org_id.eq(Sql(repo.org)))
            .filter(among(test_pull_requests::test_id, piece))
            .filter(test_pull_requests::last_failure_at.gt(Sql(week)))
            .select((test_pull_requests::test_id, test_pull_requests::pr_number))
            .load(conn)
            .await?;
        for (test, pr) in impacted {
            let of_test = found.entry(test).or_default();
            of_test.insert(PrNumber(number("pull requests", pr)?));
        }
    }
    Ok(found)
}

/// A fingerprint from its text.
fn fingerprint(text: String) -> Result<Fingerprint, DbError> {
    let text: StringDeserializer<serde::de::value::Error> = text.into_deserializer();
    Fingerprint::deserialize(text).map_err(|error| DbError::corrupt("fingerprint", error))
}
