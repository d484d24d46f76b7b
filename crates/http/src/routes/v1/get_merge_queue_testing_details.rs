//! `POST /v1/getMergeQueueTestingDetails`.

use actix_web::HttpResponse;
use actix_web::web::Data;
use signalbox_domain::ids::RunId;

use crate::api::Api;
use crate::body::Asked;
use crate::dto::{RunQuery, TestRunReply, TestRunsReply, Words};
use crate::problem::{Code, Problem, ProblemBody};

/// Read details of merge queue testing: one run, also one that has ended, or all in progress.
#[utoipa::path(
    post,
    path = "/v1/getMergeQueueTestingDetails",
    operation_id = "getMergeQueueTestingDetails",
    tag = "merge queue",
    request_body = RunQuery,
    responses(
        (status = OK, description = "With `testRunId` that run; without it `testRuns`.", body = inline(Details)),
        (status = "4XX", description = "Refused.", body = ProblemBody, content_type = "application/problem+json"),
        (status = UNAUTHORIZED, description = "No valid token.", body = String, content_type = "text/plain"),
        (status = "5XX", description = "Failed.", body = ProblemBody, content_type = "application/problem+json"),
    ),
    security(("ApiKeyAuth" = []))
)]
pub(crate) async fn get_merge_queue_testing_details(
    api: Data<Api>,
    asked: Asked<RunQuery>,
) -> Result<HttpResponse, Problem> {
    let (repo, branch) = asked.body.place()?;
    let words = Words(asked.caller.enum_case);
    let Some(text) = asked.body.test_run_id.as_deref().filter(|text| !text.is_empty()) else {
        let runs = api.queues.runs_in_progress(&asked.caller, &repo, &branch).await?;
        let test_runs = runs.iter().map(|run| TestRunReply::of(run, words)).collect();
        return Ok(HttpResponse::Ok().json(TestRunsReply { test_runs }));
    };
    // Branches of bisections end in `-bisection…`; ids are accepted in that form too.
    let id = text.split("-bisection").next().unwrap_or(text).parse();
    let Ok(id) = id.map(RunId) else {
        let detail = format!("test run {text:?} not found");
        return Err(Problem::new(Code::UnknownRun, detail));
    };
    let run = api.queues.run(&asked.caller, &repo, &branch, id).await?;
    Ok(HttpResponse::Ok().json(TestRunReply::of(&run, words)))
}

/// One run, or all in progress.
#[derive(serde::Serialize, utoipa::ToSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "describes the two replies")]
enum Details {
    /// The run that was asked for.
    One(Box<TestRunReply>),
    /// All runs in progress.
    All(TestRunsReply),
}
