//! `POST /v1/getSubmittedPullRequests`.

use serde_json::{Value, json};
use signalbox_domain::token::EnumCase;

use crate::support::{Grant, Server};

const OPERATION: &str = "getSubmittedPullRequests";

#[actix_web::test]
async fn found_ones_equal_single_lookups_and_the_others_are_listed() {
    let server = Server::new().await;
    let merged = server.submitted("b").await;
    server.settle().await;
    let live = server.submitted("c").await;
    let never = server.open("d").0;
    let asked = [live, never, merged, 77, live, never];
    let prs: Vec<Value> = asked.iter().map(|pr| json!({"number": pr})).collect();
    let reply = server.ok(OPERATION, json!({"prs": prs})).await;
    assert_eq!(reply["notFound"], json!([never, 77]));
    let alone = json!([server.entry(live).await, server.entry(merged).await]);
    assert_eq!(reply["pullRequests"], alone, "in the order of the request, each once");
    let none = server.ok(OPERATION, json!({"prs": [{"number": "77"}]})).await;
    assert_eq!(none, json!({"pullRequests": [], "notFound": [77]}));
}

#[actix_web::test]
async fn words_follow_the_case_of_the_token() {
    let server = Server::new().await;
    let pr = server.submitted("b").await;
    let token = server.grant(Grant { case: EnumCase::Lower, ..Grant::default() }).await;
    let body = json!({"prs": [{"number": pr}]});
    let reply = server.post_as(&token, OPERATION, body).await.json();
    assert_eq!(reply["pullRequests"][0]["state"], "testing");
}

#[actix_web::test]
async fn one_to_fifty_numbers_are_taken() {
    let server = Server::new().await;
    let many = |count: u32| json!({"prs": vec![json!({"number": 1}); count as usize]});
    assert_eq!(server.post(OPERATION, many(50)).await.status, 200);
    for body in [json!({}), many(0), many(51), many(5000), json!({"prs": {"number": 1}})] {
        assert_eq!(server.post(OPERATION, body).await.pointers(), ["/prs"]);
    }
    let wrong = json!({
        "prs": [{"number": 1}, 2, {"number": -3}, {"branch": "fix"}, null], "includeTimeline": "yes"
    });
    let pointers = ["/prs/1", "/prs/2/number", "/prs/3/number", "/prs/4", "/includeTimeline"];
    assert_eq!(server.post(OPERATION, wrong).await.pointers(), pointers);
}
