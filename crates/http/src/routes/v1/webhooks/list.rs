//! `POST /v1/webhooks/list`.

use actix_web::web::{Data, Json};

use crate::api::Api;
use crate::authenticated::AuthenticatedJson;
use crate::dto::webhooks::{ListWebhooksRequest, WebhooksReply};
use crate::failures::OfWebhooks;
use crate::problem::Problem;

/// List the endpoints of the organization, and the names of all events.
#[utoipa::path(
    post,
    path = "/v1/webhooks/list",
    operation_id = "listWebhooks",
    tag = "webhooks",
    request_body = ListWebhooksRequest,
    responses((status = OK, description = "The endpoints.", body = WebhooksReply), OfWebhooks),
    security(("ApiKeyAuth" = []))
)]
pub(crate) async fn handle(
    api: Data<Api>,
    AuthenticatedJson { caller, body }: AuthenticatedJson<ListWebhooksRequest>,
) -> Result<Json<WebhooksReply>, Problem> {
    let () = body;
    let endpoints = api.webhooks.endpoints(&caller).await?;
    let (known, default) = (api.webhooks.kinds(), api.webhooks.default_kinds());
    Ok(Json(WebhooksReply::of(&endpoints, known, default)))
}
