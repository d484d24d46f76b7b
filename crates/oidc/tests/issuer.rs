//! An issuer that cannot be reached, or that tokens are forged for.

use std::sync::Arc;

use serde_json::json;
use signalbox_domain::identity::{CiKind, CiSystem};
use signalbox_domain::ids::{HostId, OrgSlug};
use signalbox_domain::ports::{CiIdentities, CiIdentity, IdentityError};
use signalbox_domain::testing::ManualClock;
use signalbox_domain::time::Span;
use signalbox_oidc::CiSystems;
use signalbox_testkit::ci_double::CiDouble;

const AUDIENCE: &str = "https://box.test";
const DISCOVERY: &str = "openid-configuration";

fn systems(ci: &CiDouble) -> (CiSystems, Arc<ManualClock>) {
    let _installed = rustls::crypto::ring::default_provider().install_default();
    let clock = Arc::new(ManualClock::default());
    let system = CiSystem {
        kind: CiKind::Actions,
        issuer: ci.issuer.clone(),
        audience: AUDIENCE.into(),
        org: OrgSlug::new("acme").expect("a slug"),
        host: HostId::new("git.test").expect("a host"),
        repositories: vec!["acme".into()],
    };
    (CiSystems::new(vec![system], clock.clone()).expect("systems"), clock)
}

fn double() -> CiDouble {
    CiDouble::start(json!({
        "repository": "acme/calc", "event_name": "push", "ref": "refs/heads/main", "sha": "ab",
        // In the time of the manual clock: valid for twelve hours.
        "exp": 1_767_225_600 + 12 * 3_600, "iat": 1_767_225_600, "nbf": 1_767_225_600,
    }))
}

fn is_unavailable(found: &Result<CiIdentity, IdentityError>) -> bool {
    matches!(found, Err(IdentityError::Unavailable(_)))
}

#[tokio::test]
async fn an_issuer_that_cannot_be_reached_is_called_once_in_half_a_minute() {
    let ci = double();
    let (systems, clock) = systems(&ci);
    let token = ci.token(AUDIENCE);
    ci.fail(DISCOVERY, 1);
    for _ in 0..20 {
        assert!(is_unavailable(&systems.verify(&token).await));
    }
    assert_eq!(ci.requests(DISCOVERY), 1);
    clock.advance(Span::seconds(31));
    assert!(systems.verify(&token).await.is_ok());
    assert_eq!(ci.requests(DISCOVERY), 2);
}

#[tokio::test]
async fn known_keys_count_for_a_day_while_the_issuer_cannot_be_reached() {
    let ci = double();
    let (systems, clock) = systems(&ci);
    let token = ci.token(AUDIENCE);
    assert!(systems.verify(&token).await.is_ok());
    ci.fail("", 1_000);
    clock.advance(Span::hours(2));
    assert!(systems.verify(&token).await.is_ok());
    clock.advance(Span::hours(23));
    assert!(is_unavailable(&systems.verify(&token).await));
}

#[tokio::test]
async fn forged_tokens_cost_one_read_in_half_a_minute_and_those_of_others_none() {
    let (ci, other) = (double(), double());
    let (systems, _) = systems(&ci);
    let token = ci.token(AUDIENCE);
    for _ in 0..20 {
        assert!(systems.verify(&other.token(AUDIENCE)).await.is_err());
    }
    assert_eq!(ci.requests(""), 0, "of another issuer");
    let (header, _) = token.split_once('.').expect("three parts");
    let unknown = "eyJhbGciOiJFUzI1NiIsImtpZCI6IjIifQ";
    let forged = token.replacen(header, unknown, 1);
    for _ in 0..20 {
        let refusal = systems.verify(&forged).await.expect_err("forged").to_string();
        assert!(refusal.contains("a key that the provider does not publish"), "{refusal}");
    }
    assert_eq!(ci.requests(DISCOVERY), 1);
}

#[tokio::test]
async fn jobs_that_call_together_wait_for_one_read() {
    let ci = double();
    let (systems, _) = systems(&ci);
    let token = ci.token(AUDIENCE);
    let (one, two, three) =
        tokio::join!(systems.verify(&token), systems.verify(&token), systems.verify(&token));
    assert!([one, two, three].iter().all(Result::is_ok));
    assert_eq!(ci.requests(DISCOVERY), 1);
}
