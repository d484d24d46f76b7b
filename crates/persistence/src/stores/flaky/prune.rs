//! Old history goes, a little at a time.

use diesel::sql_types::BigInt;
use diesel_async::RunQueryDsl;
use signalbox_domain::time::Timestamp;

use super::super::super::prune_runs;
use super::super::Conn;
use crate::error::DbError;
use crate::sql_types::Moment;

/// Table, key, and the column that says how old a row is.
const AGEING: [(&str, &str, &str); 10] = [
    ("test_hours", "repo_id, test_id, hour", "hour"),
    ("test_buckets", "repo_id, test_id, start, branch", "start"),
    ("test_codes", "repo_id, test_id, code, branch, origin", "last_at"),
    ("test_failures", "repo_id, test_id, day, fingerprint", "day"),
    ("test_pull_requests", "repo_id, test_id, pr_number", "last_failure_at"),
    ("result_uploads", "repo_id, id", "received_at"),
    ("test_days", "repo_id, day", "day"),
    ("ci_runs", "id", "at"),
    // With their failures.
    ("test_incidents", "repo_id, id", "last_at"),
    // With their aliases and journals. Their last results have gone before, or go with these.
    ("test_cases", "repo_id, id", "last_seen_at"),
];

/// Deletes some rows of each kind that are older than a time. Each statement is a transaction of
/// its own. Returns how many went.
pub(super) async fn prune(conn: &mut Conn, before: Timestamp, limit: i64) -> Result<u64, DbError> {
    let mut gone = prune_runs(conn, before, limit).await?;
    for (table, key, age) in AGEING {
        let sql = format!(
            "DELETE FROM {table} WHERE ({key}) IN \
             (SELECT {key} FROM {table} WHERE {age} < $1 ORDER BY {age} LIMIT $2)"
        );
        let delete = diesel::sql_query(sql).bind::<Moment, _>(before).bind::<BigInt, _>(limit);
        gone += u64::try_from(delete.execute(conn).await?).unwrap_or(0);
    }
    Ok(gone)
}
