//! `POST /v1/setImpactedTargets`.

use actix_web::test::TestRequest;
use serde_json::{Value, json};

use crate::support::{Server, calc};

const OPERATION: &str = "setImpactedTargets";

async fn parallel() -> Server {
    let server = Server::without_queue().await;
    server.ok("createQueue", json!({"mode": "parallel"})).await;
    server.settle().await;
    server
}

async fn has_targets(server: &Server, pr: u32) -> Value {
    server.entry(pr).await["readiness"]["hasImpactedTargets"].clone()
}

#[actix_web::test]
async fn targets_may_be_a_list_an_empty_one_or_everything() {
    for targets in [
        json!(["//a", "", "//b", "//a"]),
        json!([]),
        json!([""]),
        json!("ALL"),
        json!("IMPACTS_ALL"),
    ] {
        let server = parallel().await;
        let pr = server.submitted("b").await;
        assert_eq!(has_targets(&server, pr).await, false);
        assert_eq!(server.entry(pr).await["waitReason"], json!({"kind": "missing_targets"}));
        let body = json!({"pr": {"number": pr}, "impactedTargets": targets});
        assert_eq!(server.ok(OPERATION, body).await, json!({}));
        assert_eq!(has_targets(&server, pr).await, true, "{targets}");
        let shown = server.entry(pr).await["impactedTargets"].clone();
        let all = targets.is_string();
        let names = if targets.get(1).is_some() { json!(["//a", "//b"]) } else { json!([]) };
        let count = names.as_array().map(Vec::len);
        let expected = json!({"all": all, "names": names, "count": count, "computed": false});
        assert_eq!(shown, expected, "{targets}");
    }
}

#[actix_web::test]
async fn they_may_come_before_the_submission_and_hold_for_one_head() {
    let server = parallel().await;
    let pr = server.open("b");
    let sha = server.host.shown(&calc(), pr).head.to_string().to_uppercase();
    let body = json!({"pr": {"number": pr.0.to_string(), "sha": sha}, "impactedTargets": ["//a"]});
    server.ok(OPERATION, body).await;
    server.ok("submitPullRequest", json!({"pr": {"number": pr.0}})).await;
    assert_eq!(has_targets(&server, pr.0).await, true);
    let other = json!({"pr": {"number": pr.0, "sha": "a".repeat(40)}, "impactedTargets": ["//a"]});
    server.ok(OPERATION, other).await;
    assert_eq!(has_targets(&server, pr.0).await, true, "a late report for another head");
    server.host.push(&calc(), pr, &[("b", "3")]);
    server.ok("submitPullRequest", json!({"pr": {"number": pr.0}})).await;
    server.ok("submitPullRequest", json!({"pr": {"number": pr.0}})).await;
    assert_eq!(has_targets(&server, pr.0).await, false, "a push makes them stale");
}

#[actix_web::test]
async fn forms_that_are_wrong_are_named() {
    let server = parallel().await;
    let pr = json!({"number": 1});
    for (body, pointers) in [
        (json!({"pr": pr}), ["/impactedTargets"]),
        (json!({"pr": pr, "impactedTargets": "SOME"}), ["/impactedTargets"]),
        (json!({"pr": pr, "impactedTargets": {"a": [1]}}), ["/impactedTargets"]),
        (json!({"pr": pr, "impactedTargets": ["a", 7]}), ["/impactedTargets/1"]),
        (json!({"pr": pr, "impactedTargets": ["a", "b\0"]}), ["/impactedTargets/1"]),
        (json!({"pr": {"number": 0}, "impactedTargets": []}), ["/pr/number"]),
        (json!({"pr": {"number": 1, "sha": "main"}, "impactedTargets": []}), ["/pr/sha"]),
    ] {
        assert_eq!(server.post(OPERATION, body).await.pointers(), pointers);
    }
}

#[actix_web::test]
async fn as_many_targets_are_taken_as_a_body_has_room_for() {
    let server = parallel().await;
    let pr = server.submitted("b").await;
    let names = |count: u32| (0..count).map(|it| format!("//t:{it}")).collect::<Vec<_>>();
    let body = json!({"pr": {"number": pr}, "impactedTargets": names(400_000)});
    server.ok(OPERATION, body).await;
    assert_eq!(has_targets(&server, pr).await, true);
    let body = json!({"pr": {"number": pr}, "impactedTargets": names(2_000_000)});
    server.post(OPERATION, body).await.problem(413, "body_too_large");
}

#[actix_web::test]
async fn a_pull_request_that_does_not_exist_has_no_targets() {
    let server = parallel().await;
    for targets in [json!("ALL"), json!([]), json!(["//a"])] {
        for pr in [json!({"number": 99}), json!({"number": 99, "sha": "a".repeat(40)})] {
            let body = json!({"pr": pr, "impactedTargets": targets});
            server.post(OPERATION, body).await.problem(404, "pull_request_not_found");
        }
    }
    let pr = server.open("b").0;
    let body = json!({"pr": {"number": pr}, "impactedTargets": ["//a"]});
    assert_eq!(server.ok(OPERATION, body).await, json!({}), "before it is submitted");
}

#[actix_web::test]
async fn the_run_of_a_fork_is_no_token_and_does_not_hinder_one() {
    let server = parallel().await;
    let pr = server.open("b").0.to_string();
    let request = |token: &str| {
        TestRequest::post()
            .uri("/v1/setImpactedTargets")
            .insert_header(("x-api-token", token))
            .insert_header(("x-forked-workflow-run-id", "12345"))
            .set_json(json!({
                "repo": {"host": "git.test", "owner": "acme", "name": "calc"},
                "targetBranch": "main",
                "pr": {"number": pr},
                "impactedTargets": ["//a"]
            }))
    };
    server.call(request("")).await.is_unauthorized();
    assert_eq!(server.call(request(&server.token)).await.status, 200);
}

#[actix_web::test]
async fn rules_compute_them_from_changed_paths() {
    let server = parallel().await;
    let rules = json!({"impactedTargetRules": ["b b", "docs/** NONE"]});
    server.ok("updateQueue", rules).await;
    let pr = server.submitted("b").await;
    assert_eq!(server.entry(pr).await["waitReason"], json!({"kind": "computing_targets"}));
    assert_eq!(server.entry(pr).await["impactedTargets"], Value::Null);
    server.settle().await;
    assert_eq!(has_targets(&server, pr).await, true);
    let computed = json!({"all": false, "names": ["b"], "count": 1, "computed": true});
    assert_eq!(server.entry(pr).await["impactedTargets"], computed);
    let other = server.submitted("other").await;
    server.settle().await;
    let all = json!({
        "all": true, "names": [], "count": 0, "computed": true,
        "reason": "no rule matches other"
    });
    assert_eq!(server.entry(other).await["impactedTargets"], all);
    let wrong = json!({"impactedTargetRules": ["b b", "docs/ docs"]});
    let refused = server.post("updateQueue", wrong).await;
    assert_eq!(refused.pointers(), ["/impactedTargetRules"]);
}
