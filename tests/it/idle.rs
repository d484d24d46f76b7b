//! The cost of an idle server.

use std::time::{Duration, Instant};

use serde_json::json;
use signalbox_tests::free_port;

use crate::harness::{On, System};

const QUEUES: u32 = 500;
/// For how long transactions are counted.
const WINDOW: Duration = Duration::from_secs(10);
/// The most transactions a second.
const MOST: f64 = 5.0;

async fn uses(listen: &str) -> f64 {
    let page = reqwest::get(format!("http://{listen}/metrics")).await.expect("a reply");
    let page = page.text().await.expect("a page");
    let line = page.lines().find_map(|line| line.strip_prefix("signalbox_database_uses_total "));
    line.expect("the metric").parse().expect("a number")
}

/// How often the server uses its database a second.
async fn rate(listen: &str) -> f64 {
    let begun = Instant::now();
    let first = uses(listen).await;
    // The cost of the page itself.
    let page = uses(listen).await - first;
    tokio::time::sleep(WINDOW).await;
    let all = uses(listen).await - first - 2.0 * page;
    all / begun.elapsed().as_secs_f64()
}

async fn five_hundred_queues_cost_nothing_while_nothing_happens(on: On) {
    let listen = format!("127.0.0.1:{}", free_port());
    let environment = [("SIGNALBOX_SERVER__METRICS_LISTEN", listen.as_str())];
    let system = System::with_environment(on, "exit 0\n", 1, &environment).await;
    let bare = system.path("bare.git").display().to_string();
    let branches: Vec<String> =
        (1..QUEUES).map(|number| format!("main:refs/heads/release-{number}")).collect();
    let mut push = vec!["push", "-q", bare.as_str()];
    push.extend(branches.iter().map(String::as_str));
    system.git("work", &push);
    for number in 1..QUEUES {
        let branch = format!("release-{number}");
        system.create_queue(&branch, json!({ "concurrency": 1 })).await;
    }
    let is_quiet = async |system: &System| system.left_to_do().await == 0;
    system.until("every target is known", is_quiet).await;
    let rate = rate(&listen).await;
    assert!(rate <= MOST, "{rate:.1} transactions a second with {QUEUES} queues");

    // It still works.
    let pr = system.pull_request("first", &[("first.txt", "1\n")]);
    system.submit(pr).await;
    system.until_state(pr, "MERGED").await;
}

#[tokio::test]
async fn five_hundred_queues_cost_nothing_while_nothing_happens_on_sqlite() {
    five_hundred_queues_cost_nothing_while_nothing_happens(On::Sqlite).await;
}

#[tokio::test]
async fn five_hundred_queues_cost_nothing_while_nothing_happens_on_postgres() {
    five_hundred_queues_cost_nothing_while_nothing_happens(On::Postgres).await;
}
