//! `GET /v1/events`.

use actix_web::web::{Data, Json, Query};

use crate::api::Api;
use crate::authenticated::Authenticated;
use crate::dto::{EventWord, EventsReply, EventsRequest, PositionText};
use crate::failures::OfEvents;
use crate::problem::Problem;

/// Page through the public events of the organization.
///
/// Every change of a pull request, a batch, a queue or a test is listed once, in the order of its
/// commit. An event that is committed later never has a lower position.
#[utoipa::path(
    get,
    path = "/v1/events",
    operation_id = "listEvents",
    tag = "events",
    params(
        ("after" = Option<PositionText>, Query, description = "Events after this position; without it from the oldest that is kept.", example = "1042"),
        ("limit" = Option<u32>, Query, description = "The page size, 1 to 1000; default 100.", minimum = 1, maximum = 1000),
        ("type" = Option<Vec<EventWord>>, Query, style = Form, explode = false, description = "Only events with these names, separated by commas.", example = "pull_request.merged,pull_request.failed"),
    ),
    responses((status = OK, description = "The events.", body = EventsReply), OfEvents),
    security(("ApiKeyAuth" = []))
)]
pub(crate) async fn handle(
    api: Data<Api>,
    Authenticated(caller): Authenticated,
    Query(given): Query<Vec<(String, String)>>,
) -> Result<Json<EventsReply>, Problem> {
    let asked = EventsRequest::of(&given)?;
    let after = asked.after.unwrap_or(0);
    let read = api.events.service.after(&caller, after, asked.kinds.as_deref(), asked.limit);
    Ok(Json(EventsReply::of(read.await?)?))
}
