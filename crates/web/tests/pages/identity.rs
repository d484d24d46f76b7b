//! Coming back from an identity provider.

use std::sync::Arc;

use actix_web::test::TestRequest;
use async_trait::async_trait;
use signalbox_domain::identity::{AdmissionPolicy, Identity};
use signalbox_domain::ids::OrgSlug;
use signalbox_domain::ports::{IdentityError, IdentityProvider, Leaving};
use signalbox_domain::session::ABSOLUTE_DAYS;
use signalbox_domain::time::Span;
use signalbox_web::SignInWith;

use crate::support::{House, Reply};

/// Authenticates the user that the code names.
struct Vouching;

#[async_trait]
impl IdentityProvider for Vouching {
    async fn leave(&self, back: &str) -> Result<(String, Leaving), IdentityError> {
        let text = |it: &str| it.to_owned();
        let leaving = Leaving { state: text("s"), nonce: text("n"), verifier: text("v") };
        Ok((format!("https://id.test/authorize?back={back}"), leaving))
    }

    async fn returned(
        &self,
        _: &str,
        leaving: &Leaving,
        code: &str,
    ) -> Result<Identity, IdentityError> {
        assert_eq!((leaving.nonce.as_str(), leaving.verifier.as_str()), ("n", "v"));
        match code {
            "away" => Err(IdentityError::Unavailable("there is no connection".into())),
            "bad" => Err(IdentityError::Refused("its signature is wrong".into())),
            group => Ok(Identity {
                subject: "7".into(),
                name: "Ada".into(),
                email: Some("ada@example.org".into()),
                groups: vec![group.into()],
            }),
        }
    }
}

async fn house() -> House {
    let mut house = House::new().await;
    let words = |it: &str| vec![it.to_owned()];
    house.pages.sign_in_with = Some(Arc::new(SignInWith {
        provider: Arc::new(Vouching),
        policy: AdmissionPolicy {
            groups: ["ops", "dev"].map(ToOwned::to_owned).to_vec(),
            admins: words("ops"),
            ..AdmissionPolicy::default()
        },
        org: OrgSlug::new("acme").expect("a slug"),
        label: "Example".into(),
    }));
    house
}

async fn back(house: &House, cookie: &str, query: &str) -> Reply {
    let path = format!("/sign-in/back?{query}");
    house.call(TestRequest::get().uri(&path).insert_header(("cookie", cookie))).await
}

async fn leaving(house: &House, next: &str) -> String {
    let reply = house.call(TestRequest::get().uri(&format!("/sign-in/with?next={next}"))).await;
    assert_eq!(reply.status, 303);
    let address = "https://id.test/authorize?back=http://box.test/sign-in/back";
    assert_eq!(reply.header("location"), Some(address));
    let cookie = reply.header("set-cookie").expect("a cookie");
    assert!(cookie.contains("HttpOnly; SameSite=Lax") && cookie.contains("Max-Age=600"));
    cookie.split(';').next().expect("its value").to_owned()
}

fn session(reply: &Reply) -> String {
    let mut cookies = reply.headers.iter().filter(|(name, _)| name == "set-cookie");
    let session = cookies.find(|(_, value)| value.starts_with("signalbox="));
    let (_, value) = session.expect("the cookie of a session");
    value.split(';').next().expect("its value").to_owned()
}

#[actix_web::test]
async fn sign_in_returns_to_the_requested_page() {
    let house = house().await;
    let page = house.call(TestRequest::get().uri("/acme/tokens")).await;
    assert!(page.body.contains("Sign in with Example"));
    let kept = leaving(&house, "/acme/tokens").await;
    let reply = back(&house, &kept, "state=s&code=ops").await;
    assert_eq!((reply.status, reply.header("location")), (303, Some("/acme/tokens")));
    let cookie = session(&reply);
    let get = async |path: &str| {
        house.call(TestRequest::get().uri(path).insert_header(("cookie", cookie.as_str()))).await
    };
    let tokens = get("/acme/tokens").await;
    assert_eq!(tokens.status, 200);
    assert!(tokens.body.contains("ada@example.org (signed in)"));
    house.clock.advance(Span::hours(11));
    assert_eq!(get("/").await.status, 200);
    house.clock.advance(Span::hours(13));
    assert_eq!(get("/").await.status, 401, "it was not used for too long");
    assert!(Span::days(ABSOLUTE_DAYS) > Span::hours(24));
}

#[actix_web::test]
async fn groups_decide_the_scopes_and_redirects_stay_on_this_server() {
    let house = house().await;
    let kept = leaving(&house, "https%3A%2F%2Fevil.test").await;
    let reply = back(&house, &kept, "state=s&code=dev").await;
    assert_eq!(reply.header("location"), Some("/"));
    let cookie = session(&reply);
    let request = TestRequest::get().uri("/acme/tokens").insert_header(("cookie", cookie.as_str()));
    assert_eq!(house.call(request).await.status, 403, "a viewer");
    let denied = back(&house, &kept, "state=s&code=guests").await;
    assert_eq!(denied.status, 403);
    assert!(denied.body.contains("Only members of ops, dev may sign in here."), "{}", denied.body);
    assert!(denied.header("set-cookie").is_none());
}

#[actix_web::test]
async fn an_invalid_return_does_not_sign_in() {
    let house = house().await;
    let kept = leaving(&house, "/").await;
    for (cookie, query, status, words) in [
        ("", "state=s&code=ops", 400, "not started in this browser"),
        (kept.as_str(), "state=t&code=ops", 400, "not started in this browser"),
        (kept.as_str(), "code=ops", 400, "not started in this browser"),
        (kept.as_str(), "state=s&error=access_denied", 403, "refused: access_denied"),
        (kept.as_str(), "state=s&code=bad", 403, "its signature is wrong"),
        (kept.as_str(), "state=s&code=away", 503, "there is no connection"),
    ] {
        let reply = back(&house, cookie, query).await;
        assert_eq!(reply.status, status, "{query}");
        assert!(reply.body.contains(words), "{query}: {}", reply.body);
        assert!(reply.header("set-cookie").is_none(), "{query}");
    }
    let from = std::net::IpAddr::from([192, 0, 2, 1]);
    let counted = house.pages.authenticator.refusals(from);
    assert_eq!(counted, 5, "all but the one that the provider could not answer");
}
