//! `POST /v1/flakytests-cli/upload-metrics`: what the uploader tells of its own work. It comes
//! without any credential at times, waits long for an answer, and always gets the same.

use actix_web::web::{Json, Payload};

use crate::dto::Empty;
use crate::stream;

pub(crate) const PATH: &str = "/v1/flakytests-cli/upload-metrics";
/// The most bytes that are looked at.
const MAX_BODY: u64 = 64 * 1024;

pub(crate) async fn handle(body: Payload) -> Json<Empty> {
    if let Err(problem) = stream::drain(body, MAX_BODY).await {
        tracing::debug!(%problem, "an uploader's own report was not read");
    }
    Json(Empty {})
}
