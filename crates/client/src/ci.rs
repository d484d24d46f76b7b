//! Identity tokens that CI systems issue to their jobs. A server that accepts the CI system takes one
//! in place of an API token, for uploads and questions about quarantine.

use serde::Deserialize;

use crate::ClientError;
use crate::client::{TIMEOUT, http, parse, received};

/// Where a job of GitHub Actions with the permission `id-token: write` gets identity tokens.
#[derive(Clone)]
pub struct GitHubTokens {
    /// `ACTIONS_ID_TOKEN_REQUEST_URL`.
    pub url: String,
    /// `ACTIONS_ID_TOKEN_REQUEST_TOKEN`.
    pub token: String,
}

#[derive(Deserialize)]
struct Issued {
    value: String,
}

impl GitHubTokens {
    /// A new token for the server at that address: its audience is the address without a slash or `/v1`
    /// at its end. It is valid for a few minutes.
    pub async fn issue(&self, server: &str) -> Result<String, ClientError> {
        let audience = [("audience", server.trim_end_matches('/').trim_end_matches("/v1"))];
        let request = http()?.get(&self.url).timeout(TIMEOUT).query(&audience);
        let text = received(request.bearer_auth(&self.token), &self.url).await?;
        Ok(parse::<Issued>(&self.url, &text)?.value)
    }
}
