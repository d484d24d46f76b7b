//! The routes: an address, its method, its handler. Another method is told which one to use.

pub(crate) mod health;
pub(crate) mod v1;

use actix_web::web::{self, ServiceConfig};
use actix_web::{Handler, HttpRequest, HttpResponse, Resource, Responder};

use crate::openapi;
use crate::problem::Problem;
use v1::{
    cancel_pull_request, check_output, create_queue, delete_queue, get_merge_queue_metrics,
    get_merge_queue_testing_details, get_queue, get_submitted_pull_request,
    restart_tests_on_pull_request, set_impacted_targets, status, submit_pull_request, update_queue,
};

async fn use_post(_: HttpRequest) -> Result<HttpResponse, Problem> {
    Err(Problem::wrong_method("POST"))
}

async fn use_get(_: HttpRequest) -> Result<HttpResponse, Problem> {
    Err(Problem::wrong_method("GET, HEAD"))
}

fn post<F, Args>(path: &str, handler: F) -> Resource
where
    F: Handler<Args>,
    Args: actix_web::FromRequest + 'static,
    F::Output: Responder + 'static,
{
    web::resource(path).route(web::post().to(handler)).default_service(web::to(use_post))
}

fn get<F, Args>(path: &str, handler: F) -> Resource
where
    F: Handler<Args>,
    Args: actix_web::FromRequest + 'static,
    F::Output: Responder + 'static,
{
    web::resource(path)
        .route(web::get().to(handler.clone()))
        .route(web::head().to(handler))
        .default_service(web::to(use_get))
}

/// Adds every route of the API.
pub(crate) fn configure(config: &mut ServiceConfig) {
    config
        .service(post("/v1/submitPullRequest", submit_pull_request::submit_pull_request))
        .service(post("/v1/cancelPullRequest", cancel_pull_request::cancel_pull_request))
        .service(post(
            "/v1/restartTestsOnPullRequest",
            restart_tests_on_pull_request::restart_tests_on_pull_request,
        ))
        .service(post(
            "/v1/getSubmittedPullRequest",
            get_submitted_pull_request::get_submitted_pull_request,
        ))
        .service(post("/v1/setImpactedTargets", set_impacted_targets::set_impacted_targets))
        .service(post(
            "/v1/getMergeQueueTestingDetails",
            get_merge_queue_testing_details::get_merge_queue_testing_details,
        ))
        .service(post("/v1/createQueue", create_queue::create_queue))
        .service(post("/v1/deleteQueue", delete_queue::delete_queue))
        .service(post("/v1/getQueue", get_queue::get_queue))
        .service(post("/v1/updateQueue", update_queue::update_queue))
        .service(get("/v1/getMergeQueueMetrics", get_merge_queue_metrics::get_merge_queue_metrics))
        .service(get("/v1/testRuns/{run}/checks/{name}/output", check_output::get_check_output))
        .service(get("/v1/status", status::get_status))
        .service(get("/v1/openapi.json", openapi::serve));
}
