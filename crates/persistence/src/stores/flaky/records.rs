//! Tests as they are read.

use diesel::prelude::*;
use diesel_async::RunQueryDsl;
use signalbox_domain::flaky::{TestId, Windows};
use signalbox_domain::ports::{KnownTest, RepoRef, TestRecord};
use signalbox_domain::time::Timestamp;

use super::super::{Conn, bulk};
use crate::among::among;
use crate::documents::{Kept, Owners, TestDocument};
use crate::error::DbError;
use crate::schema::test_cases;
use crate::sql_types::Sql;

/// The columns of a record.
pub(super) type RecordRow = (
    TestId,
    Option<Kept<Owners>>,
    Option<String>,
    Timestamp,
    Option<Timestamp>,
    Timestamp,
    Option<Timestamp>,
    Option<Kept<Windows>>,
    Kept<TestDocument>,
);

pub(super) const RECORD: (
    test_cases::id,
    test_cases::owners,
    test_cases::ticket,
    test_cases::first_seen_at,
    test_cases::stable_since,
    test_cases::last_seen_at,
    test_cases::last_failure_at,
    test_cases::windows,
    test_cases::document,
) = (
    test_cases::id,
    test_cases::owners,
    test_cases::ticket,
    test_cases::first_seen_at,
    test_cases::stable_since,
    test_cases::last_seen_at,
    test_cases::last_failure_at,
    test_cases::windows,
    test_cases::document,
);

/// The test of a row in a repository.
pub(super) fn record(repo: RepoRef, row: RecordRow) -> TestRecord {
    let (
        id,
        owners,
        ticket,
        first_seen_at,
        stable_since,
        last_seen_at,
        last_failure_at,
        windows,
        Kept(document),
    ) = row;
    TestRecord {
        test: document.test(repo, id),
        owners: owners.map(|Kept(it)| it.owners).unwrap_or_default(),
        ticket,
        first_seen_at,
        stable_since,
        last_seen_at,
        last_failure_at,
        windows: windows.map(|Kept(windows)| windows).unwrap_or_default(),
    }
}

/// The tests with those ids, by id.
pub(super) async fn tests(
    conn: &mut Conn,
    repo: RepoRef,
    ids: &[TestId],
) -> Result<Vec<TestRecord>, DbError> {
    let mut ids = ids.to_vec();
    ids.sort();
    ids.dedup();
    let mut records = Vec::with_capacity(ids.len());
    for piece in bulk::pieces(&ids) {
        let rows: Vec<RecordRow> = test_cases::table
            .filter(test_cases::repo_id.eq(Sql(repo.id)))
            .filter(test_cases::org_id.eq(Sql(repo.org)))
            .filter(among(test_cases::id, piece))
            .order(test_cases::id)
            .select(RECORD)
            .load(conn)
            .await?;
        records.extend(rows.into_iter().map(|row| record(repo, row)));
    }
    Ok(records)
}

type KnownRow = (TestId, Option<Timestamp>, Option<Timestamp>, Kept<TestDocument>);

/// Tests as far as an upload must know all of them together, by id.
pub(super) async fn known_tests(
    conn: &mut Conn,
    repo: RepoRef,
    ids: &[TestId],
) -> Result<Vec<KnownTest>, DbError> {
    let mut ids = ids.to_vec();
    ids.sort_unstable();
    ids.dedup();
    let mut known = Vec::with_capacity(ids.len());
    for piece in bulk::pieces(&ids) {
        let rows: Vec<KnownRow> = test_cases::table
            .filter(test_cases::repo_id.eq(Sql(repo.id)))
            .filter(test_cases::org_id.eq(Sql(repo.org)))
            .filter(among(test_cases::id, piece))
            .order(test_cases::id)
            .select((
                test_cases::id,
                test_cases::stable_since,
                test_cases::last_failure_at,
                test_cases::document,
            ))
            .load(conn)
            .await?;
        known.extend(rows.into_iter().map(
            |(id, stable_since, last_failure_at, Kept(document))| KnownTest {
                test: document.test(repo, id),
                stable_since,
                last_failure_at,
            },
        ));
    }
    Ok(known)
}
