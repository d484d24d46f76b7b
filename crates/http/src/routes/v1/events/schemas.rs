//! `GET /v1/events/schemas`.

use actix_web::web::{Data, Json};

use crate::api::Api;
use crate::dto::{CatalogueEntry, CatalogueReply};
use crate::failures::OfOpen;

/// List the catalogue of events.
#[utoipa::path(
    get,
    path = "/v1/events/schemas",
    operation_id = "listEventSchemas",
    tag = "events",
    responses((status = OK, description = "The events.", body = CatalogueReply), OfOpen),
)]
pub(crate) async fn handle(api: Data<Api>) -> Json<CatalogueReply> {
    let entry = |event: &crate::api::EventDescription| CatalogueEntry {
        r#type: event.kind.clone(),
        description: event.description.clone(),
        schema: format!("/v1/events/schemas/{}", event.kind),
    };
    Json(CatalogueReply { events: api.events.catalogue.iter().map(entry).collect() })
}
