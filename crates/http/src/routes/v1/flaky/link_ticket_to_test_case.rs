//! `POST /v1/flaky-tests/link-ticket-to-test-case`.

use actix_web::web::{Data, Json};

use crate::api::Api;
use crate::authenticated::AuthenticatedJson;
use crate::dto::{Empty, tests::TicketRequest};
use crate::failures::OfTest;
use crate::problem::Problem;

/// Link a ticket to a test; it replaces an earlier one.
#[utoipa::path(
    post,
    path = "/v1/flaky-tests/link-ticket-to-test-case",
    operation_id = "linkTicketToTestCase",
    tag = "flaky tests",
    request_body = TicketRequest,
    responses((status = OK, description = "Done.", body = Empty, example = json!({})), OfTest),
    security(("ApiKeyAuth" = []))
)]
pub(crate) async fn handle(
    api: Data<Api>,
    AuthenticatedJson { caller, body }: AuthenticatedJson<TicketRequest>,
) -> Result<Json<Empty>, Problem> {
    let (repo, test, ticket) = body;
    api.flaky.service.link_ticket(&caller, &repo, test, &ticket).await?;
    Ok(Json(Empty {}))
}
