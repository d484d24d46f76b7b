//! Clients that disconnect at any time: their requests are completed or not started, database
//! connections stay usable, and nothing panics.

use std::time::Duration;

use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::harness::{On, System};

/// Clients, one after the other in each of several tasks.
const CLIENTS: u64 = 1_200;
const AT_ONCE: u64 = 24;

/// A request as it goes over the wire.
fn request(token: &str, method: &str, path: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "{method} {path} HTTP/1.1\r\nhost: localhost\r\nx-api-token: {token}\r\n\
         content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    )
}

/// What clients ask for: streams, reads, writes that succeed and writes that are refused.
fn requests(system: &System) -> Vec<String> {
    let place = json!({
        "repo": { "host": "git.local", "owner": "acme", "name": "calc" }, "targetBranch": "main"
    });
    let with = |fields: &[(&str, serde_json::Value)]| {
        let mut body = place.clone();
        for (name, value) in fields {
            body[*name] = value.clone();
        }
        body.to_string()
    };
    let token = system.token();
    let post =
        |operation: &str, body: &str| request(token, "POST", &format!("/v1/{operation}"), body);
    vec![
        request(token, "GET", "/v1/events/stream?after=0", ""),
        request(token, "GET", "/v1/events/stream", ""),
        request(token, "GET", "/v1/events?after=0", ""),
        request(token, "GET", "/v1/getMergeQueueMetrics", ""),
        post("getQueue", &with(&[])),
        post("listPullRequests", &with(&[])),
        post("updateQueue", &with(&[("concurrency", json!(2))])),
        post("updateQueue", &with(&[("concurrency", json!(3))])),
        post("submitPullRequest", &with(&[("pr", json!({ "number": 1 }))])),
        post("cancelPullRequest", &with(&[("pr", json!({ "number": 1 }))])),
        post("submitPullRequest", &with(&[("pr", json!({ "number": 4_711 }))])),
    ]
}

/// Numbers by the xorshift rule: the moments differ, and are the same in each run.
struct Random(u64);

impl Random {
    const fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

async fn clients_that_disconnect(on: On) {
    let system = System::new(on, "exit 0\n", 2).await;
    let first = system.pull_request("first", &[("first.txt", "1\n")]);
    assert_eq!(first, 1);
    let asked = std::sync::Arc::new(requests(&system));
    let address = system.url().trim_start_matches("http://").to_owned();
    let mut storm = tokio::task::JoinSet::new();
    for number in 0..AT_ONCE {
        let (asked, address) = (asked.clone(), address.clone());
        storm.spawn(async move {
            let mut random = Random(number * 0x9E37_79B9 + 1);
            for _ in 0..CLIENTS / AT_ONCE {
                let which = usize::try_from(random.below(asked.len() as u64)).unwrap_or(0);
                let text = &asked[which];
                let mut client = TcpStream::connect(&address).await.expect("a connection");
                // Most send all of it; some disconnect in the middle of their request.
                let sent = if random.below(8) == 0 { text.len() / 2 } else { text.len() };
                client.write_all(&text.as_bytes()[..sent]).await.expect("sent");
                tokio::time::sleep(Duration::from_micros(random.below(40_000))).await;
                drop(client);
            }
        });
    }
    while let Some(done) = storm.join_next().await {
        done.expect("a client");
    }
    // Whatever the requests returned, the queue and every loop continue.
    let second = system.pull_request("second", &[("second.txt", "2\n")]);
    let accepted = async |system: &System| {
        let pr = json!({ "pr": { "number": second } });
        system.try_call("submitPullRequest", pr).await.0 == 200
    };
    system.until("the server takes requests again", accepted).await;
    system.until_state(second, "MERGED").await;
    assert_eq!(system.panics(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_that_disconnect_leave_nothing_broken_on_sqlite() {
    clients_that_disconnect(On::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_that_disconnect_leave_nothing_broken_on_postgres() {
    clients_that_disconnect(On::Postgres).await;
}
