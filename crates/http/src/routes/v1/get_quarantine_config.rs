//! `POST /v1/metrics/getQuarantineConfig`: which failures the uploader may excuse.

use actix_web::HttpRequest;
use actix_web::web::{Data, Json, Payload};
use serde::Serialize;
use signalbox_domain::ids::RepoName;
use signalbox_services::Sender;

use crate::api::Api;
use crate::authenticated::{Authenticated, Credentials as _};
use crate::dto::{AskedCase, AskedRepo, Question};
use crate::problem::Problem;
use crate::stream;

pub(crate) const PATH: &str = "/v1/metrics/getQuarantineConfig";
/// The largest request, in bytes. Each failed test may have a message of 8,000 bytes, which is not
/// kept. The limit is high, because after a refusal every failure counts.
const MAX_BODY: u64 = 256 * 1024 * 1024;
/// The same for a client with a public id only: 2,000 such messages.
const MAX_PUBLIC_BODY: u64 = 16 * 1024 * 1024;

/// The reply.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Answer {
    is_disabled: bool,
    test_ids: Vec<String>,
}

pub(crate) async fn handle(
    request: HttpRequest,
    api: Data<Api>,
    Authenticated(sender): Authenticated<Sender>,
    body: Payload,
) -> Result<Json<Answer>, Problem> {
    let most = match &sender {
        Sender::Token(_) => MAX_BODY,
        Sender::Public(_) => MAX_PUBLIC_BODY,
    };
    stream::check_length(&request, most)?;
    let spool = api.admission.bodies.spool(sender.holders(&request));
    let question: Question = stream::json(body, most, spool).await?;
    let AskedRepo { host, owner, name } = question.repo;
    // No registered repository has such a name: nothing is excused.
    let Ok(repo) = RepoName::new(&host, owner, name) else { return Ok(Json(Answer::default())) };
    let asked = question.test_identifiers.into_iter().map(AskedCase::asked).collect();
    let org = question.org_url_slug.unwrap_or_default();
    let answer = api.uploads.quarantined(&sender, &repo, &org, asked).await?;
    Ok(Json(Answer { is_disabled: answer.disabled, test_ids: answer.ids }))
}
