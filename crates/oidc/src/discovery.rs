//! What a provider says of itself.

use std::time::Duration;

use reqwest::{Client, Response};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use signalbox_domain::ports::IdentityError;
use url::Url;

/// The most bytes of an answer.
const MAX_ANSWER: usize = 1024 * 1024;
/// The longest that a call may take.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(10);

/// What a provider says of itself.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Discovered {
    pub(crate) issuer: String,
    #[serde(deserialize_with = "url")]
    pub(crate) authorization_endpoint: Url,
    #[serde(deserialize_with = "url")]
    pub(crate) token_endpoint: Url,
    #[serde(deserialize_with = "url")]
    pub(crate) jwks_uri: Url,
    #[serde(default)]
    pub(crate) token_endpoint_auth_methods_supported: Vec<String>,
}

fn url<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Url, D::Error> {
    let text = String::deserialize(deserializer)?;
    Url::parse(&text).map_err(serde::de::Error::custom)
}

impl Discovered {
    /// Asks a provider.
    pub(crate) async fn ask(http: &Client, issuer: &Url) -> Result<Self, IdentityError> {
        let base = issuer.as_str().trim_end_matches('/');
        let address = format!("{base}/.well-known/openid-configuration");
        let found: Self = get(http, &address).await?;
        if found.issuer.trim_end_matches('/') != base {
            let other: String = found.issuer.chars().take(200).collect();
            return Err(IdentityError::Unavailable(format!("it calls itself {other}")));
        }
        for url in [&found.authorization_endpoint, &found.token_endpoint, &found.jwks_uri] {
            if url.scheme() != issuer.scheme() && url.scheme() != "https" {
                return Err(IdentityError::Unavailable("an address of it is not https".into()));
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
        return Err(IdentityError::Unavailable(format!("it answers {}", reply.status())));
    }
    let body = body(reply).await?;
    let unreadable = |_| IdentityError::Unavailable("its answer cannot be read".into());
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
            return Err(IdentityError::Unavailable("its answer is too long".into()));
        }
    }
}

/// Why a call failed, without its address, which may carry more than is to be seen.
pub(crate) fn cause(error: &reqwest::Error) -> String {
    let what = if error.is_timeout() {
        "it takes too long"
    } else if error.is_connect() {
        "there is no connection"
    } else {
        "the connection broke"
    };
    what.to_owned()
}
