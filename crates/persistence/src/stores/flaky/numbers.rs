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
use crate::documents::number;
use crate::error::DbError;
use crate::schema::test_pull_requests;
use crate::sql_types::{Id, Moment, Sql, each};

#[derive(QueryableByName)]
struct Counted {
    #[diesel(sql_type = Id)]
    test_id: TestId,
    #[diesel(sql_type = BigInt)]
    runs_24h: i64,
    #[diesel(sql_type = BigInt)]
    failures_24h: i64,
    #[diesel(sql_type = BigInt)]
    runs_7d: i64,
    #[diesel(sql_type = BigInt)]
    failures_7d: i64,
}

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
    let (day, week) = (at.minus(Span::hours(24)), at.minus(Span::hours(7 * 24)));
    let mut found: BTreeMap<TestId, TestNumbers> = BTreeMap::new();
    // Parameters are numbered in the order in which they appear: SQLite counts them so. A cross
    // join keeps it from walking the whole repository for each requested test.
    let asked = rows_of_json(ASKED.columns);
    for piece in bulk::pieces(ids) {
        let piece: Vec<AskedRow> = piece.iter().map(|id| AskedRow { id: *id }).collect();
        let json = bulk::array(&piece)?;
        let sql = format!(
            "WITH asked AS ({asked}) SELECT test_id, \
             CAST(SUM(CASE WHEN hour > $2 THEN passed + failed ELSE 0 END) AS BIGINT) AS runs_24h, \
             CAST(SUM(CASE WHEN hour > $2 THEN failed ELSE 0 END) AS BIGINT) AS failures_24h, \
             CAST(SUM(passed + failed) AS BIGINT) AS runs_7d, \
             CAST(SUM(failed) AS BIGINT) AS failures_7d \
             FROM asked CROSS JOIN test_hours \
             WHERE test_id = asked.id AND hour > $3 AND repo_id = $4 AND org_id = $5 GROUP BY test_id"
        );
        let counted: Vec<Counted> = diesel::sql_query(sql)
            .bind::<Text, _>(&json)
            .bind::<Moment, _>(day)
            .bind::<Moment, _>(week)
            .bind::<Id, _>(repo.id)
            .bind::<Id, _>(repo.org)
            .load(conn)
            .await?;
        for row in counted {
            let numbers = found.entry(row.test_id).or_default();
            // Excluded failures may be older than the stored hours.
            numbers.runs_24h = number("hours", row.runs_24h.max(0))?;
            numbers.failures_24h = number("hours", row.failures_24h.max(0))?;
            numbers.runs_7d = number("hours", row.runs_7d.max(0))?;
            numbers.failures_7d = number("hours", row.failures_7d.max(0))?;
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
            .filter(test_pull_requests::test_id.eq_any(each(piece)))
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
