//! `GET /v1/getMergeQueueMetrics`.

use actix_web::HttpResponse;
use actix_web::web::{Data, Query};
use serde::Deserialize;
use signalbox_domain::ids::RepoName;
use utoipa::IntoParams;

use crate::api::Api;
use crate::body::Authenticated;
use crate::problem::{Problem, ProblemBody};

/// The Prometheus text format that scrapers are promised.
const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Which repository.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
pub(crate) struct Which {
    /// `owner/name`; without it all repositories of the organization.
    repo: Option<String>,
    /// The repository's host; required with `repo`.
    repo_host: Option<String>,
}

/// Read metrics in the Prometheus text format.
#[utoipa::path(
    get,
    path = "/v1/getMergeQueueMetrics",
    operation_id = "getMergeQueueMetrics",
    tag = "merge queue",
    params(Which),
    responses(
        (status = OK, description = "The metrics.", body = String, content_type = "text/plain; version=0.0.4; charset=utf-8"),
        (status = "4XX", description = "Refused.", body = ProblemBody, content_type = "application/problem+json"),
        (status = UNAUTHORIZED, description = "No valid token.", body = String, content_type = "text/plain"),
        (status = "5XX", description = "Failed.", body = ProblemBody, content_type = "application/problem+json"),
    ),
    security(("ApiKeyAuth" = []))
)]
pub(crate) async fn get_merge_queue_metrics(
    api: Data<Api>,
    Authenticated(caller): Authenticated,
    which: Option<Query<Which>>,
) -> Result<HttpResponse, Problem> {
    let given = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
    let (repo, host) =
        which.map(|Query(which)| (given(&which.repo), given(&which.repo_host))).unwrap_or_default();
    let repo = match (repo, host) {
        (None, _) => None,
        (Some(_), None) => {
            return Err(Problem::invalid("/repoHost", "is required when repo is given"));
        }
        (Some(repo), Some(host)) => Some(
            RepoName::parse(&format!("{host}/{repo}"))
                .map_err(|error| Problem::invalid("/repo", error.to_string()))?,
        ),
    };
    let metrics = api.queues.metrics(&caller, repo.as_ref()).await?;
    Ok(HttpResponse::Ok().content_type(CONTENT_TYPE).body(api.exposition.render(&metrics)))
}
