//! What people do with a queue while it works.

use serde_json::{Value, json};

use crate::harness::{On, System};

/// A check that waits until a file outside exists.
fn gated(system_gate: &std::path::Path) -> String {
    format!("while [ ! -e '{}' ]; do sleep 0.05; done\n", system_gate.display())
}

/// A system whose checks wait for `gate`; nothing passes before it is opened.
async fn gated_system(on: On, concurrency: u32) -> (System, tempfile::TempDir) {
    let gate = tempfile::TempDir::new().expect("a folder");
    let check = gated(&gate.path().join("open"));
    (System::new(on, &check, concurrency).await, gate)
}

fn open(gate: &tempfile::TempDir) {
    std::fs::write(gate.path().join("open"), "").expect("opened");
}

#[tokio::test]
async fn a_cancelled_pull_request_stops_its_checks_and_those_behind_start_again() {
    let (system, gate) = gated_system(On::Sqlite, 2).await;
    let first = system.pull_request("first", &[("first.txt", "1\n")]);
    let second = system.pull_request("second", &[("second.txt", "2\n")]);
    system.submit(first).await;
    system.submit(second).await;
    system.until_state(second, "TESTING").await;
    system.call("cancelPullRequest", json!({ "pr": { "number": first } })).await;
    assert_eq!(system.state(first).await, "CANCELLED");
    let (status, problem) =
        system.try_call("cancelPullRequest", json!({ "pr": { "number": first } })).await;
    assert_eq!((status, &problem["code"]), (404, &json!("pull_request_not_in_queue")));
    open(&gate);
    system.until_state(second, "MERGED").await;
    assert_eq!(system.history(), ["base", "change second (#2)"]);
}

#[tokio::test]
async fn a_paused_queue_starts_and_merges_nothing_until_it_runs_again() {
    let (system, gate) = gated_system(On::Postgres, 2).await;
    let first = system.pull_request("first", &[("first.txt", "1\n")]);
    let second = system.pull_request("second", &[("second.txt", "2\n")]);
    system.submit(first).await;
    system.until_state(first, "TESTING").await;
    let pause = json!({ "state": "paused", "reason": "release day" });
    assert_eq!(system.call("updateQueue", pause).await["state"], "PAUSED");
    system.submit(second).await;
    let waiting = system.entry(second).await;
    assert_eq!(waiting["state"], "NOT_READY");
    assert_eq!(waiting["waitReason"]["kind"], "queue_paused");
    assert!(waiting["reason"].as_str().expect("a sentence").contains("release day"));
    open(&gate);
    system.until_state(first, "TESTS_PASSED").await;
    assert_eq!(system.history(), ["base"], "paused merges nothing");
    let (status, problem) = system.try_call("deleteQueue", json!({})).await;
    assert_eq!((status, &problem["code"]), (409, &json!("merge_queue_not_empty")));
    system.call("updateQueue", json!({ "state": "RUNNING" })).await;
    system.until_state(second, "MERGED").await;
    assert_eq!(system.history(), ["base", "change first (#1)", "change second (#2)"]);
    system.call("deleteQueue", json!({})).await;
    let (status, _) = system.try_call("getQueue", json!({})).await;
    assert_eq!(status, 404);
}

#[tokio::test]
async fn a_push_to_a_pull_request_cancels_it_and_a_push_to_main_starts_over() {
    let (system, gate) = gated_system(On::Sqlite, 2).await;
    let first = system.pull_request("first", &[("first.txt", "1\n")]);
    let second = system.pull_request("second", &[("second.txt", "2\n")]);
    system.submit(first).await;
    system.submit(second).await;
    system.until_state(second, "TESTING").await;
    system.git("work", &["checkout", "-q", "first"]);
    system.write(&[("first.txt", "changed\n")]);
    system.commit("more");
    system.push("first");
    system.until_state(first, "CANCELLED").await;
    assert_eq!(system.entry(first).await["exit"]["reason"], "PR_PUSHED_TO");
    system.git("work", &["checkout", "-q", "main"]);
    system.write(&[("outside.txt", "from outside\n")]);
    system.commit("outside");
    system.push("main");
    let on_new_head = async |system: &System| {
        let runs = system.call("getMergeQueueTestingDetails", json!({})).await;
        let sha = runs["testRuns"][0]["testBranchSha"].as_str().unwrap_or_default().to_owned();
        let main = system.git("bare.git", &["rev-parse", "main"]);
        !sha.is_empty() && system.git("bare.git", &["rev-parse", &format!("{sha}^")]) == main
    };
    system.until("the second is tested on the new head", on_new_head).await;
    open(&gate);
    system.until_state(second, "MERGED").await;
    assert_eq!(system.history(), ["base", "outside", "change second (#2)"]);
}

#[tokio::test]
async fn restarting_tests_keeps_the_place_and_gives_a_new_run() {
    let (system, gate) = gated_system(On::Sqlite, 1).await;
    let pr = system.pull_request("first", &[("first.txt", "1\n")]);
    let (status, problem) =
        system.try_call("restartTestsOnPullRequest", json!({ "pr": { "number": pr } })).await;
    assert_eq!((status, &problem["code"]), (404, &json!("pull_request_not_in_queue")));
    system.submit(pr).await;
    let testing =
        async |system: &System| system.entry(pr).await["waitReason"]["kind"] == "checks_running";
    system.until("its checks run", testing).await;
    let run = system.entry(pr).await["testRunId"].clone();
    system.call("restartTestsOnPullRequest", json!({ "pr": { "number": pr.to_string() } })).await;
    let entry = system.entry(pr).await;
    assert_ne!(entry["testRunId"], run);
    assert_eq!(entry["position"], 1);
    let old = json!({ "testRunId": run });
    let old = system.call("getMergeQueueTestingDetails", old).await;
    assert_eq!(old["status"], "CANCELLED");
    open(&gate);
    system.until_state(pr, "MERGED").await;
}

#[tokio::test]
async fn a_push_to_refs_for_main_opens_a_pull_request_and_pushing_again_updates_it() {
    let system = System::new(On::Sqlite, "exit 0\n", 1).await;
    let bare = system.path("bare.git").display().to_string();
    system.git("work", &["checkout", "-q", "-b", "local", "main"]);
    system.write(&[("pushed.txt", "one\n")]);
    system.commit("pushed");
    let options = ["-o", "topic=fix", "-o", "title=Fix $(it) 'now'", "-o", "description=why"];
    let push = |force: &[&str]| {
        let mut args = vec!["push", "-q"];
        args.extend(force);
        args.extend(options);
        args.extend([bare.as_str(), "HEAD:refs/for/main"]);
        system.git("work", &args)
    };
    push(&[]);
    system.write(&[("pushed.txt", "two\n")]);
    system.git("work", &["commit", "-q", "-a", "--amend", "-m", "pushed"]);
    push(&[]);
    let list = system.run(&["pr", "list", "git.local/acme/calc", "--json"]);
    let listed: Value = serde_json::from_str(&list).expect("one pull request");
    assert_eq!(listed["title"], "Fix $(it) 'now'");
    let head = system.git("work", &["rev-parse", "HEAD"]);
    assert_eq!(listed["head"], head.as_str());
    assert_eq!(system.git("bare.git", &["rev-parse", "refs/pull/1/head"]), head);
    system.submit(1).await;
    system.until_state(1, "MERGED").await;
    assert_eq!(system.history(), ["base", "Fix $(it) 'now' (#1)"]);
    assert_eq!(system.on_main("pushed.txt"), "two");
}

#[tokio::test]
async fn the_output_of_a_check_and_the_metrics_can_be_read() {
    let check = "echo checking $SIGNALBOX_PR; [ \"$CI\" = true ]; echo done >&2\n";
    let system = System::new(On::Sqlite, check, 1).await;
    let pr = system.pull_request("first", &[("first.txt", "1\n")]);
    system.submit(pr).await;
    system.until_state(pr, "MERGED").await;
    let run = system.entry(pr).await["verifiedByTestRun"].clone();
    let details = system.call("getMergeQueueTestingDetails", json!({ "testRunId": run })).await;
    assert_eq!(details["requiredStatuses"], json!(["test"]));
    assert_eq!(details["requiredStatusesSource"], "TRUNK_CONFIG");
    let check = &details["checkSuites"][0]["checkRuns"][0];
    assert_eq!((&check["status"], &check["conclusion"]), (&json!("COMPLETED"), &json!("SUCCESS")));
    let url = check["url"].as_str().expect("a link");
    let path = url.split_once("/v1/").map(|(_, path)| format!("/v1/{path}")).expect("a path");
    assert_eq!(system.get(&path).await, "checking 1\ndone\n");
    let metrics = system.get("/v1/getMergeQueueMetrics").await;
    let merged = "mq_pr_conclusions_1h_total{repo=\"acme/calc\",branch=\"main\",\
                  queue_type=\"main\",conclusion=\"merged\"} 1";
    assert!(metrics.contains(merged), "{metrics}");
}

#[tokio::test]
async fn an_unreported_required_status_is_shown_immediately() {
    let system = System::new(On::Sqlite, "exit 0\n", 1).await;
    system.call("updateQueue", json!({ "requiredStatuses": ["nightly"] })).await;
    let pr = system.pull_request("first", &[("first.txt", "1\n")]);
    system.submit(pr).await;
    system.until_state(pr, "FAILED").await;
    let details = system.entry(pr).await["exit"]["details"].to_string();
    assert!(details.contains("no check named") && details.contains("nightly"), "{details}");
}
