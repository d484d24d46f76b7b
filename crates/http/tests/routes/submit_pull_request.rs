//! `POST /v1/submitPullRequest`.

use serde_json::json;
use signalbox_domain::token::Scope;

use crate::support::{Grant, Server, calc};

const OPERATION: &str = "submitPullRequest";

#[actix_web::test]
async fn a_submission_is_answered_by_an_empty_object() {
    let server = Server::new().await;
    let pr = server.open("b").0;
    let reply = server.post(OPERATION, json!({"pr": {"number": pr}})).await;
    assert_eq!((reply.status, reply.json()), (200, json!({})));
    let entry = server.entry(pr).await;
    assert_eq!((&entry["priorityName"], &entry["noBatch"]), (&json!("medium"), &json!(false)));
}

#[actix_web::test]
async fn numbers_may_be_strings_and_priorities_numbers_names_or_null() {
    let server = Server::new().await;
    server.open("a");
    for (priority, value, name) in [
        (json!(10), 10, "high"),
        (json!("LOW"), 200, "low"),
        (json!(42), 42, "42"),
        (json!("urgent"), 0, "urgent"),
        (json!(u32::MAX), u32::MAX, "4294967295"),
        (json!(null), u32::MAX, "4294967295"),
    ] {
        server.ok(OPERATION, json!({"pr": {"number": "1"}, "priority": priority})).await;
        let entry = server.entry(1).await;
        assert_eq!(entry["priorityValue"], value);
        assert_eq!(entry["priorityName"], name);
        assert_eq!(entry["usedDefaultPriorityName"], "medium");
        assert_eq!(entry["skipTheLine"], value == 0);
    }
}

#[actix_web::test]
async fn submitting_again_changes_the_options_and_keeps_the_id() {
    let server = Server::new().await;
    let pr = server.submitted("b").await;
    let before = server.entry(pr).await;
    let again = json!({"pr": {"number": pr}, "noBatch": true, "priority": "high"});
    server.ok(OPERATION, again).await;
    let after = server.entry(pr).await;
    assert_eq!(before["id"], after["id"]);
    assert_eq!((&after["noBatch"], &after["priorityValue"]), (&json!(true), &json!(10)));
}

#[actix_web::test]
async fn unknown_keys_are_ignored() {
    let server = Server::new().await;
    let pr = server.open("b").0;
    let body = json!({"pr": {"number": pr, "title": 7}, "labels": [1], "reason": {"x": []}});
    server.ok(OPERATION, body).await;
}

#[actix_web::test]
async fn urgency_needs_its_own_scope() {
    let server = Server::new().await;
    let pr = server.open("b").0;
    let scopes = vec![Scope::QueueSubmit];
    let token = server.grant(Grant { scopes, ..Grant::default() }).await;
    for urgent in [json!(0), json!("urgent")] {
        let body = json!({"pr": {"number": pr}, "priority": urgent});
        let reply = server.post_as(&token, OPERATION, body).await;
        let problem = reply.problem(403, "missing_scope");
        assert_eq!(problem["detail"], "this token lacks the scope queue:urgent");
    }
    let reply = server.post_as(&token, OPERATION, json!({"pr": {"number": pr}})).await;
    assert_eq!(reply.status, 200);
}

#[actix_web::test]
async fn missing_objects_are_named() {
    let server = Server::new().await;
    let reply = server.post(OPERATION, json!({"pr": {"number": 7}})).await;
    let problem = reply.problem(404, "pull_request_not_found");
    assert_eq!(problem["detail"], "pull request 7 of acme/calc not found");
    let reply = server.post(OPERATION, json!({"pr": {"number": 7}, "targetBranch": "dev"})).await;
    let problem = reply.problem(404, "merge_queue_not_found");
    assert_eq!(problem["detail"], "merge queue for branch `dev` of acme/calc not found");
    let repo = json!({"host": "git.test", "owner": "acme", "name": "nope"});
    let reply = server.post(OPERATION, json!({"pr": {"number": 7}, "repo": repo})).await;
    reply.problem(404, "repository_not_found");
    let repo = json!({"host": "elsewhere.test", "owner": "acme", "name": "calc"});
    let reply = server.post(OPERATION, json!({"pr": {"number": 7}, "repo": repo})).await;
    reply.problem(404, "repository_not_found");
}

#[actix_web::test]
async fn a_closed_pull_request_is_refused() {
    let server = Server::new().await;
    let pr = server.open("b");
    server.host.edit(&calc(), pr, |it| {
        it.state = signalbox_domain::queue::PullRequestState::Closed;
    });
    let reply = server.post(OPERATION, json!({"pr": {"number": pr.0}})).await;
    reply.problem(409, "pull_request_not_open");
}

#[actix_web::test]
async fn all_mistakes_are_reported_together() {
    let server = Server::new().await;
    let body = json!({
        "repo": {"owner": "..", "name": "calc"},
        "targetBranch": "a..b",
        "pr": {"number": "x7"},
        "priority": "soon",
        "noBatch": "yes"
    });
    let reply = server.post(OPERATION, body).await;
    let all = ["/repo/host", "/repo/owner", "/targetBranch", "/pr/number", "/priority", "/noBatch"];
    assert_eq!(reply.pointers(), all);
    let detail = reply.problem(400, "validation_failed")["detail"].to_string();
    for words in ["repo.host is required", "pr.number must be a whole number", "x7", "soon"] {
        assert!(detail.contains(words), "{detail}");
    }
}
