//! `POST /v1/flaky-tests/list-uploads`.

use actix_web::web::{Data, Json};
use signalbox_services::Error;

use crate::api::Api;
use crate::authenticated::AuthenticatedJson;
use crate::dto::{ListUploads, ListUploadsRequest, UploadsReply};
use crate::failures::OfUploads;
use crate::problem::Problem;

/// List the uploads of a repository, newest first: their states, contents and
/// warnings.
#[utoipa::path(
    post,
    path = "/v1/flaky-tests/list-uploads",
    operation_id = "listTestUploads",
    tag = "flaky tests",
    request_body = ListUploadsRequest,
    responses((status = OK, description = "A page of uploads.", body = UploadsReply), OfUploads),
    security(("ApiKeyAuth" = []))
)]
pub(crate) async fn handle(
    api: Data<Api>,
    AuthenticatedJson { caller, body }: AuthenticatedJson<ListUploadsRequest>,
) -> Result<Json<UploadsReply>, Problem> {
    let ListUploads { repo, org_slug, after, page_size } = body;
    let own = org_slug.as_deref().is_none_or(|slug| slug == caller.org_slug.as_str());
    // The scope is checked first, so that a missing scope is the error.
    let uploads = api.uploads.uploads(&caller, &repo, after, page_size + 1).await?;
    if !own {
        return Err(Error::UnknownRepository(repo).into());
    }
    Ok(Json(UploadsReply::of(&uploads, page_size)))
}
