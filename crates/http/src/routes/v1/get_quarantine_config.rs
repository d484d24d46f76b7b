//! `POST /v1/metrics/getQuarantineConfig`: which failures the uploader may excuse.

use actix_web::HttpRequest;
use actix_web::web::{Data, Json, Payload};
use serde::Serialize;
use signalbox_domain::ids::RepoName;
use signalbox_services::Sender;
use utoipa::ToSchema;

use crate::api::Api;
use crate::authenticated::{Authenticated, Credentials as _};
use crate::dto::{AskedCase, AskedRepo, Question};
use crate::failures::OfQuarantineConfig;
use crate::problem::Problem;
use crate::stream;

/// The largest request, in bytes. Each failed test may have a message of 8,000 bytes, which is not
/// kept. The limit is high, because after a refusal every failure counts.
const MAX_BODY: u64 = 256 * 1024 * 1024;
/// The same for a client with a public id only: 2,000 such messages.
const MAX_PUBLIC_BODY: u64 = 16 * 1024 * 1024;

/// Which failures the uploader may excuse.
#[derive(Debug, Default, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({
    "isDisabled": false, "testIds": ["06cb6db5-f807-5198-b072-af67a0636f8a"]
}))]
pub(crate) struct QuarantineConfigReply {
    /// Whether quarantine is off for the repository.
    is_disabled: bool,
    /// The ids of the quarantined tests among those of the request.
    test_ids: Vec<String>,
}

/// Ask which failures count as passed, because their tests are quarantined.
///
/// This is the public uploader's operation. It may also send the public id of the repository instead
/// of a token. A body may have 256 MiB, or 16 MiB without a token.
#[utoipa::path(
    post,
    path = "/v1/metrics/getQuarantineConfig",
    operation_id = "getQuarantineConfig",
    tag = "flaky tests",
    request_body = Question,
    responses((status = OK, description = "What is quarantined.", body = QuarantineConfigReply), OfQuarantineConfig),
    security(("ApiKeyAuth" = []), ("PublicRepositoryId" = []))
)]
pub(crate) async fn handle(
    request: HttpRequest,
    api: Data<Api>,
    Authenticated(sender): Authenticated<Sender>,
    body: Payload,
) -> Result<Json<QuarantineConfigReply>, Problem> {
    let most = match &sender {
        Sender::Token(_) => MAX_BODY,
        Sender::Public(_) => MAX_PUBLIC_BODY,
    };
    stream::check_length(&request, most)?;
    let spool = api.admission.bodies.spool(sender.holders(&request));
    let question: Question = stream::json(body, most, spool).await?;
    let AskedRepo { host, owner, name } = question.repo;
    // No registered repository has such a name: nothing is excused.
    let Ok(repo) = RepoName::new(&host, owner, name) else {
        return Ok(Json(QuarantineConfigReply::default()));
    };
    let asked = question.test_identifiers.into_iter().map(AskedCase::asked).collect();
    let org = question.org_url_slug.unwrap_or_default();
    let answer = api.uploads.quarantined(&sender, &repo, &org, asked).await?;
    Ok(Json(QuarantineConfigReply { is_disabled: answer.disabled, test_ids: answer.ids }))
}
