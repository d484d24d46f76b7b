//! Imports of results of the past.

use bytes::Bytes;
use reqwest::header::CONTENT_TYPE;
use serde::{Deserialize, Serialize};

use crate::client::{UPLOAD_TIMEOUT, parse};
use crate::retry::new_key;
use crate::{Client, ClientError, Reply, Repo};

/// A run of the past. NDJSON has these values in its lines.
#[derive(Clone, Debug, Default, Serialize)]
pub struct PastRun {
    /// HOST/OWNER/NAME.
    pub repo: String,
    /// When the run ended, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// The branch that was tested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// The commit that was tested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sha: Option<String>,
    /// The merge commit that was tested, or the commit that the tested one was merged into.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    /// The pull request that was tested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pr: Option<u32>,
    /// The name of the CI job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
    /// The variant of the tests; part of their identity.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
}

/// The form of the results of an import.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PastForm {
    /// JUnit XML, one file.
    Junit,
    /// A bundle of the public uploader.
    Bundle,
    /// NDJSON, a run per line.
    Ndjson,
}

impl PastForm {
    const fn content_type(self) -> &'static str {
        match self {
            Self::Junit => "application/xml",
            Self::Bundle => "application/octet-stream",
            Self::Ndjson => "application/x-ndjson",
        }
    }
}

/// What the server imported.
#[derive(Clone, Debug, Deserialize)]
pub struct ImportReceipt {
    /// The runs, in the order of their times.
    pub uploads: Vec<ImportedRun>,
    /// Runs that are not imported because of their time.
    pub refused: Vec<RefusedRun>,
}

/// An imported run.
#[derive(Clone, Debug, Deserialize)]
pub struct ImportedRun {
    /// The id of its upload.
    pub upload_id: String,
    /// Whether it was imported before.
    pub known: bool,
}

/// A run that is not imported.
#[derive(Clone, Debug, Deserialize)]
pub struct RefusedRun {
    /// The rule, such as `too_old`.
    pub rule: String,
    /// The rule with its values.
    pub reason: String,
}

/// How far an upload is.
#[derive(Clone, Debug, Deserialize)]
pub struct UploadProgress {
    /// Its state: `awaited`, `received`, `read` or `failed`.
    pub state: String,
    /// The upload with the same results, which counts instead.
    pub repeats: Option<String>,
    /// Why it failed.
    pub problem: Option<String>,
}

/// A finished import.
#[derive(Clone, Debug, Deserialize)]
pub struct FinishedImport {
    /// The flaky tests of the repository.
    pub flaky: u64,
    /// The broken tests of the repository.
    pub broken: u64,
}

#[derive(Serialize)]
struct OfRepository<'a> {
    repo: &'a Repo,
}

impl Client {
    /// Imports a run of the past, or lines of NDJSON.
    pub async fn import(
        &self,
        run: &PastRun,
        form: PastForm,
        results: Vec<u8>,
    ) -> Result<ImportReceipt, ClientError> {
        let url = self.url("flaky-tests/import");
        let results = Bytes::from(results);
        // The server knows runs that come again.
        let text = self.repeated(new_key(), async || {
            let request = self.http.post(&url).timeout(UPLOAD_TIMEOUT).query(run);
            let request = request.header(CONTENT_TYPE, form.content_type()).body(results.clone());
            self.answer(request, &url).await
        });
        parse(&url, &text.await?)
    }

    /// How far an upload is.
    pub async fn upload_progress(&self, id: &str) -> Result<Reply<UploadProgress>, ClientError> {
        self.read(&format!("flaky-tests/uploads/{id}"), &()).await
    }

    /// Finishes an import: the server sends one event about it.
    pub async fn finish_import(&self, repo: &Repo) -> Result<Reply<FinishedImport>, ClientError> {
        self.call("flaky-tests/finish-import", &OfRepository { repo }).await
    }
}
