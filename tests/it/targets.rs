//! Impacted targets by rules: with pushes to real repositories, on both databases.

use serde_json::json;

use crate::harness::{On, System};

/// A check that runs until a file is there.
const HELD: &str = "while [ ! -e GATE ]; do sleep 0.05; done\n";

async fn pull_requests_of_separate_targets_do_not_wait_for_each_other(on: On) {
    let gate = tempfile::TempDir::new().expect("a folder");
    let gate = gate.path().join("open");
    let check = HELD.replace("GATE", &gate.display().to_string());
    let system = System::new(on, &check, 3).await;
    let wrong = json!({ "impactedTargetRules": ["api/ api"] });
    let (status, reply) = system.try_call("updateQueue", wrong).await;
    assert_eq!(status, 400, "{reply}");
    let rule = reply["errors"][0]["message"].as_str().unwrap_or_default().to_owned();
    assert!(rule.contains("write \"api/**\""), "{reply}");
    let rules = json!({
        "mode": "PARALLEL",
        "impactedTargetRules": ["api/** api", "web/** web", "docs/** NONE"]
    });
    system.call("updateQueue", rules).await;
    let api = system.pull_request("api", &[("api/a.txt", "x\n")]);
    let web = system.pull_request("web", &[("web/a.txt", "x\n"), ("docs/web.md", "x\n")]);
    let make = system.pull_request("make", &[("Makefile", "x\n")]);
    for pr in [api, web, make] {
        system.submit(pr).await;
    }
    for pr in [api, web, make] {
        system.until_state(pr, "TESTING").await;
    }
    let tested_on = async |pr: u64| {
        let run = system.entry(pr).await["testRunId"].clone();
        let details = json!({ "testRunId": run });
        let details = system.call("getMergeQueueTestingDetails", details).await;
        let on = details["dependentPrs"].as_array().expect("a list");
        let mut on: Vec<u64> = on.iter().filter_map(serde_json::Value::as_u64).collect();
        on.sort_unstable();
        on
    };
    assert!(tested_on(api).await.is_empty());
    assert!(tested_on(web).await.is_empty());
    assert_eq!(tested_on(make).await, [api, web]);
    std::fs::write(&gate, "").expect("written");
    for pr in [api, web, make] {
        system.until_state(pr, "MERGED").await;
    }
}

#[tokio::test]
async fn pull_requests_of_separate_targets_do_not_wait_for_each_other_on_sqlite() {
    pull_requests_of_separate_targets_do_not_wait_for_each_other(On::Sqlite).await;
}

#[tokio::test]
async fn pull_requests_of_separate_targets_do_not_wait_for_each_other_on_postgres() {
    pull_requests_of_separate_targets_do_not_wait_for_each_other(On::Postgres).await;
}
