//! `GET /v1/events/schemas`.

use actix_web::web::{Data, Json};

use crate::api::Api;
use crate::dto::{CatalogEntry, CatalogReply};
use crate::failures::OfOpen;

/// List the catalog of events.
#[utoipa::path(
    get,
    path = "/v1/events/schemas",
    operation_id = "listEventSchemas",
    tag = "events",
    responses((status = OK, description = "The events.", body = CatalogReply), OfOpen),
)]
pub(crate) async fn handle(api: Data<Api>) -> Json<CatalogReply> {
    let entry = |event: &crate::api::EventDescription| CatalogEntry {
        r#type: event.kind.clone(),
        description: event.description.clone(),
        schema: format!("/v1/events/schemas/{}", event.kind),
    };
    Json(CatalogReply { events: api.events.catalog.events().iter().map(entry).collect() })
}
