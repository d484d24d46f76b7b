//! The wall between organizations: what a connection that works for one of them sees of the others
//! when a query forgets its condition.

use diesel::sql_types::BigInt;
use diesel::{QueryResult, QueryableByName, sql_query};
use diesel_async::{AsyncPgConnection, RunQueryDsl, SimpleAsyncConnection};
use signalbox_domain::ids::OrgId;
use signalbox_domain::time::Timestamp;
use signalbox_persistence::connect;
use signalbox_persistence::testing::Connections;
use signalbox_testkit::postgres::Server;
use uuid::Uuid;

#[derive(QueryableByName)]
struct Count {
    #[diesel(sql_type = BigInt)]
    many: i64,
}

async fn count(conn: &mut AsyncPgConnection, sql: &str) -> i64 {
    let counted: QueryResult<Count> = sql_query(sql).get_result(conn).await;
    counted.expect("counted").many
}

/// Two organizations, each with a repository and a result.
async fn two(store: &Connections) -> [OrgId; 2] {
    let orgs = [Uuid::from_u128(1), Uuid::from_u128(2)];
    let mut conn = store.of(None).await;
    for org in orgs {
        let sql = format!(
            "INSERT INTO orgs VALUES ('{org}', '{org}', now());
            INSERT INTO repos VALUES ('{org}', '{org}', 'r', 'h', 'o', 'n', NULL, now());
            INSERT INTO test_hours VALUES ('{org}', '{org}', now(), '{org}', 1, NULL, NULL);"
        );
        conn.batch_execute(&sql).await.expect("inserted");
    }
    orgs.map(OrgId)
}

async fn fresh() -> Connections {
    let url = Server::shared().create_database();
    connect(&url).await.expect("a database").migrate().await.expect("migrated");
    Connections::to(&url)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_without_its_condition_sees_and_changes_one_organization() {
    let store = fresh().await;
    let [own, other] = two(&store).await;
    let mut conn = store.of(Some(own)).await;
    for table in ["orgs", "repos", "test_hours"] {
        let all = format!("SELECT count(*) AS many FROM {table}");
        assert_eq!(count(&mut conn, &all).await, 1, "{table}");
    }
    let theirs = format!("SELECT count(*) AS many FROM repos WHERE org_id = '{}'", other.0);
    assert_eq!(count(&mut conn, &theirs).await, 0, "by name, too");
    let changed = sql_query("UPDATE repos SET owner = 'x'").execute(&mut conn).await;
    assert_eq!(changed, Ok(1));
    let deleted = sql_query("DELETE FROM test_hours").execute(&mut conn).await;
    assert_eq!(deleted, Ok(1));
    let for_another = format!(
        "INSERT INTO repos VALUES ('{}', '{}', 's', 'h', 'o', 'n', NULL, now())",
        Uuid::from_u128(3),
        other.0
    );
    let refused = sql_query(for_another).execute(&mut conn).await.expect_err("another's row");
    assert!(refused.to_string().contains("row-level security"), "{refused}");
    drop(conn);

    // The connection is used again, by another organization and by all.
    let mut conn = store.of(Some(other)).await;
    let untouched = "SELECT count(*) AS many FROM repos WHERE owner = 'o'";
    assert_eq!(count(&mut conn, untouched).await, 1);
    assert_eq!(count(&mut conn, "SELECT count(*) AS many FROM test_hours").await, 1);
    drop(conn);
    let mut conn = store.of(None).await;
    assert_eq!(count(&mut conn, "SELECT count(*) AS many FROM repos").await, 2);
    assert_eq!(store.opened(), 1, "it was the same connection");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_superuser_has_no_wall_and_is_noticed() {
    let server = Server::shared();
    let url = server.create_database();
    for (url, kept) in [(url.clone(), true), (server.as_superuser(&url), false)] {
        let database = connect(&url).await.expect("a database");
        assert_eq!(database.keeps_organizations_apart().await.ok(), Some(kept), "{url}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_table_of_organizations_has_the_wall() {
    let url = Server::shared().create_database();
    let database = connect(&url).await.expect("a database");
    database.migrate().await.expect("migrated");
    // Partitions of days have one, too.
    let days = database.stores().flaky.tests.prepare_days(Timestamp::from_unix_seconds(0)).await;
    days.expect("prepared");
    let store = Connections::to(&url);
    let mut conn = store.of(None).await;
    let of_orgs = "FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid AND attname = 'org_id' \
                   WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p')";
    let tables = count(&mut conn, &format!("SELECT count(*) AS many {of_orgs}")).await;
    assert!(tables >= 44, "{tables}");
    let walled = format!(
        "SELECT count(*) AS many {of_orgs} AND relrowsecurity AND relforcerowsecurity \
         AND EXISTS (SELECT FROM pg_policy WHERE polrelid = pg_class.oid AND polcmd = '*')"
    );
    assert_eq!(count(&mut conn, &walled).await, tables);
    let without = "SELECT count(*) AS many FROM pg_roles WHERE rolname = current_user \
                   AND (rolsuper OR rolbypassrls)";
    assert_eq!(count(&mut conn, without).await, 0, "an ordinary role");
}
