//! The extras of getSubmittedPullRequest: lookups by branch, timelines and
//! estimates.

use serde_json::{Value, json};
use signalbox_domain::ids::PrNumber;
use signalbox_domain::queue::{EffectClass, PullRequestState};
use signalbox_domain::time::Span;
use signalbox_domain::token::EnumCase;

use crate::support::{Grant, Server, calc};

const OPERATION: &str = "getSubmittedPullRequest";

/// A pull request from the branch `fix`.
fn open_from_fix(server: &Server, file: &str) -> u32 {
    let pr = server.open(file);
    server.host.edit(&calc(), pr, |it| it.head_branch = Some("fix".to_owned()));
    pr.0
}

async fn submit(server: &Server, pr: u32) {
    server.ok("submitPullRequest", json!({"pr": {"number": pr}})).await;
}

async fn of_fix(server: &Server) -> Value {
    server.ok(OPERATION, json!({"pr": {"branch": "fix"}})).await["prNumber"].clone()
}

#[actix_web::test]
async fn of_a_branch_the_submitted_one_is_found_the_open_one_first() {
    let server = Server::new().await;
    let by_branch = json!({"pr": {"branch": "fix"}});
    let merged = open_from_fix(&server, "b");
    let reply = server.post(OPERATION, by_branch.clone()).await;
    reply.problem(404, "pull_request_not_in_queue");
    submit(&server, merged).await;
    server.settle().await;
    let never = open_from_fix(&server, "c");
    assert_eq!(of_fix(&server).await, merged, "#{never} is open, but was never submitted");

    let cancelled = open_from_fix(&server, "d");
    submit(&server, cancelled).await;
    server.ok("cancelPullRequest", json!({"pr": {"number": cancelled}})).await;
    server.clock.advance(Span::hours(1));
    let last = open_from_fix(&server, "e");
    submit(&server, last).await;
    assert_eq!(of_fix(&server).await, last, "it is in the queue");
    server.settle().await;
    assert_eq!(of_fix(&server).await, cancelled, "it is still open, the others are merged");
    server.host.edit(&calc(), PrNumber(cancelled), |it| it.state = PullRequestState::Closed);
    assert_eq!(of_fix(&server).await, last, "none is open: the one that was closed last");
    server.host.set_down(true);
    let reply = server.post(OPERATION, by_branch).await;
    reply.problem(503, "unavailable");
}

async fn timeline(server: &Server, pr: u32) -> Vec<Value> {
    let body = json!({"pr": {"number": pr}, "includeTimeline": true});
    let entry = server.ok(OPERATION, body).await;
    entry["timeline"].as_array().expect("a timeline").clone()
}

/// The keys of the objects with the details of each item.
fn kinds(items: &[Value]) -> Vec<String> {
    let own = |item: &Value| {
        let keys = item.as_object().expect("an object").keys();
        let rest: Vec<&String> = keys.filter(|it| *it != "timestamp" && *it != "state").collect();
        assert_eq!(rest.len(), 1, "{item}");
        rest[0].clone()
    };
    items.iter().map(own).collect()
}

#[actix_web::test]
async fn a_requested_timeline_has_the_newest_step_first() {
    let server = Server::new().await;
    let pr = server.submitted("b").await;
    assert!(server.entry(pr).await.get("timeline").is_none());
    server.settle().await;
    let items = timeline(&server, pr).await;
    assert_eq!(kinds(&items), ["merged", "testsPassed", "testing", "pending", "notReady"]);
    let states: Vec<&Value> = items.iter().map(|it| &it["state"]).collect();
    assert_eq!(states, ["MERGED", "TESTS_PASSED", "TESTING", "PENDING", "NOT_READY"]);
    let entry = server.entry(pr).await;
    assert_eq!(items[0]["timestamp"], entry["stateChangedAt"]);
    assert_eq!(items[0]["merged"]["reason"], "MERGE_GRAPH_MERGE");
    let run = &items[2]["testing"]["testRun"];
    assert_eq!(run["id"], entry["verifiedByTestRun"]);
    assert_eq!((&run["status"], &run["requiredStatuses"]), (&json!("SUCCEEDED"), &json!(["test"])));
    assert_eq!(run["testedPullRequests"][0]["prNumber"], pr);
    assert_eq!(items[1]["testsPassed"]["testBranchSha"], run["sha"]);
    assert_eq!(items[1]["testsPassed"]["otherTestedPullRequests"], json!([]));
    let submitted = json!({
        "reason": "API_REQUESTED", "actor": "token ci", "priority": 100, "noBatch": false
    });
    assert_eq!(items[4]["notReady"], submitted);
}

#[actix_web::test]
async fn a_failure_names_its_statuses_and_a_lower_case_client_gets_its_words() {
    let server = Server::new().await;
    let pr = server.submitted("bad").await;
    server.settle().await;
    let token = server.grant(Grant { case: EnumCase::Lower, ..Grant::default() }).await;
    for (token, reason, kind) in [
        (&server.token, "TEST_RUN_REQUIRED_STATUS_FAILED", "FAILING_REQUIRED_CHECK"),
        (&token, "test_run_required_status_failed", "failing_required_check"),
    ] {
        let body = json!({"prs": [{"number": pr}], "includeTimeline": true});
        let reply = server.post_as(token, "getSubmittedPullRequests", body).await.json();
        let failure = &reply["pullRequests"][0]["timeline"][0]["failure"];
        assert_eq!(
            (&failure["reason"], &failure["actor"]),
            (&json!(reason), &json!("merge queue"))
        );
        assert_eq!(failure["blockReasons"], json!([{"kind": kind}]));
        let statuses = failure["failureCausingStatuses"].as_array().expect("statuses");
        assert_eq!(statuses.len(), 1);
        assert_eq!(statuses[0]["name"], "test");
        assert_eq!(statuses[0]["conclusion"], "FAILURE", "conclusions are upper case for everyone");
        assert!(failure.get("conflictCulprit").is_none());
    }
}

#[actix_web::test]
async fn a_conflict_names_the_culprit() {
    let server = Server::new().await;
    let one = server.open("a").0;
    server.host.push_branch(&calc(), "main", &[("a", "third")]);
    submit(&server, one).await;
    server.settle().await;
    let failure = timeline(&server, one).await[0]["failure"].clone();
    assert_eq!(failure["conflictCulprit"], json!({"type": "BASE_BRANCH"}), "{failure}");
    assert_eq!(failure["details"], json!(["a"]));
}

#[actix_web::test]
async fn prerequisites_are_listed_with_their_pages() {
    let server = Server::new().await;
    let prs = [server.submitted("b").await, server.submitted("c").await];
    server.settle_but(&[EffectClass::Checks]).await;
    let third = server.submitted("d").await;
    let items = timeline(&server, prs[1]).await;
    let first = json!([{"prNumber": prs[0], "prUrl": "https://git.test/acme/calc/pull/1"}]);
    assert_eq!(items[0]["testing"]["prerequisitePullRequests"], first);
    let items = timeline(&server, third).await;
    assert_eq!(kinds(&items)[0], "pending");
    assert!(items[0]["pending"]["prerequisitePullRequests"].is_array());
}

async fn estimate(server: &Server, pr: u32) -> Value {
    let body = json!({"pr": {"number": pr}, "includeEstimatedTimeToMerge": true});
    server.ok(OPERATION, body).await["estimatedTimeToMerge"].clone()
}

#[actix_web::test]
async fn an_estimate_comes_with_its_basis_and_none_with_the_reason() {
    let server = Server::new().await;
    let first = server.submitted("b").await;
    assert!(server.entry(first).await.get("estimatedTimeToMerge").is_none());
    let none = json!({
        "seconds": null, "basis": {"runs": 0, "percentile": 50}, "ahead": [],
        "sentence": "no estimate: no test run has passed in this queue yet"
    });
    assert_eq!(estimate(&server, first).await, none);
    server.settle_but(&[EffectClass::Checks]).await;
    server.clock.advance(Span::minutes(4));
    server.settle().await;
    let (second, third) = (server.submitted("c").await, server.submitted("d").await);
    let known = estimate(&server, third).await;
    assert_eq!((&known["basis"]["runs"], &known["ahead"]), (&json!(1), &json!([second])));
    let seconds = known["seconds"].as_u64().expect("a whole number");
    assert!((240..300).contains(&seconds), "{known}");
    let sentence = known["sentence"].as_str().expect("text");
    assert!(sentence.starts_with("about 4 minutes: 1 pull request is ahead"), "{sentence}");
    server.ok("updateQueue", json!({"state": "PAUSED"})).await;
    let paused = estimate(&server, third).await;
    assert_eq!((&paused["seconds"], &paused["ahead"]), (&Value::Null, &json!([second])));
    assert_eq!(paused["sentence"], "no estimate: the queue is paused");
    assert_eq!(estimate(&server, first).await["sentence"], "no estimate: it is not in the queue");
}

#[actix_web::test]
async fn the_switches_are_switches() {
    let server = Server::new().await;
    let body = json!({
        "pr": {"number": 1}, "includeTimeline": "yes", "includeEstimatedTimeToMerge": 1
    });
    let pointers = ["/includeTimeline", "/includeEstimatedTimeToMerge"];
    assert_eq!(server.post(OPERATION, body).await.pointers(), pointers);
}
