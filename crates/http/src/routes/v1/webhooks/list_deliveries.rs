//! `POST /v1/webhooks/deliveries`.

use actix_web::web::{Data, Json};

use crate::api::Api;
use crate::authenticated::AuthenticatedJson;
use crate::dto::webhooks::{DeliveriesReply, DeliveriesRequest};
use crate::failures::OfWebhook;
use crate::problem::Problem;

/// List the messages of an endpoint, newest first: every delivery attempt with its response, and
/// the time of the next one.
#[utoipa::path(
    post,
    path = "/v1/webhooks/deliveries",
    operation_id = "listWebhookDeliveries",
    tag = "webhooks",
    request_body = DeliveriesRequest,
    responses((status = OK, description = "A page of deliveries.", body = DeliveriesReply), OfWebhook),
    security(("ApiKeyAuth" = []))
)]
pub(crate) async fn handle(
    api: Data<Api>,
    AuthenticatedJson { caller, body }: AuthenticatedJson<DeliveriesRequest>,
) -> Result<Json<DeliveriesReply>, Problem> {
    let (id, filter) = (body.id, &body.filter);
    let page = api.webhooks.deliveries(&caller, id, filter, body.after, body.page_size).await?;
    Ok(Json(DeliveriesReply::of(&page)))
}
