//! `POST /v1/flaky-tests/import`: results of the past.

use actix_web::web::{Data, Json, Payload, Query};
use actix_web::{HttpMessage, HttpRequest};
use serde::Serialize;
use signalbox_domain::ids::RepoName;
use signalbox_domain::time::Timestamp;
use signalbox_domain::token::Scope;
use signalbox_domain::upload::{Claims, RefusedTime};
use signalbox_services::{ImportRefusal, Sender};
use utoipa::ToSchema;

use super::upload_reports::{Parameters, claims, form, wrong_type};
use crate::api::Api;
use crate::authenticated::{Authenticated, Credentials as _, held_by};
use crate::dto::{
    BinaryBody, Errors, FilesForm, PrNumberFromOne, RepoText, ShaText, TimeText, shown,
};
use crate::encoding::{self, Encoding};
use crate::failures::OfUpload;
use crate::problem::{Code, Problem};
use crate::stream;

/// The most bytes of a request with NDJSON.
const NDJSON_BYTES: u64 = 16 * 1024 * 1024;

/// The content types of a single report or bundle.
const REPORTS: [&str; 4] =
    ["application/xml", "text/xml", "application/octet-stream", "application/zstd"];

/// An imported run.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ImportedRun {
    /// The line of NDJSON, from 1; `null` for other reports.
    line: Option<usize>,
    /// The id of its upload. The same run has the same id.
    upload_id: String,
    /// The URL of the state of its upload.
    status_url: String,
    /// Whether it was imported before; then nothing changes.
    known: bool,
}

/// A run that is not imported because of its time.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RefusedRun {
    /// The line of NDJSON, from 1; `null` for other reports.
    line: Option<usize>,
    /// The rule: `too_old`, `in_future` or `time_unknown`.
    rule: &'static str,
    /// The rule with its values, as a fragment.
    reason: String,
}

/// What was imported.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({
    "uploads": [{
        "line": 1, "upload_id": "0b7d6f5e-6f0e-5f2a-9d58-1d3f6f0f8a11", "known": false,
        "status_url": "/v1/flaky-tests/uploads/0b7d6f5e-6f0e-5f2a-9d58-1d3f6f0f8a11"
    }],
    "refused": [{
        "line": 2, "rule": "too_old",
        "reason": "the run ended at 2026-08-01T10:16:02.000Z, and results are kept for 45 days"
    }]
}))]
pub(crate) struct ImportReply {
    /// The runs, in the order of their times.
    uploads: Vec<ImportedRun>,
    /// Runs that are not imported because of their time.
    refused: Vec<RefusedRun>,
}

impl ImportedRun {
    fn of(line: Option<usize>, id: &impl ToString, known: bool) -> Self {
        let upload_id = id.to_string();
        let status_url = format!("/v1/flaky-tests/uploads/{upload_id}");
        Self { line, upload_id, status_url, known }
    }
}

impl RefusedRun {
    fn of(line: Option<usize>, reason: RefusedTime) -> Self {
        Self { line, rule: reason.rule(), reason: reason.to_string() }
    }
}

/// Import results of the past.
///
/// Either NDJSON with a run of a job per line, or the reports of one run: JUnit files as for
/// uploadTestReports, or a bundle of the public uploader. A run counts as of the time at which it
/// ended. Send runs in the order of their times, then call finishImport: changes in the past send no
/// events. Importing the same run again has no effect. One malformed line refuses the request.
#[utoipa::path(
    post,
    path = "/v1/flaky-tests/import",
    operation_id = "importTestReports",
    tag = "flaky tests",
    params(
        ("repo" = RepoText, Query, description = "The repository: host/owner/name.", example = "github.com/acme/calc"),
        ("at" = Option<TimeText>, Query, description = "When the run ended, RFC 3339; default: when a bundle was made, or the last test ended. Not for NDJSON."),
        ("branch" = Option<String>, Query, description = "The branch that was tested. Not for NDJSON."),
        ("sha" = Option<ShaText>, Query, description = "The commit that was tested. Not for NDJSON."),
        ("base" = Option<String>, Query, description = "The merge commit that was tested, or the commit of the target branch that the tested one was merged into. Not for NDJSON."),
        ("pr" = Option<PrNumberFromOne>, Query, description = "The pull request that was tested. Not for NDJSON."),
        ("job" = Option<String>, Query, description = "The name of the CI job. Not for NDJSON."),
        ("job_url" = Option<String>, Query, description = "The URL of the CI job. Not for NDJSON."),
        ("author" = Option<String>, Query, description = "The author of the commit. Not for NDJSON."),
        ("variant" = Option<String>, Query, description = "The variant of the tests; part of their identity. Not for NDJSON."),
    ),
    request_body(content(
        (String = "application/x-ndjson", example = json!("{\"at\": \"2026-09-17T10:16:02Z\", \"sha\": \"1f0c1b9d2f3f4e5a6b7c8d9e0f1a2b3c4d5e6f70\", \"branch\": \"main\", \"job\": \"unit\", \"tests\": [{\"name\": \"adds\", \"outcome\": \"passed\"}]}")),
        (String = "application/xml"),
        (FilesForm = "multipart/form-data"),
        (BinaryBody = "application/octet-stream"),
    ), description = "NDJSON, at most 16 MiB; JUnit reports; or a bundle."),
    responses((status = OK, description = "The uploads.", body = ImportReply), OfUpload),
    security(("ApiKeyAuth" = []))
)]
pub(crate) async fn handle(
    request: HttpRequest,
    api: Data<Api>,
    Authenticated(caller): Authenticated,
    parameters: Query<Parameters>,
    body: Payload,
) -> Result<Json<ImportReply>, Problem> {
    if !caller.may(Scope::TestsAdmin) {
        return Err(signalbox_services::Error::MissingScope(Scope::TestsAdmin).into());
    }
    let mut parameters = parameters.into_inner();
    let mut errors = Errors::default();
    let at = parameters.remove("at").filter(|it| !it.is_empty()).and_then(|text| {
        let wrong = || format!("must be a time by RFC 3339, but is {}", shown(&text));
        errors.keep("/at", Timestamp::parse(&text).ok_or_else(wrong))
    });
    let (repo, claims) = claims(&mut parameters, &mut errors);
    let repo = errors.finish(repo)?;
    let holders = caller.holders(&request);
    let sender = Sender::Token(caller);
    let encoding = Encoding::of(&request)?;
    let essence = request.content_type().trim().to_ascii_lowercase();
    if ["application/x-ndjson", "application/jsonl"].contains(&essence.as_str()) {
        stream::check_length(&request, NDJSON_BYTES)?;
        let mut held = held_by(&request, holders)?;
        let text = encoding::whole(body, encoding, NDJSON_BYTES, &mut held).await?;
        return lines(&api, &sender, &repo, &text).await;
    }
    stream::check_length(&request, api.uploads.limits().bytes)?;
    let imported = api.uploads.import(&sender, &repo, Claims { at, ..claims }).await?;
    let is_form = essence == "multipart/form-data";
    if !is_form && !REPORTS.contains(&essence.as_str()) {
        let expected = "application/x-ndjson, application/xml, multipart/form-data or \
                        application/octet-stream";
        return Err(wrong_type(&request, expected));
    }
    let mut upload = match imported {
        Ok(upload) => upload,
        Err(reason) => {
            let refused = vec![RefusedRun::of(None, reason)];
            return Ok(Json(ImportReply { uploads: Vec::new(), refused }));
        }
    };
    if is_form {
        form(&request, &api, encoding, body, &mut upload).await?;
    } else {
        api.uploads.next_file(&mut upload, "run").await?;
        let most = api.uploads.limits().bytes;
        encoding::into_upload(body, encoding, &mut upload, most).await?;
    }
    let taken = api.uploads.complete_and_tell(upload).await?;
    let uploads = vec![ImportedRun::of(None, &taken.id, taken.is_known)];
    Ok(Json(ImportReply { uploads, refused: Vec::new() }))
}

async fn lines(
    api: &Api,
    sender: &Sender,
    repo: &RepoName,
    text: &[u8],
) -> Result<Json<ImportReply>, Problem> {
    let imported = api.uploads.import_lines(sender, repo, text).await;
    let imported = imported.map_err(|refusal| match refusal {
        ImportRefusal::Lines(problems) => {
            let words =
                problems.into_iter().map(|(line, problem)| format!("line {line}: {problem}"));
            Problem::new(Code::MalformedBody, words.collect::<Vec<_>>().join("; "))
        }
        ImportRefusal::Error(error) => error.into(),
    })?;
    let uploads = imported.uploads.iter();
    let refused = imported.refused.iter();
    Ok(Json(ImportReply {
        uploads: uploads
            .map(|(line, id, known)| ImportedRun::of(Some(*line), id, *known))
            .collect(),
        refused: refused.map(|it| RefusedRun::of(Some(it.line), it.reason)).collect(),
    }))
}
