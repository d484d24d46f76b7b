//! The schema: the same on both databases, brought up to date once, and never a newer one.

use std::collections::BTreeSet;

use signalbox_conformance::stores::Sample;
use signalbox_domain::ports::{EntryFilter, Stores};
use signalbox_domain::testing::Rules;
use signalbox_domain::time::Window;
use signalbox_persistence::{ConnectError, connect};
use signalbox_testkit::postgres::Server;
use tempfile::TempDir;

/// `table.column` for every column that a script makes.
fn columns(script: &str) -> Vec<String> {
    let mut table = String::new();
    let mut found = Vec::new();
    for line in script.lines() {
        if let Some(rest) = line.strip_prefix("CREATE TABLE ") {
            rest.trim_end_matches(" (").clone_into(&mut table);
        } else if let Some(rest) = line.strip_prefix("ALTER TABLE ") {
            let mut words = rest.split(' ');
            let (table, column) = (words.next().unwrap_or_default(), words.nth(2));
            found.push(format!("{table}.{}", column.unwrap_or_default()));
        } else if ["UPDATE ", "INSERT ", "CREATE INDEX "].iter().any(|it| line.starts_with(it)) {
            // Until the next table only values follow.
            table.clear();
        } else if let Some(column) = line.strip_prefix("    ").filter(|_| !table.is_empty()) {
            let name = column.split(' ').next().unwrap_or_default();
            if name.chars().all(|c| c.is_ascii_lowercase() || c == '_') {
                found.push(format!("{table}.{name}"));
            }
        }
    }
    found
}

#[test]
fn both_databases_have_the_same_tables_and_columns() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../migrations");
    let script = |database: &str| {
        let folders = std::fs::read_dir(folder.join(database)).expect("a folder").flatten();
        let mut scripts: Vec<_> = folders.map(|it| it.path().join("up.sql")).collect();
        scripts.sort();
        let texts = scripts.iter().map(|path| std::fs::read_to_string(path).expect("a script"));
        texts.collect::<String>()
    };
    let (sqlite, postgres) = (script("sqlite"), script("postgres"));
    assert_eq!(columns(&sqlite), columns(&postgres));
    for known in ["outbox.leased_until", "entry_moves.to_state", "uploads.digest"] {
        assert!(columns(&sqlite).contains(&known.to_owned()), "{known}");
    }
}

/// What was written before a migration is found after it as if it had been written then.
async fn history_is_filled_from_documents(url: &str, down: &str, sql: impl AsyncFn(&str)) {
    let database = connect(url).await.expect("a database");
    database.migrate().await.expect("migrated");
    let stores = database.stores();
    let rules = Rules { bad: BTreeSet::from([2]), ..Rules::default() };
    let mut sample = Sample::with(&stores, rules).await;
    for (pr, branch) in [(1, Some("fix")), (2, None)] {
        let head = branch.map(str::to_owned);
        sample.submit_with(pr, |it| it.pull_request.head_branch = head).await;
    }
    sample.settle().await;
    sample.submit_with(3, |it| it.pull_request.head_branch = Some("fix".to_owned())).await;
    let queue = sample.queue;
    let seen = async |stores: &Stores| {
        let history = &stores.queue.history;
        let filter = EntryFilter { concluded: Some(Window::default()), ..EntryFilter::default() };
        let by_time = history.entries_by_submission(queue, &filter, None, 9).await.expect("read");
        let of_fix = history.entries_of_branch(queue, "fix", 9).await.expect("read");
        let ends = history.test_ends(queue, Window::default(), 0, 9).await.expect("read");
        let passes = history.passes(queue, 9).await.expect("read");
        assert!(!by_time.is_empty() && !of_fix.is_empty() && !passes.is_empty());
        (by_time, of_fix, ends, passes)
    };
    let before = seen(&stores).await;
    sql(down).await;
    sql("DELETE FROM __diesel_schema_migrations WHERE version = '20261121000100'").await;
    let database = connect(url).await.expect("a database");
    assert_eq!(database.migrate().await.expect("migrated").len(), 1);
    assert_eq!(seen(&database.stores()).await, before);
}

async fn migrates_once_and_refuses_a_newer_schema(url: &str, newer: impl AsyncFn(&str)) {
    let database = connect(url).await.expect("a database");
    let before = database.migration_status().await.expect("a status");
    assert!(before.applied.is_empty() && !before.pending.is_empty());
    let (one, two) = tokio::join!(database.migrate(), async {
        let second = connect(url).await.expect("a database");
        second.migrate().await
    });
    assert!(one.is_ok() && two.is_ok(), "two at once: {one:?} {two:?}");
    assert_eq!(database.migrate().await.expect("nothing to do"), Vec::<String>::new());
    newer("INSERT INTO __diesel_schema_migrations (version) VALUES ('99990101000000')").await;
    let refused = database.migrate().await;
    assert!(matches!(refused, Err(ConnectError::NewerSchema(_))), "{refused:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn sqlite_migrates_once_and_refuses_a_newer_schema() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("test.db").display().to_string();
    let url = format!("sqlite://{path}");
    migrates_once_and_refuses_a_newer_schema(&url, async |sql| on_sqlite(&path, sql)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sqlite_fills_the_history_of_an_older_version() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("test.db").display().to_string();
    let down = include_str!("../../../migrations/sqlite/2026-11-21-000100_history/down.sql");
    let url = format!("sqlite://{path}");
    history_is_filled_from_documents(&url, down, async |sql| on_sqlite(&path, sql)).await;
}

fn on_sqlite(path: &str, sql: &str) {
    use diesel::Connection;
    use diesel::connection::SimpleConnection;
    let mut conn = diesel::SqliteConnection::establish(path).expect("a connection");
    conn.batch_execute(sql).expect("written");
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_migrates_once_and_refuses_a_newer_schema() {
    let url = Server::shared().create_database();
    migrates_once_and_refuses_a_newer_schema(&url, async |sql| on_postgres(&url, sql).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_fills_the_history_of_an_older_version() {
    let url = Server::shared().create_database();
    let down = include_str!("../../../migrations/postgres/2026-11-21-000100_history/down.sql");
    history_is_filled_from_documents(&url, down, async |sql| on_postgres(&url, sql).await).await;
}

async fn on_postgres(url: &str, sql: &str) {
    use diesel_async::{AsyncConnection, SimpleAsyncConnection};
    let conn = diesel_async::AsyncPgConnection::establish(url).await;
    conn.expect("a connection").batch_execute(sql).await.expect("written");
}

#[tokio::test]
async fn a_url_that_is_no_database_is_refused_without_its_password() {
    let refused = connect("mysql://u:secret@h/d").await.err().expect("refused");
    assert!(matches!(refused, ConnectError::UnknownScheme));
    let refused = connect("postgres://u:secret@127.0.0.1:1/d").await.err().expect("refused");
    assert!(!format!("{refused:?} {refused}").contains("secret"), "{refused:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_is_gone_is_not_one_that_needs_migrations() {
    let server = Server::start();
    let database = connect(&server.create_database()).await.expect("a database");
    let pending = async || database.migration_status().await.map(|status| status.pending.len());
    assert!(pending().await.expect("a status") > 0);
    database.migrate().await.expect("migrated");
    assert_eq!(pending().await.expect("a status"), 0);
    drop(server);
    assert!(matches!(pending().await, Err(ConnectError::Connection(_))));
}
