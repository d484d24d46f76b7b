//! The discovery document of a provider.

use std::time::Duration;

use reqwest::{Client, Response};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use signalbox_domain::ports::IdentityError;
use url::Url;

/// The most bytes of an answer.
const MAX_ANSWER: usize = 1024 * 1024;
/// The longest that a call may take.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(10);

/// The discovery document of an issuer.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Discovered {
    pub(crate) issuer: String,
    /// Only of providers that users sign in with, like the token endpoint.
    pub(crate) authorization_endpoint: Option<Url>,
    pub(crate) token_endpoint: Option<Url>,
    pub(crate) jwks_uri: Url,
    #[serde(default)]
    pub(crate) token_endpoint_auth_methods_supported: Vec<String>,
}

impl Discovered {
    /// Asks a provider.
    pub(crate) async fn ask(http: &Client, issuer: &Url) -> Result<Self, IdentityError> {
        let base = issuer.as_str().trim_end_matches('/');
        let address = format!("{base}/.well-known/openid-configuration");
        let found: Self = get(http, &address).await?;
        found.checked(issuer)
    }

    /// Itself if it is of this issuer, and its endpoints are as safe.
    pub(crate) fn checked(self, issuer: &Url) -> Result<Self, IdentityError> {
        let (found, base) = (self, issuer.as_str().trim_end_matches('/'));
        if found.issuer.trim_end_matches('/') != base {
            let other: String = found.issuer.chars().take(200).collect();
            return Err(IdentityError::Unavailable(format!("its issuer is {other}")));
        }
        let endpoints = [found.authorization_endpoint.as_ref(), found.token_endpoint.as_ref()];
        for url in endpoints.into_iter().flatten().chain([&found.jwks_uri]) {
            if url.scheme() != issuer.scheme() && url.scheme() != "https" {
                return Err(IdentityError::Unavailable("one of its endpoints is not https".into()));
            }
        }
        Ok(found)
    }
}

/// Reads JSON.
pub(crate) async fn get<T: DeserializeOwned>(
    http: &Client,
    address: &str,
) -> Result<T, IdentityError> {
    let reply = http.get(address).send().await;
    let reply = reply.map_err(|error| IdentityError::Unavailable(cause(&error)))?;
    if !reply.status().is_success() {
        return Err(IdentityError::Unavailable(format!(
            "it responded with status {}",
            reply.status()
        )));
    }
    let body = body(reply).await?;
    let unreadable = |_| IdentityError::Unavailable("its response is malformed".into());
    serde_json::from_slice(&body).map_err(unreadable)
}

/// The body of an answer that is not too long.
pub(crate) async fn body(mut reply: Response) -> Result<Vec<u8>, IdentityError> {
    let mut body = Vec::new();
    loop {
        let chunk = reply.chunk().await;
        let Some(chunk) = chunk.map_err(|error| IdentityError::Unavailable(cause(&error)))? else {
            return Ok(body);
        };
        body.extend_from_slice(&chunk);
        if body.len() > MAX_ANSWER {
            return Err(IdentityError::Unavailable("its response is too large".into()));
        }
    }
}

/// Why a call failed, without its address, which may contain secrets.
pub(crate) fn cause(error: &reqwest::Error) -> String {
    let what = if error.is_timeout() {
        "timed out"
    } else if error.is_connect() {
        "could not connect"
    } else {
        "the connection was lost"
    };
    what.to_owned()
}
