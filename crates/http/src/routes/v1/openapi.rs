//! `GET /v1/openapi.json`.

use actix_web::HttpResponse;
use actix_web::http::header::ContentType;

use crate::failures::OfOpen;
use crate::openapi;

/// Get this OpenAPI description.
#[utoipa::path(
    get,
    path = "/v1/openapi.json",
    operation_id = "getOpenApi",
    tag = "service",
    responses((status = OK, description = "The description of the API, in OpenAPI 3.1.", body = Object, content_type = "application/json"), OfOpen),
)]
pub(crate) async fn handle() -> HttpResponse {
    HttpResponse::Ok().content_type(ContentType::json()).body(openapi::document())
}
