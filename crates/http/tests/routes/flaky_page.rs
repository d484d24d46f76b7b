//! `GET /{org}/flaky-tests/test/{id}`.

use actix_web::test::TestRequest;

use crate::flaky_lists::{key, make_flaky};
use crate::support::{Grant, Reply, Server};

const EVIL: &str = "<script>alert('1')</script>";

async fn page(server: &Server, org: &str, token: Option<&str>) -> Reply {
    let id = key(EVIL).id();
    let mut request =
        TestRequest::get().uri(&format!("/{org}/flaky-tests/test/{id}?repo=acme%2Fcalc"));
    if let Some(token) = token {
        request = request.insert_header(("x-api-token", token));
    }
    server.call(request).await
}

fn is_a_page(reply: &Reply, status: u16) {
    assert_eq!(reply.status, status, "{reply:?}");
    assert_eq!(reply.header("content-type"), Some("text/html; charset=utf-8"));
    let policy = reply.header("content-security-policy").expect("a policy");
    assert!(policy.starts_with("default-src 'none'"), "{policy}");
    assert!(!reply.body.contains("<script"), "{}", reply.body);
}

#[actix_web::test]
async fn a_test_is_shown_to_visitors_who_may_see_it() {
    let server = Server::new().await;
    make_flaky(&server, 1, &[EVIL]).await;
    let shown = page(&server, "acme", Some(&server.token)).await;
    is_a_page(&shown, 200);
    for words in ["&lt;script&gt;", "flaky since", "pass_on_retry", "lost 3 of 4", "@acme/calc"] {
        assert!(shown.body.contains(words), "{words}: {}", shown.body);
    }
    let stranger = server.grant(Grant { org: "other", ..Grant::default() }).await;
    let without = server.grant(Grant { scopes: Vec::new(), ..Grant::default() }).await;
    for token in [&stranger, &without] {
        is_a_page(&page(&server, "acme", Some(token)).await, 404);
    }
    is_a_page(&page(&server, "other", Some(&server.token)).await, 404);
    for token in [None, Some("nonsense")] {
        let refused = page(&server, "acme", token).await;
        is_a_page(&refused, 401);
        assert!(refused.body.contains("x-api-token"), "{}", refused.body);
    }
    let in_the_address = format!(
        "/acme/flaky-tests/test/{}?repo=acme%2Fcalc&token={}",
        key(EVIL).id(),
        server.token
    );
    is_a_page(&server.call(TestRequest::get().uri(&in_the_address)).await, 401);
}

#[actix_web::test]
async fn pages_may_be_made_public() {
    let mut server = Server::new().await;
    make_flaky(&server, 1, &[EVIL]).await;
    server.api.flaky.public_pages = true;
    is_a_page(&page(&server, "acme", None).await, 200);
    is_a_page(&page(&server, "other", None).await, 404);
    is_a_page(&page(&server, "Not-A-Slug-", None).await, 404);
}
