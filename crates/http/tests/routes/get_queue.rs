//! `POST /v1/getQueue`.

use serde_json::{Value, json};
use signalbox_domain::queue::{Fact, HostTrouble, HostTroubleKind, Mergeability};
use signalbox_domain::token::EnumCase;

use crate::support::{Grant, Server, calc};

const OPERATION: &str = "getQueue";

#[actix_web::test]
async fn every_known_key_is_there() {
    let server = Server::new().await;
    let queue = server.ok(OPERATION, json!({})).await;
    let mut expected = json!({
        "state": "RUNNING",
        "branch": "main",
        "concurrency": 2,
        "testingTimeoutMinutes": 300,
        "mode": "SINGLE",
        "canOptimisticallyMerge": false,
        "pendingFailureDepth": 0,
        "batch": false,
        "batchingMaxWaitTimeMinutes": 5,
        "batchingMinSize": 4,
        "createPrsForTestingBranches": true,
        "commentsEnabled": true,
        "commandsEnabled": true,
        "statusCheckEnabled": true,
        "bisectionConcurrency": 2,
        "requiredStatuses": [],
        "directMergeMode": "OFF",
        "optimizationMode": "OFF",
        "bisectionMode": "ASIDE",
        "mergeMethod": "SQUASH",
        "extensionEnabled": true,
        "enqueueingLabel": "signalbox-merge-queue-submit",
        "labelCommandsEnabled": false,
        "stateLabelsEnabled": false,
        "notReadyTimeoutHours": 24,
        "startTimeoutMinutes": 30,
        "automaticTestingTimeout": false,
        "infrastructureRetries": 2,
        "knownFlakyRetries": 1,
        "redTargetHoldMinutes": 60,
        "seenElsewhereRetries": 1,
        "retriesPerHour": 20,
        "evidenceChecks": [],
        "evidenceWaitSeconds": 120,
        "testBranchConstructionMode": "RENAME_TEMP_BRANCH",
        "allowedBotSubmitters": [],
        "batchingRules": [],
        "pausedBy": null,
        "pausedReason": null,
        "enqueuedPullRequests": []
    });
    // The macro takes no more keys.
    for (name, value) in [
        ("infrastructureMessages", json!([])),
        ("evidenceNeedsIdentity", json!(true)),
        ("adaptiveWindow", json!(false)),
        ("windowFloor", json!(3)),
        ("reparentingMode", json!("BATCHES")),
        ("pretestThreshold", json!(50)),
        ("successEstimates", json!("AUTHORS")),
        ("authorLimit", json!(0)),
        ("authorHourlyLimit", json!(0)),
        ("authorDailyMinutes", json!(0)),
        ("agentLabels", json!([])),
        ("fairShare", json!(false)),
        ("freezes", json!([])),
        ("impactedTargetRules", json!([])),
        ("targetCapacities", json!([])),
        ("dependenciesEnabled", json!(true)),
        ("freeze", Value::Null),
        ("partialFreezes", json!([])),
        ("testWhileFrozen", json!(true)),
    ] {
        expected[name] = value;
    }
    assert_eq!(queue, expected);
}

#[actix_web::test]
async fn entries_are_in_the_order_of_the_line_and_those_not_ready_last() {
    let server = Server::new().await;
    server.ok("updateQueue", json!({"concurrency": 1})).await;
    let not_ready = server.open("z");
    server.host.edit(&calc(), not_ready, |it| {
        it.mergeability = Mergeability::NotMergeable("needs a review".to_owned());
    });
    server.ok("submitPullRequest", json!({"pr": {"number": not_ready.0}})).await;
    let first = server.submitted("b").await;
    let second = server.submitted("c").await;
    let third = server.open("d").0;
    server.ok("submitPullRequest", json!({"pr": {"number": third}, "priority": "high"})).await;
    let queue = server.ok(OPERATION, json!({})).await;
    let entries = queue["enqueuedPullRequests"].as_array().expect("entries");
    let seen: Vec<_> = entries
        .iter()
        .map(|it| (it["prNumber"].clone(), it["state"].clone(), it["position"].clone()))
        .collect();
    assert_eq!(
        seen,
        [
            (json!(first), json!("TESTING"), json!(1)),
            (json!(third), json!("PENDING"), json!(2)),
            (json!(second), json!("PENDING"), json!(3)),
            (json!(not_ready.0), json!("NOT_READY"), Value::Null),
        ]
    );
    let waits: Vec<_> = entries.iter().map(|it| it["waitReason"].clone()).collect();
    assert_eq!(waits[1], json!({"kind": "slots_full", "used": 1, "limit": 1, "ahead": 0}));
    assert_eq!(waits[3], json!({"kind": "host_mergeability", "detail": "needs a review"}));
    assert_eq!(entries[1]["reason"], "all test slots are in use (1 of 1)");
    let mut keys: Vec<_> = entries[0].as_object().expect("an object").keys().collect();
    keys.sort();
    assert_eq!(
        keys,
        [
            "id",
            "noBatch",
            "position",
            "prAuthor",
            "prBaseBranch",
            "prNumber",
            "prSha",
            "prTitle",
            "priorityName",
            "priorityValue",
            "reason",
            "skipTheLine",
            "state",
            "stateChangedAt",
            "usedDefaultPriorityName",
            "waitReason"
        ]
    );
}

#[actix_web::test]
async fn words_follow_the_case_of_the_token() {
    let server = Server::new().await;
    server.submitted("b").await;
    let token = server.grant(Grant { case: EnumCase::Lower, ..Grant::default() }).await;
    let queue = server.post_as(&token, OPERATION, json!({})).await.json();
    for (key, word) in [
        ("state", "running"),
        ("mode", "single"),
        ("mergeMethod", "squash"),
        ("directMergeMode", "off"),
        ("optimizationMode", "off"),
        ("testBranchConstructionMode", "rename_temp_branch"),
    ] {
        assert_eq!(queue[key], word);
    }
    assert_eq!(queue["enqueuedPullRequests"][0]["state"], "testing");
}

#[actix_web::test]
async fn times_in_wait_reasons_are_times() {
    let server = Server::new().await;
    let stuck = server.stores.queue.queues.list(None, None).await.expect("queues");
    let trouble = HostTrouble { kind: HostTroubleKind::Unreachable, words: "no answer".to_owned() };
    let down = Fact::HostUnreachable { trouble };
    let pr = server.submitted("b").await;
    server.api.queues.absorb(stuck[0].queue, down).await.expect("absorbed");
    let waits = server.entry(pr).await["waitReason"].clone();
    assert_eq!(waits["kind"], "host_unreachable");
    let since = waits["since"].as_str().and_then(signalbox_domain::time::Timestamp::parse);
    assert!(since.is_some(), "{waits}");
}
