//! Calls operations of the API.

use std::time::Duration;

use bytes::Bytes;
use reqwest::header::{HeaderValue, LOCATION};
use reqwest::multipart::{Form, Part};
use reqwest::redirect::Policy;
use reqwest::{RequestBuilder, Response, Url};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ClientError;
use crate::retry::{ATTEMPTS, new_key};

/// How long a call may take.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(30);
/// How long an upload may take; its connection must be there after `TIMEOUT`.
pub(crate) const UPLOAD_TIMEOUT: Duration = Duration::from_mins(10);

/// The most files of one upload.
pub const MOST_FILES: usize = 1_000;

/// A server, and the token that calls are made with.
#[derive(Clone)]
pub struct Client {
    pub(crate) http: reqwest::Client,
    server: String,
    token: HeaderValue,
    pub(crate) attempts: u32,
}

/// JUnit files for `POST /v1/flaky-tests/upload`.
#[derive(Debug)]
pub struct Upload {
    /// The CI run that produced the files.
    pub run: TestedRun,
    /// The files' names and contents.
    pub files: Vec<(String, Vec<u8>)>,
}

/// The CI run that produced JUnit files.
#[derive(Clone, Debug, Serialize)]
pub struct TestedRun {
    /// HOST/OWNER/NAME.
    pub repo: String,
    /// The branch that was tested.
    pub branch: String,
    /// The commit that was tested.
    pub sha: String,
    /// The pull request that was tested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pr: Option<u32>,
    /// The name of the CI job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
    /// The required status that the job reports.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub check: Option<String>,
    /// The merge commit that was tested, or the commit that the tested one was merged into.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    /// The page of the CI job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job_url: Option<String>,
    /// The variant of the tests; part of their identity.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
}

/// The server's receipt for an accepted upload.
#[derive(Debug)]
pub struct Receipt {
    /// The path below the server's address where the upload's state can be read.
    pub status_path: String,
    /// The whole answer.
    pub json: String,
}

/// An upload that was taken.
#[derive(Deserialize)]
struct Taken {
    status_url: String,
}

impl Client {
    /// A client of the server at that address, with or without `/v1` at its end.
    pub fn new(server: &str, token: &str) -> Result<Self, ClientError> {
        let server = server.trim_end_matches('/').trim_end_matches("/v1").trim_end_matches('/');
        let is_web = |url: &Url| ["http", "https"].contains(&url.scheme()) && url.has_host();
        if !Url::parse(server).is_ok_and(|url| is_web(&url)) {
            return Err(ClientError::Server { server: server.to_owned() });
        }
        if token.is_empty() || !token.chars().all(|c| c.is_ascii_graphic()) {
            return Err(ClientError::Token);
        }
        let mut token = HeaderValue::from_str(token).map_err(|_| ClientError::Token)?;
        token.set_sensitive(true);
        Ok(Self { http: http()?, server: server.to_owned(), token, attempts: ATTEMPTS })
    }

    /// How often a call is made at most, instead of 4 times; 1: it is not repeated.
    #[must_use]
    pub const fn with_attempts(mut self, attempts: u32) -> Self {
        self.attempts = attempts;
        self
    }

    /// The server's address, without a slash or `/v1` at its end.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// The token that calls are made with.
    pub fn token(&self) -> &str {
        self.token.to_str().unwrap_or_default()
    }

    /// Calls an operation that has no method here.
    pub async fn post(&self, operation: &str, body: &Value) -> Result<Value, ClientError> {
        self.call(operation, body).await
    }

    /// Calls an operation with a JSON body.
    pub(crate) async fn call<T: DeserializeOwned>(
        &self,
        operation: &str,
        body: &impl Serialize,
    ) -> Result<T, ClientError> {
        let url = self.url(operation);
        let key = new_key();
        let text = self.repeated(key, async || {
            let request = self.http.post(&url).timeout(TIMEOUT).json(body);
            self.answer(request.header("idempotency-key", key.to_string()), &url).await
        });
        parse(&url, &text.await?)
    }

    /// Reads a resource.
    pub(crate) async fn read<T: DeserializeOwned>(
        &self,
        path: &str,
        query: &impl Serialize,
    ) -> Result<T, ClientError> {
        let url = self.url(path);
        let text = self.repeated(new_key(), async || {
            self.answer(self.http.get(&url).timeout(TIMEOUT).query(query), &url).await
        });
        parse(&url, &text.await?)
    }

    /// Uploads JUnit files; the receipt has the URL of their state. The server takes at most
    /// [`MOST_FILES`] in a call.
    pub async fn upload(&self, upload: Upload) -> Result<Receipt, ClientError> {
        let url = self.url("flaky-tests/upload");
        let file = |(name, bytes): (String, Vec<u8>)| (name, Bytes::from(bytes));
        let files: Vec<(String, Bytes)> = upload.files.into_iter().map(file).collect();
        // The server knows results that come again.
        let json = self.repeated(new_key(), async || {
            let mut form = Form::new();
            for (name, bytes) in &files {
                let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
                let part = Part::stream_with_length(bytes.clone(), length).file_name(name.clone());
                let part = part.mime_str("application/xml").map_err(ClientError::Setup)?;
                form = form.part("file", part);
            }
            let request = self.http.post(&url).timeout(UPLOAD_TIMEOUT).query(&upload.run);
            self.answer(request.multipart(form), &url).await
        });
        let json = json.await?;
        let taken: Taken = parse(&url, &json)?;
        Ok(Receipt { status_path: taken.status_url, json })
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}/v1/{path}", self.server)
    }

    /// The text of the server's 2xx answer.
    pub(crate) async fn answer(
        &self,
        request: RequestBuilder,
        url: &str,
    ) -> Result<String, ClientError> {
        received(self.with_token(request), url).await
    }

    pub(crate) fn with_token(&self, request: RequestBuilder) -> RequestBuilder {
        request.header("x-api-token", self.token.clone())
    }
}

pub(crate) fn http() -> Result<reqwest::Client, ClientError> {
    // The only TLS provider of this process; another part may have installed it already.
    let _installed = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder().connect_timeout(TIMEOUT);
    // The token is for this server: it is not sent to the one that a redirect names.
    client.redirect(Policy::none()).build().map_err(ClientError::Setup)
}

/// The text of a 2xx answer.
pub(crate) async fn received(request: RequestBuilder, url: &str) -> Result<String, ClientError> {
    let reply = accepted(request, url).await?;
    reply.text().await.map_err(unreachable(url))
}

/// A 2xx answer whose body has not been read.
pub(crate) async fn accepted(request: RequestBuilder, url: &str) -> Result<Response, ClientError> {
    let reply = request.send().await.map_err(unreachable(url))?;
    let status = reply.status();
    if status.is_success() {
        return Ok(reply);
    }
    if status.is_redirection() {
        let to = reply.headers().get(LOCATION).and_then(|it| it.to_str().ok()).unwrap_or_default();
        return Err(ClientError::Redirected { url: url.to_owned(), to: to.to_owned() });
    }
    let wait = reply.headers().get("retry-after").and_then(|it| it.to_str().ok()?.parse().ok());
    let text = reply.text().await.map_err(unreachable(url))?;
    Err(ClientError::refused(status, wait, &text))
}

pub(crate) fn unreachable(url: &str) -> impl Fn(reqwest::Error) -> ClientError {
    move |error| ClientError::Unreachable { url: url.to_owned(), error: error.without_url() }
}

pub(crate) fn parse<T: DeserializeOwned>(url: &str, text: &str) -> Result<T, ClientError> {
    let unreadable = |error: serde_json::Error| ClientError::Unreadable {
        url: url.to_owned(),
        problem: error.to_string(),
    };
    serde_json::from_str(text).map_err(unreadable)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_address_and_no_token_is_refused_before_a_call() {
        for server in ["", "127.0.0.1:8080", "nowhere", "ftp://signalbox.test", "http://"] {
            let made = Client::new(server, "t").map(drop);
            assert!(matches!(made, Err(ClientError::Server { .. })), "{server:?}");
        }
        for token in ["", "a\n", "a b", "ä"] {
            let made = Client::new("http://signalbox.test", token).map(drop);
            assert!(matches!(made, Err(ClientError::Token)), "{token:?}");
        }
        for server in ["http://signalbox.test:80/", "https://signalbox.test/base/v1/"] {
            assert!(Client::new(server, "t").is_ok_and(|it| !it.server().ends_with('/')));
        }
    }
}
