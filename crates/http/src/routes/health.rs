//! Probes: liveness and readiness.

use actix_web::HttpResponse;
use actix_web::http::header::ContentType;
use actix_web::web::Data;

use crate::api::Api;
use crate::problem::not_ready;

pub(crate) async fn healthz() -> HttpResponse {
    HttpResponse::Ok().content_type(ContentType::plaintext()).body("ok\n")
}

pub(crate) async fn readyz(api: Data<Api>) -> HttpResponse {
    match api.readiness.missing().await {
        None => HttpResponse::Ok().content_type(ContentType::plaintext()).body("ready\n"),
        Some(words) => not_ready(&words),
    }
}
