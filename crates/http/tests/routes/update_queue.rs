//! `POST /v1/updateQueue`.

use serde_json::{Value, json};
use signalbox_domain::token::EnumCase;

use crate::support::{Grant, Server};

const OPERATION: &str = "updateQueue";

/// Every setting with a value that is not its default.
fn everything() -> Value {
    json!({
        "state": "DRAINING",
        "concurrency": 7,
        "bisectionConcurrency": 0,
        "testingTimeoutMinutes": 0,
        "pendingFailureDepth": 3,
        "canOptimisticallyMerge": true,
        "batch": true,
        "batchingMinSize": 8,
        "batchingMaxWaitTimeMinutes": 0,
        "createPrsForTestingBranches": false,
        "commentsEnabled": false,
        "commandsEnabled": false,
        "statusCheckEnabled": false,
        "requiredStatuses": ["test", "lint"],
        "directMergeMode": "ALWAYS",
        "optimizationMode": "BISECTION_SKIP_REDUNDANT_TESTS",
        "bisectionMode": "IN_PLACE",
        "dependenciesEnabled": false,
        "mergeMethod": "MERGE_COMMIT",
        "mode": "PARALLEL",
        "extensionEnabled": false,
        "enqueueingLabel": "ship-it",
        "labelCommandsEnabled": true,
        "stateLabelsEnabled": true,
        "notReadyTimeoutHours": 0,
        "testBranchConstructionMode": "PUSH_NEW_BRANCH_FROM_TEMP",
        "allowedBotSubmitters": ["renovate[bot]"],
        "agentLabels": ["agent:*"],
        "fairShare": true,
        "successEstimates": "QUEUE",
        "batchingRules": [{"targetPattern": "//db/*", "policy": "isolate"}]
    })
}

#[actix_web::test]
async fn the_reply_has_the_sent_values_and_get_queue_agrees() {
    let server = Server::new().await;
    let sent = everything();
    let reply = server.ok(OPERATION, sent.clone()).await;
    for (key, value) in sent.as_object().expect("an object") {
        assert_eq!(&reply[key], value, "{key}");
    }
    assert!(reply.get("enqueuedPullRequests").is_none());
    let mut queue = server.ok("getQueue", json!({})).await;
    queue.as_object_mut().expect("an object").remove("enqueuedPullRequests");
    assert_eq!(reply, queue);
}

#[actix_web::test]
async fn a_lower_case_client_gets_its_own_words_back() {
    let server = Server::new().await;
    let token = server.grant(Grant { case: EnumCase::Lower, ..Grant::default() }).await;
    let sent = json!({
        "state": "paused", "mode": "parallel", "mergeMethod": "rebase",
        "directMergeMode": "always", "optimizationMode": "bisection_skip_redundant_tests"
    });
    let reply = server.post_as(&token, OPERATION, sent.clone()).await.json();
    for (key, value) in sent.as_object().expect("an object") {
        assert_eq!(&reply[key], value, "{key}");
    }
}

#[actix_web::test]
async fn omitted_and_null_fields_are_unchanged() {
    let server = Server::new().await;
    let before = server.ok(OPERATION, everything()).await;
    let nulls: Value = everything()
        .as_object()
        .expect("an object")
        .keys()
        .map(|key| (key.clone(), Value::Null))
        .collect();
    assert_eq!(server.ok(OPERATION, nulls).await, before);
    let after = server.ok(OPERATION, json!({"concurrency": 9})).await;
    assert_eq!((&after["concurrency"], &after["bisectionConcurrency"]), (&json!(9), &json!(0)));
}

#[actix_web::test]
async fn the_own_list_of_statuses_is_dropped_in_two_ways() {
    let server = Server::new().await;
    for drop in [json!({"deleteRequiredStatuses": true}), json!({"requiredStatuses": []})] {
        let with = server.ok(OPERATION, json!({"requiredStatuses": ["lint"]})).await;
        assert_eq!(with["requiredStatuses"], json!(["lint"]));
        assert_eq!(server.ok(OPERATION, drop.clone()).await["requiredStatuses"], json!([]));
        assert_eq!(server.ok(OPERATION, drop).await["requiredStatuses"], json!([]));
    }
    let both = json!({"deleteRequiredStatuses": true, "requiredStatuses": ["lint"]});
    assert_eq!(server.post(OPERATION, both).await.pointers(), ["/deleteRequiredStatuses"]);
}

#[actix_web::test]
async fn a_freeze_is_shown_with_its_end_and_reason() {
    let server = Server::new().await;
    let rule = "2026-01-01T00:00/2030-01-04T08:00[Europe/Berlin] audit";
    let reply = server.ok(OPERATION, json!({"freezes": [rule]})).await;
    assert_eq!(reply["freezes"], json!([rule]));
    let until = "2030-01-04T07:00:00.000Z";
    assert_eq!(reply["freeze"], json!({"until": until, "reason": "audit"}));
    let open = json!({"freezes": ["2026-01-01T00:00/..[UTC]"], "testWhileFrozen": false});
    let reply = server.ok(OPERATION, open).await;
    assert_eq!(reply["freeze"], json!({"until": null, "reason": null}));
    let pr = server.submitted("b").await;
    let waits = server.entry(pr).await["waitReason"].clone();
    assert_eq!(waits, json!({"kind": "frozen", "until": null, "reason": null}));
    let wrong = server.post(OPERATION, json!({"freezes": [rule, "22:00/06:00[Mars]"]})).await;
    assert_eq!(wrong.pointers(), ["/freezes"]);
    let partial = "2026-01-01T00:00/2030-01-04T08:00[UTC]{target:ios; ! label:docs} train";
    let reply = server.ok(OPERATION, json!({"freezes": [partial]})).await;
    assert_eq!(reply["freeze"], Value::Null);
    let until = "2030-01-04T08:00:00.000Z";
    let wanted = json!([{"scope": "target:ios; !label:docs", "until": until, "reason": "train"}]);
    assert_eq!(reply["partialFreezes"], wanted);
    let wrong = json!({"freezes": ["22:00/06:00[UTC]{team:ios}"]});
    assert_eq!(server.post(OPERATION, wrong).await.pointers(), ["/freezes"]);
    let reply = server.ok(OPERATION, json!({"freezes": []})).await;
    assert_eq!(reply["freeze"], Value::Null);
    assert_eq!(reply["partialFreezes"], json!([]));
}

#[actix_web::test]
async fn a_pause_has_its_actor_and_reason() {
    let server = Server::new().await;
    let paused = json!({"state": "PAUSED", "reason": "release freeze"});
    let reply = server.ok(OPERATION, paused).await;
    assert_eq!(
        (&reply["pausedBy"], &reply["pausedReason"]),
        (&json!("token ci"), &json!("release freeze"))
    );
    let pr = server.submitted("b").await;
    let waits = server.entry(pr).await["waitReason"].clone();
    let expected = json!({"kind": "queue_paused", "by": "token ci", "reason": "release freeze"});
    assert_eq!(waits, expected);
    let reply = server.ok(OPERATION, json!({"state": "running"})).await;
    assert_eq!((&reply["state"], &reply["pausedBy"]), (&json!("RUNNING"), &Value::Null));
}

#[actix_web::test]
async fn a_change_of_mode_shows_immediately_and_again_is_a_conflict() {
    let server = Server::new().await;
    server.submitted("b").await;
    let reply = server.ok(OPERATION, json!({"mode": "parallel"})).await;
    assert_eq!((&reply["mode"], &reply["state"]), (&json!("PARALLEL"), &json!("RUNNING")));
    assert_eq!(server.ok("getQueue", json!({})).await["state"], "SWITCHING_MODES");
    let reply = server.post(OPERATION, json!({"mode": "single"})).await;
    reply.problem(409, "mode_change_in_progress");
    server.settle().await;
    assert_eq!(server.ok("getQueue", json!({})).await["state"], "RUNNING");
}

#[actix_web::test]
async fn every_setting_out_of_bounds_is_named() {
    let server = Server::new().await;
    let body = json!({
        "state": "switching_modes", "mode": "both", "concurrency": 0, "testingTimeoutMinutes": 10081,
        "bisectionConcurrency": 1001, "batch": "yes", "mergeMethod": "octopus",
        "requiredStatuses": ["", "test"], "allowedBotSubmitters": [7], "enqueueingLabel": "",
        "batchingRules": [{"targetPattern": "x", "policy": "never"}, "y"]
    });
    let mut pointers = server.post(OPERATION, body).await.pointers();
    pointers.sort();
    assert_eq!(
        pointers,
        [
            "/allowedBotSubmitters/0",
            "/batch",
            "/batchingRules",
            "/batchingRules/1",
            "/bisectionConcurrency",
            "/concurrency",
            "/enqueueingLabel",
            "/mergeMethod",
            "/mode",
            "/requiredStatuses",
            "/state",
            "/testingTimeoutMinutes"
        ]
    );
    let long = json!({"state": "PAUSED", "reason": "x".repeat(501)});
    assert_eq!(server.post(OPERATION, long).await.pointers(), ["/reason"]);
    let many = json!({"requiredStatuses": vec!["x"; 5000]});
    assert_eq!(server.post(OPERATION, many).await.pointers(), ["/requiredStatuses"]);
}
