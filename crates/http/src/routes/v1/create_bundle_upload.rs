//! `POST /v1/metrics/createBundleUpload`: the URL for the uploader's bundle.

use actix_web::HttpRequest;
use actix_web::web::{Data, Json};
use serde::Serialize;
use signalbox_services::{Error, Sender};

use crate::api::Api;
use crate::authenticated::AuthenticatedJson;
use crate::dto::AnnounceRequest;
use crate::problem::{Code, Problem};

pub(crate) const PATH: &str = "/v1/metrics/createBundleUpload";

/// The reply.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Answer {
    id: String,
    id_v2: String,
    url: String,
    key: String,
    test_collection_bundle_meta_id: Option<String>,
    test_collection_bundle_meta_created_at: Option<String>,
}

pub(crate) async fn handle(
    request: HttpRequest,
    api: Data<Api>,
    AuthenticatedJson { caller, body }: AuthenticatedJson<AnnounceRequest, Sender>,
) -> Result<Json<Answer>, Problem> {
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
    Ok(Json(Answer {
        url: format!("{origin}/v1/{key}?signature={}", announced.secret),
        id_v2: id.clone(),
        id,
        key,
        test_collection_bundle_meta_id: None,
        test_collection_bundle_meta_created_at: None,
    }))
}
