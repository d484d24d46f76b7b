//! More requests than the server can handle: each gets a reply soon, with its result or with 503,
//! and reads succeed.

use std::sync::Arc;
use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::json;

use crate::harness::{On, System};

/// Callers who change the queue at the same time, more than there are places and places in line on
/// any machine; and callers who read it, fewer than their places.
const WRITERS: u64 = 300;
const READERS: u64 = 12;
/// How long an answer may take on a slow machine with a build for tests: a queue of all of them
/// takes longer.
const LONGEST: Duration = Duration::from_secs(20);

async fn more_than_it_can_do(on: On) {
    let system = Arc::new(System::new(on, "exit 0\n", 1).await);
    let mut asked = tokio::task::JoinSet::new();
    for number in 0..WRITERS + READERS {
        let system = system.clone();
        asked.spawn(async move {
            let writes = number < WRITERS;
            let mut body = json!({
                "repo": { "host": "git.local", "owner": "acme", "name": "calc" },
                "targetBranch": "main"
            });
            if writes {
                body["concurrency"] = json!(number % 50 + 1);
            }
            let path = if writes { "/v1/updateQueue" } else { "/v1/getQueue" };
            let headers = [("x-api-token", system.token()), ("content-type", "application/json")];
            let begun = Instant::now();
            let reply = system.send(Method::POST, path, &headers, body.to_string()).await;
            (writes, reply, begun.elapsed())
        });
    }
    let (mut written, mut shed, mut read) = (0, 0, 0);
    while let Some(answer) = asked.join_next().await {
        let (writes, reply, took) = answer.expect("an answer");
        assert!(took < LONGEST, "{took:?}: {}", reply.text);
        match (reply.status, writes) {
            (200, true) => written += 1,
            (200, false) => read += 1,
            _ => {
                assert_eq!((reply.status, reply.code()), (503, "unavailable".to_owned()));
                assert_eq!(reply.header("retry-after"), "5");
                assert!(writes, "there are places for these readers");
                shed += 1;
            }
        }
    }
    assert!(written > 0 && shed > 0, "{written} written, {shed} refused");
    assert_eq!(read, READERS);
    // The overload ends immediately, and the probe was never affected.
    assert_eq!(system.get("/healthz").await, "ok\n");
    system.call("updateQueue", json!({ "concurrency": 2 })).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn more_requests_than_the_server_can_do_are_answered_soon_on_sqlite() {
    more_than_it_can_do(On::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn more_requests_than_the_server_can_do_are_answered_soon_on_postgres() {
    more_than_it_can_do(On::Postgres).await;
}
