//! `PUT /v1/uploads/{upload}/bundle.tar.zst?signature=…`: the bytes of an announced bundle. The
//! URL is the permission; sending the same bundle again has no effect.

use actix_web::HttpRequest;
use actix_web::web::{Data, Json, Path, Payload, Query};
use serde::Deserialize;
use signalbox_domain::flaky::{Trust, UploadId};
use signalbox_domain::upload::BlobOwner;
use signalbox_services::{Reception, UploadError};

use crate::admission::admit_known;
use crate::api::Api;
use crate::client::client_address;
use crate::dto::{BinaryBody, Empty};
use crate::failures::OfBundle;
use crate::holding::{Holder, public_holders};
use crate::problem::Problem;
use crate::stream;

/// The query of the URL.
#[derive(Deserialize)]
pub(crate) struct Signed {
    #[serde(default)]
    signature: String,
}

/// Send an announced bundle to the URL that `createBundleUpload` returned.
///
/// Sending it again has no effect.
#[utoipa::path(
    put,
    path = "/v1/uploads/{upload}/bundle.tar.zst",
    operation_id = "receiveBundle",
    tag = "flaky tests",
    params(
        ("upload" = Uuid, Path, description = "The id of the upload.", example = "0b7d6f5e-6f0e-4f2a-9d58-1d3f6f0f8a11"),
        ("signature" = String, Query, description = "The signature in the URL.", example = "7f6d0d6e2f5b4a61"),
    ),
    request_body(content = BinaryBody, content_type = "application/octet-stream", description = "The bundle, as the public uploader makes it."),
    responses((status = OK, description = "Received.", body = Empty, example = json!({})), OfBundle)
)]
pub(crate) async fn handle(
    request: HttpRequest,
    api: Data<Api>,
    path: Path<String>,
    signed: Query<Signed>,
    body: Payload,
) -> Result<Json<Empty>, Problem> {
    let wrong = || Problem::from(UploadError::WrongSignature);
    let id = path.parse().map(UploadId).map_err(|_| wrong())?;
    let most = api.uploads.limits().bytes;
    match api.uploads.receive(id, &signed.signature).await? {
        Reception::Open(mut upload) => {
            stream::check_length(&request, most)?;
            let BlobOwner { org, repo, trust } = upload.owner();
            let holders = match trust {
                Trust::Token => vec![Holder::Organization(org)],
                Trust::Public => public_holders(client_address(&request), repo),
            };
            admit_known(&request, &api, &holders).await?;
            stream::into_upload(body, &mut upload).await?;
            api.uploads.complete(*upload).await?;
        }
        Reception::Known => stream::drain(body, most).await?,
    }
    Ok(Json(Empty {}))
}
