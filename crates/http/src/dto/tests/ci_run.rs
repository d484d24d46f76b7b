//! A CI run, as its uploader reports it.

use serde::Deserialize;
use serde_json::{Value, json};
use signalbox_domain::ids::RepoName;
use utoipa::ToSchema;

use super::super::field::{Errors, Field, object_form, shown};
use super::super::forms::{Count, Text};
use super::super::place::{RepoRef, Request, check_repository};
use super::super::words::{CiCauseWord, CiConclusionWord, CiProviderWord};
use super::commands::text;
use super::{NamedOrg, slug, time};

/// A CI run, as its uploader reports it.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(example = json!({
    "repo": {"host": "github.com", "owner": "acme", "name": "calc"}, "org_url_slug": "acme",
    "ci_job_name": "test", "run_start": "2026-01-01T00:00:00Z",
    "run_end": "2026-01-01T00:05:00Z", "branch": "main",
    "sha": "1f0c1b9d2f3f4e5a6b7c8d9e0f1a2b3c4d5e6f70", "attempt": 1, "provider": "github"
}))]
pub(crate) struct CiRunRequest {
    /// The repository.
    #[schema(value_type = RepoRef, required)]
    repo: Field<RepoRef>,
    /// The slug of the token's organization.
    #[schema(value_type = String, required)]
    org_url_slug: Field<Text>,
    /// The job's name.
    #[schema(value_type = String, required, min_length = 1, max_length = 1000)]
    ci_job_name: Field<Text>,
    /// When it started.
    #[schema(value_type = String, required, format = DateTime)]
    run_start: Field<Text>,
    /// When it ended, not before it started.
    #[schema(value_type = String, required, format = DateTime)]
    run_end: Field<Text>,
    /// The branch.
    #[schema(value_type = String, required, min_length = 1, max_length = 1000)]
    branch: Field<Text>,
    /// The commit.
    #[schema(value_type = String, required, min_length = 1, max_length = 1000)]
    sha: Field<Text>,
    /// Which attempt it was.
    #[schema(value_type = u32, required)]
    attempt: Field<Count>,
    /// The CI system.
    #[schema(value_type = Option<CiProviderWord>)]
    provider: Field<Text>,
    /// `success`, `failure`, `skipped` or `cancelled`.
    #[schema(value_type = Option<CiConclusionWord>)]
    run_conclusion: Field<Text>,
    /// `test` or `ci`.
    #[schema(value_type = Option<CiCauseWord>)]
    run_conclusion_cause: Field<Text>,
    /// The job's id at the CI system.
    #[schema(value_type = Option<String>)]
    providers_job_id: Field<Text>,
    /// The run's id at the CI system.
    #[schema(value_type = Option<String>)]
    providers_run_id: Field<Text>,
}

/// A CI run.
#[derive(Debug, serde::Serialize, ToSchema)]
pub(crate) struct CiRunReply {
    /// Its id.
    pub(crate) run_id: String,
}

/// CI systems.
pub(crate) const PROVIDERS: [&str; 12] = [
    "github",
    "jenkins",
    "circleci",
    "semaphore",
    "travis",
    "webappio",
    "codebuild",
    "bitbucket",
    "azure",
    "gitlab",
    "drone",
    "buildkite",
];

/// How a CI run ends.
pub(crate) const CONCLUSIONS: [&str; 4] = ["success", "failure", "skipped", "cancelled"];

/// What decides how it ends.
pub(crate) const CAUSES: [&str; 2] = ["test", "ci"];

fn one_of(errors: &mut Errors, pointer: &str, field: Field<Text>, words: &[&str]) -> Option<Value> {
    let Some(Text(text)) = errors.optional(pointer, field) else { return Some(Value::Null) };
    let known = words.iter().find(|word| word.eq_ignore_ascii_case(&text));
    let wrong = || format!("must be one of {}, but is {}", words.join(", "), shown(&text));
    errors.keep(pointer, known.ok_or_else(wrong)).map(|word| json!(word))
}

impl Request for CiRunRequest {
    type Checked = (RepoName, NamedOrg, String);

    fn check(self, errors: &mut Errors) -> Option<Self::Checked> {
        let repo = check_repository(self.repo, errors);
        let org = slug(errors, self.org_url_slug);
        let job = text(errors, "/ci_job_name", self.ci_job_name);
        let start = time(errors, "/run_start", self.run_start);
        let end = time(errors, "/run_end", self.run_end);
        if start.zip(end).is_some_and(|(start, end)| end < start) {
            errors.add("/run_end", "must not be before run_start");
        }
        let branch = text(errors, "/branch", self.branch);
        let sha = text(errors, "/sha", self.sha);
        let attempt = errors.required("/attempt", self.attempt).map(|it| it.0);
        let provider = one_of(errors, "/provider", self.provider, &PROVIDERS);
        let conclusion = one_of(errors, "/run_conclusion", self.run_conclusion, &CONCLUSIONS);
        let cause = one_of(errors, "/run_conclusion_cause", self.run_conclusion_cause, &CAUSES);
        let job_id = errors.optional("/providers_job_id", self.providers_job_id).map(|it| it.0);
        let run_id = errors.optional("/providers_run_id", self.providers_run_id).map(|it| it.0);
        let document = json!({
            "ci_job_name": job?, "run_start": start?.to_string(), "run_end": end?.to_string(),
            "branch": branch?, "sha": sha?, "attempt": attempt?, "provider": provider?,
            "run_conclusion": conclusion?, "run_conclusion_cause": cause?,
            "providers_job_id": job_id, "providers_run_id": run_id,
        });
        Some((repo?, org?, document.to_string()))
    }
}

object_form!(CiRunRequest);
