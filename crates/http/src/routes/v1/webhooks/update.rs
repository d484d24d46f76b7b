//! `POST /v1/webhooks/update`.

use actix_web::web::{Data, Json};

use crate::api::Api;
use crate::authenticated::AuthenticatedJson;
use crate::dto::webhooks::{UpdateWebhookRequest, WebhookReply};
use crate::failures::OfWebhook;
use crate::problem::Problem;

/// Change an endpoint, or turn it on or off.
#[utoipa::path(
    post,
    path = "/v1/webhooks/update",
    operation_id = "updateWebhook",
    tag = "webhooks",
    request_body = UpdateWebhookRequest,
    responses((status = OK, description = "The changed endpoint.", body = WebhookReply), OfWebhook),
    security(("ApiKeyAuth" = []))
)]
pub(crate) async fn handle(
    api: Data<Api>,
    AuthenticatedJson { caller, body }: AuthenticatedJson<UpdateWebhookRequest>,
) -> Result<Json<WebhookReply>, Problem> {
    let (id, change) = body;
    let endpoint = api.webhooks.update_endpoint(&caller, id, &change).await?;
    Ok(Json(WebhookReply::of(&endpoint)))
}
