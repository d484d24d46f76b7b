//! Events of an older version are in the log after the migration, with payloads.

use signalbox_conformance::stores::Sample;
use signalbox_persistence::connect;
use signalbox_testkit::postgres::Server;
use tempfile::TempDir;

/// What an older version kept of a step: a queue's event and a test's.
fn older(org: &str, repo: &str, queue: &str) -> String {
    let document = r#"{"number":4,"kind":"Failed","at":0,"pr":7,"author":"ada","url":"http://h/7",
        "reason":"TEST_RUN_TIMEOUT","run":null,"test_branch":"t/7","test_branch_sha":"abc",
        "batched":false,"is_bisection":true}"#;
    format!(
        "INSERT INTO events (org_id, queue_id, at, format, document) \
         VALUES ('{org}', '{queue}', 1767225600000000, 1, '{document}'); \
         INSERT INTO test_events (org_id, repo_id, test_id, number, at, kind, payload) \
         VALUES ('{org}', '{repo}', 't', 1, 1767225601000000, 'test_case.status_changed', '{{}}'); \
         DELETE FROM __diesel_schema_migrations WHERE version IN ('20261121000101', '20261121000131')"
    )
}

async fn older_events_are_in_the_log(url: &str, downs: [&str; 2], sql: impl AsyncFn(&str)) {
    let database = connect(url).await.expect("a database");
    database.migrate().await.expect("migrated");
    let sample_of = database.stores();
    let sample = Sample::new(&sample_of).await;
    let (org, repo, queue) = (sample.queue.org, sample.repository.id, sample.queue.id);
    for down in downs {
        sql(down).await;
    }
    sql(&older(&org.to_string(), &repo.to_string(), &queue.to_string())).await;
    let database = connect(url).await.expect("a database");
    assert_eq!(database.migrate().await.expect("migrated").len(), 2);
    let stores = database.stores();
    let events = stores.webhook.event_log.after(org, 0, None, 9).await.expect("events");
    let kinds: Vec<&str> = events.iter().map(|it| it.kind.as_str()).collect();
    assert_eq!(kinds, ["pull_request.failed", "test_case.status_changed"]);
    assert!(events.iter().all(|it| it.repo == Some(repo)));
    assert_eq!(
        stores.webhook.event_log.event(org, events[0].id).await.expect("a read").as_ref(),
        events.first()
    );
    assert_eq!(events[1].payload, "{}");
    let payload: serde_json::Value = serde_json::from_str(&events[0].payload).expect("JSON");
    let expected = serde_json::json!({
        "type": "pull_request.failed", "action": "failed", "status": "failed",
        "author": "ada", "http_details_url": "http://h/7", "pr_number": 7,
        "repository": {"host": "git.local", "owner": "acme", "name": "calc"},
        "target_branch": "main", "failure_reason": "TEST_RUN_TIMEOUT", "test_branch": "t/7",
        "test_branch_sha": "abc", "batched": false, "is_bisection": true,
        "timestamp": payload["timestamp"],
    });
    assert_eq!(payload, expected);
    let time = payload["timestamp"].as_str().expect("a time");
    assert!(time.starts_with("2026-01-01T00:00:00.") && time.ends_with('Z'), "{time}");
}

#[tokio::test(flavor = "multi_thread")]
async fn older_events_are_in_the_log_on_sqlite() {
    use diesel::Connection;
    use diesel::connection::SimpleConnection;
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("test.db").display().to_string();
    let downs = [
        include_str!("../../../migrations/sqlite/2026-11-21-000131_event_requests/down.sql"),
        include_str!("../../../migrations/sqlite/2026-11-21-000101_events/down.sql"),
    ];
    older_events_are_in_the_log(&format!("sqlite://{path}"), downs, async |sql| {
        let mut conn = diesel::SqliteConnection::establish(&path).expect("a connection");
        conn.batch_execute(sql).expect("written");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn older_events_are_in_the_log_on_postgres() {
    use diesel_async::{AsyncConnection, SimpleAsyncConnection};
    let url = Server::shared().create_database();
    let downs = [
        include_str!("../../../migrations/postgres/2026-11-21-000131_event_requests/down.sql"),
        include_str!("../../../migrations/postgres/2026-11-21-000101_events/down.sql"),
    ];
    older_events_are_in_the_log(&url, downs, async |sql| {
        let conn = diesel_async::AsyncPgConnection::establish(&url).await;
        conn.expect("a connection").batch_execute(sql).await.expect("written");
    })
    .await;
}
