//! Requests and replies: authentication, refusals, and both cases of enum values.

use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{On, Reply, System};

const PLACE: &str =
    r#"{"repo":{"host":"git.local","owner":"acme","name":"calc"},"targetBranch":"main"}"#;

fn place() -> Value {
    serde_json::from_str(PLACE).expect("JSON")
}

#[expect(clippy::needless_pass_by_value, reason = "it is written in place")]
fn with(more: Value) -> String {
    let mut body = place();
    for (key, value) in more.as_object().expect("an object") {
        body[key] = value.clone();
    }
    body.to_string()
}

async fn post(system: &System, path: &str, body: &str) -> Reply {
    let token = system.token().to_owned();
    let headers = [("x-api-token", token.as_str()), ("content-type", "application/json")];
    system.send(Method::POST, path, &headers, body.to_owned()).await
}

async fn system() -> System {
    System::new(On::Sqlite, "exit 0\n", 1).await
}

/// Every operation of the description: method, path, and for those on tests the example of a body.
async fn operations(system: &System) -> Vec<(Method, String, Option<Value>)> {
    let description: Value =
        serde_json::from_str(&system.get("/v1/openapi.json").await).expect("JSON");
    let mut found = Vec::new();
    for (path, methods) in description["paths"].as_object().expect("paths") {
        for (method, operation) in methods.as_object().expect("methods") {
            if operation["security"].is_array() {
                let method = method.to_uppercase().parse().expect("a method");
                let path = path
                    .replace("{run}", "00000000-0000-0000-0000-000000000000")
                    .replace("{name}", "test");
                let body = &operation["requestBody"]["content"]["application/json"]["schema"];
                let of_tests = operation["tags"][0] == "flaky tests";
                let example = body["$ref"].as_str().filter(|_| of_tests).map(|schema| {
                    let schema = description.pointer(&schema[1..]).expect("a schema");
                    let mut example = schema["example"].clone();
                    example["repo"] =
                        with(json!({})).parse::<Value>().expect("JSON")["repo"].take();
                    example
                });
                found.push((method, path, example));
            }
        }
    }
    assert!(found.len() >= 12, "{found:?}");
    found
}

#[tokio::test]
async fn without_a_good_token_every_operation_is_401_in_plain_text() {
    let system = system().await;
    let other = system.token_with(&["--org", "acme"]);
    system.run(&["token", "revoke", &other.0]);
    let malformed = system.token().replace("sbx_", "abc_");
    let unknown = format!("{}0", &other.1[..other.1.len() - 1]);
    let mut texts = std::collections::BTreeSet::new();
    for (method, path, _) in operations(&system).await {
        for token in [None, Some(""), Some(malformed.as_str()), Some(&unknown), Some(&other.1)] {
            let mut headers = vec![("content-type", "application/json")];
            headers.extend(token.map(|token| ("x-api-token", token)));
            // The token is checked before the body.
            let reply = system.send(method.clone(), &path, &headers, "nonsense".into()).await;
            assert_eq!(reply.status, 401, "{method} {path} {token:?}");
            assert_eq!(reply.header("content-type"), "text/plain; charset=utf-8");
            assert!(!reply.header("x-request-id").is_empty());
            texts.insert(reply.text);
        }
    }
    assert_eq!(texts.len(), 1, "one text for every reason: {texts:?}");
}

#[tokio::test]
async fn another_organization_and_a_limited_token_find_nothing() {
    let system = system().await;
    let stranger = system.token_with(&["--org", "other"]).1;
    let limited = system.token_with(&["--org", "acme", "--repo", "git.local/acme/other"]).1;
    let reader = system.token_with(&["--org", "acme", "--scope", "queue:read"]).1;
    let body = with(json!({
        "pr": { "number": 1 }, "prs": [{ "number": 1 }], "impactedTargets": ["a"],
        "since": "2026-01-01T00:00:00Z", "until": "2026-01-02T00:00:00Z",
        "testRunId": "00000000-0000-0000-0000-000000000001", "sha": "a".repeat(40),
        "check": "test", "status": "in_progress"
    }));
    for (method, path, example) in operations(&system).await {
        // They are about an organization, and name no repository: see `audit`, `events`,
        // `webhooks`.
        let about_all = ["/v1/audit", "/v1/events", "/v1/webhooks"];
        if about_all.iter().any(|start| path.starts_with(start)) {
            continue;
        }
        for token in [&stranger, &limited] {
            let headers = [("x-api-token", token.as_str()), ("content-type", "application/json")];
            let path = match method {
                Method::GET if path.ends_with("Metrics") => {
                    format!("{path}?repo=acme/calc&repoHost=git.local")
                }
                Method::GET if path.ends_with("simulate") => {
                    format!("{path}?repo=git.local/acme/calc&targetBranch=main")
                }
                _ => path.clone(),
            };
            let sent = example.as_ref().map_or_else(|| body.clone(), ToString::to_string);
            let reply = system.send(method.clone(), &path, &headers, sent).await;
            // Plain reports name their repository in the address, and here none is named.
            let reports = ["/v1/flaky-tests/upload", "/v1/flaky-tests/import"];
            let wanted = match path.as_str() {
                path if reports.contains(&path) => 400,
                // The uploader fails a CI job when the reply is "not found".
                "/v1/metrics/createBundleUpload" => 422,
                "/v1/metrics/getQuarantineConfig" => 200,
                _ => 404,
            };
            if wanted == 200 {
                assert_eq!(reply.json()["testIds"], json!([]), "{path}");
            }
            assert_eq!(reply.status, wanted, "{method} {path}: {}", reply.text);
        }
    }
    let headers = [("x-api-token", reader.as_str()), ("content-type", "application/json")];
    let reply = system.send(Method::POST, "/v1/getQueue", &headers, PLACE.into()).await;
    assert_eq!(reply.status, 200);
    for path in ["submitPullRequest", "cancelPullRequest", "updateQueue", "deleteQueue"] {
        let path = format!("/v1/{path}");
        let reply = system.send(Method::POST, &path, &headers, body.clone()).await;
        assert_eq!((reply.status, reply.code()), (403, "missing_scope".into()), "{path}");
    }
    let metrics = system
        .send(Method::GET, "/v1/getMergeQueueMetrics", &[("x-api-token", &stranger)], String::new())
        .await;
    assert!(!metrics.text.contains("acme/calc"));
}

#[tokio::test]
async fn invalid_requests_are_explained() {
    let system = system().await;
    for (path, body, status, code, pointer) in [
        ("getQueue", "", 400, "malformed_body", None),
        ("getQueue", "{", 400, "malformed_body", None),
        ("getQueue", "[]", 400, "validation_failed", Some("")),
        ("getQueue", "{}", 400, "validation_failed", Some("/repo")),
        ("getQueue", r#"{"repo":{"host":1}}"#, 400, "validation_failed", Some("/repo/host")),
        (
            "getQueue",
            &PLACE.replace("main", "a..b"),
            400,
            "validation_failed",
            Some("/targetBranch"),
        ),
        ("getQueue", &PLACE.replace("acme", "../x"), 400, "validation_failed", Some("/repo/owner")),
        ("getQueue", &PLACE.replace("calc", "none"), 404, "repository_not_found", None),
        ("getQueue", &PLACE.replace("git.local", "github.com"), 404, "repository_not_found", None),
        ("getQueue", &PLACE.replace("main", "dev"), 404, "merge_queue_not_found", None),
        ("createQueue", PLACE, 409, "merge_queue_exists", None),
        ("createQueue", &with(json!({ "mode": "both" })), 400, "validation_failed", Some("/mode")),
        (
            "createQueue",
            &with(json!({ "concurrency": 0 })),
            400,
            "validation_failed",
            Some("/concurrency"),
        ),
        ("submitPullRequest", PLACE, 400, "validation_failed", Some("/pr")),
        (
            "submitPullRequest",
            &with(json!({ "pr": { "number": 9 } })),
            404,
            "pull_request_not_found",
            None,
        ),
        (
            "submitPullRequest",
            &with(json!({ "pr": { "number": -1 } })),
            400,
            "validation_failed",
            Some("/pr/number"),
        ),
        (
            "submitPullRequest",
            &with(json!({ "pr": { "number": 1.5 } })),
            400,
            "validation_failed",
            Some("/pr/number"),
        ),
        (
            "submitPullRequest",
            &with(json!({ "pr": { "number": 1 }, "priority": "soon" })),
            400,
            "validation_failed",
            Some("/priority"),
        ),
        (
            "cancelPullRequest",
            &with(json!({ "pr": { "number": 9 } })),
            404,
            "pull_request_not_in_queue",
            None,
        ),
        (
            "restartTestsOnPullRequest",
            &with(json!({ "pr": { "number": 9 } })),
            404,
            "pull_request_not_in_queue",
            None,
        ),
        (
            "getSubmittedPullRequest",
            &with(json!({ "pr": { "number": 9 } })),
            404,
            "pull_request_not_in_queue",
            None,
        ),
        (
            "getSubmittedPullRequest",
            &with(json!({ "pr": {} })),
            400,
            "validation_failed",
            Some("/pr"),
        ),
        (
            "getSubmittedPullRequest",
            &with(json!({ "pr": { "number": 1, "branch": "x" } })),
            400,
            "validation_failed",
            Some("/pr"),
        ),
        (
            "setImpactedTargets",
            &with(json!({ "pr": { "number": 1 }, "impactedTargets": "SOME" })),
            400,
            "validation_failed",
            Some("/impactedTargets"),
        ),
        (
            "setImpactedTargets",
            &with(json!({ "pr": { "number": 1, "sha": "xyz" }, "impactedTargets": [] })),
            400,
            "validation_failed",
            Some("/pr/sha"),
        ),
        (
            "updateQueue",
            &with(json!({ "concurrency": 1001 })),
            400,
            "validation_failed",
            Some("/concurrency"),
        ),
        (
            "updateQueue",
            &with(json!({ "concurrency": "three" })),
            400,
            "validation_failed",
            Some("/concurrency"),
        ),
        (
            "updateQueue",
            &with(json!({ "state": "SWITCHING_MODES" })),
            400,
            "validation_failed",
            Some("/state"),
        ),
        (
            "getMergeQueueTestingDetails",
            &with(json!({ "testRunId": "nope" })),
            404,
            "test_run_not_found",
            None,
        ),
        ("noSuchThing", PLACE, 404, "path_not_found", None),
    ] {
        let reply = post(&system, &format!("/v1/{path}"), body).await;
        assert_eq!(
            (reply.status, reply.code().as_str()),
            (status, code),
            "{path} {body}: {}",
            reply.text
        );
        assert_eq!(reply.header("content-type"), "application/problem+json");
        let problem = reply.json();
        assert_eq!(problem["status"], status);
        assert_eq!(problem["request_id"], reply.header("x-request-id").as_str());
        let pointed = pointer.map_or(Value::Null, |it| json!(it));
        assert_eq!(problem["errors"][0]["pointer"], pointed, "{path} {body}: {problem}");
    }
    let both = PLACE.replace("main", "a..b").replace("acme", "../x");
    let problem = post(&system, "/v1/getQueue", &both).await.json();
    assert_eq!(problem["errors"].as_array().map(Vec::len), Some(2), "both are reported: {problem}");
}

#[tokio::test]
async fn methods_content_types_and_sizes_are_checked() {
    let system = system().await;
    let token = ("x-api-token", system.token().to_owned());
    let token = (token.0, token.1.as_str());
    let json = ("content-type", "application/json");
    let reply = system.send(Method::GET, "/v1/getQueue", &[token], String::new()).await;
    assert_eq!((reply.status, reply.header("allow")), (405, "POST".into()));
    let reply =
        system.send(Method::DELETE, "/v1/getMergeQueueMetrics", &[token], String::new()).await;
    assert_eq!((reply.status, reply.header("allow")), (405, "GET, HEAD".into()));
    for content_type in [None, Some("text/plain"), Some("application/x-www-form-urlencoded")] {
        let mut headers = vec![token];
        headers.extend(content_type.map(|it| ("content-type", it)));
        let reply = system.send(Method::POST, "/v1/getQueue", &headers, PLACE.into()).await;
        assert_eq!((reply.status, reply.code()), (415, "unsupported_content_type".into()));
    }
    let utf8 = ("content-type", "application/json; charset=utf-8");
    let reply = system.send(Method::POST, "/v1/getQueue", &[token, utf8], PLACE.into()).await;
    assert_eq!(reply.status, 200);
    let huge = with(json!({ "padding": "x".repeat(20 * 1024 * 1024) }));
    let reply = system.send(Method::POST, "/v1/getQueue", &[token, json], huge).await;
    assert_eq!((reply.status, reply.code()), (413, "body_too_large".into()));
    let bearer = format!("Bearer {}", system.token());
    let headers =
        [("authorization", bearer.as_str()), ("x-api-token", ""), json, ("x-request-id", "mine-1")];
    let reply = system.send(Method::POST, "//v1//getQueue/", &headers, PLACE.into()).await;
    assert_eq!((reply.status, reply.header("x-request-id")), (200, "mine-1".into()));
    assert_eq!(reply.header("x-content-type-options"), "nosniff");
    assert_eq!(reply.header("strict-transport-security"), "", "the public address has no https");
    let bad = [token, ("x-request-id", "a b\"c")];
    let reply = system.send(Method::GET, "/v1/status", &bad, String::new()).await;
    assert_ne!(reply.header("x-request-id"), "a b\"c");
    assert_eq!(reply.json()["overallStatus"]["type"], "up");
    for query in ["?repo=acme/calc", "?repo=calc&repoHost=git.local"] {
        let path = format!("/v1/getMergeQueueMetrics{query}");
        let reply = system.send(Method::GET, &path, &[token], String::new()).await;
        assert_eq!(reply.status, 400, "{query}");
    }
    let path = "/v1/getMergeQueueMetrics?repo=acme/calc&repoHost=git.local";
    let reply = system.send(Method::GET, path, &[token], String::new()).await;
    assert_eq!(reply.header("content-type"), "text/plain; version=0.0.4; charset=utf-8");
}

#[tokio::test]
async fn words_come_in_the_case_that_the_token_asks_for_and_go_in_any() {
    let system = system().await;
    let lower = system.token_with(&["--org", "acme", "--enum-case", "lower"]).1;
    let pr = system.pull_request("first", &[("first.txt", "1\n")]);
    let paused = json!({ "state": "pAuSeD", "mergeMethod": "merge_COMMIT", "pendingFailureDepth": 0,
        "batch": true, "deleteRequiredStatuses": true, "unknownKey": 1, "mode": null });
    let upper = system.call("updateQueue", paused).await;
    assert_eq!(upper["state"], "PAUSED");
    assert_eq!(upper["mergeMethod"], "MERGE_COMMIT");
    assert!(upper.get("enqueuedPullRequests").is_none());
    system.submit(pr).await;
    let headers = [("x-api-token", lower.as_str()), ("content-type", "application/json")];
    let read = async |path: &str, body: String| {
        let reply = system.send(Method::POST, path, &headers, body).await;
        assert_eq!(reply.status, 200, "{}", reply.text);
        reply.json()
    };
    let queue = read("/v1/getQueue", PLACE.into()).await;
    for (key, value) in [
        ("state", json!("paused")),
        ("mode", json!("single")),
        ("mergeMethod", json!("merge_commit")),
        ("directMergeMode", json!("off")),
        ("optimizationMode", json!("off")),
        ("testBranchConstructionMode", json!("rename_temp_branch")),
        ("branch", json!("main")),
        ("concurrency", json!(1)),
        ("bisectionConcurrency", json!(1)),
        ("testingTimeoutMinutes", json!(300)),
        ("notReadyTimeoutHours", json!(24)),
        ("requiredStatuses", json!([])),
        ("batch", json!(true)),
        ("canOptimisticallyMerge", json!(false)),
        ("pendingFailureDepth", json!(0)),
        ("createPrsForTestingBranches", json!(true)),
        ("commentsEnabled", json!(true)),
        ("commandsEnabled", json!(true)),
        ("statusCheckEnabled", json!(true)),
        ("stateLabelsEnabled", json!(false)),
        ("allowedBotSubmitters", json!([])),
        ("batchingRules", json!([])),
    ] {
        assert_eq!(queue[key], value, "{key}");
    }
    let listed = &queue["enqueuedPullRequests"][0];
    assert_eq!((&listed["state"], &listed["prNumber"]), (&json!("not_ready"), &json!(1)));
    let query = with(json!({ "pr": { "branch": "first" } }));
    let entry = read("/v1/getSubmittedPullRequest", query).await;
    let readiness = json!({ "hasImpactedTargets": false, "requiresImpactedTargets": false,
        "doesBaseBranchMatch": true, "gitHubMergeability": "mergeable" });
    assert_eq!(entry["readiness"], readiness);
    for (key, value) in [
        ("state", json!("not_ready")),
        ("priorityValue", json!(100)),
        ("priorityName", json!("medium")),
        ("usedDefaultPriorityName", json!("medium")),
        ("skipTheLine", json!(false)),
        ("noBatch", json!(false)),
        ("forceEnqueued", json!(false)),
        ("isCurrentlySubmittedToQueue", json!(true)),
        ("verifiedByTestRun", Value::Null),
        ("prTitle", json!("change first")),
        ("prBaseBranch", json!("main")),
        ("prAuthor", json!("Ada")),
        ("exit", Value::Null),
    ] {
        assert_eq!(entry[key], value, "{key}");
    }
    let id = entry["id"].clone();
    let again = with(json!({ "pr": { "number": "1" }, "priority": "high", "noBatch": true }));
    assert_eq!(read("/v1/submitPullRequest", again).await, json!({}));
    let entry = system.entry(pr).await;
    assert_eq!(
        (&entry["priorityValue"], &entry["noBatch"], &entry["id"]),
        (&json!(10), &json!(true), &id)
    );
    system.call("updateQueue", json!({ "state": "RUNNING" })).await;
    system.until_state(pr, "MERGED").await;
    let query = with(json!({ "pr": { "number": 1 } }));
    assert_eq!(read("/v1/getSubmittedPullRequest", query).await["state"], "merged");
    let (status, problem) =
        system.try_call("submitPullRequest", json!({ "pr": { "number": pr } })).await;
    assert_eq!((status, &problem["code"]), (409, &json!("pull_request_not_open")));
}

#[tokio::test]
async fn half_a_million_targets_are_taken_and_all_stands_for_everything() {
    let system = system().await;
    let pr = system.pull_request("first", &[("first.txt", "1\n")]).to_string();
    let targets: Vec<String> = (0..500_000).map(|number| format!("//pkg/{number}")).collect();
    let report = |targets: Value| json!({ "pr": { "number": pr }, "impactedTargets": targets });
    assert_eq!(system.call("setImpactedTargets", report(json!(targets))).await, json!({}));
    for all in ["ALL", "IMPACTS_ALL"] {
        system.call("setImpactedTargets", report(json!(all))).await;
    }
    system.call("setImpactedTargets", report(json!([""]))).await;
    let unknown = json!({ "pr": { "number": 99 }, "impactedTargets": ["//a"] });
    let (status, problem) = system.try_call("setImpactedTargets", unknown).await;
    assert_eq!((status, &problem["code"]), (404, &json!("pull_request_not_found")));
}
