//! The schema: migrated once, and a newer one is refused.

use signalbox_persistence::{ConnectError, connect};
use signalbox_testkit::postgres::Server;
use tempfile::TempDir;

async fn migrates_once_and_refuses_a_newer_schema(url: &str, newer: impl AsyncFn(&str)) {
    let database = connect(url).await.expect("a database");
    let before = database.migration_status().await.expect("a status");
    assert!(before.applied.is_empty() && !before.pending.is_empty());
    let (one, two) = tokio::join!(database.migrate(), async {
        let second = connect(url).await.expect("a database");
        second.migrate().await
    });
    assert!(one.is_ok() && two.is_ok(), "concurrent migrations: {one:?} {two:?}");
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

async fn on_postgres(url: &str, sql: &str) {
    use diesel_async::{AsyncConnection, SimpleAsyncConnection};
    let conn = diesel_async::AsyncPgConnection::establish(url).await;
    conn.expect("a connection").batch_execute(sql).await.expect("written");
}

#[tokio::test]
async fn an_invalid_url_is_refused_without_showing_its_password() {
    let refused = connect("mysql://u:secret@h/d").await.err().expect("refused");
    assert!(matches!(refused, ConnectError::UnknownScheme));
    let refused = connect("postgres://u:secret@127.0.0.1:1/d").await.err().expect("refused");
    assert!(!format!("{refused:?} {refused}").contains("secret"), "{refused:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unreachable_database_does_not_report_pending_migrations() {
    let server = Server::start();
    let database = connect(&server.create_database()).await.expect("a database");
    let pending = async || database.migration_status().await.map(|status| status.pending.len());
    assert!(pending().await.expect("a status") > 0);
    database.migrate().await.expect("migrated");
    assert_eq!(pending().await.expect("a status"), 0);
    drop(server);
    assert!(matches!(pending().await, Err(ConnectError::Connection(_))));
}
