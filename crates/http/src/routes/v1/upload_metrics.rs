//! `POST /v1/flakytests-cli/upload-metrics`: the uploader's metrics about its own work. It is
//! sometimes sent without a credential, and the reply is always the same.

use actix_web::web::{Json, Payload};

use crate::dto::{BinaryBody, Empty};
use crate::failures::OfOpen;
use crate::stream;

/// The most bytes that are read.
const MAX_BODY: u64 = 64 * 1024;

/// Accept the metrics of the public uploader about its own work. They are not used.
#[utoipa::path(
    post,
    path = "/v1/flakytests-cli/upload-metrics",
    operation_id = "uploadMetrics",
    tag = "flaky tests",
    request_body(content = Option<BinaryBody>, content_type = "application/x-protobuf", description = "A message of at most 64 KiB."),
    responses((status = OK, description = "Received.", body = Empty, example = json!({})), OfOpen)
)]
pub(crate) async fn handle(body: Payload) -> Json<Empty> {
    if let Err(problem) = stream::drain(body, MAX_BODY).await {
        tracing::debug!(%problem, "could not read the metrics of an uploader");
    }
    Json(Empty {})
}
