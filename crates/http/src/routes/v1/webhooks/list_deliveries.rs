//! `POST /v1/webhooks/deliveries`.

use actix_web::web::{Data, Json};

use crate::api::Api;
use crate::body::Asked;
use crate::dto::webhooks::{DeliveriesReply, DeliveriesRequest};
use crate::failures::OfWebhook;
use crate::problem::Problem;

/// List what was or is to be sent to an endpoint, newest first: every try with its answer, and when
/// the next one is.
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
    Asked { caller, asked }: Asked<DeliveriesRequest>,
) -> Result<Json<DeliveriesReply>, Problem> {
    let (id, filter) = (asked.id, &asked.filter);
    let page = api.webhooks.deliveries(&caller, id, filter, asked.after, asked.page_size).await?;
    Ok(Json(DeliveriesReply::of(&page)))
}
