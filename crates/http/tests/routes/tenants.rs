//! No operation reveals anything about other organizations, or about repositories outside of a
//! token. The operations are those of the description, so none is forgotten.

use actix_web::test::TestRequest;
use serde_json::{Value, json};
use signalbox_domain::ids::TokenId;
use signalbox_domain::time::Span;
use signalbox_domain::token::{Scope, TokenText};

use crate::flaky_lists::make_flaky;
use crate::support::{Grant, Reply, Server, calc, method};

struct Operation {
    method: String,
    path: String,
    id: String,
    tag: String,
    body: Value,
}

/// The operations that need no token. The address of a bundle has a secret instead.
const WITHOUT_TOKEN: [&str; 6] = [
    "getEventSchema",
    "getOpenApi",
    "getStatus",
    "listEventSchemas",
    "receiveBundle",
    "uploadMetrics",
];

fn operations() -> Vec<Operation> {
    let document: Value = serde_json::from_str(&crate::support::document()).expect("JSON");
    let mut operations = Vec::new();
    for (path, item) in document["paths"].as_object().expect("paths") {
        for (method, operation) in item.as_object().expect("operations") {
            if !operation["security"].is_array() {
                let name = operation["operationId"].as_str().expect("a name");
                assert!(WITHOUT_TOKEN.contains(&name), "{name} needs no token");
                continue;
            }
            let schema = &operation["requestBody"]["content"]["application/json"]["schema"]["$ref"];
            let body = schema.as_str().map_or(Value::Null, |name| {
                let mut body = document.pointer(&name[1..]).expect("a schema")["example"].clone();
                body["repo"] = json!({"host": "git.test", "owner": "acme", "name": "calc"});
                body
            });
            let id = "00000000-0000-0000-0000-000000000001";
            let mut path = path.replace("{run}", id).replace("{upload}", id);
            let parameters = operation["parameters"].as_array().into_iter().flatten();
            let required = parameters.filter(|it| it["in"] == "query" && it["required"] == true);
            let given = required.map(|parameter| {
                let name = parameter["name"].as_str().expect("a name");
                let value = if name == "targetBranch" { "main" } else { "git.test/acme/calc" };
                format!("{name}={value}")
            });
            let query: Vec<String> = given.collect();
            if !query.is_empty() {
                path = format!("{path}?{}", query.join("&"));
            }
            operations.push(Operation {
                method: method.clone(),
                path: path.replace("{name}", "test"),
                tag: operation["tags"][0].as_str().unwrap_or_default().to_owned(),
                id: operation["operationId"].as_str().expect("a name").to_owned(),
                body,
            });
        }
    }
    assert!(operations.len() >= 12, "{}", operations.len());
    operations
}

impl Operation {
    async fn call(&self, server: &Server, token: Option<&str>) -> Reply {
        let mut request = TestRequest::default().method(method(&self.method)).uri(&self.path);
        if let Some(token) = token {
            request = request.insert_header(("x-api-token", token));
        }
        if !self.body.is_null() {
            request = request.set_json(&self.body);
        }
        server.call(request).await
    }
}

#[actix_web::test]
async fn without_a_good_token_there_is_nothing_whatever_is_wrong_with_it() {
    let server = Server::new().await;
    let expired = Grant { expires_at: Some(server.api.clock.now()), ..Grant::default() };
    let expired = server.grant(expired).await;
    let revoked = server.grant(Grant::default()).await;
    let hash = TokenText::parse(&revoked).expect("a text").hash();
    let TokenId(id) =
        server.stores.account.tokens.find_by_hash(hash).await.expect("read").expect("a token").id;
    let now = server.api.clock.now();
    assert!(
        server
            .stores
            .account
            .tokens
            .revoke(TokenId(id), now, uuid::Uuid::from_u128(1))
            .await
            .expect("revoked")
    );
    let unknown = TokenText::from_random([9; 20]).reveal().to_owned();
    let mut mistyped = server.token.clone();
    mistyped.pop();
    for operation in operations() {
        let bare = operation.call(&server, None).await;
        bare.is_unauthorized();
        for token in ["", "nonsense", &expired, &revoked, &unknown, &mistyped] {
            let reply = operation.call(&server, Some(token)).await;
            reply.is_unauthorized();
            let names = |reply: &Reply| {
                reply.headers.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>()
            };
            assert_eq!(names(&reply), names(&bare), "{}", operation.id);
        }
    }
}

#[actix_web::test]
async fn a_token_is_refused_within_a_second_of_its_end() {
    let server = Server::new().await;
    let hash = TokenText::parse(&server.token).expect("a text").hash();
    let id =
        server.stores.account.tokens.find_by_hash(hash).await.expect("read").expect("a token").id;
    assert_eq!(server.post("getQueue", json!({})).await.status, 200);
    let now = server.api.clock.now();
    assert!(
        server
            .stores
            .account
            .tokens
            .revoke(id, now, uuid::Uuid::from_u128(2))
            .await
            .expect("revoked")
    );
    server.clock.advance(Span::seconds(1));
    server.post("getQueue", json!({})).await.is_unauthorized();
}

#[actix_web::test]
async fn another_organization_finds_nothing() {
    let server = Server::new().await;
    let pr = server.submitted("b").await;
    assert_eq!(pr, 1);
    make_flaky(&server, 1, &["adds"]).await;
    let own = server.ok("webhooks/create", json!({"url": "https://acme.test/own"})).await;
    let before = server.ok("flaky-tests/list-monitors", json!({})).await;
    let token = server.grant(Grant { org: "other", ..Grant::default() }).await;
    for mut operation in operations() {
        if operation.body["webhookId"].is_string() {
            operation.body["webhookId"] = own["webhook"]["id"].clone();
        }
        let reply = operation.call(&server, Some(&token)).await;
        match operation.id.as_str() {
            // Its own: empty, and a queue of its own under the same name.
            "getMergeQueueMetrics" => assert_eq!((reply.status, reply.body.as_str()), (200, "")),
            "createQueue" => {
                assert_eq!(reply.status, 200, "{}", reply.body);
                let request = json!({});
                server.post_as(&token, "deleteQueue", request).await.json();
            }
            "getCheckOutput" => drop(reply.problem(404, "check_output_not_found")),
            "listEvents" => assert_eq!(reply.json()["events"], json!([])),
            "streamEvents" => assert!(reply.status == 200 && !reply.body.contains("pull_request")),
            "getTestUpload" => drop(reply.problem(404, "upload_not_found")),
            // It comes before operations that write: its own log is empty.
            "listAuditRecords" => assert_eq!(reply.json()["records"], json!([])),
            // The uploader fails a CI job when the reply is "not found".
            "createBundleUpload" => drop(reply.problem(422, "upload_refused")),
            "getQuarantineConfig" => assert_eq!(reply.json()["testIds"], json!([])),
            // A repository of its own under the same name, with no uploads in it.
            "uploadTestReports" => drop(reply.problem(415, "unsupported_content_type")),
            "listQueues" => assert_eq!(reply.json()["queues"], json!([])),
            "listTestUploads" => assert_eq!(reply.json()["uploads"], json!([])),
            "createWebhook" | "listWebhooks" => {
                assert!(!reply.body.contains("acme.test/own"), "{}", reply.body);
            }
            _ if operation.tag == "webhooks" => drop(reply.problem(404, "webhook_not_found")),
            // Its own repository of the same name, which has no tests.
            _ if operation.tag == "flaky tests" => {
                let nothing = reply.status == 404 || !reply.body.contains("adds");
                assert!(nothing, "{}: {}", operation.id, reply.body);
            }
            _ => drop(reply.problem(404, "merge_queue_not_found")),
        }
    }
    assert_eq!(server.entry(pr).await["state"], "TESTING", "nothing happened to the first");
    let monitors = server.ok("flaky-tests/list-monitors", json!({})).await;
    assert_eq!(monitors, before, "no monitor came, went or changed");
}

#[actix_web::test]
async fn to_a_limited_token_other_repositories_do_not_exist() {
    let server = Server::new().await;
    server.submitted("b").await;
    let mut elsewhere = calc();
    elsewhere.name = "elsewhere".to_owned();
    let token = server.grant(Grant { repos: vec![elsewhere], ..Grant::default() }).await;
    for operation in operations() {
        let reply = operation.call(&server, Some(&token)).await;
        match operation.id.as_str() {
            "getMergeQueueMetrics" => assert_eq!((reply.status, reply.body.as_str()), (200, "")),
            "getCheckOutput" => drop(reply.problem(404, "check_output_not_found")),
            "listEvents" => assert_eq!(reply.json()["events"], json!([])),
            "streamEvents" => assert!(reply.status == 200 && !reply.body.contains("pull_request")),
            "getTestUpload" => drop(reply.problem(404, "upload_not_found")),
            _ if operation.tag == "webhooks" => drop(reply.problem(403, "limited_token")),
            "listAuditRecords" => assert_eq!(reply.json()["records"], json!([])),
            // The uploader fails a CI job when the reply is "not found".
            "createBundleUpload" => drop(reply.problem(422, "upload_refused")),
            "getQuarantineConfig" => assert_eq!(reply.json()["testIds"], json!([])),
            _ => {
                let problem = reply.problem(404, "repository_not_found");
                assert_eq!(problem["detail"], "repository git.test/acme/calc not found");
            }
        }
    }
}

#[actix_web::test]
async fn failures_of_a_run_need_two_scopes() {
    let server = Server::new().await;
    let operation = operations().into_iter().find(|it| it.id == "listFailuresOfTestRun");
    let operation = operation.expect("an operation");
    for (held, lacks) in
        [(Scope::QueueRead, Scope::TestsRead), (Scope::TestsRead, Scope::QueueRead)]
    {
        let token = server.grant(Grant { scopes: vec![held], ..Grant::default() }).await;
        let problem = operation.call(&server, Some(&token)).await.problem(403, "missing_scope");
        assert_eq!(problem["detail"], format!("this token lacks the scope {}", lacks.as_str()));
    }
}

#[actix_web::test]
async fn each_operation_needs_its_scope_and_no_other() {
    let server = Server::new().await;
    for operation in operations() {
        let needed = match operation.id.as_str() {
            "createQueue"
            | "createWebhook"
            | "deleteQueue"
            | "deleteWebhook"
            | "getWebhook"
            | "listAuditRecords"
            | "listWebhookDeliveries"
            | "listWebhooks"
            | "replayWebhook"
            | "rotateWebhookSecret"
            | "testWebhook"
            | "updateQueue"
            | "updateWebhook" => Scope::QueueAdmin,
            "explainFailure"
            | "getCheckOutput"
            | "getMergeQueueMetrics"
            | "getMergeQueueTestingDetails"
            | "getQueue"
            | "getSubmittedPullRequest"
            | "getSubmittedPullRequests"
            | "listMergeQueueTestingResults"
            | "listPullRequests"
            | "listQueues"
            | "simulate" => Scope::QueueRead,
            "submitPullRequest"
            | "cancelPullRequest"
            | "restartTestsOnPullRequest"
            | "setImpactedTargets" => Scope::QueueSubmit,
            // One needs two, see above; for the others, one of two is enough: see `events`.
            "listFailuresOfTestRun" | "getQuarantineConfig" | "listEvents" | "streamEvents" => {
                continue;
            }
            "reportCheckResult" => Scope::ChecksReport,
            "uploadTestReports" | "createCiRun" | "createBundleUpload" => Scope::TestsUpload,
            "getFlakySettings"
            | "getFlakySettingsHistory"
            | "getTestDetails"
            | "getTestHistory"
            | "getTestUpload"
            | "listFailingTests"
            | "listIncidents"
            | "listMonitors"
            | "listQuarantinedTests"
            | "listTestUploads"
            | "listUnhealthyTests"
            | "previewMonitor" => Scope::TestsRead,
            "createMonitor"
            | "decideIncident"
            | "deleteMonitor"
            | "finishImport"
            | "flagTest"
            | "importTestReports"
            | "linkTicketToTestCase"
            | "muteMonitor"
            | "overrideQuarantine"
            | "updateFlakySettings"
            | "updateMonitor" => Scope::TestsAdmin,
            unknown => panic!("which scope does {unknown} need?"),
        };
        let all_others = Scope::ALL.into_iter().filter(|scope| *scope != needed).collect();
        for scopes in [all_others, Vec::new()] {
            let token = server.grant(Grant { scopes, ..Grant::default() }).await;
            let problem = operation.call(&server, Some(&token)).await.problem(403, "missing_scope");
            let words = format!("this token lacks the scope {}", needed.as_str());
            assert_eq!(problem["detail"], words, "{}", operation.id);
        }
        let scopes = vec![needed];
        let token = server.grant(Grant { scopes, ..Grant::default() }).await;
        let reply = operation.call(&server, Some(&token)).await;
        assert!(!matches!(reply.status, 401 | 403), "{}: {}", operation.id, reply.body);
        if operation.id == "deleteQueue" {
            server.ok("createQueue", json!({})).await;
        }
    }
}
