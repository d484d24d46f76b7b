//! `POST /v1/explainFailure`.

use serde_json::{Value, json};
use signalbox_domain::token::Scope;

use crate::support::{Grant, Server};

async fn explained(server: &Server, pr: u32) -> Value {
    server.ok("explainFailure", json!({"pr": {"number": pr}})).await
}

#[actix_web::test]
async fn a_failed_check_comes_with_its_output_and_the_next_step() {
    let server = Server::new().await;
    let pr = server.submitted("bad").await;
    server.settle().await;
    let entry = server.entry(pr).await;
    let reply = explained(&server, pr).await;
    assert_eq!((&reply["prNumber"], &reply["state"]), (&json!(pr), &json!("FAILED")));
    assert_eq!((&reply["exit"], &reply["reason"]), (&entry["exit"], &entry["reason"]));
    assert_eq!(reply["testedTogether"], json!([pr]));
    let check = &reply["failedChecks"][0];
    assert_eq!((&check["name"], &check["required"]), (&json!("test"), &json!(true)));
    assert_eq!(
        (&check["conclusion"], &check["output"]),
        (&json!("FAILURE"), &json!("test: FAILURE"))
    );
    assert_eq!(check["isOutputCut"], json!(false));
    assert_eq!(reply["failedChecks"][1], Value::Null, "only what failed");
    assert_eq!((&reply["failedTests"], &reply["failedTestsCount"]), (&json!([]), &json!(0)));
    assert_eq!(reply["nextStep"]["kind"], json!("fix_checks"));
    let run = reply["testRunId"].as_str().expect("a run");
    let output = server.get(&format!("/v1/testRuns/{run}/checks/test/output")).await;
    assert_eq!(output.body.trim_end(), check["output"].as_str().expect("an output"));
}

#[actix_web::test]
async fn what_has_not_failed_has_no_next_step() {
    let server = Server::new().await;
    let pr = server.submitted("good").await;
    let waiting = explained(&server, pr).await;
    assert_eq!((&waiting["exit"], &waiting["nextStep"]), (&Value::Null, &Value::Null));
    server.settle().await;
    let merged = explained(&server, pr).await;
    assert_eq!(merged["state"], json!("MERGED"));
    assert_eq!((&merged["failedChecks"], &merged["nextStep"]), (&json!([]), &Value::Null));
    let never = server.post("explainFailure", json!({"pr": {"number": 99}})).await;
    never.problem(404, "pull_request_not_in_queue");
}

#[actix_web::test]
async fn tests_need_their_own_right() {
    let server = Server::new().await;
    let pr = server.submitted("bad").await;
    server.settle().await;
    let token = server.grant(Grant { scopes: vec![Scope::QueueRead], ..Grant::default() }).await;
    let reply = server.post_as(&token, "explainFailure", json!({"pr": {"number": pr}})).await;
    let reply: Value = serde_json::from_str(&reply.body).expect("JSON");
    assert_eq!(reply["nextStep"]["kind"], json!("fix_checks"));
    assert_eq!((reply.get("failedTests"), reply.get("failedTestsCount")), (None, None));
}
