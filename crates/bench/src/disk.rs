//! How much disk a database uses.

use crate::database::{Fresh, On};
use crate::failure::Failure;

/// The tables that grow with results.
const TABLES: [&str; 10] = [
    "test_cases",
    "test_aliases",
    "packed_runs",
    "test_runs",
    "test_hours",
    "test_buckets",
    "test_codes",
    "test_failures",
    "test_journal",
    "result_uploads",
];

/// Bytes of the database, after what it has written ahead is in its tables.
pub(crate) async fn size(fresh: &Fresh) -> Result<f64, Failure> {
    let sql = match fresh.on {
        On::Sqlite => {
            fresh.floor.run_sql("PRAGMA wal_checkpoint(TRUNCATE)").await?;
            "SELECT page_count * page_size AS number FROM pragma_page_count, pragma_page_size"
        }
        On::Postgres => "SELECT pg_database_size(current_database()) AS number",
    };
    fresh.floor.number(sql).await
}

/// Bytes of each table with its indexes; `None` where the database does not count them.
pub(crate) async fn tables(fresh: &Fresh) -> Option<Vec<(&'static str, f64)>> {
    let mut sizes = Vec::new();
    for table in TABLES {
        let sql = match fresh.on {
            On::Sqlite => format!(
                "SELECT COALESCE(SUM(pgsize), 0) AS number FROM dbstat WHERE name IN \
                 (SELECT name FROM sqlite_schema WHERE tbl_name = '{table}')"
            ),
            On::Postgres => format!(
                "SELECT COALESCE((SELECT SUM(pg_total_relation_size(relid)) \
                 FROM pg_partition_tree('{table}')), 0)::bigint \
                 + pg_total_relation_size('{table}') AS number"
            ),
        };
        sizes.push((table, fresh.floor.number(&sql).await.ok()?));
    }
    Some(sizes)
}
