//! A report of an external check.

use serde::Deserialize;
use signalbox_domain::ids::{RunId, Sha};
use signalbox_domain::queue::{CheckConclusion, CheckStatus};
use signalbox_services::CheckResult;
use utoipa::ToSchema;

use super::field::{Errors, Field, object_form, shown};
use super::forms::Text;
use super::place::{RepoBranch, RepoRef, Request, broken, check_place};
use super::queue_requests::RunText;
use super::shapes::{BranchText, ShaText};
use super::words::{CheckConclusionWord, CheckStatusWord};

/// The most characters of a check's name.
const MAX_NAME: usize = 255;
/// The most characters of a URL.
const MAX_URL: usize = 2_000;
/// The most characters of a summary.
const MAX_SUMMARY: usize = 500;

/// The state of an external check.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({
    "repo": {"host": "git.local", "owner": "acme", "name": "calc"},
    "targetBranch": "main",
    "testRunId": "0b7d6f5e-6f0e-4f2a-9d58-1d3f6f0f8a11",
    "sha": "9d58c1b9d2f3f4e5a6b7c8d9e0f1a2b3c4d5e6f7",
    "check": "test",
    "status": "COMPLETED",
    "conclusion": "SUCCESS",
    "url": "https://ci.example/builds/1201",
    "summary": "412 tests passed in 38 s"
}))]
pub(crate) struct CheckResultRequest {
    /// The repository.
    #[schema(value_type = RepoRef, required)]
    repo: Field<RepoRef>,
    /// The branch that the merge queue targets.
    #[schema(value_type = BranchText, required)]
    target_branch: Field<Text>,
    /// The id of the test run, which is also the end of its test branch's name.
    #[schema(value_type = String, required)]
    test_run_id: Field<Text>,
    /// The commit that the CI tested.
    #[schema(value_type = ShaText, required)]
    sha: Field<Text>,
    /// The name of the check.
    #[schema(value_type = String, required, min_length = 1, max_length = 255)]
    check: Field<Text>,
    /// Its status. An earlier status than the recorded one has no effect.
    #[schema(value_type = CheckStatusWord, required)]
    status: Field<Text>,
    /// Its conclusion; required with the status `COMPLETED`, and allowed only then. `SUCCESS`, `NEUTRAL`
    /// and `SKIPPED` count as success.
    #[schema(value_type = Option<CheckConclusionWord>)]
    conclusion: Field<Text>,
    /// The URL of its details, shown on the pages.
    #[schema(value_type = Option<String>, max_length = 2000, pattern = r"^(https?://[^\s\x00-\x1f\x7f-\x9f]+)?$")]
    url: Field<Text>,
    /// One line of detail, without control characters.
    #[schema(value_type = Option<String>, max_length = 500, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$")]
    summary: Field<Text>,
}

/// A result without the run that it is about.
#[derive(Debug)]
pub(crate) struct Reported {
    sha: Sha,
    check: String,
    status: CheckStatus,
    conclusion: Option<CheckConclusion>,
    url: String,
    summary: Option<String>,
}

impl Reported {
    pub(crate) fn of(self, run: RunId) -> CheckResult {
        let Self { sha, check, status, conclusion, url, summary } = self;
        CheckResult { run, sha, check, status, conclusion, url, summary }
    }
}

/// A checked report.
#[derive(Debug)]
pub(crate) struct CheckReported {
    pub(crate) place: RepoBranch,
    pub(crate) run: RunText,
    pub(crate) result: Reported,
}

fn is_link(url: &str) -> bool {
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    rest.is_some_and(|rest| !rest.is_empty())
        && !url.chars().any(|c| c.is_control() || c.is_whitespace())
}

fn wrong_name(names: &[&str], given: &str) -> String {
    format!("must be one of {}, but is {}", names.join(", "), shown(given))
}

/// The status and the conclusion of a report.
fn state(
    status: Field<Text>,
    conclusion: Field<Text>,
    errors: &mut Errors,
) -> Option<(CheckStatus, Option<CheckConclusion>)> {
    let status = errors.required("/status", status).and_then(|Text(name)| {
        errors.keep(
            "/status",
            CheckStatus::parse(&name).ok_or_else(|| wrong_name(CheckStatus::NAMES, &name)),
        )
    })?;
    let is_absent = matches!(conclusion, Field::Absent);
    let conclusion = errors.optional("/conclusion", conclusion).and_then(|Text(name)| {
        errors.keep(
            "/conclusion",
            CheckConclusion::parse(&name).ok_or_else(|| wrong_name(CheckConclusion::NAMES, &name)),
        )
    });
    match (status, is_absent) {
        (CheckStatus::Completed, true) => {
            errors.add("/conclusion", "is required with the status COMPLETED");
            None
        }
        (CheckStatus::Queued | CheckStatus::InProgress, false) => {
            errors.add("/conclusion", "must be omitted unless the status is COMPLETED");
            None
        }
        (CheckStatus::Completed, false) => conclusion.map(|it| (status, Some(it))),
        (CheckStatus::Queued | CheckStatus::InProgress, true) => Some((status, None)),
    }
}

impl Request for CheckResultRequest {
    type Checked = CheckReported;

    fn check(self, errors: &mut Errors) -> Option<CheckReported> {
        let place = check_place(self.repo, self.target_branch, errors);
        let run = errors.required("/testRunId", self.test_run_id).map(|it| RunText(it.0));
        let sha = errors.required("/sha", self.sha).and_then(|Text(sha)| {
            let sha = Sha::new(sha.to_ascii_lowercase()).map_err(|error| broken(&error));
            errors.keep("/sha", sha)
        });
        let check = errors.required("/check", self.check).and_then(|Text(name)| {
            let is_valid = !name.is_empty() && name.chars().count() <= MAX_NAME;
            let wrong = || format!("must have 1 to {MAX_NAME} characters");
            errors.keep("/check", is_valid.then_some(name).ok_or_else(wrong))
        });
        let state = state(self.status, self.conclusion, errors);
        let url = errors.optional("/url", self.url).map_or_else(String::new, |it| it.0);
        if !url.is_empty() && (url.chars().count() > MAX_URL || !is_link(&url)) {
            let rule = format!("must be an http or https URL with at most {MAX_URL} characters");
            errors.add("/url", rule);
        }
        let summary = errors.optional("/summary", self.summary).map(|it| it.0);
        let summary = summary.filter(|text| !text.is_empty());
        if let Some(text) = &summary
            && (text.chars().count() > MAX_SUMMARY || text.chars().any(char::is_control))
        {
            errors.add("/summary", format!("must be one line of at most {MAX_SUMMARY} characters"));
        }
        let (status, conclusion) = state?;
        let result = Reported { sha: sha?, check: check?, status, conclusion, url, summary };
        Some(CheckReported { place: place?, run: run?, result })
    }
}

object_form!(CheckResultRequest);
