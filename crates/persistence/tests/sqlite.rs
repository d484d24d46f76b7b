//! The store conformance suite on SQLite.

use std::collections::BTreeSet;
use std::sync::Mutex;

use diesel::connection::{InstrumentationEvent, set_default_instrumentation};
use diesel::sql_types::Text;
use diesel::{Connection, QueryableByName, RunQueryDsl, SqliteConnection};
use signalbox_domain::ports::Stores;
use tempfile::TempDir;

async fn fresh() -> (Stores, TempDir) {
    let folder = TempDir::new().expect("a folder");
    let url = format!("sqlite://{}", folder.path().join("test.db").display());
    let database = signalbox_persistence::connect(&url).await.expect("a database");
    database.migrate().await.expect("migrated");
    (database.stores(), folder)
}

signalbox_conformance::store_conformance!(fresh());

/// One line of what SQLite returns about itself.
#[derive(QueryableByName)]
struct Line {
    #[diesel(sql_type = Text)]
    line: String,
}

fn lines(conn: &mut SqliteConnection, sql: &str) -> Vec<String> {
    let lines: Vec<Line> = diesel::sql_query(sql).load(conn).expect(sql);
    lines.into_iter().map(|it| it.line).collect()
}

#[test]
fn connections_do_not_wait_for_memory() {
    let mut conn = SqliteConnection::establish(":memory:").expect("a connection");
    let sql = "SELECT compile_options AS line FROM pragma_compile_options";
    let options = lines(&mut conn, sql);
    let has = |option: &str| options.iter().any(|it| it == option);
    assert!(has("DEFAULT_MEMSTATUS=0"), "see .cargo/config.toml");
    assert!(has("DISABLE_PAGECACHE_OVERFLOW_STATS"), "see .cargo/config.toml");
    assert!(!has("ENABLE_MEMORY_MANAGEMENT"), "see .cargo/config.toml");
}

/// Every statement that connections of this process have executed.
static STATEMENTS: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

fn record(event: &InstrumentationEvent<'_>) {
    if let InstrumentationEvent::StartQuery { query, .. } = event {
        let statement = query.to_string();
        let sql = statement.split(" -- binds").next().unwrap_or_default();
        if ["SELECT", "INSERT", "UPDATE", "DELETE", "WITH"].iter().any(|it| sql.starts_with(it)) {
            STATEMENTS.lock().expect("a lock").insert(sql.to_owned());
        }
    }
}

/// All properties together do not fit on a usual stack.
const STACK: usize = 512 * 1024 * 1024;

/// What may be read from one end to the other.
const SCANNED: [&str; 15] = [
    // They have few rows, or all rows are listed.
    "flaky_repos",
    "jobs",
    "last_revocation",
    "orgs",
    "queues",
    "repos",
    "tokens",
    "webhook_endpoints",
    // Limited, and in the order of an index.
    "audit USING INDEX audit_by_age",
    // Once an hour.
    "sessions",
    // Values that a statement brings with it.
    "json_each",
    "jsonb_each",
    "periods",
    "CONSTANT ROW",
    "(subquery-2)",
];

/// The work of a statement does not grow with the history: SQLite uses an index only if its condition
/// is a condition of the query, word for word, and checks references by reading what refers.
#[test]
fn statements_use_indexes_and_every_index_is_used() {
    set_default_instrumentation(|| {
        Some(Box::new(|event: InstrumentationEvent<'_>| record(&event)))
    })
    .expect("set");
    let all = std::thread::Builder::new().stack_size(STACK).spawn(|| {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
        runtime.expect("a runtime").block_on(async {
            signalbox_conformance::store_conformance!(all fresh());
            fresh().await
        })
    });
    let (_stores, folder) = all.expect("a thread").join().expect("no property fails");
    let path = folder.path().join("test.db").display().to_string();
    let mut conn = SqliteConnection::establish(&path).expect("a connection");
    let mut used = BTreeSet::new();
    for sql in STATEMENTS.lock().expect("a lock").iter() {
        let plan: Vec<Step> = diesel::sql_query(format!("EXPLAIN QUERY PLAN {sql}"))
            .load(&mut conn)
            .unwrap_or_else(|error| panic!("{error}: {sql}"));
        for Step { detail } in plan {
            if let Some(scanned) = detail.strip_prefix("SCAN ") {
                let is_known = SCANNED.iter().any(|known| {
                    let rest = scanned.strip_prefix(known);
                    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
                });
                let is_harmless = sql.contains("__diesel") || sql.contains("(1=0)");
                assert!(is_harmless || is_known, "{detail}: {sql}");
            }
            used.extend(detail.split_whitespace().map(ToOwned::to_owned));
        }
    }
    let indexes = "SELECT name AS line FROM sqlite_schema \
                   WHERE type = 'index' AND name NOT LIKE 'sqlite_autoindex%'";
    let mut unused = lines(&mut conn, indexes);
    unused.retain(|index| !used.contains(index));
    assert_eq!(unused, Vec::<String>::new());
}

/// A step of the plan of a statement.
#[derive(QueryableByName)]
struct Step {
    #[diesel(sql_type = Text)]
    detail: String,
}
