//! Positions of the event log on PostgreSQL: they are assigned before the commit, but none becomes
//! visible below one that a reader has passed.

use diesel::QueryableByName;
use diesel::sql_types::BigInt;
use diesel_async::{AsyncConnection, AsyncPgConnection, RunQueryDsl, SimpleAsyncConnection};
use signalbox_conformance::stores::Sample;
use signalbox_domain::ids::{OrgId, QueueId};
use signalbox_domain::ports::{PublicEvent, QueueRef, Stores, Version};
use signalbox_domain::queue::{Mode, Settings};
use signalbox_domain::testing::{Rules, World};
use signalbox_testkit::postgres::Server;
use uuid::Uuid;

#[derive(QueryableByName)]
struct Count {
    #[diesel(sql_type = BigInt)]
    waiting: i64,
}

/// The first writer stops between its events and its commit, until the lock 42 is free.
const STOP: &str = "CREATE FUNCTION stop_first() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
    IF NEW.payload LIKE '% for first of %' THEN PERFORM pg_advisory_xact_lock(42); END IF; \
    RETURN NULL; END $$; \
    CREATE TRIGGER stop_first AFTER INSERT ON event_log FOR EACH ROW EXECUTE FUNCTION stop_first()";

/// The number of transactions of this database that wait for a lock of any kind.
const WAITING: &str = "SELECT count(*) AS waiting FROM pg_stat_activity \
    WHERE datname = current_database() AND wait_event_type = 'Lock'";

async fn connection(url: &str) -> AsyncPgConnection {
    AsyncPgConnection::establish(url).await.expect("a connection")
}

/// Submits a pull request to a new queue, in a task of its own.
async fn writer(
    stores: &Stores,
    sample: &Sample<'_>,
    branch: &str,
    id: u128,
) -> tokio::task::JoinHandle<()> {
    let mut world =
        World::new(Settings::new(Mode::Single, 2).expect("valid settings"), Rules::default());
    let header = &mut world.queue.header;
    header.branch = sample.new_queue(branch).header.branch;
    let org = sample.queue.org;
    (header.id, header.org, header.repo) =
        (QueueId(Uuid::from_u128(id)), org, sample.repository.id);
    let queue = QueueRef { org, id: header.id };
    stores.queue.queues.create(&world.queue).await.expect("a new queue");
    let (stores, repository) = (stores.clone(), sample.repository.clone());
    tokio::spawn(async move {
        let version = Version(0);
        Sample { stores: &stores, repository, queue, world, version }.submit(1).await;
    })
}

/// Waits until this many transactions wait for a lock, or the task has ended.
async fn until_waiting(
    probe: &mut AsyncPgConnection,
    many: i64,
    task: &tokio::task::JoinHandle<()>,
) {
    loop {
        let found: Count = diesel::sql_query(WAITING).get_result(probe).await.expect("a count");
        if found.waiting >= many || task.is_finished() {
            return;
        }
        tokio::task::yield_now().await;
    }
}

async fn after(stores: &Stores, org: OrgId, position: i64) -> Vec<PublicEvent> {
    stores.webhook.event_log.after(org, position, None, 100).await.expect("a page")
}

/// Two transactions: the first has its positions, and the second would commit before it.
#[tokio::test(flavor = "multi_thread")]
async fn an_event_that_is_committed_later_has_no_lower_position() {
    let url = Server::shared().create_database();
    let database = signalbox_persistence::connect(&url).await.expect("a database");
    database.migrate().await.expect("migrated");
    let stores = database.stores();
    let sample = Sample::new(&stores).await;
    let (mut holder, mut probe) = (connection(&url).await, connection(&url).await);
    holder.batch_execute(STOP).await.expect("a trigger");
    holder.batch_execute("BEGIN; SELECT pg_advisory_xact_lock(42)").await.expect("held");

    let first = writer(&stores, &sample, "first", 1).await;
    until_waiting(&mut probe, 1, &first).await;
    let second = writer(&stores, &sample, "second", 2).await;
    until_waiting(&mut probe, 2, &second).await;
    let mut seen = after(&stores, sample.queue.org, 0).await;
    let last = seen.last().map_or(0, |it| it.position);

    holder.batch_execute("COMMIT").await.expect("the lock is released");
    first.await.expect("the first");
    second.await.expect("the second");
    seen.extend(after(&stores, sample.queue.org, last).await);
    assert_eq!(seen, after(&stores, sample.queue.org, 0).await);
    assert_eq!(seen.len(), 6, "three events of each");
}

/// Writers of another organization do not wait.
#[tokio::test(flavor = "multi_thread")]
async fn organizations_do_not_wait_for_each_other() {
    let url = Server::shared().create_database();
    let database = signalbox_persistence::connect(&url).await.expect("a database");
    database.migrate().await.expect("migrated");
    let stores = database.stores();
    let sample = Sample::new(&stores).await;
    let (mut holder, mut probe) = (connection(&url).await, connection(&url).await);
    holder.batch_execute(STOP).await.expect("a trigger");
    holder.batch_execute("BEGIN; SELECT pg_advisory_xact_lock(42)").await.expect("held");
    let first = writer(&stores, &sample, "first", 1).await;
    until_waiting(&mut probe, 1, &first).await;

    let org = Sample::org(&stores, "other").await.id;
    let mut world =
        World::new(Settings::new(Mode::Single, 2).expect("valid settings"), Rules::default());
    let repository = Sample::repository(&stores, org, "calc").await;
    let header = &mut world.queue.header;
    (header.id, header.org, header.repo) = (QueueId(Uuid::from_u128(3)), org, repository.id);
    let queue = QueueRef { org, id: header.id };
    stores.queue.queues.create(&world.queue).await.expect("a new queue");
    let version = Version(0);
    Sample { stores: &stores, repository, queue, world, version }.submit(1).await;
    assert_eq!(after(&stores, org, 0).await.len(), 3);
    assert!(!first.is_finished());

    holder.batch_execute("COMMIT").await.expect("the lock is released");
    first.await.expect("the first");
}
