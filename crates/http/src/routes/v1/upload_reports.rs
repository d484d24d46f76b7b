//! `POST /v1/flaky-tests/upload`: JUnit files from clients without an uploader.

use std::collections::HashMap;

use actix_multipart::{Multipart, MultipartError};
use actix_web::http::header::CONTENT_TYPE;
use actix_web::web::{Data, Json, Payload, Query};
use actix_web::{HttpMessage, HttpRequest};
use futures_util::StreamExt;
use serde::Serialize;
use signalbox_domain::ids::{PrNumber, RepoName, Sha};
use signalbox_domain::token::Scope;
use signalbox_domain::upload::Claims;
use signalbox_services::{Intake, Sender};
use utoipa::ToSchema;

use crate::api::Api;
use crate::authenticated::Authenticated;
use crate::dto::{Errors, FilesForm, PrNumberFromOne, RepoText, ShaText, shown};
use crate::encoding::{self, Encoding};
use crate::failures::OfUpload;
use crate::pace::cut_off;
use crate::problem::{Code, Problem};
use crate::stream;

/// The created upload, or the existing one.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({
    "upload_id": "0b7d6f5e-6f0e-5f2a-9d58-1d3f6f0f8a11",
    "status_url": "/v1/flaky-tests/uploads/0b7d6f5e-6f0e-5f2a-9d58-1d3f6f0f8a11"
}))]
pub(crate) struct UploadReportsReply {
    /// Its id. The same files with the same parameters have the same id.
    upload_id: String,
    /// The URL of its state.
    status_url: String,
}

pub(super) type Parameters = HashMap<String, String>;

pub(super) fn claims(
    parameters: &mut Parameters,
    errors: &mut Errors,
) -> (Option<RepoName>, Claims) {
    let mut take = |name: &str| parameters.remove(name).filter(|value| !value.is_empty());
    let repo = match take("repo") {
        None => {
            errors.add("/repo", "is required");
            None
        }
        Some(text) => errors.keep("/repo", RepoName::parse(&text)),
    };
    let sha = take("sha").map(|sha| sha.to_ascii_lowercase());
    if let Some(sha) = &sha {
        errors.keep("/sha", Sha::new(sha.as_str()));
    }
    let pr = take("pr").and_then(|pr| {
        let number = pr.parse().ok().filter(|number| *number > 0).map(PrNumber);
        let wrong = || format!("must be a pull request's number, but is {}", shown(&pr));
        errors.keep("/pr", number.ok_or_else(wrong))
    });
    let claims = Claims {
        sha,
        branch: take("branch"),
        pr,
        job_url: take("job_url"),
        job_name: take("job"),
        check: take("check"),
        base: take("base"),
        author: take("author"),
        variant: take("variant").unwrap_or_default(),
        ..Claims::default()
    };
    (repo, claims)
}

/// Upload JUnit reports.
///
/// Either several files as multipart/form-data, one part each, or one report as the body itself.
/// They are read after the reply. Uploading the same files again has no effect. A single report may
/// have the content encoding gzip or zstd.
#[utoipa::path(
    post,
    path = "/v1/flaky-tests/upload",
    operation_id = "uploadTestReports",
    tag = "flaky tests",
    params(
        ("repo" = RepoText, Query, description = "The repository: host/owner/name.", example = "github.com/acme/calc"),
        ("branch" = Option<String>, Query, description = "The branch that was tested."),
        ("sha" = Option<ShaText>, Query, description = "The commit that was tested."),
        ("pr" = Option<PrNumberFromOne>, Query, description = "The pull request that was tested."),
        ("job" = Option<String>, Query, description = "The name of the CI job with its matrix entry, the same in every run. A failure and a success on one commit are compared if they are of one job."),
        ("check" = Option<String>, Query, description = "The name of the required status that the job reports. With it, the merge queue finds the test results of a failed check."),
        ("base" = Option<String>, Query, description = "The merge commit that was tested, or the commit of the target branch that the tested one was merged into. Without it, results of a pull request are compared with less weight."),
        ("job_url" = Option<String>, Query, description = "The URL of the CI job."),
        ("author" = Option<String>, Query, description = "The author of the commit."),
        ("variant" = Option<String>, Query, description = "The variant of the tests; part of their identity."),
    ),
    request_body(content(
        (String = "application/xml", example = json!("<testsuite name=\"s\"><testcase name=\"a\"/></testsuite>")),
        (FilesForm = "multipart/form-data"),
    ), description = "JUnit reports."),
    responses((status = OK, description = "The upload.", body = UploadReportsReply), OfUpload),
    security(("ApiKeyAuth" = []))
)]
pub(crate) async fn handle(
    request: HttpRequest,
    api: Data<Api>,
    Authenticated(caller): Authenticated,
    parameters: Query<Parameters>,
    body: Payload,
) -> Result<Json<UploadReportsReply>, Problem> {
    if !caller.may(Scope::TestsUpload) {
        return Err(signalbox_services::Error::MissingScope(Scope::TestsUpload).into());
    }
    let mut errors = Errors::default();
    let (repo, claims) = claims(&mut parameters.into_inner(), &mut errors);
    let repo = errors.finish(repo)?;
    let mut upload = api.uploads.accept(&Sender::Token(caller), &repo, claims).await?;
    stream::check_length(&request, api.uploads.limits().bytes)?;
    let encoding = Encoding::of(&request)?;
    let essence = request.content_type().trim().to_ascii_lowercase();
    match essence.as_str() {
        "multipart/form-data" => form(&request, &api, encoding, body, &mut upload).await?,
        "application/xml" | "text/xml" | "application/octet-stream" => {
            api.uploads.next_file(&mut upload, "report.xml").await?;
            let most = api.uploads.limits().bytes;
            encoding::into_upload(body, encoding, &mut upload, most).await?;
        }
        _ => return Err(wrong_type(&request, "multipart/form-data or application/xml")),
    }
    let id = api.uploads.complete(upload).await?.to_string();
    let status_url = format!("/v1/flaky-tests/uploads/{id}");
    Ok(Json(UploadReportsReply { upload_id: id, status_url }))
}

pub(super) fn wrong_type(request: &HttpRequest, expected: &str) -> Problem {
    let given = request.headers().get(CONTENT_TYPE).and_then(|it| it.to_str().ok());
    let given = shown(given.unwrap_or_default());
    let detail = format!("the content type must be {expected}, but is {given}");
    Problem::new(Code::WrongContentType, detail)
}

/// Writes the files of a form into an upload.
pub(super) async fn form(
    request: &HttpRequest,
    api: &Api,
    encoding: Encoding,
    body: Payload,
    upload: &mut Intake,
) -> Result<(), Problem> {
    if encoding != Encoding::Identity {
        let detail = "a form must have no content encoding; send one report as the body";
        return Err(Problem::new(Code::WrongContentType, detail));
    }
    files(api, Multipart::new(request.headers(), body.into_inner()), upload).await
}

async fn files(api: &Api, mut parts: Multipart, upload: &mut Intake) -> Result<(), Problem> {
    let malformed = |error: &MultipartError| match error {
        MultipartError::Payload(error) => cut_off(error),
        error => Problem::new(Code::MalformedBody, format!("malformed form: {error}")),
    };
    while let Some(part) = parts.next().await {
        let mut part = part.map_err(|error| malformed(&error))?;
        let file = part.content_disposition().and_then(|it| it.get_filename().map(str::to_owned));
        let name = file.or_else(|| part.name().map(str::to_owned));
        api.uploads.next_file(upload, name.as_deref().unwrap_or("report.xml")).await?;
        while let Some(chunk) = part.next().await {
            let chunk = chunk.map_err(|error| malformed(&error))?;
            upload.write(&chunk).await?;
        }
    }
    Ok(())
}
