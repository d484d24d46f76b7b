//! Tests as they are read.

use diesel::prelude::*;
use diesel_async::RunQueryDsl;
use signalbox_domain::flaky::TestId;
use signalbox_domain::ports::{RepoRef, TestRecord};
use signalbox_domain::time::Timestamp;

use super::super::{Conn, bulk};
use crate::documents::{FORMAT, decode, uuid};
use crate::error::DbError;
use crate::schema::test_cases;

/// The columns of a record.
pub(super) type RecordRow = (String, Option<String>, i64, i64, Option<i64>, i32, String);

pub(super) const RECORD: (
    test_cases::owners,
    test_cases::ticket,
    test_cases::first_seen_at,
    test_cases::last_seen_at,
    test_cases::last_failure_at,
    test_cases::format,
    test_cases::document,
) = (
    test_cases::owners,
    test_cases::ticket,
    test_cases::first_seen_at,
    test_cases::last_seen_at,
    test_cases::last_failure_at,
    test_cases::format,
    test_cases::document,
);

pub(super) fn record(row: RecordRow) -> Result<TestRecord, DbError> {
    let (owners, ticket, first_seen, last_seen, last_failure, format, document) = row;
    Ok(TestRecord {
        test: decode("test", format, &document)?,
        owners: decode("owners", FORMAT, &owners)?,
        ticket,
        first_seen_at: Timestamp::from_unix_micros(first_seen),
        last_seen_at: Timestamp::from_unix_micros(last_seen),
        last_failure_at: last_failure.map(Timestamp::from_unix_micros),
    })
}

/// The tests with those ids, by id.
pub(super) async fn tests(
    conn: &mut Conn,
    repo: RepoRef,
    ids: &[TestId],
) -> Result<Vec<TestRecord>, DbError> {
    let mut ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
    ids.sort();
    ids.dedup();
    let mut records = Vec::with_capacity(ids.len());
    for piece in bulk::pieces(&ids) {
        let rows: Vec<RecordRow> = test_cases::table
            .filter(test_cases::repo_id.eq(repo.id.to_string()))
            .filter(test_cases::org_id.eq(repo.org.to_string()))
            .filter(test_cases::id.eq_any(piece))
            .order(test_cases::id)
            .select(RECORD)
            .load(conn)
            .await?;
        for row in rows {
            records.push(record(row)?);
        }
    }
    Ok(records)
}

/// Ids of tests from their texts.
pub(super) fn test_ids(texts: Vec<String>) -> Result<Vec<TestId>, DbError> {
    texts.into_iter().map(|text| uuid("test", &text).map(TestId)).collect()
}
