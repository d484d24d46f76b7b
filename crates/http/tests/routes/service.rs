//! `GET /v1/status`, `/v1/openapi.json`, `/healthz`, `/readyz` and `/.well-known/security.txt`: no
//! token.

use std::io::Read as _;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use actix_web::body::to_bytes;
use actix_web::test::{TestRequest, call_service, init_service};
use flate2::read::GzDecoder;
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use serde_json::json;
use signalbox_domain::time::Span;
use signalbox_http::{Admission, Party, Share, app};

use crate::support::Server;

#[actix_web::test]
async fn the_status_is_up_or_lists_impacted_parts() {
    let server = Server::new().await;
    let reply = server.call(TestRequest::get().uri("/v1/status")).await;
    let part = json!({"name": "Merge Queue", "color": "green", "statusDescription": "Operational"});
    let overall = json!({
        "type": "up", "color": "green", "overallStatusDescription": "All systems operational"
    });
    assert_eq!(reply.json(), json!({"overallStatus": overall, "statuses": [part]}));
    *server.ready.0.lock().expect("not poisoned") = Some("the database".to_owned());
    let reply = server.call(TestRequest::get().uri("/v1/status")).await.json();
    assert_eq!(reply["overallStatus"]["type"], "impacted");
    assert_eq!(reply["overallStatus"]["overallStatusDescription"], "Impacted");
    assert_eq!(reply["overallStatus"]["impactedStatuses"], reply["statuses"]);
    assert_eq!(reply["statuses"][0]["color"], "red");
}

#[actix_web::test]
async fn the_description_is_served() {
    let server = Server::new().await;
    let reply = server.call(TestRequest::get().uri("/v1/openapi.json")).await;
    assert_eq!(reply.json()["openapi"], "3.1.0");
    assert_eq!(reply.body, crate::support::document());
}

#[actix_web::test]
async fn probes_distinguish_liveness_from_readiness() {
    let server = Server::new().await;
    let get = |path: &'static str| server.call(TestRequest::get().uri(path));
    assert_eq!((get("/healthz").await.status, get("/readyz").await.status), (200, 200));
    *server.ready.0.lock().expect("not poisoned") = Some("the database".to_owned());
    assert_eq!(get("/healthz").await.status, 200);
    let reply = get("/readyz").await;
    assert_eq!((reply.status, reply.body.as_str()), (503, "not ready: the database\n"));
    assert_eq!(reply.header("retry-after"), Some("5"));
    let reply = server.call(TestRequest::post().uri("/healthz")).await;
    reply.problem(405, "method_not_allowed");
    let head = TestRequest::default().method(crate::support::method("head")).uri("/readyz");
    assert_eq!(server.call(head).await.status, 503);
}

#[actix_web::test]
async fn requests_beyond_the_limit_are_refused_and_reads_succeed() {
    let mut server = Server::new().await;
    server.api.admission = Arc::new(Admission::new(1));
    let admission = server.api.admission.clone();
    let write =
        admission.enter(Share::Write, Party::at([203, 0, 113, 7].into())).await.expect("a place");
    let reply = server.post("updateQueue", json!({"concurrency": 3})).await;
    reply.problem(503, "unavailable");
    assert_eq!(reply.header("retry-after"), Some("5"));
    assert_eq!(server.post("getQueue", json!({})).await.status, 200);
    let probe = server.call(TestRequest::get().uri("/readyz")).await;
    assert_eq!(probe.status, 200);
    let seen = server.seen.0.lock().expect("not poisoned").clone();
    assert!(seen.contains(&("updateQueue".to_owned(), 503)), "{seen:?}");
    drop(write);
    assert_eq!(server.post("updateQueue", json!({"concurrency": 3})).await.status, 200);
}

/// Clients without a token at the same address have all places and the whole line. The holder of a
/// token gets the next place.
#[actix_web::test]
async fn a_token_has_a_turn_before_more_requests_from_its_address() {
    let mut server = Server::new().await;
    let metrics = "/v1/getMergeQueueMetrics";
    for share in [Share::Write, Share::Read] {
        server.api.admission = Arc::new(Admission::new(1));
        let admission = server.api.admission.clone();
        let greedy = Party::at(IpAddr::V6(Ipv6Addr::UNSPECIFIED));
        let place = admission.enter(share, greedy).await.expect("a place");
        let mut line: FuturesUnordered<_> =
            (0..8).map(|_| admission.enter(share, greedy)).collect();
        assert!(futures_util::poll!(line.next()).is_pending(), "they wait");
        let last = async {
            assert!(line.next().await.expect("eight").is_none(), "one of them is refused");
            drop(place);
        };
        let call = async {
            match share {
                Share::Write => server.post("updateQueue", json!({"concurrency": 3})).await,
                _ => server.get(metrics).await,
            }
        };
        let (reply, ()) = tokio::join!(call, last);
        assert_eq!(reply.status, 200, "{share:?}: {}", reply.body);
    }
}

/// Before it is accepted for the first time, a token in a request without a body is any text.
#[actix_web::test]
async fn a_token_that_is_not_known_yet_counts_as_its_address() {
    let mut server = Server::new().await;
    server.api.admission = Arc::new(Admission::new(1));
    let admission = server.api.admission.clone();
    let greedy = Party::at(IpAddr::V6(Ipv6Addr::UNSPECIFIED));
    let _place = admission.enter(Share::Read, greedy).await.expect("a place");
    let mut line: FuturesUnordered<_> =
        (0..8).map(|_| admission.enter(Share::Read, greedy)).collect();
    assert!(futures_util::poll!(line.next()).is_pending(), "they wait");
    server.get("/v1/getMergeQueueMetrics").await.problem(503, "unavailable");
}

#[actix_web::test]
async fn the_security_contact_is_published_and_never_expires() {
    let mut server = Server::new().await;
    let path = "/.well-known/security.txt";
    let get = || TestRequest::get().uri(path);
    server.call(get()).await.problem(404, "path_not_found");
    server.call(TestRequest::post().uri(path)).await.problem(404, "path_not_found");

    server.api.security_contact = Some("mailto:security@example.org".into());
    let expires = |server: &Server| server.clock_now().plus(Span::days(180));
    let fields = |server: &Server| {
        format!("Contact: mailto:security@example.org\nExpires: {}\n", expires(server))
    };
    let reply = server.call(get()).await;
    assert_eq!((reply.status, reply.body.clone()), (200, fields(&server)));
    assert_eq!(reply.header("content-type"), Some("text/plain; charset=utf-8"));
    server.clock.advance(Span::days(400));
    assert_eq!(server.call(get()).await.body, fields(&server));
    server.call(TestRequest::post().uri(path)).await.problem(405, "method_not_allowed");

    server.api.public_url = Some("http://ci.test".to_owned());
    assert_eq!(server.call(get()).await.body, fields(&server), "the RFC allows only https");
    server.api.public_url = Some("https://ci.test".to_owned());
    let canonical = format!("Canonical: https://ci.test{path}\n");
    assert_eq!(server.call(get()).await.body, fields(&server) + &canonical);
}

#[actix_web::test]
async fn the_description_is_sent_compressed() {
    let server = Server::without_queue().await;
    let service = init_service(app(server.api.clone())).await;
    let request = TestRequest::get()
        .uri("/v1/openapi.json")
        .insert_header(("accept-encoding", "gzip, deflate, br, zstd"));
    let response = call_service(&service, request.to_request()).await;
    let header = |name: &str| response.headers().get(name).map(|it| it.to_str().expect("text"));
    assert_eq!(header("content-encoding"), Some("gzip"));
    assert_eq!(header("vary"), Some("accept-encoding"));
    let sent = to_bytes(response.into_body()).await.unwrap_or_else(|_| panic!("a body"));
    assert!(sent.len() <= 150_000, "{} bytes", sent.len());
    let mut text = String::new();
    GzDecoder::new(sent.as_ref()).read_to_string(&mut text).expect("gzip");
    assert_eq!(text, crate::support::document());
}
