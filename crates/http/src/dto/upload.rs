//! An upload as it is shown.

use serde::Serialize;
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
    /// Why it could not be read to its end.
    problem: Option<String>,
    /// The line of the problem.
    line: Option<u64>,
    /// The column of the problem, in bytes.
    column: Option<u64>,
}

/// Why an upload looks bad.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct UploadWarningReply {
    /// What is wrong, as a stable word.
    kind: &'static str,
    /// `invalid` when something that matters is missing, else `suboptimal`.
    severity: &'static str,
    /// With how many attempts or files; 0 when it is about the upload itself.
    count: u32,
    /// What is wrong, for people.
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
    "received_at": "2026-09-17T10:16:02.000Z", "bytes": 2048,
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
    /// How far it is: `awaited`, `received`, `read` or `failed`.
    state: &'static str,
    /// How it came: `bundle`, `junit` or `checks`.
    source: &'static str,
    /// Who vouches for it: `token`, or `public` for nobody.
    trust: &'static str,
    /// When it was announced.
    created_at: String,
    /// When its bytes came.
    received_at: Option<String>,
    /// How many bytes.
    bytes: Option<u64>,
    /// The commit that was tested.
    sha: Option<String>,
    /// The branch that was tested.
    branch: Option<String>,
    /// The branch's class: `pull_request`, `merge`, `stable` or `other`.
    branch_class: Option<&'static str>,
    /// The pull request that was tested.
    pr_number: Option<u32>,
    /// The page of the CI job.
    job_url: Option<String>,
    /// The name of the CI job.
    job_name: Option<String>,
    /// Who wrote the commit.
    author: Option<String>,
    /// The variant of the tests.
    variant: Option<String>,
    /// Distinct tests that ran.
    tests: Option<u32>,
    /// Those that failed in the end.
    failed_tests: Option<u32>,
    /// Attempts in all.
    runs: Option<u32>,
    /// Whether it feeds monitors and rates: `counts`, `infrastructure_error` or `untrusted`.
    admission: Option<&'static str>,
    /// The upload that reported the same before; then this one was not counted.
    repeats: Option<String>,
    /// Why it could not be read.
    problem: Option<String>,
    /// Its files, those with a problem first, 100 at most.
    files: Vec<UploadFileReply>,
    /// Why it looks bad, the worst first.
    warnings: Vec<UploadWarningReply>,
}

impl UploadReply {
    pub(crate) fn of(record: &UploadRecord) -> Self {
        let upload = record.upload.as_ref();
        let (received, taken) = (record.received.as_ref(), record.taken_in.as_ref());
        Self {
            id: record.id.to_string(),
            state: record.state.as_str(),
            source: record.source.as_str(),
            trust: record.trust.as_str(),
            created_at: record.created_at.to_string(),
            received_at: received.map(|it| it.at.to_string()),
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

/// The place of the next page.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct UploadsPageReply {
    /// To be sent as `page_token`; empty after the last page.
    next_page_token: String,
}

/// A page of uploads.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct UploadsReply {
    /// The uploads, newest first.
    uploads: Vec<UploadReply>,
    /// Where it goes on.
    page: UploadsPageReply,
}

impl UploadsReply {
    /// A page of records, of which there is one more than fits when there is another page.
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
