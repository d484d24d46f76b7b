//! The server dies in the middle, and what follows is as if it had not.

use serde_json::Value;

use crate::harness::{On, System};

/// Passes unless a file exists, after a moment, so that the server can be killed in between.
const CHECK: &str =
    "sleep 0.4\nfor file in *.txt; do grep -q bad \"$file\" && exit 1; done\nexit 0\n";

/// Five pull requests, three tested at the same time, one of them bad; the server is killed after
/// the first has landed, and again while the next is being tested.
async fn five_pull_requests_survive_a_kill(on: On) {
    let mut system = System::new(on, CHECK, 3).await;
    let mut prs = Vec::new();
    for number in 1..=5 {
        let text = if number == 3 { "bad\n" } else { "good\n" };
        let file = format!("file{number}.txt");
        prs.push(system.pull_request(&format!("branch-{number}"), &[(&file, text)]));
    }
    for pr in &prs {
        system.submit(*pr).await;
    }
    system.until_state(prs[0], "MERGED").await;
    system.kill();
    system.start().await;
    system.until_state(prs[1], "MERGED").await;
    system.kill();
    system.start().await;
    for pr in &prs {
        let state = if *pr == prs[2] { "FAILED" } else { "MERGED" };
        system.until_state(*pr, state).await;
    }
    let wanted: Vec<String> = ["base".to_owned()]
        .into_iter()
        .chain([1, 2, 4, 5].map(|number| format!("change branch-{number} (#{number})")))
        .collect();
    assert_eq!(system.history(), wanted, "each once, in order");
    for pr in &prs {
        let entry = system.entry(*pr).await;
        assert_eq!(entry["isCurrentlySubmittedToQueue"], Value::Bool(false));
        if *pr == prs[2] {
            assert_eq!(entry["exit"]["reason"], "TEST_RUN_REQUIRED_STATUS_FAILED");
            assert_eq!(entry["exit"]["culprit"], "itself");
            assert_eq!(entry["verifiedByTestRun"], Value::Null);
            continue;
        }
        let exit = &entry["exit"];
        assert_eq!(exit["testedTree"], exit["landedTree"]);
        let sha = exit["sha"].as_str().expect("a commit");
        let tree = system.git("bare.git", &["rev-parse", &format!("{sha}^{{tree}}")]);
        assert_eq!(exit["landedTree"], tree.as_str());
        assert!(entry["verifiedByTestRun"].is_string());
    }
    let heads = ["for-each-ref", "--format=%(refname)", "refs/heads/signalbox-merge"];
    let none_left = async |system: &System| system.git("bare.git", &heads).is_empty();
    system.until("test branches are gone", none_left).await;
    let done = async |system: &System| system.left_to_do().await == 0;
    system.until("nothing is left to do", done).await;
}

#[tokio::test]
async fn five_pull_requests_survive_a_kill_on_sqlite() {
    five_pull_requests_survive_a_kill(On::Sqlite).await;
}

#[tokio::test]
async fn five_pull_requests_survive_a_kill_on_postgres() {
    five_pull_requests_survive_a_kill(On::Postgres).await;
}

#[tokio::test]
async fn a_stopped_server_shuts_down_gracefully_and_another_one_continues() {
    let mut system = System::new(On::Sqlite, "sleep 2\n", 1).await;
    let pr = system.pull_request("slow", &[("slow.txt", "slow\n")]);
    system.submit(pr).await;
    let running = async |system: &System| {
        let entry = system.entry(pr).await;
        entry["waitReason"]["kind"] == "checks_running"
    };
    system.until("its checks run", running).await;
    let (code, took) = system.terminate();
    assert_eq!(code, Some(0));
    assert!(took.as_secs() < 30, "{took:?}");
    system.start().await;
    system.until_state(pr, "MERGED").await;
    assert_eq!(system.history(), ["base", "change slow (#1)"]);
}
