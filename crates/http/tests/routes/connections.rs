//! Connections: how many an address has, and which are closed.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use actix_web::dev::ServerHandle;
use actix_web::middleware::from_fn;
use actix_web::web::{Bytes, Data, get};
use actix_web::{App, HttpResponse, HttpServer, rt};
use futures_util::StreamExt as _;
use futures_util::stream::{iter, once, repeat};
use signalbox_domain::testing::Quiet;
use signalbox_http::{ConnectionLimits, Connections, TrustedProxies, in_use};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

/// A server with these limits.
struct Served {
    address: SocketAddr,
    connections: Arc<Connections>,
    release: Arc<Notify>,
    handle: ServerHandle,
}

async fn text() -> &'static str {
    "yes"
}

/// The second half comes when it is released.
async fn halves(release: Data<Notify>) -> HttpResponse {
    let half = |text: &'static [u8]| Ok::<_, actix_web::Error>(Bytes::from_static(text));
    let second = once(async move {
        release.notified().await;
        half(b"second")
    });
    HttpResponse::Ok().streaming(Box::pin(iter([half(b"first")]).chain(second)))
}

async fn endless() -> HttpResponse {
    let piece = Bytes::from(vec![b'x'; 65_536]);
    HttpResponse::Ok().streaming(repeat(piece).map(Ok::<_, actix_web::Error>))
}

fn serve(limits: ConnectionLimits, proxies: TrustedProxies) -> Served {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let address = listener.local_addr().expect("an address");
    let connections = Connections::new(limits, proxies, Arc::new(Quiet));
    let release = Data::new(Notify::new());
    let (accepting, shared) = (connections.clone(), release.clone());
    let server = HttpServer::new(move || {
        App::new()
            .wrap(from_fn(in_use))
            .app_data(shared.clone())
            .route("/", get().to(text))
            .route("/halves", get().to(halves))
            .route("/endless", get().to(endless))
    })
    .disable_signals()
    .on_connect(move |stream, data| accepting.accept(stream, data))
    .workers(1)
    .listen(listener)
    .expect("it listens")
    .run();
    let handle = server.handle();
    rt::spawn(server);
    rt::spawn(connections.clone().close_idle());
    Served { address, connections, release: release.into_inner(), handle }
}

impl Served {
    async fn connect(&self, from: u8) -> TcpStream {
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.set_recv_buffer_size(4_096).expect("set");
        let own = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(127, 0, 0, from)), 0);
        socket.bind(own).expect("an address");
        socket.connect(self.address).await.expect("connected")
    }

    async fn until(&self, open: u64) {
        let reached = async {
            while self.connections.open() != open {
                sleep(Duration::from_millis(5)).await;
            }
        };
        let reached = timeout(Duration::from_secs(30), reached).await;
        assert!(reached.is_ok(), "{} are open, not {open}", self.connections.open());
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        drop(self.handle.stop(false));
    }
}

async fn send(stream: &mut TcpStream, text: &str) {
    stream.write_all(text.as_bytes()).await.expect("sent");
}

/// What comes until that text, or until the end.
async fn read(stream: &mut TcpStream, until: &str) -> String {
    let mut all = Vec::new();
    let mut piece = [0; 4_096];
    let reading = async {
        while !String::from_utf8_lossy(&all).contains(until) {
            match stream.read(&mut piece).await {
                Ok(0) | Err(_) => break,
                Ok(count) => all.extend_from_slice(&piece[..count]),
            }
        }
    };
    assert!(timeout(Duration::from_secs(30), reading).await.is_ok(), "neither text nor end");
    String::from_utf8_lossy(&all).into_owned()
}

/// A text that no answer has: everything until the end.
const END: &str = "\0";
const GET: &str = "GET / HTTP/1.1\r\nhost: x\r\n\r\n";

fn limits() -> ConnectionLimits {
    let hour = Duration::from_hours(1);
    ConnectionLimits { most: 6, of_address: 3, idle: hour, stalled: hour }
}

#[actix_web::test]
async fn an_address_has_its_share_of_the_connections_and_a_proxy_speaks_for_many() {
    let proxies = TrustedProxies::new(vec!["127.0.0.9/32".parse().expect("a network")]);
    let served = serve(limits(), proxies);
    let mut held = Vec::new();
    for _ in 0..3 {
        let mut stream = served.connect(2).await;
        send(&mut stream, GET).await;
        assert!(read(&mut stream, "yes").await.contains("200 OK"));
        held.push(stream);
    }
    assert_eq!(read(&mut served.connect(2).await, END).await, "", "one too many");
    let mut other = served.connect(3).await;
    send(&mut other, GET).await;
    assert!(read(&mut other, "yes").await.contains("200 OK"), "another address");
    drop((held.pop(), other));
    served.until(2).await;
    for _ in 0..4 {
        let mut stream = served.connect(9).await;
        send(&mut stream, GET).await;
        assert!(read(&mut stream, "yes").await.contains("200 OK"), "more than a share");
        held.push(stream);
    }
    assert_eq!(read(&mut served.connect(3).await, END).await, "", "there are no more");
}

#[actix_web::test]
async fn a_connection_that_asks_nothing_is_closed_and_one_that_is_answered_is_not() {
    let idle = Duration::from_secs(2);
    let served = serve(ConnectionLimits { idle, ..limits() }, TrustedProxies::default());
    let mut answered = served.connect(2).await;
    send(&mut answered, "GET /halves HTTP/1.1\r\nhost: x\r\n\r\n").await;
    read(&mut answered, "first").await;
    // The first byte of a second request, which never comes.
    let mut started = served.connect(2).await;
    send(&mut started, &format!("{GET}G")).await;
    assert!(read(&mut started, END).await.ends_with("yes"));
    // A body that no handler reads, and that never ends.
    let mut unread = served.connect(2).await;
    let head = "POST /nowhere HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n";
    send(&mut unread, head).await;
    assert!(read(&mut unread, END).await.starts_with("HTTP/1.1 404"));
    served.until(1).await;
    served.release.notify_one();
    assert!(read(&mut answered, "second").await.contains("second"), "it was not closed");
    served.until(0).await;
}

#[actix_web::test]
async fn a_client_that_does_not_read_is_closed() {
    let stalled = Duration::from_secs(1);
    let served = serve(ConnectionLimits { stalled, ..limits() }, TrustedProxies::default());
    let mut deaf = served.connect(2).await;
    send(&mut deaf, "GET /endless HTTP/1.1\r\nhost: x\r\n\r\n").await;
    read(&mut deaf, "xxx").await;
    served.until(0).await;
}
