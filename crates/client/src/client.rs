//! Calls operations of the API.

use std::time::Duration;

use reqwest::RequestBuilder;
use reqwest::multipart::{Form, Part};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ClientError;
use crate::retry::{ATTEMPTS, new_key};

/// How long a call may take.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(30);
/// How long an upload may take; its connection must be there after `TIMEOUT`.
pub(crate) const UPLOAD_TIMEOUT: Duration = Duration::from_mins(10);

/// A server, and the token that calls are made with.
#[derive(Clone)]
pub struct Client {
    pub(crate) http: reqwest::Client,
    server: String,
    token: String,
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
        Ok(Self {
            http: http()?,
            server: server.trim_end_matches('/').trim_end_matches("/v1").to_owned(),
            token: token.to_owned(),
            attempts: ATTEMPTS,
        })
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
        &self.token
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
        let text = self.repeated(key, || {
            let request = self.http.post(&url).timeout(TIMEOUT).json(body);
            self.answer(request.header("idempotency-key", key.to_string()), &url)
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
        let text = self.repeated(new_key(), || {
            self.answer(self.http.get(&url).timeout(TIMEOUT).query(query), &url)
        });
        parse(&url, &text.await?)
    }

    /// Uploads JUnit files; the receipt has the URL of their state.
    pub async fn upload(&self, upload: Upload) -> Result<Receipt, ClientError> {
        let url = self.url("flaky-tests/upload");
        let mut form = Form::new();
        for (name, bytes) in upload.files {
            let part = Part::bytes(bytes).file_name(name).mime_str("application/xml");
            form = form.part("file", part.map_err(ClientError::Setup)?);
        }
        let request = self.http.post(&url).timeout(UPLOAD_TIMEOUT).query(&upload.run);
        let json = self.answer(request.multipart(form), &url).await?;
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
        received(request.header("x-api-token", &self.token), url).await
    }
}

pub(crate) fn http() -> Result<reqwest::Client, ClientError> {
    // The only TLS provider of this process; another part may have installed it already.
    let _installed = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder().connect_timeout(TIMEOUT).build().map_err(ClientError::Setup)
}

/// The text of a 2xx answer.
pub(crate) async fn received(request: RequestBuilder, url: &str) -> Result<String, ClientError> {
    let unreachable = |error: reqwest::Error| ClientError::Unreachable {
        url: url.to_owned(),
        error: error.without_url(),
    };
    let reply = request.send().await;
    let reply = reply.map_err(unreachable)?;
    let status = reply.status();
    let wait = reply.headers().get("retry-after").and_then(|it| it.to_str().ok()?.parse().ok());
    let text = reply.text().await.map_err(unreachable)?;
    if status.is_success() {
        return Ok(text);
    }
    Err(ClientError::refused(status, wait, &text))
}

pub(crate) fn parse<T: DeserializeOwned>(url: &str, text: &str) -> Result<T, ClientError> {
    let unreadable = |error: serde_json::Error| ClientError::Unreadable {
        url: url.to_owned(),
        problem: error.to_string(),
    };
    serde_json::from_str(text).map_err(unreadable)
}
