//! What holds for every request: paths, methods, bodies, headers, request ids.

use actix_web::test::TestRequest;
use serde_json::json;

use crate::support::{Server, method};

fn body() -> String {
    json!({
        "repo": {"host": "git.test", "owner": "acme", "name": "calc"}, "targetBranch": "main"
    })
    .to_string()
}

fn get_queue(server: &Server) -> TestRequest {
    TestRequest::post()
        .uri("/v1/getQueue")
        .insert_header(("x-api-token", server.token.as_str()))
        .insert_header(("content-type", "application/json"))
        .set_payload(body())
}

#[actix_web::test]
async fn doubled_slashes_and_one_at_the_end_change_nothing() {
    let server = Server::new().await;
    for path in ["/v1/getQueue", "//v1//getQueue", "/v1/getQueue/", "/v1///getQueue//"] {
        assert_eq!(server.call(get_queue(&server).uri(path)).await.status, 200, "{path}");
    }
}

#[actix_web::test]
async fn an_unknown_path_is_a_problem() {
    let server = Server::new().await;
    for path in ["/v1/nothing", "/v1", "/", "/v2/getQueue", "/v1/getQueue/x", "/metrics"] {
        server.get(path).await.problem(404, "path_not_found");
    }
}

#[actix_web::test]
async fn another_method_is_refused_with_the_allowed_one() {
    let server = Server::new().await;
    for name in ["get", "head", "put", "delete", "patch", "options", "trace"] {
        let request = get_queue(&server).method(method(name));
        let reply = server.call(request).await;
        reply.problem(405, "method_not_allowed");
        assert_eq!(reply.header("allow"), Some("POST"), "{name}");
    }
    for name in ["post", "put", "options", "trace"] {
        let request = get_queue(&server).method(method(name)).uri("/v1/getMergeQueueMetrics");
        let reply = server.call(request).await;
        reply.problem(405, "method_not_allowed");
        assert_eq!(reply.header("allow"), Some("GET, HEAD"), "{name}");
    }
    let head = get_queue(&server).method(method("head")).uri("/v1/getMergeQueueMetrics");
    assert_eq!(server.call(head).await.status, 200);
}

#[actix_web::test]
async fn the_content_type_is_json() {
    let server = Server::new().await;
    for good in ["application/json; charset=utf-8", "Application/JSON", "application/merge+json"] {
        let request = get_queue(&server).insert_header(("content-type", good));
        assert_eq!(server.call(request).await.status, 200, "{good}");
    }
    for bad in
        ["text/plain", "application/x-www-form-urlencoded", "application/jsonp", "text/x+json"]
    {
        let request = get_queue(&server).insert_header(("content-type", bad));
        server.call(request).await.problem(415, "unsupported_content_type");
    }
    let none = TestRequest::post()
        .uri("/v1/getQueue")
        .insert_header(("x-api-token", server.token.as_str()))
        .set_payload(body());
    server.call(none).await.problem(415, "unsupported_content_type");
    let packed = get_queue(&server).insert_header(("content-encoding", "gzip"));
    server.call(packed).await.problem(415, "unsupported_content_type");
}

#[actix_web::test]
async fn a_body_that_is_no_json_is_malformed() {
    let server = Server::new().await;
    let bad: [&[u8]; 7] =
        [b"", b" ", b"{", b"{\"repo\": }", b"{} {}", b"{\"a\": \"\xff\"}", b"nonsense"];
    for bytes in bad {
        let request = get_queue(&server).set_payload(bytes);
        server.call(request).await.problem(400, "malformed_body");
    }
    let deep = "[".repeat(10_000);
    server.call(get_queue(&server).set_payload(deep)).await.problem(400, "malformed_body");
    let twice = r#"{"repo": {}, "repo": {}}"#;
    server.call(get_queue(&server).set_payload(twice)).await.problem(400, "malformed_body");
    for other in ["[]", "7", "null", "\"x\"", "true"] {
        let reply = server.call(get_queue(&server).set_payload(other)).await;
        assert_eq!(reply.pointers(), [""], "{other}");
    }
}

#[actix_web::test]
async fn twenty_mebibytes_are_taken_and_one_more_byte_is_not() {
    const LIMIT: usize = 20 * 1024 * 1024;
    let server = Server::new().await;
    let padded = |length: usize| {
        let body = body();
        let pad = " ".repeat(length - body.len());
        body + &pad
    };
    assert_eq!(server.call(get_queue(&server).set_payload(padded(LIMIT))).await.status, 200);
    let chunked = get_queue(&server).set_payload(padded(LIMIT + 1));
    server.call(chunked).await.problem(413, "body_too_large");
    let declared = get_queue(&server).insert_header(("content-length", LIMIT + 1));
    server.call(declared).await.problem(413, "body_too_large");
}

#[actix_web::test]
async fn authentication_comes_before_validation() {
    let server = Server::new().await;
    for payload in ["{", "", "nonsense"] {
        let request = TestRequest::post().uri("/v1/getQueue").set_payload(payload);
        server.call(request).await.is_unauthorized();
    }
    let long =
        TestRequest::post().uri("/v1/getQueue").insert_header(("content-length", 1_u64 << 40));
    server.call(long).await.is_unauthorized();
}

#[actix_web::test]
async fn a_token_comes_in_either_header_and_the_own_one_counts_first() {
    let server = Server::new().await;
    let path = "/v1/getMergeQueueMetrics";
    let request = |own: Option<&str>, bearer: Option<String>| {
        let mut request = TestRequest::get().uri(path);
        if let Some(own) = own {
            request = request.insert_header(("x-api-token", own));
        }
        if let Some(bearer) = bearer {
            request = request.insert_header(("authorization", bearer));
        }
        server.call(request)
    };
    let token = server.token.as_str();
    let bearer = Some(format!("bearer {token}"));
    assert_eq!(request(Some(token), None).await.status, 200);
    assert_eq!(request(None, bearer.clone()).await.status, 200);
    assert_eq!(request(Some(""), bearer.clone()).await.status, 200);
    request(Some("wrong"), bearer).await.is_unauthorized();
    request(None, Some(format!("Basic {token}"))).await.is_unauthorized();
    request(None, Some(token.to_owned())).await.is_unauthorized();
}

#[actix_web::test]
async fn request_ids_are_accepted_or_created_and_always_returned() {
    let server = Server::new().await;
    let good = "a".repeat(128);
    for id in ["r-1.2_3", &good] {
        let reply = server.call(get_queue(&server).insert_header(("x-request-id", id))).await;
        assert_eq!(reply.header("x-request-id"), Some(id));
    }
    let long = "a".repeat(129);
    for id in ["", "a b", "ä", "<x>", &long] {
        let request = TestRequest::get().uri("/v1/nothing").insert_header(("x-request-id", id));
        let reply = server.call(request).await;
        let made = reply.header("x-request-id").expect("an id");
        assert!(made != id && made.len() == 36, "{made}");
    }
    let refused = server.call(TestRequest::get().uri("/v1/getMergeQueueMetrics")).await;
    refused.is_unauthorized();
    assert!(refused.header("x-request-id").is_some());
}

#[actix_web::test]
async fn every_reply_forbids_guessing_and_keeping() {
    let server = Server::new().await;
    let nothing = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
    for path in ["/v1/status", "/v1/nothing", "/v1/getMergeQueueMetrics", "/healthz", "/readyz"] {
        let request = TestRequest::get().uri(path);
        let reply = server.call(request.insert_header(("origin", "https://evil.test"))).await;
        assert_eq!(reply.header("content-security-policy"), Some(nothing));
        assert_eq!(reply.header("referrer-policy"), Some("no-referrer"));
        let kind = reply.header("content-type").expect("a type");
        let is_text = kind == "text/plain; charset=utf-8";
        assert!(is_text || ["application/json", "application/problem+json"].contains(&kind));
        assert_eq!(reply.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(reply.header("cache-control"), Some("no-store"));
        assert_eq!(reply.header("access-control-allow-origin"), None);
    }
}

#[actix_web::test]
async fn requests_are_counted_by_operation_not_by_path() {
    let server = Server::new().await;
    server.get("/v1/getMergeQueueMetrics").await;
    server.get("/v1/testRuns/x/checks/y/output").await;
    server.get("/v1/secret").await;
    let seen = server.seen.0.lock().expect("not poisoned").split_off(1);
    let expected = [("getMergeQueueMetrics", 200), ("getCheckOutput", 404), ("unknown", 404)];
    assert_eq!(seen, expected.map(|(operation, status)| (operation.to_owned(), status)));
}

#[actix_web::test]
async fn the_character_nul_is_refused_wherever_it_is() {
    let server = Server::new().await;
    for address in ["/v1/audit?object=%00", "/v1/audit?x%00y=1", "/v1/events/a%00b/schema", "/x%00"]
    {
        server.get(address).await.problem(400, "validation_failed");
    }
    let body = json!({"state": "PAUSED", "reason": "because\0"});
    assert_eq!(server.post("updateQueue", body).await.pointers(), ["/reason"]);
    let body = json!({"targetBranch": "ma\0in"});
    assert_eq!(server.post("getQueue", body).await.pointers(), ["/targetBranch"]);
}
