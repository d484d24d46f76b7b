//! Headers and cookies that tell a browser what it may do with a page.

use actix_web::test::TestRequest;
use signalbox_domain::token::Scope;

use crate::support::House;

#[actix_web::test]
async fn a_page_loads_only_content_of_this_server_and_is_never_framed() {
    let house = House::new().await;
    let admin = house.admin().await;
    let pages = ["/", "/acme/tokens", "/acme/queue/pr", "/sign-in", "/other/queue"];
    for path in pages {
        let reply = admin.get(path).await;
        let policy = reply.header("content-security-policy").expect("a policy").to_owned();
        let directives: Vec<&str> = policy.split("; ").collect();
        for directive in [
            "default-src 'none'",
            "script-src 'self'",
            "connect-src 'self'",
            "form-action 'self'",
            "base-uri 'none'",
            "frame-ancestors 'none'",
        ] {
            assert!(directives.contains(&directive), "{path}: {directive}: {policy}");
        }
        assert!(!policy.contains("unsafe") && !policy.contains("http"), "{path}: {policy}");
        assert_eq!(reply.header("referrer-policy"), Some("same-origin"), "{path}");
        assert_eq!(reply.header("cache-control"), Some("no-store"), "{path}");
        assert_eq!(reply.header("content-type"), Some("text/html; charset=utf-8"), "{path}");
    }
}

#[actix_web::test]
async fn with_https_a_cookie_is_bound_to_the_host_and_a_new_session_ends_the_old_one() {
    let mut house = House::new().await;
    house.pages.public_url = "https://box.test".to_owned();
    let token = house.token("ada", &Scope::ALL).await;
    let sign_in = async |cookie: &str| {
        let reply =
            house.send("/sign-in", &[("token", token.as_str()), ("next", "/")], cookie).await;
        let cookie = reply.header("set-cookie").expect("a cookie").to_owned();
        let (value, attributes) = cookie.split_once("; ").expect("attributes");
        assert!(value.starts_with("__Host-signalbox="), "{cookie}");
        assert_eq!(attributes, "Path=/; Max-Age=604800; HttpOnly; SameSite=Lax; Secure");
        value.to_owned()
    };
    let status = async |cookie: &str| {
        house.call(TestRequest::get().uri("/").insert_header(("cookie", cookie))).await.status
    };
    let old = sign_in("").await;
    assert_eq!(status(&old).await, 200);
    let new = sign_in(&old).await;
    assert_ne!(old, new);
    assert_eq!((status(&old).await, status(&new).await), (401, 200));
}
