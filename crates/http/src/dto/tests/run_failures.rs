//! The tests that failed in a test run of a queue.

use serde::{Deserialize, Serialize};
use signalbox_domain::flaky::TestStatus;
use signalbox_services::RunFailure;
use utoipa::ToSchema;

use super::super::field::{Errors, Field, object_form};
use super::super::forms::Text;
use super::super::place::{RepoBranch, RepoRef, Request, check_place};
use super::super::shapes::BranchText;
use super::test_case::{TestLinks, TestStatusReply, some};

/// The most characters of a message.
const MAX_MESSAGE: usize = 500;

/// A test run of a queue.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({
    "repo": {"host": "github.com", "owner": "acme", "name": "calc"}, "targetBranch": "main",
    "testRunId": "0b7d6f5e-6f0e-4f2a-9d58-1d3f6f0f8a11"
}))]
pub(crate) struct RunFailuresRequest {
    /// The repository.
    #[schema(value_type = RepoRef, required)]
    repo: Field<RepoRef>,
    /// The branch that the merge queue targets.
    #[schema(value_type = BranchText, required)]
    target_branch: Field<Text>,
    /// The run.
    #[schema(value_type = String, required, format = Uuid)]
    test_run_id: Field<Text>,
}

impl Request for RunFailuresRequest {
    type Checked = (RepoBranch, uuid::Uuid);

    fn check(self, errors: &mut Errors) -> Option<Self::Checked> {
        let place = check_place(self.repo, self.target_branch, errors);
        let run = super::id(errors, "/testRunId", self.test_run_id);
        Some((place?, run?))
    }
}

/// A test that failed in a run.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RunFailureReply {
    /// The test's id.
    id: String,
    /// Its page.
    html_url: String,
    /// Its name.
    name: String,
    /// Its variant; empty when it has none.
    variant: String,
    /// Its file.
    #[serde(skip_serializing_if = "Option::is_none")]
    file_path: Option<String>,
    /// Its current status.
    status: TestStatusReply,
    /// Whether it is known to be flaky, so that the change may not be the cause.
    known_flaky: bool,
    /// Whether its next failure counts as passed.
    quarantined: bool,
    /// Whether its failure in this run counted as passed.
    excused: bool,
    /// How many of its attempts in the run failed.
    failures: u32,
    /// When it last failed in the run.
    failed_at: String,
    /// The message of its last failure, at most 500 characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
}

/// The tests that failed in a run.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RunFailuresReply {
    /// In the order of their ids.
    tests: Vec<RunFailureReply>,
}

impl RunFailureReply {
    pub(crate) fn of(failure: &RunFailure, links: &TestLinks) -> Self {
        let test = &failure.test.record.test;
        let message = failure.last.message.as_ref();
        Self {
            id: test.id.to_string(),
            html_url: links.test(&failure.test),
            name: test.key.name.clone(),
            variant: test.key.variant.clone(),
            file_path: some(&test.key.file),
            status: TestStatusReply::of(&failure.test),
            known_flaky: test.standing.value == TestStatus::Flaky,
            quarantined: failure.test.quarantined,
            excused: failure.last.quarantined,
            failures: failure.failures,
            failed_at: failure.last.at.to_string(),
            message: message.map(|text| text.chars().take(MAX_MESSAGE).collect()),
        }
    }
}

impl RunFailuresReply {
    pub(crate) fn of(failures: &[RunFailure], links: &TestLinks) -> Self {
        Self { tests: failures.iter().map(|it| RunFailureReply::of(it, links)).collect() }
    }
}

object_form!(RunFailuresRequest);
