//! Who we are to the host: an app with a key of its own, or the holder of a token.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use quick_cache::sync::Cache;
use ring::rand::SystemRandom;
use ring::signature::{RSA_PKCS1_SHA256, RsaKeyPair};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{PrivatePkcs1KeyDer, PrivatePkcs8KeyDer};
use signalbox_domain::time::{Span, Timestamp};
use thiserror::Error;

/// How long an app's own token is valid; the host allows at most ten minutes.
const APP_TOKEN_MINUTES: u32 = 9;
/// How far the host's clock may be behind ours.
const CLOCK_SKEW_SECONDS: u32 = 60;
/// How long before its end an installation's token is renewed.
const RENEW_BEFORE_MINUTES: u32 = 5;
/// The most repositories and installations that are remembered.
const REMEMBERED: usize = 10_000;

/// Why credentials cannot be used.
#[derive(Debug, Error)]
pub enum CredentialsError {
    /// The key is no RSA private key in PEM form.
    #[error("the private key must be an RSA key in PEM form: {0}")]
    Key(String),
    /// There is no token.
    #[error("the token must not be empty")]
    NoToken,
}

/// What identifies us. Its debug form shows no secret.
pub enum Credentials {
    /// A GitHub App.
    App {
        /// Its number.
        id: u64,
        /// Its private key.
        key: Box<RsaKeyPair>,
    },
    /// A personal token, classic or fine-grained.
    Token(String),
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::App { id, .. } => write!(f, "app {id}"),
            Self::Token(_) => f.write_str("token …"),
        }
    }
}

impl Credentials {
    /// An app with that private key, PKCS#1 (as the host hands them out) or PKCS#8.
    pub fn app(id: u64, pem: &[u8]) -> Result<Self, CredentialsError> {
        let refused = |words: String| CredentialsError::Key(words);
        let key = if let Ok(key) = PrivatePkcs1KeyDer::from_pem_slice(pem) {
            RsaKeyPair::from_der(key.secret_pkcs1_der())
        } else {
            let key = PrivatePkcs8KeyDer::from_pem_slice(pem);
            let key = key.map_err(|error| refused(error.to_string()))?;
            RsaKeyPair::from_pkcs8(key.secret_pkcs8_der())
        };
        let key = Box::new(key.map_err(|error| refused(error.to_string()))?);
        Ok(Self::App { id, key })
    }

    /// The holder of a token; space around it is dropped.
    pub fn token(text: &str) -> Result<Self, CredentialsError> {
        match text.trim() {
            "" => Err(CredentialsError::NoToken),
            token => Ok(Self::Token(token.to_owned())),
        }
    }
}

/// A JSON Web Token by which an app shows who it is. `None` when the key cannot sign.
pub(super) fn app_token(id: u64, key: &RsaKeyPair, now: Timestamp) -> Option<String> {
    let seconds = |at: Timestamp| at.unix_micros().div_euclid(1_000_000);
    let issued = seconds(now.minus(Span::seconds(CLOCK_SKEW_SECONDS)));
    let expires = seconds(now.plus(Span::minutes(APP_TOKEN_MINUTES)));
    let header = URL_SAFE_NO_PAD.encode(r#"{"alg":"RS256","typ":"JWT"}"#);
    let claims = format!(r#"{{"iat":{issued},"exp":{expires},"iss":"{id}"}}"#);
    let signed = format!("{header}.{}", URL_SAFE_NO_PAD.encode(claims));
    let mut signature = vec![0; key.public().modulus_len()];
    key.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), signed.as_bytes(), &mut signature).ok()?;
    Some(format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature)))
}

/// A token of an installation.
#[derive(Clone)]
pub(super) struct InstallationToken {
    pub(super) text: String,
    pub(super) expires_at: Timestamp,
}

/// The cache of installations: which one a repository belongs to, and its token.
pub(super) struct Installations {
    of_repository: Cache<String, u64>,
    tokens: Cache<u64, InstallationToken>,
}

impl Default for Installations {
    fn default() -> Self {
        Self { of_repository: Cache::new(REMEMBERED), tokens: Cache::new(REMEMBERED) }
    }
}

impl Installations {
    pub(super) fn of(&self, repository: &str) -> Option<u64> {
        self.of_repository.get(repository)
    }

    pub(super) fn learn(&self, repository: &str, installation: u64) {
        self.of_repository.insert(repository.to_owned(), installation);
    }

    /// The token of an installation, if it stays valid for some minutes.
    pub(super) fn token(&self, installation: u64, now: Timestamp) -> Option<String> {
        let good = |token: &InstallationToken| {
            token.expires_at > now.plus(Span::minutes(RENEW_BEFORE_MINUTES))
        };
        self.tokens.get(&installation).filter(good).map(|token| token.text)
    }

    pub(super) fn keep(&self, installation: u64, token: InstallationToken) {
        self.tokens.insert(installation, token);
    }

    /// Forgets a repository's installation and its token: the app may have been reinstalled.
    /// Returns whether there was something to forget.
    pub(super) fn forget(&self, repository: &str) -> bool {
        let Some((_, installation)) = self.of_repository.remove(repository) else { return false };
        self.tokens.remove(&installation);
        true
    }
}
