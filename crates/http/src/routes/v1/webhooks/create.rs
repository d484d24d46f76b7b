//! `POST /v1/webhooks/create`.

use actix_web::web::{Data, Json};

use crate::api::Api;
use crate::authenticated::AuthenticatedJson;
use crate::dto::webhooks::{CreateWebhookRequest, CreatedWebhookReply};
use crate::failures::OfNewWebhook;
use crate::problem::Problem;

/// Create a webhook endpoint. It receives events from now on. The secret is shown only in this
/// reply.
#[utoipa::path(
    post,
    path = "/v1/webhooks/create",
    operation_id = "createWebhook",
    tag = "webhooks",
    request_body = CreateWebhookRequest,
    responses((status = OK, description = "The endpoint and its secret.", body = CreatedWebhookReply), OfNewWebhook),
    security(("ApiKeyAuth" = []))
)]
pub(crate) async fn handle(
    api: Data<Api>,
    AuthenticatedJson { caller, body }: AuthenticatedJson<CreateWebhookRequest>,
) -> Result<Json<CreatedWebhookReply>, Problem> {
    let created = api.webhooks.create_endpoint(&caller, body.settings, body.enabled).await?;
    Ok(Json(CreatedWebhookReply::of(created)))
}
