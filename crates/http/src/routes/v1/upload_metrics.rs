//! `POST /v1/flakytests-cli/upload-metrics`: the uploader's metrics about its own work. It is
//! sometimes sent without a credential, and the reply is always the same.

use actix_web::web::{Json, Payload};

use crate::dto::Empty;
use crate::stream;

pub(crate) const PATH: &str = "/v1/flakytests-cli/upload-metrics";
/// The most bytes that are read.
const MAX_BODY: u64 = 64 * 1024;

pub(crate) async fn handle(body: Payload) -> Json<Empty> {
    if let Err(problem) = stream::drain(body, MAX_BODY).await {
        tracing::debug!(%problem, "could not read the metrics of an uploader");
    }
    Json(Empty {})
}
