//! `POST /v1/metrics/createBundleUpload`: the URL for the uploader's bundle.

use actix_web::HttpRequest;
use actix_web::web::{Data, Json};
use serde::Serialize;
use signalbox_services::{Error, Sender};
use utoipa::ToSchema;

use crate::api::Api;
use crate::authenticated::AuthenticatedJson;
use crate::dto::AnnounceRequest;
use crate::failures::OfAnnouncement;
use crate::problem::{Code, Problem};

/// Where to send a bundle.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({
    "id": "0b7d6f5e-6f0e-4f2a-9d58-1d3f6f0f8a11", "idV2": "0b7d6f5e-6f0e-4f2a-9d58-1d3f6f0f8a11",
    "url": "https://queue.acme.test/v1/uploads/0b7d6f5e-6f0e-4f2a-9d58-1d3f6f0f8a11/bundle.tar.zst?signature=7f6d0d6e2f5b4a61",
    "key": "uploads/0b7d6f5e-6f0e-4f2a-9d58-1d3f6f0f8a11/bundle.tar.zst",
    "testCollectionBundleMetaId": null, "testCollectionBundleMetaCreatedAt": null
}))]
pub(crate) struct BundleUploadReply {
    /// The id of the upload.
    id: String,
    /// The same.
    id_v2: String,
    /// Where to send the bundle with `PUT`. The URL is the permission.
    url: String,
    /// The path of the bundle.
    key: String,
    /// Always `null`.
    test_collection_bundle_meta_id: Option<String>,
    /// Always `null`.
    test_collection_bundle_meta_created_at: Option<String>,
}

/// Announce a bundle of test results and get the URL to send it to.
///
/// This is the public uploader's operation. It may also send the public id of the repository instead
/// of a token.
#[utoipa::path(
    post,
    path = "/v1/metrics/createBundleUpload",
    operation_id = "createBundleUpload",
    tag = "flaky tests",
    request_body = AnnounceRequest,
    responses((status = OK, description = "Where to send the bundle.", body = BundleUploadReply), OfAnnouncement),
    security(("ApiKeyAuth" = []), ("PublicRepositoryId" = []))
)]
pub(crate) async fn handle(
    request: HttpRequest,
    api: Data<Api>,
    AuthenticatedJson { caller, body }: AuthenticatedJson<AnnounceRequest, Sender>,
) -> Result<Json<BundleUploadReply>, Problem> {
    let announced = api.uploads.announce(&caller, &body.repo, &body.org_slug).await;
    let announced = announced.map_err(|error| match error {
        // The uploader fails a CI job when the reply is "not found".
        Error::UnknownRepository(_) => Problem::new(Code::UploadRefused, error.to_string()),
        error => error.into(),
    })?;
    let id = announced.id.to_string();
    let key = format!("uploads/{id}/bundle.tar.zst");
    let own = || {
        let seen = request.connection_info();
        format!("{}://{}", seen.scheme(), seen.host())
    };
    let origin = api.public_url.clone().unwrap_or_else(own);
    Ok(Json(BundleUploadReply {
        url: format!("{origin}/v1/{key}?signature={}", announced.secret),
        id_v2: id.clone(),
        id,
        key,
        test_collection_bundle_meta_id: None,
        test_collection_bundle_meta_created_at: None,
    }))
}
