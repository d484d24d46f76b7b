//! `GET /v1/getMergeQueueMetrics`.

use actix_web::test::TestRequest;
use serde_json::json;

use crate::support::{Grant, Server, calc};

const PATH: &str = "/v1/getMergeQueueMetrics";

#[actix_web::test]
async fn metrics_are_text_for_scrapers() {
    let server = Server::new().await;
    server.submitted("b").await;
    for query in
        ["", "?repo=acme/calc&repoHost=git.test", "?repo=acme%2Fcalc&repoHost=git.test&x=1"]
    {
        let reply = server.get(&format!("{PATH}{query}")).await;
        assert_eq!(reply.status, 200, "{reply:?}");
        let text = "text/plain; version=0.0.4; charset=utf-8";
        assert_eq!(reply.header("content-type"), Some(text));
        assert!(reply.body.starts_with("mq_depth_current 1"), "{}", reply.body);
    }
}

#[actix_web::test]
async fn a_repository_needs_its_host() {
    let server = Server::new().await;
    for (query, pointers) in [
        ("?repo=acme/calc", ["/repoHost"]),
        ("?repo=acme/calc&repoHost=", ["/repoHost"]),
        ("?repo=calc&repoHost=git.test", ["/repo"]),
        ("?repo=calc&repoHost=git.test/acme", ["/repo"]),
        ("?repo=acme/calc&repoHost=git%20test", ["/repoHost"]),
        ("?repo=acme/calc&repo=acme/other&repoHost=git.test", ["/repo"]),
    ] {
        assert_eq!(server.get(&format!("{PATH}{query}")).await.pointers(), pointers, "{query}");
    }
    let reply = server.get(&format!("{PATH}?repo=acme/nope&repoHost=git.test")).await;
    reply.problem(404, "repository_not_found");
}

#[actix_web::test]
async fn another_organization_and_a_limited_token_see_only_their_own() {
    let server = Server::new().await;
    server.ok("createQueue", json!({"targetBranch": "dev"})).await;
    let other = Grant { org: "other", ..Grant::default() };
    let mut elsewhere = calc();
    elsewhere.name = "elsewhere".to_owned();
    let limited = Grant { repos: vec![elsewhere], ..Grant::default() };
    for grant in [other, limited] {
        let token = server.grant(grant).await;
        let request = TestRequest::get().uri(PATH).insert_header(("x-api-token", token));
        let reply = server.call(request).await;
        assert_eq!((reply.status, reply.body.as_str()), (200, ""));
    }
}
