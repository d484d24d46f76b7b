//! What identity providers publish and what callers send, on mutations of real inputs.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;
use signalbox_domain::time::Timestamp;
use signalbox_testkit::fuzz::{committed, fuzz};
use url::Url;

use crate::claims::{Expected, identity};
use crate::discovery::Discovered;
use crate::keys::{Algorithm, KeySet};
use crate::token::Unchecked;

const NOW: i64 = 1_800_000_000;
const WORDS: [&str; 8] =
    ["null", "-1", "1e400", "\"\\ud800\"", "[", "{", "9223372036854775807", "\"https://box.test\""];

fn token(header: &str, claims: &[u8]) -> String {
    let part = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
    format!("{}.{}.{}", part(header.as_bytes()), part(claims), part(&[7; 64]))
}

/// The parts of an accepted form are the parts that were sent, and no key has signed it.
#[test]
fn tokens_that_the_issuer_has_not_signed() {
    let keys: KeySet = serde_json::from_slice(&committed("oidc-keys")[0]).expect("keys");
    let keys = keys.usable();
    let headers = [r#"{"alg":"ES256","kid":"b"}"#, r#"{"alg":"RS256"}"#, r#"{"alg":"EdDSA"}"#];
    let claims = committed("oidc-claims");
    let tokens = headers.iter().zip(&claims).map(|(header, claims)| token(header, claims));
    let tokens: Vec<Vec<u8>> = tokens.map(String::into_bytes).collect();
    let none = token(r#"{"alg":"none"}"#, b"{}");
    fuzz("oidc-token", &tokens, &[".", "..", "=", "e30", &none], |input| {
        let Ok(text) = std::str::from_utf8(input) else { return };
        let Ok(read) = Unchecked::parse(text) else { return };
        assert_eq!(text.matches('.').count(), 2);
        let payload = text.split('.').nth(1).and_then(|it| URL_SAFE_NO_PAD.decode(it).ok());
        let claims = payload.and_then(|it| serde_json::from_slice::<Value>(&it).ok());
        let issuer = claims.as_ref().and_then(|it| it["iss"].as_str());
        assert_eq!(read.issuer().as_deref(), issuer);
        assert!(read.checked(&keys).is_err());
    });
}

/// Accepted claims are for this client and this sign-in, and not expired.
#[test]
fn claims_of_any_form() {
    let expected = Expected {
        issuer: "https://ci.test",
        client: "box",
        nonce: "n",
        now: Timestamp::from_unix_seconds(NOW),
    };
    fuzz("oidc-claims", &committed("oidc-claims"), &WORDS, |input| {
        let Ok(claims) = serde_json::from_slice::<Value>(input) else { return };
        let groups = identity(&claims, &expected, "realm_access.roles");
        let found = identity(&claims, &expected, "groups");
        assert_eq!(groups.is_ok(), found.is_ok(), "groups decide nothing");
        if let Ok(found) = found {
            assert!(!found.subject.is_empty() && !found.name.is_empty());
            assert!(found.groups.len() <= 1_000);
            assert!(claims["exp"].as_f64().is_some_and(|end| end > 1_799_999_900.0));
            assert_eq!(
                (claims["iss"].as_str(), claims["nonce"].as_str()),
                (Some("https://ci.test"), Some("n"),)
            );
        }
    });
}

/// Only a bounded number of keys is used, and no key accepts an arbitrary signature.
#[test]
fn key_sets_of_any_form() {
    let words =
        ["null", "{", "[", "\"kty\":\"RSA\"", "\"n\":\"AQAB\"", "\"\"", "AAAA", "=", "\\u0000"];
    fuzz("oidc-keys", &committed("oidc-keys"), &words, |input| {
        let Ok(set) = serde_json::from_slice::<KeySet>(input) else { return };
        let keys = set.usable();
        assert!(keys.len() <= 50);
        for key in keys.iter().take(4) {
            assert!(!key.has_signed(b"anything", &[7; 64]));
            let is_rsa = key.algorithm == Algorithm::Rs256;
            assert!(!is_rsa || !key.has_signed(b"anything", &[7; 256]));
        }
    });
}

/// The endpoints of an accepted document are as safe as the issuer.
#[test]
fn discovery_documents_of_any_form() {
    let words =
        ["null", "http://", "https://", "HTTPS:", "javascript:", "/", "\\", "@", "[", "\"\""];
    let issuers = ["https://id.test/realms/acme", "https://token.actions.githubusercontent.com"];
    let issuers = issuers.map(|it| Url::parse(it).expect("a URL"));
    fuzz("oidc-discovery", &committed("oidc-discovery"), &words, |input| {
        let Ok(found) = serde_json::from_slice::<Discovered>(input) else { return };
        let Some(found) = issuers.iter().find_map(|it| found.clone().checked(it).ok()) else {
            return;
        };
        let endpoints = [found.authorization_endpoint, found.token_endpoint, Some(found.jwks_uri)];
        for endpoint in endpoints.into_iter().flatten() {
            assert!(endpoint.scheme() == "https" && endpoint.has_host(), "{endpoint}");
        }
    });
}
