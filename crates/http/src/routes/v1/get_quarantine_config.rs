//! `POST /v1/metrics/getQuarantineConfig`: which failures the uploader may excuse.

use actix_web::web::{Data, Json, Payload};
use serde::{Deserialize, Serialize};
use signalbox_domain::flaky::{AskedTest, TestKey};
use signalbox_domain::ids::RepoName;

use crate::api::Api;
use crate::problem::Problem;
use crate::sender::Sent;
use crate::stream;

pub(crate) const PATH: &str = "/v1/metrics/getQuarantineConfig";
/// The most bytes of a question. Each failed test may bring a message of 8,000 bytes, which is not
/// kept, and a question that is refused makes every failure count just when there are many.
const MAX_BODY: u64 = 256 * 1024 * 1024;

/// A question. Fields that are not here, such as messages, are passed over.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Question {
    repo: Repo,
    #[serde(default)]
    org_url_slug: String,
    #[serde(default)]
    test_identifiers: Vec<Test>,
}

#[derive(Debug, Default, Deserialize)]
struct Repo {
    host: String,
    owner: String,
    name: String,
}

#[derive(Debug, Deserialize)]
struct Test {
    #[serde(default)]
    name: String,
    #[serde(default, rename = "parentName", alias = "parent_name")]
    parent: String,
    #[serde(default, rename = "className", alias = "class_name")]
    class: Option<String>,
    file: Option<String>,
    #[serde(default)]
    id: String,
    variant: Option<String>,
}

impl Test {
    fn asked(self) -> AskedTest {
        AskedTest {
            key: TestKey {
                parent: self.parent,
                classname: self.class.unwrap_or_default(),
                file: self.file.unwrap_or_default(),
                name: self.name,
                variant: self.variant.unwrap_or_default(),
                ..TestKey::default()
            },
            id: self.id,
        }
    }
}

/// The answer.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Answer {
    is_disabled: bool,
    test_ids: Vec<String>,
}

pub(crate) async fn handle(
    api: Data<Api>,
    Sent(sender): Sent,
    body: Payload,
) -> Result<Json<Answer>, Problem> {
    let question: Question = stream::json(body, MAX_BODY).await?;
    let Repo { host, owner, name } = question.repo;
    // No repository of ours has such a name: nothing is excused.
    let Ok(repo) = RepoName::new(&host, owner, name) else { return Ok(Json(Answer::default())) };
    let asked = question.test_identifiers.into_iter().map(Test::asked).collect();
    let answer = api.uploads.quarantined(&sender, &repo, &question.org_url_slug, asked).await?;
    Ok(Json(Answer { is_disabled: answer.disabled, test_ids: answer.ids }))
}
