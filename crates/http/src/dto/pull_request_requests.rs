//! Requests about pull requests in a queue.

use serde::Deserialize;
use signalbox_domain::ids::{BranchName, PrNumber};
use signalbox_domain::ports::PullRequestQuery;
use signalbox_services::{Extras, SubmitOptions};
use utoipa::ToSchema;

use super::field::{Errors, Field, object_form};
use super::forms::{Flag, Number, PriorityForm, Text};
use super::place::{RepoBranch, RepoRef, Request, broken, check_place};
use super::shapes::{BranchText, PrNumberChoice};
use super::words::PriorityNameWord;

/// A pull request by number.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(example = json!({"number": 42}))]
pub(crate) struct PrByNumber {
    /// Its number; a decimal string is accepted too.
    #[schema(value_type = PrNumberChoice, required)]
    number: Field<Number>,
}

impl PrByNumber {
    fn check(pr: Field<Self>, errors: &mut Errors) -> Option<PrNumber> {
        Self::check_at("/pr", pr, errors)
    }

    pub(super) fn check_at(at: &str, pr: Field<Self>, errors: &mut Errors) -> Option<PrNumber> {
        let pr = errors.required(at, pr)?;
        errors.required(&format!("{at}/number"), pr.number).map(|number| PrNumber(number.0))
    }
}

/// A request about one pull request.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({
    "repo": {"host": "github.com", "owner": "acme", "name": "calc"},
    "targetBranch": "main",
    "pr": {"number": 42}
}))]
pub(crate) struct PullRequestRequest {
    /// The repository.
    #[schema(value_type = RepoRef, required)]
    repo: Field<RepoRef>,
    /// The branch that the merge queue targets.
    #[schema(value_type = BranchText, required)]
    target_branch: Field<Text>,
    /// The pull request.
    #[schema(value_type = PrByNumber, required)]
    pr: Field<PrByNumber>,
}

impl Request for PullRequestRequest {
    type Checked = (RepoBranch, PrNumber);

    fn check(self, errors: &mut Errors) -> Option<Self::Checked> {
        let place = check_place(self.repo, self.target_branch, errors);
        let pr = PrByNumber::check(self.pr, errors);
        Some((place?, pr?))
    }
}

/// A submission.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({
    "repo": {"host": "github.com", "owner": "acme", "name": "calc"},
    "targetBranch": "main",
    "pr": {"number": 42},
    "priority": "high",
    "noBatch": false
}))]
pub(crate) struct SubmitRequest {
    /// The repository.
    #[schema(value_type = RepoRef, required)]
    repo: Field<RepoRef>,
    /// The branch that the merge queue targets.
    #[schema(value_type = BranchText, required)]
    target_branch: Field<Text>,
    /// The pull request.
    #[schema(value_type = PrByNumber, required)]
    pr: Field<PrByNumber>,
    /// The priority: lower numbers go first, 0 is urgent and interrupts. Default: medium
    /// (100).
    #[schema(value_type = Option<PriorityChoice>)]
    priority: Field<PriorityForm>,
    /// Whether it must be tested alone.
    #[schema(value_type = Option<bool>)]
    no_batch: Field<Flag>,
}

/// A priority by number or by name.
#[derive(ToSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "describes the two types")]
pub(crate) enum PriorityChoice {
    /// Lower is sooner; 0 is urgent.
    Number(u32),
    Name(PriorityNameWord),
}

impl Request for SubmitRequest {
    type Checked = (RepoBranch, PrNumber, SubmitOptions);

    fn check(self, errors: &mut Errors) -> Option<Self::Checked> {
        let place = check_place(self.repo, self.target_branch, errors);
        let pr = PrByNumber::check(self.pr, errors);
        let priority = errors.optional("/priority", self.priority).map(|it| it.0);
        let no_batch = errors.optional("/noBatch", self.no_batch).map(|it| it.0);
        Some((place?, pr?, SubmitOptions { priority, no_batch, ..SubmitOptions::default() }))
    }
}

/// A pull request by exactly one of its number and the branch that it comes from.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(example = json!({"number": 42}))]
pub(crate) struct PrByEither {
    /// Its number; a decimal string is accepted too.
    #[schema(value_type = Option<PrNumberChoice>)]
    number: Field<Number>,
    /// Its head branch: the open pull request from it, otherwise the one closed last.
    #[schema(value_type = Option<BranchText>)]
    branch: Field<Text>,
}

impl PrByEither {
    fn check(pr: Field<Self>, errors: &mut Errors) -> Option<PullRequestQuery> {
        let pr = errors.required("/pr", pr)?;
        if matches!((&pr.number, &pr.branch), (Field::Absent, Field::Absent)) {
            errors.add("/pr", "must have one of number and branch");
            return None;
        }
        let number = errors.optional("/pr/number", pr.number);
        let branch = errors.optional("/pr/branch", pr.branch);
        match (number, branch) {
            (Some(number), None) => Some(PullRequestQuery::Number(PrNumber(number.0))),
            (None, Some(Text(branch))) => errors
                .keep("/pr/branch", BranchName::new(branch).map_err(|error| broken(&error)))
                .map(|branch| PullRequestQuery::Branch(branch.to_string())),
            (Some(_), Some(_)) => {
                errors.add("/pr", "must have either number or branch, not both");
                None
            }
            (None, None) => None,
        }
    }
}

/// A lookup of a submitted pull request.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({
    "repo": {"host": "github.com", "owner": "acme", "name": "calc"},
    "targetBranch": "main",
    "pr": {"number": 42}
}))]
pub(crate) struct EntryRequest {
    /// The repository.
    #[schema(value_type = RepoRef, required)]
    repo: Field<RepoRef>,
    /// The branch that the merge queue targets.
    #[schema(value_type = BranchText, required)]
    target_branch: Field<Text>,
    /// The pull request.
    #[schema(value_type = PrByEither, required)]
    pr: Field<PrByEither>,
    /// Whether to include its `timeline`.
    #[schema(value_type = Option<bool>)]
    include_timeline: Field<Flag>,
    /// Whether to include `estimatedTimeToMerge`.
    #[schema(value_type = Option<bool>)]
    include_estimated_time_to_merge: Field<Flag>,
}

/// A checked lookup.
#[derive(Debug)]
pub(crate) struct LookUp {
    pub(crate) place: RepoBranch,
    pub(crate) query: PullRequestQuery,
    pub(crate) extras: Extras,
}

impl Request for EntryRequest {
    type Checked = LookUp;

    fn check(self, errors: &mut Errors) -> Option<LookUp> {
        let place = check_place(self.repo, self.target_branch, errors);
        let query = PrByEither::check(self.pr, errors);
        let mut flag =
            |pointer, field| errors.optional(pointer, field).is_some_and(|it: Flag| it.0);
        let extras = Extras {
            timeline: flag("/includeTimeline", self.include_timeline),
            estimate: flag("/includeEstimatedTimeToMerge", self.include_estimated_time_to_merge),
            bisection: false,
        };
        Some(LookUp { place: place?, query: query?, extras })
    }
}

object_form!(PrByNumber, PullRequestRequest, SubmitRequest, PrByEither, EntryRequest);
