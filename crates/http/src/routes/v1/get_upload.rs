//! `GET /v1/flaky-tests/uploads/{upload}`.

use actix_web::web::{Data, Json, Path};
use signalbox_domain::flaky::UploadId;
use signalbox_domain::token::Scope;
use signalbox_services::Error;

use crate::api::Api;
use crate::authenticated::Authenticated;
use crate::dto::{UploadReply, shown};
use crate::failures::OfUploadStatus;
use crate::problem::{Code, Problem};

/// Get the state of an upload.
#[utoipa::path(
    get,
    path = "/v1/flaky-tests/uploads/{upload}",
    operation_id = "getTestUpload",
    tag = "flaky tests",
    params(("upload" = String, Path, description = "The upload.", example = "0b7d6f5e-6f0e-5f2a-9d58-1d3f6f0f8a11")),
    responses((status = OK, description = "The upload.", body = UploadReply), OfUploadStatus),
    security(("ApiKeyAuth" = []))
)]
pub(crate) async fn handle(
    api: Data<Api>,
    Authenticated(caller): Authenticated,
    path: Path<String>,
) -> Result<Json<UploadReply>, Problem> {
    if !caller.may(Scope::TestsRead) {
        return Err(Error::MissingScope(Scope::TestsRead).into());
    }
    let id = path.parse().map(UploadId).map_err(|_| {
        Problem::new(Code::UnknownUpload, format!("upload {} not found", shown(&path)))
    })?;
    let (record, _) = api.uploads.upload(&caller, id).await?;
    Ok(Json(UploadReply::of(&record)))
}
