//! Signatures as Standard Webhooks has them: HMAC-SHA256 over id, time and body.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use thiserror::Error;

/// The prefix of a secret.
const PREFIX: &str = "whsec_";
/// The fewest and the most bytes of a secret.
const BYTES: std::ops::RangeInclusive<usize> = 24..=64;

/// A text that is no secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("a webhook secret must be whsec_ followed by the base64 of 24 to 64 bytes")]
pub struct InvalidSecret;

/// A signing secret: 24 to 64 bytes. Its `Debug` hides it.
#[derive(Clone, PartialEq, Eq)]
pub struct SigningSecret(Vec<u8>);

impl fmt::Debug for SigningSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SigningSecret(hidden)")
    }
}

impl SigningSecret {
    /// From 24 to 64 random bytes.
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Self, InvalidSecret> {
        if BYTES.contains(&bytes.len()) { Ok(Self(bytes)) } else { Err(InvalidSecret) }
    }

    /// Reads its text.
    pub fn parse(text: &str) -> Result<Self, InvalidSecret> {
        let encoded = text.strip_prefix(PREFIX).ok_or(InvalidSecret)?;
        Self::from_bytes(STANDARD.decode(encoded).map_err(|_| InvalidSecret)?)
    }

    /// Its text, to be shown once.
    pub fn reveal(&self) -> String {
        format!("{PREFIX}{}", STANDARD.encode(&self.0))
    }

    /// The signature of a message: `v1,` and base64. `timestamp` is in seconds since 1970.
    pub fn sign(&self, id: &str, timestamp: i64, body: &[u8]) -> String {
        let mut mac = mac(&self.0);
        mac.update(id.as_bytes());
        mac.update(b".");
        mac.update(timestamp.to_string().as_bytes());
        mac.update(b".");
        mac.update(body);
        format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
    }
}

fn mac(key: &[u8]) -> Hmac<Sha256> {
    // HMAC takes keys of any length; the empty one stands where that could not be.
    Hmac::new_from_slice(key)
        .unwrap_or_else(|_| Hmac::new(&hmac::digest::Key::<Hmac<Sha256>>::default()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Made with the npm packages `standardwebhooks` 1.1.1 and `svix` 1.99.1 and the PyPI package
    /// `standardwebhooks` 1.1.0, which agree: secret, id, time, body, signature.
    const VECTORS: &str = include_str!("../tests/vectors.tsv");

    #[test]
    fn signatures_are_those_of_the_reference_libraries() {
        let mut seen = 0;
        for line in VECTORS.lines() {
            let fields: Vec<&str> = line.split('\t').collect();
            let [secret, id, at, body, wanted] = fields.as_slice() else { panic!("{line}") };
            let secret = SigningSecret::parse(secret).expect("a secret");
            let body = STANDARD.decode(body).expect("base64");
            assert_eq!(secret.sign(id, at.parse().expect("a time"), &body), *wanted, "{line}");
            seen += 1;
        }
        assert!(seen >= 8, "{seen}");
    }

    proptest! {
        #[test]
        fn a_secret_is_read_back(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            let fits = BYTES.contains(&bytes.len());
            let secret = SigningSecret::from_bytes(bytes);
            prop_assert_eq!(secret.is_ok(), fits);
            if let Ok(secret) = secret {
                prop_assert_eq!(SigningSecret::parse(&secret.reveal()), Ok(secret.clone()));
                let shown = format!("{secret:?}");
                prop_assert!(!shown.contains(&secret.reveal()[6..]));
            }
        }
    }

    #[test]
    fn other_texts_are_no_secrets() {
        for text in ["", "whsec_", "whsec_AAAA", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_!"] {
            assert_eq!(SigningSecret::parse(text), Err(InvalidSecret), "{text}");
        }
    }
}
