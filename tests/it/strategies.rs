//! How groups are tested: batches and their bisection, success that absolves, lanes, urgency and
//! direct merges; on both databases.

use serde_json::{Value, json};

use crate::harness::{On, System};

/// Opens a pull request that adds a file of its own name.
fn adds(system: &System, name: &str) -> u64 {
    system.pull_request(name, &[(&format!("{name}.txt"), "1\n")])
}

async fn merged(system: &System, prs: &[u64]) {
    for pr in prs {
        system.until_state(*pr, "MERGED").await;
    }
}

/// What landed was tested, according to git.
async fn trees_are_right(system: &System, pr: u64) {
    let exit = system.entry(pr).await["exit"].clone();
    let text = |key: &str| exit[key].as_str().expect("a value").to_owned();
    let landed = system.git("bare.git", &["rev-parse", &format!("{}^{{tree}}", text("sha"))]);
    assert_eq!(landed, text("landedTree"));
}

async fn a_batch_of_four_loses_its_culprit(on: On) {
    let system = System::new(on, "[ ! -e c.txt ]\n", 2).await;
    let settings = json!({
        "batch": true, "batchingMinSize": 4, "batchingMaxWaitTimeMinutes": 60,
        "bisectionConcurrency": 2
    });
    system.call("updateQueue", settings).await;
    let prs = ["a", "b", "c", "d"].map(|name| adds(&system, name));
    for pr in prs.iter().take(3) {
        system.submit(*pr).await;
    }
    let waiting = system.entry(prs[0]).await;
    assert_eq!(waiting["waitReason"]["kind"], "batch_filling", "{waiting}");
    assert_eq!(
        (&waiting["waitReason"]["have"], &waiting["waitReason"]["target"]),
        (&json!(3), &json!(4))
    );
    system.submit(prs[3]).await;
    merged(&system, &[prs[0], prs[1], prs[3]]).await;
    let culprit = system.entry(prs[2]).await;
    assert_eq!(culprit["state"], "FAILED");
    assert_eq!(culprit["exit"]["reason"], "TEST_RUN_REQUIRED_STATUS_FAILED");
    assert_eq!(culprit["exit"]["culprit"], "itself");
    let history: Vec<String> = system.history();
    assert_eq!(history, ["base", "change a (#1)", "change b (#2)", "change d (#4)"]);
    let since = json!({ "since": "2020-01-01T00:00:00Z" });
    let (status, _) = system.try_call("listMergeQueueTestingResults", since).await;
    assert_eq!(status, 400, "at most 45 days");
    let details = json!({ "pr": { "number": prs[2] }, "includeTimeline": true });
    let timeline = system.call("getSubmittedPullRequest", details).await["timeline"].clone();
    assert!(timeline.to_string().contains("BISECTION_REQUIRED"), "{timeline}");
}

#[tokio::test]
async fn a_batch_of_four_loses_its_culprit_on_sqlite() {
    a_batch_of_four_loses_its_culprit(On::Sqlite).await;
}

#[tokio::test]
async fn a_batch_of_four_loses_its_culprit_on_postgres() {
    a_batch_of_four_loses_its_culprit(On::Postgres).await;
}

async fn a_flaky_failure_is_absolved_by_the_next_pull_request(on: On) {
    let state = tempfile::TempDir::new().expect("a folder");
    let file = state.path().join("failed-once");
    let file = file.display();
    let check = format!(
        "if [ -e b.txt ] && [ ! -e c.txt ] && [ ! -e '{file}' ]; then : > '{file}'; exit 1; fi\n"
    );
    let system = System::new(on, &check, 3).await;
    let settings = json!({ "canOptimisticallyMerge": true, "pendingFailureDepth": 1 });
    system.call("updateQueue", settings).await;
    let prs = ["a", "b", "c"].map(|name| adds(&system, name));
    for pr in prs {
        system.submit(pr).await;
    }
    merged(&system, &prs).await;
    assert_eq!(system.history().len(), 4);
    let details = json!({ "pr": { "number": prs[1] }, "includeTimeline": true });
    let absolved = system.call("getSubmittedPullRequest", details).await;
    assert!(absolved["timeline"].to_string().contains("SUCCESSOR_TEST_RUN_PASSED"), "{absolved}");
    let behind = system.entry(prs[2]).await;
    assert_eq!(absolved["verifiedByTestRun"], behind["verifiedByTestRun"]);
    for pr in prs {
        trees_are_right(&system, pr).await;
    }
}

#[tokio::test]
async fn a_flaky_failure_is_absolved_by_the_next_pull_request_on_sqlite() {
    a_flaky_failure_is_absolved_by_the_next_pull_request(On::Sqlite).await;
}

#[tokio::test]
async fn a_flaky_failure_is_absolved_by_the_next_pull_request_on_postgres() {
    a_flaky_failure_is_absolved_by_the_next_pull_request(On::Postgres).await;
}

async fn lanes_do_not_wait_for_each_other(on: On) {
    let gate = tempfile::TempDir::new().expect("a folder");
    let open = gate.path().join("open");
    let check = format!(
        "[ -e frontend.txt ] || exit 0\nwhile [ ! -e '{}' ]; do sleep 0.05; done\n",
        open.display()
    );
    let system = System::new(on, &check, 4).await;
    assert_eq!(system.call("updateQueue", json!({ "mode": "parallel" })).await["mode"], "PARALLEL");
    let prs = ["frontend", "backend", "docs", "both"].map(|name| adds(&system, name));
    for (pr, targets) in prs.iter().zip([
        json!(["//frontend"]),
        json!(["//backend"]),
        json!(["//docs"]),
        json!(["//frontend", "//backend"]),
    ]) {
        system.submit(*pr).await;
        assert_eq!(system.state(*pr).await, "NOT_READY", "its targets are missing");
        let body = json!({ "pr": { "number": pr }, "impactedTargets": targets });
        system.call("setImpactedTargets", body).await;
    }
    merged(&system, &[prs[1], prs[2]]).await;
    assert_eq!(system.state(prs[0]).await, "TESTING");
    std::fs::write(&open, "").expect("opened");
    merged(&system, &prs).await;
    for pr in prs {
        trees_are_right(&system, pr).await;
    }
    let files =
        ["frontend", "backend", "docs", "both"].map(|it| system.on_main(&format!("{it}.txt")));
    assert_eq!(files, ["1", "1", "1", "1"]);
    assert_eq!(system.history().last().map(String::as_str), Some("change both (#4)"));
}

#[tokio::test]
async fn lanes_do_not_wait_for_each_other_on_sqlite() {
    lanes_do_not_wait_for_each_other(On::Sqlite).await;
}

#[tokio::test]
async fn lanes_do_not_wait_for_each_other_on_postgres() {
    lanes_do_not_wait_for_each_other(On::Postgres).await;
}

async fn an_urgent_one_goes_first(on: On) {
    let gate = tempfile::TempDir::new().expect("a folder");
    let open = gate.path().join("open");
    let check = format!("while [ ! -e '{}' ]; do sleep 0.05; done\n", open.display());
    let system = System::new(on, &check, 1).await;
    let prs = ["first", "second", "hotfix"].map(|name| adds(&system, name));
    system.submit(prs[0]).await;
    system.submit(prs[1]).await;
    system.until_state(prs[0], "TESTING").await;
    let urgent = json!({ "pr": { "number": prs[2] }, "priority": "urgent" });
    system.call("submitPullRequest", urgent).await;
    let queue = system.call("getQueue", json!({})).await;
    let order: Vec<u64> = queue["enqueuedPullRequests"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|entry| entry["prNumber"].as_u64())
        .collect();
    assert_eq!(order, [prs[2], prs[0], prs[1]]);
    assert_eq!(system.state(prs[0]).await, "PENDING");
    std::fs::write(&open, "").expect("opened");
    merged(&system, &prs).await;
    let history = system.history();
    assert_eq!(history, ["base", "change hotfix (#3)", "change first (#1)", "change second (#2)"]);
}

#[tokio::test]
async fn an_urgent_one_goes_first_on_sqlite() {
    an_urgent_one_goes_first(On::Sqlite).await;
}

#[tokio::test]
async fn an_urgent_one_goes_first_on_postgres() {
    an_urgent_one_goes_first(On::Postgres).await;
}

#[tokio::test]
async fn a_head_that_is_up_to_date_and_green_is_merged_directly() {
    let system = System::new(On::Sqlite, "false\n", 1).await;
    system.call("updateQueue", json!({ "directMergeMode": "always" })).await;
    let pr = adds(&system, "topic");
    let note = ["notes", "--ref=signalbox-statuses", "add", "-m", "test: success", "topic"];
    system.git("work", &note);
    let bare = system.path("bare.git").display().to_string();
    system.git("work", &["push", "-q", &bare, "refs/notes/signalbox-statuses"]);
    system.submit(pr).await;
    merged(&system, &[pr]).await;
    assert_eq!(system.entry(pr).await["exit"]["reason"], "MERGE_GRAPH_DIRECT_MERGE");
    let behind = adds(&system, "behind");
    system.submit(behind).await;
    system.until_state(behind, "FAILED").await;
    let reason = system.entry(behind).await["exit"]["reason"].clone();
    assert_eq!(reason, Value::from("TEST_RUN_REQUIRED_STATUS_FAILED"), "nothing vouches for it");
}
