//! An identity token: its form and its signature.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;
use serde_json::Value;

use crate::keys::{Algorithm, Key};

/// The most bytes of a token.
const MAX_TOKEN: usize = 64 * 1024;

/// Why a token cannot be taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TokenError {
    /// It is no signed token.
    #[error("it is not a signed token")]
    Form,
    /// It is signed in a way that is not taken; `none` among them.
    #[error("its algorithm {0:?} is not supported")]
    Algorithm(String),
    /// It is signed with a key that the provider does not publish.
    #[error("it is signed with a key that the provider does not publish")]
    UnknownKey,
    /// Its signature is wrong.
    #[error("its signature is invalid")]
    Signature,
}

#[derive(Deserialize)]
struct Header {
    alg: String,
    kid: Option<String>,
}

/// A token whose signature was not checked yet.
pub(crate) struct Unchecked<'a> {
    signed: &'a [u8],
    signature: Vec<u8>,
    payload: Vec<u8>,
    algorithm: Algorithm,
    key: Option<String>,
}

impl<'a> Unchecked<'a> {
    pub(crate) fn parse(text: &'a str) -> Result<Self, TokenError> {
        if text.len() > MAX_TOKEN {
            return Err(TokenError::Form);
        }
        let (signed, signature) = text.rsplit_once('.').ok_or(TokenError::Form)?;
        let (header, payload) = signed.split_once('.').ok_or(TokenError::Form)?;
        let bytes = |part: &str| URL_SAFE_NO_PAD.decode(part).map_err(|_| TokenError::Form);
        let header: Header =
            serde_json::from_slice(&bytes(header)?).map_err(|_| TokenError::Form)?;
        let algorithm = Algorithm::parse(&header.alg)
            .ok_or_else(|| TokenError::Algorithm(header.alg.chars().take(20).collect()))?;
        Ok(Self {
            signed: signed.as_bytes(),
            signature: bytes(signature)?,
            payload: bytes(payload)?,
            algorithm,
            key: header.kid,
        })
    }

    /// The issuer that it names. The signature was not checked: do not trust it.
    pub(crate) fn issuer(&self) -> Option<String> {
        let claims: Value = serde_json::from_slice(&self.payload).ok()?;
        claims.get("iss").and_then(Value::as_str).map(ToOwned::to_owned)
    }

    /// Whether one of these keys may have signed it.
    pub(crate) fn is_of(&self, keys: &[Key]) -> bool {
        keys.iter().any(|key| self.fits(key))
    }

    fn fits(&self, key: &Key) -> bool {
        key.algorithm == self.algorithm
            && match (&self.key, &key.id) {
                (Some(own), Some(id)) => own == id,
                (None, _) => true,
                (Some(_), None) => false,
            }
    }

    /// Its claims, if one of these keys has signed it.
    pub(crate) fn checked(&self, keys: &[Key]) -> Result<Value, TokenError> {
        let mut fitting = keys.iter().filter(|key| self.fits(key)).peekable();
        if fitting.peek().is_none() {
            return Err(TokenError::UnknownKey);
        }
        if !fitting.any(|key| key.has_signed(self.signed, &self.signature)) {
            return Err(TokenError::Signature);
        }
        serde_json::from_slice(&self.payload).map_err(|_| TokenError::Form)
    }
}
