//! The schema: the same on both databases, brought up to date once, and never a newer one.

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
        } else if let Some(column) = line.strip_prefix("    ") {
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
    let sqlite = concat!(
        include_str!("../../../migrations/sqlite/2026-11-21-000000_create/up.sql"),
        include_str!("../../../migrations/sqlite/2026-11-21-000003_flaky/up.sql"),
    );
    let postgres = concat!(
        include_str!("../../../migrations/postgres/2026-11-21-000000_create/up.sql"),
        include_str!("../../../migrations/postgres/2026-11-21-000003_flaky/up.sql"),
    );
    assert_eq!(columns(sqlite), columns(postgres));
    assert!(columns(sqlite).contains(&"outbox.leased_until".to_owned()));
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
    migrates_once_and_refuses_a_newer_schema(&format!("sqlite://{path}"), async |sql| {
        use diesel::Connection;
        use diesel::connection::SimpleConnection;
        let mut conn = diesel::SqliteConnection::establish(&path).expect("a connection");
        conn.batch_execute(sql).expect("written");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_migrates_once_and_refuses_a_newer_schema() {
    let url = Server::shared().create_database();
    migrates_once_and_refuses_a_newer_schema(&url, async |sql| {
        use diesel_async::{AsyncConnection, SimpleAsyncConnection};
        let conn = diesel_async::AsyncPgConnection::establish(&url).await;
        conn.expect("a connection").batch_execute(sql).await.expect("written");
    })
    .await;
}

#[tokio::test]
async fn a_url_that_is_no_database_is_refused_without_its_password() {
    let refused = connect("mysql://u:secret@h/d").await.err().expect("refused");
    assert!(matches!(refused, ConnectError::UnknownScheme));
    let refused = connect("postgres://u:secret@127.0.0.1:1/d").await.err().expect("refused");
    assert!(!format!("{refused:?} {refused}").contains("secret"), "{refused:?}");
}
