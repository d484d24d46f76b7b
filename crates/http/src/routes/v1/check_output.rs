//! `GET /v1/testRuns/{run}/checks/{name}/output`.

use actix_web::HttpResponse;
use actix_web::http::header::{CONTENT_DISPOSITION, CONTENT_SECURITY_POLICY};
use actix_web::web::{Data, Path};
use signalbox_domain::ids::RunId;

use crate::api::Api;
use crate::authenticated::Authenticated;
use crate::dto::shown;
use crate::failures::OfOutput;
use crate::problem::{Code, Problem};

/// Get the output of a check.
///
/// While a check runs on a bare repository, returns the end of its output so far, a few seconds
/// late.
///
/// Not available to tokens that are limited to repositories, because a run id does not name one.
#[utoipa::path(
    get,
    path = "/v1/testRuns/{run}/checks/{name}/output",
    operation_id = "getCheckOutput",
    tag = "merge queue",
    params(
        ("run" = String, Path, description = "The test run.", example = "0b7d6f5e-6f0e-4f2a-9d58-1d3f6f0f8a11"),
        ("name" = String, Path, description = "The check.", example = "test"),
    ),
    responses((status = OK, description = "The output, possibly shortened.", body = String, content_type = "text/plain", example = json!("12 tests passed")), OfOutput),
    security(("ApiKeyAuth" = []))
)]
pub(crate) async fn handle(
    api: Data<Api>,
    Authenticated(caller): Authenticated,
    path: Path<(String, String)>,
) -> Result<HttpResponse, Problem> {
    let (run, name) = path.into_inner();
    let unknown = || {
        let detail = format!("no output of check {} in test run {}", shown(&name), shown(&run));
        Problem::new(Code::UnknownOutput, detail)
    };
    let id = run.parse().map(RunId).map_err(|_| unknown())?;
    if !caller.repos.is_empty() {
        return Err(unknown());
    }
    let output = api.failures().output(&caller, id, &name).await?.ok_or_else(unknown)?;
    // The text is whatever a pull request made a check print: a browser must not act on it.
    Ok(HttpResponse::Ok()
        .content_type("text/plain; charset=utf-8")
        .insert_header((CONTENT_DISPOSITION, "inline; filename=\"output.txt\""))
        .insert_header((CONTENT_SECURITY_POLICY, "default-src 'none'; sandbox"))
        .body(output.text))
}
