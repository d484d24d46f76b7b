//! Clients without a token, with a public id or with wrong tokens, and one greedy viewer: none of
//! them takes what other clients need.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

use crate::harness::{On, Reply, System};

const MIB: usize = 1024 * 1024;
/// A client of this machine that is not the one of the tests.
pub(crate) const STRANGER: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 66);
const ASK: &str = "/v1/metrics/getQuarantineConfig";
/// Connections with half a body: more than a server has places for uploads, and more than it has
/// threads for blocking work.
const HALF_SENT: usize = 520;
/// Bodies of 19 MiB that are sent at the same time to a hook.
const LARGE: usize = 60;
/// By how much such bodies may let the server grow, in MiB.
const GROWTH: u64 = 64;

/// The public id of the repository of all systems.
pub(crate) fn public_id(system: &System) -> String {
    let listed = system.run(&["repo", "list", "--json"]);
    let listed: Value = serde_json::from_str(&listed).expect("one line of JSON");
    listed["publicId"].as_str().expect("an id").to_owned()
}

/// A connection to the server from a stranger's address.
async fn connection(system: &System) -> TcpStream {
    let address = system.url().trim_start_matches("http://").parse::<SocketAddr>().expect("one");
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.bind((STRANGER, 0).into()).expect("bound");
    socket.connect(address).await.expect("connected")
}

/// The head of a request with a body of that length.
fn head(method: &str, path: &str, headers: &[(&str, &str)], length: usize) -> String {
    let mut head = format!("{method} {path} HTTP/1.1\r\nhost: x\r\ncontent-length: {length}\r\n");
    for (name, value) in headers {
        head.extend([name, ": ", value, "\r\n"]);
    }
    head + "\r\n"
}

/// Begins a question about excuses, and sends half of it.
pub(crate) async fn half_a_question(system: &System, public: &str) -> TcpStream {
    let mut connection = connection(system).await;
    let headers = [("x-trunk-public-repo-id", public), ("content-type", "application/json")];
    let half = "{\"repo\":{\"host\":\"git.local\",\"owner\":\"acme\",";
    connection.write_all(head("POST", ASK, &headers, MIB).as_bytes()).await.expect("sent");
    connection.write_all(half.as_bytes()).await.expect("sent");
    connection
}

/// What an honest CI job asks.
pub(crate) async fn question(system: &System, credential: (&str, &str)) -> Reply {
    let body = json!({
        "repo": {"host": "git.local", "owner": "acme", "name": "calc"}, "orgUrlSlug": "acme",
        "remoteUrls": [], "testIdentifiers": [{"name": "adds"}]
    });
    let headers = [credential, ("content-type", "application/json")];
    system.send(Method::POST, ASK, &headers, body.to_string()).await
}

/// What an honest CI job sends. Each number is another report.
pub(crate) async fn report(system: &System, number: usize) -> Reply {
    let body = format!("<testsuite name=\"s\"><testcase name=\"a{number}\"/></testsuite>");
    let headers = [("x-api-token", system.token()), ("content-type", "application/xml")];
    let path = "/v1/flaky-tests/upload?repo=git.local/acme/calc&branch=main";
    system.send(Method::POST, path, &headers, body).await
}

async fn half_sent_bodies_take_nothing_from_others(on: On) {
    let system = System::new(on, "exit 0\n", 1).await;
    let public = public_id(&system);
    let mut open = Vec::new();
    for _ in 0..HALF_SENT {
        open.push(half_a_question(&system, &public).await);
    }
    for number in 0..10 {
        let reply = question(&system, ("x-api-token", system.token())).await;
        assert_eq!(reply.status, 200, "question {number}: {}", reply.text);
        let reply = report(&system, number).await;
        assert_eq!(reply.status, 200, "report {number}: {}", reply.text);
    }
    // Each of them ends: with a place as too slow, and without one as refused.
    let mut too_slow = 0;
    for mut connection in open {
        let mut answer = String::new();
        let read = connection.read_to_string(&mut answer);
        let read = tokio::time::timeout(Duration::from_mins(1), read).await.expect("it ends");
        if read.is_ok() && answer.starts_with("HTTP/1.1 408 ") {
            assert!(answer.contains("body_too_slow"), "{answer}");
            too_slow += 1;
        } else if read.is_ok() {
            assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
        }
    }
    assert!(too_slow > 0, "none was refused for its pace");
}

#[tokio::test(flavor = "multi_thread")]
async fn half_sent_bodies_take_nothing_from_others_on_sqlite() {
    half_sent_bodies_take_nothing_from_others(On::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn half_sent_bodies_take_nothing_from_others_on_postgres() {
    half_sent_bodies_take_nothing_from_others(On::Postgres).await;
}

/// Sends a large body to a hook; the beginning of the answer.
pub(crate) async fn large_body(system: &System, path: &str) -> String {
    let mut connection = connection(system).await;
    let (mut reading, mut writing) = connection.split();
    let sending = async {
        let piece = vec![b'x'; MIB];
        let head = head("POST", path, &[("x-hub-signature-256", "sha256=00")], 19 * MIB);
        if writing.write_all(head.as_bytes()).await.is_err() {
            return;
        }
        for _ in 0..19 {
            // The server may answer and disconnect before it has the whole body.
            if writing.write_all(&piece).await.is_err() {
                return;
            }
        }
    };
    let mut answer = vec![0; 4_096];
    let reading = async { reading.read(&mut answer).await.unwrap_or(0) };
    let patience = Duration::from_mins(1);
    let both = tokio::time::timeout(patience, async { tokio::join!(sending, reading).1 });
    let length = both.await.expect("an answer in time");
    String::from_utf8_lossy(&answer[..length]).into_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn anonymous_bodies_take_no_memory() {
    let system = std::sync::Arc::new(System::new(On::Sqlite, "exit 0\n", 1).await);
    system.get("/sign-in").await;
    let before = system.peak_memory();
    let mut sent = tokio::task::JoinSet::new();
    for _ in 0..LARGE {
        let system = system.clone();
        sent.spawn(async move { large_body(&system, "/hooks/nowhere.example").await });
    }
    while let Some(answer) = sent.join_next().await {
        let answer = answer.expect("an answer");
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 404 "), "{answer}");
    }
    let grown = system.peak_memory() - before;
    assert!(grown <= GROWTH, "{grown} MiB more");
    assert_eq!(system.get("/readyz").await, "ready\n");
}

/// Starts the server again with a store of that size.
pub(crate) async fn with_spool(system: &mut System, mib: u32) {
    system.terminate();
    let config = format!("[flaky]\nspool_mib = {mib}\nupload_mib = 2\n");
    std::fs::write(system.path("signalbox.toml"), config).expect("written");
    system.start().await;
}

/// Announces a bundle with a public id and sends one mebibyte that does not compress.
pub(crate) async fn public_bundle(system: &System, public: &str, number: usize) -> Reply {
    let headers = [("x-trunk-public-repo-id", public), ("content-type", "application/json")];
    let body = json!({
        "repo": {"host": "git.local", "owner": "acme", "name": "calc"}, "orgUrlSlug": "acme",
        "clientVersion": "x", "remoteUrls": []
    });
    let path = "/v1/metrics/createBundleUpload";
    let reply = system.send(Method::POST, path, &headers, body.to_string()).await;
    if reply.status != 200 {
        return reply;
    }
    let announced = reply.json();
    let url = announced["url"].as_str().expect("an address");
    let put = url.split_once("/v1/").map(|(_, path)| format!("/v1/{path}")).expect("a path");
    let mut bytes = vec![b'x'; MIB];
    bytes[..8].copy_from_slice(&number.to_be_bytes());
    system.send_bytes(Method::PUT, &put, &[], bytes.into()).await
}

async fn a_public_id_cannot_fill_the_store(on: On) {
    let mut system = System::new(on, "exit 0\n", 1).await;
    with_spool(&mut system, 16).await;
    let public = public_id(&system);
    let mut refused = None;
    for number in 0..20 {
        let reply = public_bundle(&system, &public, number).await;
        if reply.status != 200 {
            refused = Some(reply);
            break;
        }
    }
    let refused = refused.expect("the share of clients without a token is full");
    assert_eq!((refused.status, refused.code()), (507, "no_room_for_uploads".to_owned()));
    for number in 0..3 {
        let reply = report(&system, number).await;
        assert_eq!(reply.status, 200, "{}", reply.text);
    }
    // The shares survive a restart, because they are counted from the files.
    system.terminate();
    system.start().await;
    let again = public_bundle(&system, &public, 99).await;
    assert_eq!(again.status, 507, "{}", again.text);
    assert_eq!(report(&system, 4).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_public_id_cannot_fill_the_store_on_sqlite() {
    a_public_id_cannot_fill_the_store(On::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_public_id_cannot_fill_the_store_on_postgres() {
    a_public_id_cannot_fill_the_store(On::Postgres).await;
}

/// A token with another last character.
pub(crate) fn damaged(token: &str) -> String {
    let (rest, last) = token.split_at(token.len() - 1);
    format!("{rest}{}", if last == "0" { "1" } else { "0" })
}

/// A client from that address.
pub(crate) fn client(from: Ipv4Addr) -> reqwest::Client {
    reqwest::Client::builder()
        .local_address(IpAddr::V4(from))
        .redirect(reqwest::redirect::Policy::none())
        .timeout(Duration::from_mins(1))
        .build()
        .expect("a client")
}

/// Sends the sign-in form; the status and the cookie.
pub(crate) async fn sign_in(
    system: &System,
    client: &reqwest::Client,
    token: &str,
) -> (u16, String) {
    sign_in_at(&system.url(), client, token).await
}

/// The same at that address.
pub(crate) async fn sign_in_at(url: &str, client: &reqwest::Client, token: &str) -> (u16, String) {
    let form = client
        .post(format!("{url}/sign-in"))
        .header("origin", url)
        .header("content-type", "application/x-www-form-urlencoded")
        .body(format!("token={token}"));
    let reply = form.send().await.expect("a reply");
    let cookie = reply.headers().get("set-cookie").and_then(|it| it.to_str().ok());
    let cookie = cookie.and_then(|it| it.split(';').next()).unwrap_or_default().to_owned();
    (reply.status().as_u16(), cookie)
}

async fn wrong_tokens_lock_out_their_sender_only(on: On) {
    let system = System::new(on, "exit 0\n", 1).await;
    let (stranger, honest) = (client(STRANGER), client(Ipv4Addr::LOCALHOST));
    let (_, valid) = system.token_with(&["--org", "acme", "--name", "revoked"]);
    let wrong = damaged(&valid);
    let mut last = 0;
    for _ in 0..=60 {
        last = sign_in(&system, &stranger, &wrong).await.0;
    }
    assert_eq!(last, 429, "the stranger is throttled");
    let (status, cookie) = sign_in(&system, &honest, system.token()).await;
    assert_eq!((status, cookie.is_empty()), (303, false), "others are not");
    // A wrong token in a request is always 401: others at that address must not suffer from it.
    let call = async |client: &reqwest::Client, token: &str| {
        let request = client.get(format!("{}/v1/audit", system.url()));
        let reply = request.header("x-api-token", token).send().await.expect("a reply");
        let retry = reply.headers().contains_key("retry-after");
        (reply.status().as_u16(), retry)
    };
    assert_eq!(call(&stranger, &wrong).await, (401, false));
    assert_eq!(call(&honest, system.token()).await, (200, false));
    assert_eq!(call(&stranger, system.token()).await, (200, false));
    let (_, new) = system.token_with(&["--org", "acme", "--name", "new"]);
    assert_eq!(call(&stranger, &new).await, (200, false), "even if it was never accepted before");
    // A token that was accepted a while ago may sign in from there too.
    assert_eq!(sign_in(&system, &stranger, system.token()).await.0, 303);
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_tokens_lock_out_their_sender_only_on_sqlite() {
    wrong_tokens_lock_out_their_sender_only(On::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_tokens_lock_out_their_sender_only_on_postgres() {
    wrong_tokens_lock_out_their_sender_only(On::Postgres).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_viewer_does_not_take_all_streams() {
    let system = System::new(On::Sqlite, "exit 0\n", 1).await;
    let client = client(Ipv4Addr::LOCALHOST);
    let (_, greedy) = sign_in(&system, &client, system.token()).await;
    let open = async |cookie: &str| {
        let request = client.get(format!("{}/ui/events?topics=org", system.url()));
        request.header("cookie", cookie).send().await.expect("a reply")
    };
    let mut streams = Vec::new();
    let refused = loop {
        let reply = open(&greedy).await;
        if reply.status() != 200 {
            break reply;
        }
        streams.push(reply);
        assert!(streams.len() < 200, "one viewer has {} streams", streams.len());
    };
    assert_eq!(refused.status(), 503);
    let (_, other) = system.token_with(&["--org", "acme", "--name", "other"]);
    let (_, other) = sign_in(&system, &client, &other).await;
    assert_eq!(open(&other).await.status(), 200, "another viewer has streams of its own");
    // A closed tab makes room.
    streams.clear();
    let has_room = async |_: &System| open(&greedy).await.status() == 200;
    system.until("the streams are closed", has_room).await;
}
