//! `GET /v1/openapi.json`.

use actix_web::HttpResponse;
use actix_web::http::header::{AcceptEncoding, ContentEncoding, ContentType, Encoding, VARY};
use actix_web::web::{Data, Header};

use crate::api::Api;
use crate::failures::OfOpen;

/// Get this OpenAPI description.
#[utoipa::path(
    get,
    path = "/v1/openapi.json",
    operation_id = "getOpenApi",
    tag = "service",
    responses((status = OK, description = "The description of the API, in OpenAPI 3.1.", body = Object, content_type = "application/json", example = json!({"openapi": "3.1.0", "info": {"title": "Signalbox", "version": "1.0.0"}})), OfOpen),
)]
pub(crate) async fn handle(
    api: Data<Api>,
    accepted: Option<Header<AcceptEncoding>>,
) -> HttpResponse {
    let served = api.events.catalog.served();
    let offered = [Encoding::gzip(), Encoding::identity()];
    let chosen = accepted.and_then(|accepted| accepted.negotiate(offered.iter()));
    let mut reply = HttpResponse::Ok();
    reply.content_type(ContentType::json()).insert_header((VARY, "accept-encoding"));
    match &served.gzip {
        Some(gzip) if chosen == Some(Encoding::gzip()) => {
            reply.insert_header(ContentEncoding::Gzip).body(gzip.clone())
        }
        _ => reply.body(served.plain.clone()),
    }
}
