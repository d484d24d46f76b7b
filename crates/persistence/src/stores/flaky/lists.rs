//! Lists of tests, read along an index.

use diesel::dsl::sql;
use diesel::prelude::*;
use diesel::sql_types::Bool;
use diesel_async::RunQueryDsl;
use signalbox_domain::flaky::{
    AutoQuarantine, QuarantineOverride, QuarantineSettings, TestId, TestStatus,
};
use signalbox_domain::ports::{RepoRef, Seek, TestList, TestRecord};
use signalbox_domain::time::{Span, Timestamp};

use super::super::Conn;
use super::records::{RECORD, RecordRow, record, tests};
use crate::documents::number;
use crate::error::DbError;
use crate::schema::{test_cases, test_hours, test_runs};
use crate::sql_types::Sql;

/// A query over one of the tables, of any shape.
macro_rules! cases {
    ($repo:expr) => {
        test_cases::table
            .filter(test_cases::repo_id.eq(Sql($repo.id)))
            .filter(test_cases::org_id.eq(Sql($repo.org)))
            .into_boxed()
    };
}

/// The rule of quarantine as a filter. A test that it excludes is not quarantined.
macro_rules! only_quarantined {
    ($query:expr, $settings:expr, $at:expr) => {{
        let over = test_cases::quarantine_until.le(Sql($at)).assume_not_null();
        let expires = test_cases::quarantine_until.is_not_null();
        let always = test_cases::quarantine.eq(QuarantineOverride::Always.as_str());
        let follow = test_cases::quarantine.eq(QuarantineOverride::Follow.as_str());
        let holds = always.and(diesel::dsl::not(expires.and(over)));
        let follows = follow.or(always.and(expires.and(over)));
        let covered = test_cases::status.eq_any(covered($settings));
        $query.filter(test_cases::noted).filter(holds.or(follows.and(covered)))
    }};
}

/// The statuses that are quarantined by themselves.
fn covered(settings: QuarantineSettings) -> Vec<&'static str> {
    let (flaky, broken) = (TestStatus::Flaky.as_str(), TestStatus::Broken.as_str());
    match settings.auto {
        AutoQuarantine::Off => Vec::new(),
        AutoQuarantine::Flaky => vec![flaky],
        AutoQuarantine::FlakyAndBroken => vec![flaky, broken],
    }
}

/// Hours in which a test failed within a time. What is kept of an hour, its first and its last
/// failure, decides unless the time begins and ends within one hour.
macro_rules! failing_hours {
    ($repo:expr, $from:expr, $until:expr) => {
        test_hours::table
            .filter(test_hours::repo_id.eq(Sql($repo.id)))
            .filter(test_hours::org_id.eq(Sql($repo.org)))
            .filter(test_hours::last_failure_at.is_not_null())
            .filter(test_hours::last_failure_at.ge(Sql($from)))
            .filter(test_hours::first_failure_at.lt(Sql($until)))
            .filter(test_hours::hour.ge(Sql(hour($from))))
            .filter(test_hours::hour.lt(Sql($until)))
    };
}

macro_rules! failing_runs {
    ($repo:expr, $from:expr, $until:expr) => {
        test_runs::table
            .filter(test_runs::repo_id.eq(Sql($repo.id)))
            .filter(test_runs::org_id.eq(Sql($repo.org)))
            .filter(test_runs::at.ge(Sql($from)))
            .filter(test_runs::at.lt(Sql($until)))
    };
}

fn hour(at: Timestamp) -> Timestamp {
    at.floor(Span::hours(1))
}

/// Whether a time begins and ends within one hour.
fn is_within_an_hour(from: Timestamp, until: Timestamp) -> bool {
    hour(from) == hour(until)
}

/// Orders and cuts a query; pages from the end are read backwards.
macro_rules! page {
    ($query:expr, $id:expr, $seek:expr, $limit:expr) => {
        match $seek {
            Seek::After(None) => $query.order($id.asc()),
            Seek::After(Some(after)) => $query.filter($id.gt(Sql(after))).order($id.asc()),
            Seek::Before(None) => $query.order($id.desc()),
            Seek::Before(Some(end)) => $query.filter($id.lt(Sql(end))).order($id.desc()),
        }
        .limit(i64::from($limit))
    };
}

pub(super) async fn list(
    conn: &mut Conn,
    repo: RepoRef,
    list: TestList,
    seek: Seek,
    limit: u32,
) -> Result<Vec<TestRecord>, DbError> {
    if let TestList::Failing { from, until } = list {
        let ids: Vec<TestId> = if is_within_an_hour(from, until) {
            let query =
                failing_runs!(repo, from, until).into_boxed().select(test_runs::test_id).distinct();
            page!(query, test_runs::test_id, seek, limit).load(conn).await?
        } else {
            let query = failing_hours!(repo, from, until)
                .into_boxed()
                .select(test_hours::test_id)
                .distinct();
            page!(query, test_hours::test_id, seek, limit).load(conn).await?
        };
        return tests(conn, repo, &ids).await;
    }
    let query = filtered(cases!(repo), list);
    let rows: Vec<RecordRow> =
        page!(query.select(RECORD), test_cases::id, seek, limit).load(conn).await?;
    let mut records: Vec<TestRecord> = rows.into_iter().map(|row| record(repo, row)).collect();
    if matches!(seek, Seek::Before(_)) {
        records.reverse();
    }
    Ok(records)
}

pub(super) async fn count(conn: &mut Conn, repo: RepoRef, list: TestList) -> Result<u64, DbError> {
    use diesel::dsl::count_star;
    use diesel::sql_types::BigInt;
    // The number of groups: counting distinct values would sort them all, though they come in
    // order.
    let groups = || sql::<BigInt>("COUNT(*) OVER ()");
    let counted: Option<i64> = match list {
        TestList::Failing { from, until } if is_within_an_hour(from, until) => {
            let runs = failing_runs!(repo, from, until).group_by(test_runs::test_id);
            runs.select(groups()).first(conn).await.optional()?
        }
        TestList::Failing { from, until } => {
            let hours = failing_hours!(repo, from, until).group_by(test_hours::test_id);
            hours.select(groups()).first(conn).await.optional()?
        }
        TestList::Unhealthy(_) | TestList::Quarantined { .. } | TestList::Retired => {
            Some(filtered(cases!(repo), list).select(count_star()).first(conn).await?)
        }
    };
    number("count", counted.unwrap_or(0))
}

pub(super) async fn ids(
    conn: &mut Conn,
    repo: RepoRef,
    list: TestList,
) -> Result<Vec<TestId>, DbError> {
    let ids: Vec<TestId> = match list {
        TestList::Failing { from, until } if is_within_an_hour(from, until) => {
            let runs = failing_runs!(repo, from, until).select(test_runs::test_id).distinct();
            runs.order(test_runs::test_id).load(conn).await?
        }
        TestList::Failing { from, until } => {
            let hours = failing_hours!(repo, from, until).select(test_hours::test_id).distinct();
            hours.order(test_hours::test_id).load(conn).await?
        }
        TestList::Unhealthy(_) | TestList::Quarantined { .. } | TestList::Retired => {
            let cases = filtered(cases!(repo), list).select(test_cases::id);
            cases.order(test_cases::id).load(conn).await?
        }
    };
    Ok(ids)
}

type Backend = <Conn as diesel_async::AsyncConnectionCore>::Backend;
type Cases<'a> = test_cases::BoxedQuery<'a, Backend>;

/// Only the tests of a list. Tests that failed within a time are found elsewhere.
fn filtered(query: Cases<'static>, list: TestList) -> Cases<'static> {
    match list {
        TestList::Failing { .. } => query,
        // The index has no healthy tests. That a parameter is another status cannot be concluded.
        TestList::Unhealthy(status) => query
            .filter(test_cases::status.eq(status.as_str()))
            .filter(sql::<Bool>("status <> 'healthy'")),
        TestList::Quarantined { settings, .. } if !settings.enabled => {
            query.filter(test_cases::noted.and(diesel::dsl::not(test_cases::noted)))
        }
        TestList::Retired => query.filter(test_cases::retired),
        TestList::Quarantined { settings, at } => only_quarantined!(query, settings, at),
    }
}
