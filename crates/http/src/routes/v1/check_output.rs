//! `GET /v1/testRuns/{run}/checks/{name}/output`.

use actix_web::HttpResponse;
use actix_web::web::{Data, Path};
use signalbox_domain::ids::RunId;
use signalbox_domain::token::Scope;

use crate::api::Api;
use crate::body::Authenticated;
use crate::problem::{Code, Problem, ProblemBody};

/// Read what a check printed.
#[utoipa::path(
    get,
    path = "/v1/testRuns/{run}/checks/{name}/output",
    operation_id = "getCheckOutput",
    tag = "merge queue",
    params(("run" = String, Path, description = "The test run."), ("name" = String, Path, description = "The check.")),
    responses(
        (status = OK, description = "The output, possibly shortened.", body = String, content_type = "text/plain"),
        (status = "4XX", description = "Refused.", body = ProblemBody, content_type = "application/problem+json"),
        (status = UNAUTHORIZED, description = "No valid token.", body = String, content_type = "text/plain"),
    ),
    security(("ApiKeyAuth" = []))
)]
pub(crate) async fn get_check_output(
    api: Data<Api>,
    Authenticated(caller): Authenticated,
    path: Path<(String, String)>,
) -> Result<HttpResponse, Problem> {
    let (run, name) = path.into_inner();
    if !caller.may(Scope::QueueRead) {
        return Err(signalbox_domain::service::Error::MissingScope(Scope::QueueRead).into());
    }
    let unknown = || Problem::new(Code::UnknownRun, "no output of that check of that test run");
    let run = run.parse().map(RunId).map_err(|_| unknown())?;
    // A token that is limited to repositories has no way to name one here, so it reads none.
    if !caller.repos.is_empty() {
        return Err(unknown());
    }
    let output = api.check_log.read(caller.org, run, &name).await?.ok_or_else(unknown)?;
    Ok(HttpResponse::Ok().content_type("text/plain; charset=utf-8").body(output.text))
}
