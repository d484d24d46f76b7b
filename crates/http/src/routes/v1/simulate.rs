//! `GET /v1/simulate`.

use actix_web::HttpResponse;
use actix_web::http::Method;
use actix_web::web::{Data, Query, block};

use crate::api::Api;
use crate::authenticated::Authenticated;
use crate::dto::{Simulation, SimulationQuery, SimulationReply};
use crate::failures::OfSimulation;
use crate::problem::Problem;

/// Simulate the last days of a queue with changed settings.
///
/// Simulates the pull requests that left the queue in the last days, with its present and with changed
/// settings. Nothing is applied. Arrival times, test durations, outcomes, authors and priorities come from
/// the history. Not simulated: conflicts, flaky tests, timeouts, retries, limits and turns of authors,
/// labels of agents, isolated targets, direct merges, pauses, freezes without an end or with a scope, and the number of CI machines. A pull request that failed
/// always fails, so optimistic merging and waiting for later test runs show no benefit. PARALLEL mode needs
/// the reported targets of every simulated pull request. A server runs one simulation at a time. After ten
/// seconds the reply covers the seeds completed so far; with fewer than five it is an error.
#[utoipa::path(
    get,
    path = "/v1/simulate",
    operation_id = "simulate",
    tag = "merge queue",
    params(SimulationQuery),
    responses((status = OK, description = "The simulation.", body = SimulationReply), OfSimulation),
    security(("ApiKeyAuth" = []))
)]
pub(crate) async fn handle(
    api: Data<Api>,
    Authenticated(caller): Authenticated,
    method: Method,
    Query(given): Query<Vec<(String, String)>>,
) -> Result<HttpResponse, Problem> {
    let Simulation { repo, branch, days, change } = SimulationQuery::read(&given)?;
    let question = api.what_if.question(&caller, &repo, &branch, days, change).await?;
    if method == Method::HEAD {
        return Ok(HttpResponse::Ok().finish());
    }
    let answer = block(move || question.answer()).await.map_err(|error| {
        tracing::error!(%error, "a simulation panicked");
        Problem::internal()
    })?;
    Ok(HttpResponse::Ok().json(SimulationReply::of(&answer?)))
}
