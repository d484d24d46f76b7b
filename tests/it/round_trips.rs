//! How often a use case waits for PostgreSQL: a proxy between both counts the round trips.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use signalbox_conformance::PlainEvents;
use signalbox_conformance::fake_host::{FakeHost, FakeHosts};
use signalbox_conformance::stores::Sample;
use signalbox_domain::ids::{BranchName, TokenId};
use signalbox_domain::ports::Stores;
use signalbox_domain::queue::CheckConclusion;
use signalbox_domain::testing::{CountingIds, ManualClock, Quiet};
use signalbox_domain::token::{Caller, Compatibility, Scope};
use signalbox_persistence::connect;
use signalbox_services::{Context, PageReads, QueueService, SubmitOptions};
use signalbox_testkit::postgres::Server;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use uuid::Uuid;

/// Forwards connections to a database, and counts how often a client sends something after a reply.
async fn counting_proxy(to: SocketAddr) -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let trips = Arc::new(AtomicUsize::new(0));
    let counted = trips.clone();
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let server = TcpStream::connect(to).await.expect("the database");
            let (from_client, to_client) = client.into_split();
            let (from_server, to_server) = server.into_split();
            let (answered, trips) = (Arc::new(AtomicBool::new(true)), counted.clone());
            let sent = answered.clone();
            tokio::spawn(forward(from_server, to_client, move || {
                answered.store(true, Ordering::SeqCst);
            }));
            tokio::spawn(forward(from_client, to_server, move || {
                if sent.swap(false, Ordering::SeqCst) {
                    trips.fetch_add(1, Ordering::SeqCst);
                }
            }));
        }
    });
    (address, trips)
}

async fn forward(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, seen: impl Fn()) {
    let mut buffer = vec![0; 1 << 16];
    while let Ok(length @ 1..) = from.read(&mut buffer).await {
        seen();
        if to.write_all(&buffer[..length]).await.is_err() {
            break;
        }
    }
}

/// What services on the stores need, with that number of open pull requests.
fn context(stores: &Stores, sample: &Sample<'_>, prs: u32) -> Context {
    let clock = Arc::new(ManualClock::default());
    let host = FakeHost::new(clock.clone(), |_| CheckConclusion::Success);
    host.add_repository(&sample.repository.name, &[("readme", "calc")]);
    for number in 0..prs {
        let path = format!("file {number}");
        host.open(&sample.repository.name, "main", &[(path.as_str(), "text")]);
    }
    Context {
        stores: stores.clone(),
        hosts: Arc::new(FakeHosts::one(&sample.repository.name.host, Arc::new(host))),
        clock,
        ids: Arc::new(CountingIds::default()),
        observer: Arc::new(Quiet),
        events: Arc::new(PlainEvents),
        notifier: Arc::new(Quiet),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_submission_waits_twice_and_reads_of_an_unchanged_queue_once() {
    const PRS: u32 = 20;
    let url = Server::shared().create_database();
    let (before, rest) = url.split_once('@').expect("a user");
    let (place, name) = rest.split_once('/').expect("a database");
    let (address, trips) = counting_proxy(place.parse().expect("an address")).await;
    let database = connect(&format!("{before}@{address}/{name}")).await.expect("a database");
    database.migrate().await.expect("migrated");
    let stores = database.stores();
    let sample = Sample::new(&stores).await;
    let context = context(&stores, &sample, PRS);
    let service = Arc::new(QueueService::new(context.clone()));
    let caller = Caller {
        org: sample.queue.org,
        org_slug: "acme".parse().expect("a slug"),
        token: TokenId(Uuid::from_u128(1)),
        name: "ci".to_owned(),
        scopes: Scope::ALL.to_vec(),
        repos: Vec::new(),
        compatibility: Compatibility::V1Live,
        source: None,
    };
    let (repo, main) = (&sample.repository.name, BranchName::new("main").expect("a branch"));
    let mut counted = Vec::new();
    for number in 1..=PRS {
        let from = trips.load(Ordering::SeqCst);
        let options = SubmitOptions::default();
        let pr = signalbox_domain::ids::PrNumber(number);
        service.submit(&caller, repo, &main, pr, options).await.expect("submitted");
        counted.push(trips.load(Ordering::SeqCst) - from);
    }
    // The first ones open connections and prepare statements.
    assert_eq!(counted.last(), Some(&2), "{counted:?}");
    let from = trips.load(Ordering::SeqCst);
    let queue = service.queue(&caller, repo, &main).await.expect("a queue");
    assert_eq!(queue.live(), usize::try_from(PRS).expect("a number"));
    assert_eq!(trips.load(Ordering::SeqCst) - from, 1);

    // Like that of a second server, it shares only the database.
    let other = QueueService::new(context.clone());
    let tests = context.stores.flaky.tests.clone();
    let pages = PageReads::new(context, tests, service.clone());
    let read = async || {
        let from = trips.load(Ordering::SeqCst);
        pages.queue_with_past(&caller, repo, &main).await.expect("a queue");
        trips.load(Ordering::SeqCst) - from
    };
    let first = read().await;
    assert!(first > 1, "{first}");
    assert_eq!(read().await, 1);
    let pr = signalbox_domain::ids::PrNumber(1);
    other.cancel(&caller, repo, &main, pr).await.expect("removed");
    assert!(read().await > 1, "the queue has changed");
    assert_eq!(read().await, 1);
}
