//! Uploads in replies.

use serde::Serialize;
use signalbox_domain::flaky::UploadSource;
use signalbox_domain::upload::{Severity, UploadRecord, UploadWarning};
use signalbox_wording::upload_warning;
use utoipa::ToSchema;

/// A file of an upload.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct UploadFileReply {
    /// Its name.
    name: String,
    /// Attempts of tests in it.
    runs: u32,
    /// Why it could not be read completely.
    problem: Option<String>,
    /// The line of the problem.
    line: Option<u64>,
    /// The column of the problem, in bytes.
    column: Option<u64>,
}

/// A warning about an upload.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct UploadWarningReply {
    /// The kind of problem, as a stable value.
    kind: &'static str,
    /// `invalid` when required data is missing, otherwise `suboptimal`.
    severity: &'static str,
    /// The number of affected attempts or files; 0 for the upload itself.
    count: u32,
    /// The problem as a sentence.
    message: String,
}

impl UploadWarningReply {
    fn of(warning: UploadWarning) -> Self {
        let UploadWarning { kind, count } = warning;
        let sentence = upload_warning(kind);
        let message =
            if count == 0 { sentence.to_owned() } else { format!("{sentence} ({count})") };
        let severity = match kind.severity() {
            severity @ (Severity::Invalid | Severity::Suboptimal) => severity.as_str(),
        };
        Self { kind: kind.as_str(), severity, count, message }
    }
}

/// An upload of test results.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({
    "id": "0b7d6f5e-6f0e-5f2a-9d58-1d3f6f0f8a11", "state": "read", "source": "junit",
    "trust": "token", "created_at": "2026-09-17T10:16:02.000Z",
    "received_at": "2026-09-17T10:16:02.000Z", "ran_at": null, "bytes": 2048,
    "sha": "1f0c1b9d2f3f4e5a6b7c8d9e0f1a2b3c4d5e6f70", "branch": "main",
    "branch_class": "stable", "pr_number": null, "job_url": "https://ci.acme.test/jobs/7",
    "job_name": "unit", "author": "ada", "variant": "", "tests": 120, "failed_tests": 1,
    "runs": 121, "admission": "counts", "repeats": null, "problem": null,
    "files": [{"name": "junit.xml", "runs": 121, "problem": null, "line": null, "column": null}],
    "warnings": [{
        "kind": "file_missing", "severity": "suboptimal", "count": 121,
        "message": "tests have no file (121)"
    }]
}))]
pub(crate) struct UploadReply {
    /// Its id.
    id: String,
    /// The state: `awaited`, `received`, `read` or `failed`.
    state: &'static str,
    /// The source: `bundle`, `junit`, `checks` or `import`.
    source: &'static str,
    /// How it was authenticated: `token`, or `public` for an upload without one.
    trust: &'static str,
    /// When it was announced.
    created_at: String,
    /// When its data was received.
    received_at: Option<String>,
    /// When an imported run ended; results count as of this time.
    ran_at: Option<String>,
    /// Its size in bytes.
    bytes: Option<u64>,
    /// The commit that was tested.
    sha: Option<String>,
    /// The branch that was tested.
    branch: Option<String>,
    /// The branch's class: `pull_request`, `merge`, `stable` or `other`.
    branch_class: Option<&'static str>,
    /// The pull request that was tested.
    pr_number: Option<u32>,
    /// The URL of the CI job.
    job_url: Option<String>,
    /// The name of the CI job.
    job_name: Option<String>,
    /// The author of the commit.
    author: Option<String>,
    /// The variant of the tests.
    variant: Option<String>,
    /// Distinct tests that ran.
    tests: Option<u32>,
    /// How many tests failed, after retries.
    failed_tests: Option<u32>,
    /// The number of attempts.
    runs: Option<u32>,
    /// Whether it feeds monitors and rates: `counts`, `infrastructure_error` or `untrusted`.
    admission: Option<&'static str>,
    /// The earlier upload with the same content; then this one is not counted.
    repeats: Option<String>,
    /// Why it could not be read.
    problem: Option<String>,
    /// Its files, at most 100, files with a problem first.
    files: Vec<UploadFileReply>,
    /// Its warnings, the worst first.
    warnings: Vec<UploadWarningReply>,
}

impl UploadReply {
    pub(crate) fn of(record: &UploadRecord) -> Self {
        let upload = record.upload.as_ref();
        let (received, taken) = (record.received.as_ref(), record.taken_in.as_ref());
        let imported = upload.filter(|_| record.source == UploadSource::Import);
        Self {
            id: record.id.to_string(),
            state: record.state.as_str(),
            source: record.source.as_str(),
            trust: record.trust.as_str(),
            created_at: record.created_at.to_string(),
            received_at: received.map(|it| it.at.to_string()),
            ran_at: imported.map(|it| it.received_at.to_string()),
            bytes: received.map(signalbox_domain::upload::Received::bytes),
            sha: upload.and_then(|it| it.sha.as_ref().map(ToString::to_string)),
            branch: upload.map(|it| it.branch.clone()).filter(|it| !it.is_empty()),
            branch_class: upload.map(|it| it.class.as_str()),
            pr_number: upload.and_then(|it| it.pr).map(|pr| pr.0),
            job_url: upload.and_then(|it| it.job_url.clone()),
            job_name: upload.and_then(|it| it.job_name.clone()),
            author: upload.and_then(|it| it.author.clone()),
            variant: upload.map(|it| it.variant.clone()),
            tests: taken.map(|it| it.tests),
            failed_tests: taken.map(|it| it.failed),
            runs: taken.map(|it| it.runs),
            admission: taken.map(|it| it.admission.as_str()),
            repeats: record.repeats.map(|it| it.to_string()),
            problem: record.problem.clone(),
            files: record
                .files
                .iter()
                .map(|file| UploadFileReply {
                    name: file.name.clone(),
                    runs: file.runs,
                    problem: file.problem.clone(),
                    line: file.line,
                    column: file.column,
                })
                .collect(),
            warnings: record.warnings.iter().copied().map(UploadWarningReply::of).collect(),
        }
    }
}

/// The position of the next page.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct UploadsPageReply {
    /// Pass it as `page_token`; empty on the last page.
    next_page_token: String,
}

/// A page of uploads.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({
    "uploads": [{
        "id": "0b7d6f5e-6f0e-5f2a-9d58-1d3f6f0f8a11", "state": "waiting", "source": "junit",
        "trust": "token", "created_at": "2026-09-17T10:16:02.000Z", "received_at": null,
        "ran_at": null, "bytes": 2048, "sha": null, "branch": null, "branch_class": null,
        "pr_number": null, "job_url": null, "job_name": null, "author": null, "variant": null,
        "tests": null, "failed_tests": null, "runs": null, "admission": null, "repeats": null,
        "problem": null, "files": [], "warnings": []
    }],
    "page": {"next_page_token": ""}
}))]
pub(crate) struct UploadsReply {
    /// The uploads, newest first.
    uploads: Vec<UploadReply>,
    /// The next page.
    page: UploadsPageReply,
}

impl UploadsReply {
    /// A page of `records`, which has one extra record when a next page exists.
    pub(crate) fn of(records: &[UploadRecord], page_size: u32) -> Self {
        let size = usize::try_from(page_size).unwrap_or(usize::MAX);
        let shown = records.get(..size).unwrap_or(records);
        let last = shown.last().filter(|_| records.len() > shown.len());
        let token = |it: &UploadRecord| format!("{}.{}", it.created_at.unix_micros(), it.id);
        Self {
            uploads: shown.iter().map(UploadReply::of).collect(),
            page: UploadsPageReply { next_page_token: last.map(token).unwrap_or_default() },
        }
    }
}
