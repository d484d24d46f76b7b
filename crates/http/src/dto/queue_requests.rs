//! Requests about queues and test runs. Unknown keys are ignored; optional fields may be
//! `null`.

use serde::Deserialize;
use signalbox_domain::ids::{RepoName, RunId};
use signalbox_domain::queue::{Mode, Settings};
use utoipa::ToSchema;

use super::field::{Errors, Field, object_form, shown};
use super::forms::{Count, Text};
use super::place::{RepoBranch, RepoRef, Request, check_place, check_repo};
use super::setting::keep;
use super::shapes::BranchText;
use super::words::ModeWord;
use crate::problem::{Code, Problem};

/// The queue of a request.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({
    "repo": {"host": "github.com", "owner": "acme", "name": "calc"}, "targetBranch": "main"
}))]
pub(crate) struct QueueRequest {
    /// The repository.
    #[schema(value_type = RepoRef, required)]
    repo: Field<RepoRef>,
    /// The branch that the merge queue targets.
    #[schema(value_type = BranchText, required)]
    target_branch: Field<Text>,
}

impl Request for QueueRequest {
    type Checked = RepoBranch;

    fn check(self, errors: &mut Errors) -> Option<RepoBranch> {
        check_place(self.repo, self.target_branch, errors)
    }
}

/// A request for queues.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(example = json!({"repo": {"host": "github.com", "owner": "acme", "name": "calc"}}))]
pub(crate) struct QueuesRequest {
    /// Only the queues of this repository; default: of all that the token may see.
    #[schema(value_type = Option<RepoRef>)]
    repo: Field<RepoRef>,
}

impl Request for QueuesRequest {
    type Checked = Option<RepoName>;

    fn check(self, errors: &mut Errors) -> Option<Self::Checked> {
        match errors.optional("/repo", self.repo) {
            Some(repo) => check_repo(repo, errors).map(Some),
            None => Some(None),
        }
    }
}

/// A new queue.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({
    "repo": {"host": "github.com", "owner": "acme", "name": "calc"},
    "targetBranch": "main",
    "mode": "SINGLE",
    "concurrency": 5
}))]
pub(crate) struct CreateRequest {
    /// The repository.
    #[schema(value_type = RepoRef, required)]
    repo: Field<RepoRef>,
    /// The branch that the merge queue targets.
    #[schema(value_type = BranchText, required)]
    target_branch: Field<Text>,
    /// The mode; default `SINGLE`.
    #[schema(value_type = Option<ModeWord>)]
    mode: Field<Text>,
    /// The most test runs at the same time; default 1.
    #[schema(value_type = Option<u32>, minimum = 1, maximum = 1000)]
    concurrency: Field<Count>,
}

/// The settings of a new queue.
#[derive(Debug)]
pub(crate) struct Create {
    pub(crate) place: RepoBranch,
    pub(crate) mode: Mode,
    pub(crate) concurrency: Option<u32>,
}

impl Request for CreateRequest {
    type Checked = Create;

    fn check(self, errors: &mut Errors) -> Option<Create> {
        let place = check_place(self.repo, self.target_branch, errors);
        let mode = errors.optional("/mode", self.mode).map(|Text(text)| {
            let wrong = || format!("must be SINGLE or PARALLEL, but is {}", shown(&text));
            errors.keep("/mode", Mode::parse(&text).ok_or_else(wrong))
        });
        let concurrency = errors.optional("/concurrency", self.concurrency).map(|it| it.0);
        if let Some(concurrency) = concurrency {
            keep(errors, Settings::new(Mode::Single, concurrency));
        }
        Some(Create { place: place?, mode: mode.unwrap_or(Some(Mode::Single))?, concurrency })
    }
}

/// A lookup of test runs.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({
    "repo": {"host": "github.com", "owner": "acme", "name": "calc"},
    "targetBranch": "main",
    "testRunId": "0b7d6f5e-6f0e-4f2a-9d58-1d3f6f0f8a11"
}))]
pub(crate) struct RunRequest {
    /// The repository.
    #[schema(value_type = RepoRef, required)]
    repo: Field<RepoRef>,
    /// The branch that the merge queue targets.
    #[schema(value_type = BranchText, required)]
    target_branch: Field<Text>,
    /// The id of a run, which is also the end of its test branch's name; omitted: all runs in
    /// progress.
    #[schema(value_type = Option<String>)]
    test_run_id: Field<Text>,
}

/// The id of a run as a client wrote it. Branches of bisections end in `-bisection…`; ids are
/// accepted in that form too.
#[derive(Debug)]
pub(crate) struct RunText(pub(crate) String);

impl RunText {
    /// The id. A text that is not an id names a run that does not exist.
    pub(crate) fn parse(&self) -> Result<RunId, Problem> {
        let text = self.0.as_str();
        let id = text.split_once("-bisection").map_or(text, |(id, _)| id).parse();
        id.map(RunId).map_err(|_| {
            let detail = format!("test run {} not found", shown(text));
            Problem::new(Code::UnknownRun, detail)
        })
    }
}

impl Request for RunRequest {
    type Checked = (RepoBranch, Option<RunText>);

    fn check(self, errors: &mut Errors) -> Option<Self::Checked> {
        let place = check_place(self.repo, self.target_branch, errors);
        let run = errors.optional("/testRunId", self.test_run_id).map(|it| it.0);
        Some((place?, run.filter(|run| !run.is_empty()).map(RunText)))
    }
}

object_form!(QueueRequest, QueuesRequest, CreateRequest, RunRequest);
