//! `GET /v1/getMergeQueueMetrics`.

use actix_web::HttpResponse;
use actix_web::web::{Data, Query};
use signalbox_domain::ids::RepoName;

use crate::api::Api;
use crate::authenticated::Authenticated;
use crate::dto::Errors;
use crate::failures::OfMetrics;
use crate::problem::Problem;

/// The Prometheus text format, version 0.0.4.
const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Get metrics in the Prometheus text format.
#[utoipa::path(
    get,
    path = "/v1/getMergeQueueMetrics",
    operation_id = "getMergeQueueMetrics",
    tag = "merge queue",
    params(
        ("repo" = Option<String>, Query, description = "`owner/name`; without it all repositories of the organization. Required with `repoHost`.", example = "acme/calc"),
        ("repoHost" = Option<String>, Query, description = "The repository's host; required with `repo`.", example = "github.com"),
    ),
    responses((status = OK, description = "The metrics.", body = String, content_type = "text/plain; version=0.0.4; charset=utf-8", example = json!("mq_depth_current{repo=\"acme/calc\",branch=\"main\",queue_type=\"main\"} 3\n")), OfMetrics),
    security(("ApiKeyAuth" = []))
)]
pub(crate) async fn handle(
    api: Data<Api>,
    Authenticated(caller): Authenticated,
    Query(given): Query<Vec<(String, String)>>,
) -> Result<HttpResponse, Problem> {
    let repo = which(&given)?;
    let metrics = api.queues.metrics(&caller, repo.as_ref()).await?;
    Ok(HttpResponse::Ok().content_type(CONTENT_TYPE).body(api.exposition.render(&metrics)))
}

/// The repository of the request, if any. Unknown parameters are ignored.
fn which(given: &[(String, String)]) -> Result<Option<RepoName>, Problem> {
    let mut errors = Errors::default();
    let mut one = |name: &str| {
        let mut values = given.iter().filter(|(key, _)| key == name).map(|(_, value)| value);
        let value = values.next().filter(|value| !value.is_empty());
        if values.next().is_some() {
            errors.add(format!("/{name}"), "must be given once");
        }
        value
    };
    let (repo, host) = (one("repo"), one("repoHost"));
    let Some(repo) = repo else {
        if host.is_some() {
            errors.add("/repo", "is required when repoHost is given");
        }
        return errors.finish(Some(None));
    };
    let Some(host) = host else {
        errors.add("/repoHost", "is required when repo is given");
        return errors.finish(None);
    };
    let Some((owner, name)) = repo.rsplit_once('/') else {
        errors.add("/repo", "must have the form owner/name");
        return errors.finish(None);
    };
    let wrong_host = |host: &str| RepoName::new(host, "o", "n").is_err();
    let pointer = if wrong_host(host) { "/repoHost" } else { "/repo" };
    let named = RepoName::new(host, owner, name)
        .map_err(|error| format!("{:?} {}", error.value, error.rule));
    let named = errors.keep(pointer, named);
    errors.finish(named.map(Some))
}
