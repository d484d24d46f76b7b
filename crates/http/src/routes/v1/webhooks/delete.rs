//! `POST /v1/webhooks/delete`.

use actix_web::web::{Data, Json};

use crate::api::Api;
use crate::authenticated::AuthenticatedJson;
use crate::dto::Empty;
use crate::dto::webhooks::WebhookRequest;
use crate::failures::OfWebhook;
use crate::problem::Problem;

/// Delete an endpoint with its deliveries.
#[utoipa::path(
    post,
    path = "/v1/webhooks/delete",
    operation_id = "deleteWebhook",
    tag = "webhooks",
    request_body = WebhookRequest,
    responses((status = OK, description = "The endpoint is deleted.", body = Empty), OfWebhook),
    security(("ApiKeyAuth" = []))
)]
pub(crate) async fn handle(
    api: Data<Api>,
    AuthenticatedJson { caller, body }: AuthenticatedJson<WebhookRequest>,
) -> Result<Json<Empty>, Problem> {
    api.webhooks.delete_endpoint(&caller, body).await?;
    Ok(Json(Empty {}))
}
