//! Runs of tests are stored in one partition per day of their upload.

use diesel::prelude::*;
use diesel::sql_types::{BigInt, Bool, Text};
use diesel_async::{RunQueryDsl, SimpleAsyncConnection};
use signalbox_domain::time::Timestamp;

use super::Conn;
use crate::error::DbError;

/// The partitioned tables, in the order in which an upload writes them, so that it and the making of
/// a day never wait for each other.
const TABLES: [&str; 2] = ["packed_runs", "test_runs"];
/// What the name of a partition has between that of its table and its day.
const SUFFIX: &str = "_d";
/// The length of a day in microseconds. Names of partitions count days from 1970.
const DAY: i64 = 24 * 3_600 * 1_000_000;
/// The advisory lock that serializes the creation of partitions.
const LOCK: i64 = 0x5369_676e_6461;

#[derive(QueryableByName)]
struct Found {
    #[diesel(sql_type = Bool)]
    found: bool,
}

#[derive(QueryableByName)]
struct Partition {
    #[diesel(sql_type = Text)]
    name: String,
    #[diesel(sql_type = Bool)]
    attached: bool,
    #[diesel(sql_type = Bool)]
    pending: bool,
}

/// Creates the partition of the day that begins at `start`, unless it exists.
pub(crate) async fn prepare_day(conn: &mut Conn, start: Timestamp) -> Result<(), DbError> {
    let day = start.unix_micros().div_euclid(DAY);
    // Both are made in one transaction.
    let [_, last] = TABLES;
    let known = diesel::sql_query("SELECT to_regclass($1) IS NOT NULL AS found")
        .bind::<Text, _>(format!("{last}{SUFFIX}{day}"))
        .get_result::<Found>(conn)
        .await?;
    if known.found {
        return Ok(());
    }
    let [from, until] = [day, day + 1].map(|day| Timestamp::from_unix_micros(day * DAY));
    diesel::sql_query("SELECT pg_advisory_xact_lock($1)")
        .bind::<BigInt, _>(LOCK)
        .execute(conn)
        .await?;
    for table in TABLES {
        let part = format!("{table}{SUFFIX}{day}");
        let made = [
            format!(
                "CREATE TABLE {part} PARTITION OF {table} FOR VALUES FROM ('{from}') TO ('{until}')"
            ),
            format!("ALTER TABLE {part} ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY"),
            // That of the table applies only to statements that name the table.
            format!(
                "CREATE POLICY one_organization ON {part} USING (\
                 (SELECT COALESCE(current_setting('signalbox.org', true), '') = '') \
                 OR org_id = (SELECT NULLIF(current_setting('signalbox.org', true), '')::uuid))"
            ),
        ];
        for statement in made {
            diesel::sql_query(statement).execute(conn).await?;
        }
    }
    Ok(())
}

/// The condition for runs that did not fail and came at a time or later, before and after the time.
pub(crate) const RUNS_CAME_SINCE: (&str, &str) = ("start >= ", "");

/// Drops the partitions of days before `before` and returns their number; the row limit is ignored.
/// A partition is detached concurrently, which blocks neither reads nor writes, and then dropped.
/// Must not run within a transaction.
pub(crate) async fn prune_runs(conn: &mut Conn, before: Timestamp, _: i64) -> Result<u64, DbError> {
    let mut dropped = 0;
    // The one by which a day is known goes first.
    for table in TABLES.into_iter().rev() {
        dropped += drop_days(conn, table, before).await?;
    }
    Ok(dropped)
}

async fn drop_days(conn: &mut Conn, table: &str, before: Timestamp) -> Result<u64, DbError> {
    let prefix = format!("{table}{SUFFIX}");
    let partitions: Vec<Partition> = diesel::sql_query(
        "SELECT class.relname::text AS name, parts.inhrelid IS NOT NULL AS attached, \
         COALESCE(parts.inhdetachpending, FALSE) AS pending FROM pg_class class \
         LEFT JOIN pg_inherits parts ON parts.inhrelid = class.oid \
         WHERE class.relkind = 'r' AND starts_with(class.relname::text, $1) \
         AND class.relnamespace = (SELECT relnamespace FROM pg_class \
         WHERE oid = to_regclass($2))",
    )
    .bind::<Text, _>(&prefix)
    .bind::<Text, _>(table)
    .load(conn)
    .await?;
    let mut dropped = 0;
    for Partition { name, attached, pending } in partitions {
        let day = name.strip_prefix(&prefix).and_then(|day| day.parse::<i64>().ok());
        if day.is_none_or(|day| (day + 1) * DAY > before.unix_micros()) {
            continue;
        }
        if attached {
            let how = if pending { "FINALIZE" } else { "CONCURRENTLY" };
            let detach = format!("ALTER TABLE {table} DETACH PARTITION {name} {how}");
            conn.batch_execute(&detach).await?;
        }
        conn.batch_execute(&format!("DROP TABLE IF EXISTS {name}")).await?;
        dropped += 1;
    }
    Ok(dropped)
}
