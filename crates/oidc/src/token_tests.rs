//! Tokens that are signed with keys made for the test.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _,
};
use serde_json::{Value, json};

use crate::keys::{Key, KeySet};
use crate::token::{TokenError, Unchecked};

enum Pair {
    Point(Box<EcdsaKeyPair>),
    Edwards(Ed25519KeyPair),
}

fn point() -> Pair {
    let (random, kind) = (SystemRandom::new(), &ECDSA_P256_SHA256_FIXED_SIGNING);
    let made = EcdsaKeyPair::generate_pkcs8(kind, &random).expect("a key");
    Pair::Point(Box::new(EcdsaKeyPair::from_pkcs8(kind, made.as_ref(), &random).expect("a key")))
}

fn edwards() -> Pair {
    let made = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).expect("a key");
    Pair::Edwards(Ed25519KeyPair::from_pkcs8(made.as_ref()).expect("a key"))
}

impl Pair {
    fn published(&self, id: &str) -> Value {
        let text = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        match self {
            Self::Point(pair) => {
                let point = pair.public_key().as_ref();
                let (x, y) = (text(&point[1..33]), text(&point[33..]));
                json!({"kty": "EC", "crv": "P-256", "use": "sig", "kid": id, "x": x, "y": y})
            }
            Self::Edwards(pair) => {
                let x = text(pair.public_key().as_ref());
                json!({"kty": "OKP", "crv": "Ed25519", "kid": id, "x": x})
            }
        }
    }

    fn sign(&self, header: &Value, claims: &Value) -> String {
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let signed = format!("{}.{}", part(header), part(claims));
        let signature = match self {
            Self::Point(pair) => {
                let signature = pair.sign(&SystemRandom::new(), signed.as_bytes());
                signature.expect("a signature").as_ref().to_vec()
            }
            Self::Edwards(pair) => pair.sign(signed.as_bytes()).as_ref().to_vec(),
        };
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))
    }
}

fn keys(published: &[Value]) -> Vec<Key> {
    let set: KeySet = serde_json::from_value(json!({ "keys": published })).expect("keys");
    set.usable()
}

fn read(text: &str, keys: &[Key]) -> Result<Value, TokenError> {
    Unchecked::parse(text)?.checked(keys)
}

#[test]
fn a_token_is_taken_when_a_published_key_has_signed_it() {
    for (pair, algorithm) in [(point(), "ES256"), (edwards(), "EdDSA")] {
        let other = json!({"kty": "oct", "k": "c2VjcmV0", "kid": "1"});
        let keys = keys(&[other, pair.published("1"), json!({"nonsense": true})]);
        assert_eq!(keys.len(), 1);
        let claims = json!({"sub": "7"});
        let text = pair.sign(&json!({"alg": algorithm, "kid": "1"}), &claims);
        assert_eq!(read(&text, &keys), Ok(claims.clone()));
        let unnamed = pair.sign(&json!({"alg": algorithm}), &claims);
        assert_eq!(read(&unnamed, &keys), Ok(claims));
    }
}

#[test]
fn a_token_with_a_foreign_or_broken_signature_is_refused() {
    let (own, evil) = (point(), point());
    let known = keys(&[own.published("1")]);
    let header = json!({"alg": "ES256", "kid": "1"});
    let text = evil.sign(&header, &json!({"sub": "7"}));
    assert_eq!(read(&text, &known), Err(TokenError::Signature));
    let good = own.sign(&header, &json!({"sub": "7"}));
    let (signed, signature) = good.rsplit_once('.').expect("three parts");
    let (head, _) = signed.split_once('.').expect("three parts");
    let changed = URL_SAFE_NO_PAD.encode(json!({"sub": "8"}).to_string());
    let changed = format!("{head}.{changed}.{signature}");
    assert_eq!(read(&changed, &known), Err(TokenError::Signature));
    let renamed = own.sign(&json!({"alg": "ES256", "kid": "2"}), &json!({}));
    assert_eq!(read(&renamed, &known), Err(TokenError::UnknownKey));
}

#[test]
fn tokens_without_a_signature_of_the_provider_are_refused() {
    let own = point();
    let known = keys(&[own.published("1")]);
    for wrong in ["none", "None", "HS256", "RS512", ""] {
        let text = own.sign(&json!({"alg": wrong, "kid": "1"}), &json!({}));
        assert_eq!(read(&text, &known), Err(TokenError::Algorithm(wrong.into())), "{wrong}");
    }
    let other_kind = own.sign(&json!({"alg": "RS256", "kid": "1"}), &json!({}));
    assert_eq!(read(&other_kind, &known), Err(TokenError::UnknownKey));
    for wrong in ["", "a", "a.b", "a.b.c", "..", &"x".repeat(70_000)] {
        assert_eq!(read(wrong, &known), Err(TokenError::Form));
    }
    let for_encryption = json!({"use": "enc"});
    let mut published = own.published("1");
    published["use"] = for_encryption["use"].clone();
    assert!(keys(&[published]).is_empty());
}
