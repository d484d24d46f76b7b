//! `GET /v1/events/schemas/{type}`.

use actix_web::HttpResponse;
use actix_web::web::{Data, Path};

use crate::api::Api;
use crate::dto::shown;
use crate::failures::OfEventSchema;
use crate::problem::{Code, Problem};

/// Read the JSON Schema of an event's payload.
#[utoipa::path(
    get,
    path = "/v1/events/schemas/{type}",
    operation_id = "getEventSchema",
    tag = "events",
    params(("type" = String, Path, description = "The event.", example = "pull_request.merged")),
    responses((status = OK, description = "The schema, in JSON Schema 2020-12.", body = Object, content_type = "application/schema+json", example = json!({"type": "object", "title": "pull_request.merged"})), OfEventSchema),
)]
pub(crate) async fn handle(api: Data<Api>, path: Path<String>) -> Result<HttpResponse, Problem> {
    let found = api.events.catalog.events().iter().find(|event| event.kind == *path);
    let Some(event) = found else {
        let words = format!("event {} not found", shown(&path));
        return Err(Problem::new(Code::UnknownEvent, words));
    };
    Ok(HttpResponse::Ok().content_type("application/schema+json").body(event.schema.clone()))
}
