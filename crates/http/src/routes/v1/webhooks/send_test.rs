//! `POST /v1/webhooks/test`.

use actix_web::web::{Data, Json};

use crate::api::Api;
use crate::authenticated::AuthenticatedJson;
use crate::dto::webhooks::{TestSentReply, TestWebhookRequest};
use crate::failures::OfWebhookSending;
use crate::problem::Problem;

/// Send an example of an event to an endpoint, signed and retried like any other message.
#[utoipa::path(
    post,
    path = "/v1/webhooks/test",
    operation_id = "testWebhook",
    tag = "webhooks",
    request_body = TestWebhookRequest,
    responses((status = OK, description = "The message.", body = TestSentReply), OfWebhookSending),
    security(("ApiKeyAuth" = []))
)]
pub(crate) async fn handle(
    api: Data<Api>,
    AuthenticatedJson { caller, body }: AuthenticatedJson<TestWebhookRequest>,
) -> Result<Json<TestSentReply>, Problem> {
    let (id, event) = body;
    let message = api.webhooks.send_test(&caller, id, event.as_deref()).await?;
    Ok(Json(TestSentReply::of(&message)))
}
