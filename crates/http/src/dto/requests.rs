//! Request bodies. Keys that are not known are ignored; what is optional may be `null`.

use serde::{Deserialize, Serialize};
use signalbox_domain::ids::{BranchName, InvalidName, PrNumber, RepoName, Sha};
use signalbox_domain::ports::PullRequestQuery;
use signalbox_domain::queue::{
    MAX_TARGETS, Mode, Priority, Refusal, ReportedTargets, Settings, SettingsPatch, Targets,
};
use utoipa::ToSchema;

use super::field::{Errors, Field, object_form, shown};
use super::forms::{Count, Flag, Number, PriorityForm, TargetsForm, Text};
use super::words::ModeWord;

/// A body of a request: how it becomes what was asked.
pub(crate) trait Request {
    /// What was asked.
    type Asked;

    /// Checks every field. `None` only when something was added to the errors.
    fn check(self, errors: &mut Errors) -> Option<Self::Asked>;
}

/// A reply without data.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({}))]
pub(crate) struct Empty {}

/// A repository.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(example = json!({"host": "github.com", "owner": "acme", "name": "calc"}))]
pub(crate) struct RepoRef {
    /// The git host.
    #[schema(value_type = String, required)]
    host: Field<Text>,
    /// The owner; may contain `/` on hosts with groups.
    #[schema(value_type = String, required)]
    owner: Field<Text>,
    /// The repository's own name.
    #[schema(value_type = String, required)]
    name: Field<Text>,
}

/// A repository and a target branch, checked.
pub(crate) type Place = (RepoName, BranchName);

/// The rule of a name with the value that breaks it; the pointer says what was to be named.
fn broken(error: &InvalidName) -> String {
    format!("{:?} {}", error.value, error.rule)
}

fn check_repo(repo: RepoRef, errors: &mut Errors) -> Option<RepoName> {
    let host = errors.required("/repo/host", repo.host);
    let owner = errors.required("/repo/owner", repo.owner);
    let name = errors.required("/repo/name", repo.name);
    // Each part is checked beside parts that are fine, so that all mistakes are found.
    let mut part = |pointer, host: &str, owner: &str, name: &str| {
        errors.keep(pointer, RepoName::new(host, owner, name).map_err(|error| broken(&error)))
    };
    let host = host.filter(|host| part("/repo/host", &host.0, "o", "n").is_some());
    let owner = owner.filter(|owner| part("/repo/owner", "h", &owner.0, "n").is_some());
    let name = name.filter(|name| part("/repo/name", "h", "o", &name.0).is_some());
    RepoName::new(&host?.0, owner?.0, name?.0).ok()
}

pub(super) fn check_place(
    repo: Field<RepoRef>,
    branch: Field<Text>,
    errors: &mut Errors,
) -> Option<Place> {
    let repo = errors.required("/repo", repo).and_then(|repo| check_repo(repo, errors));
    let branch = errors.required("/targetBranch", branch).and_then(|Text(branch)| {
        errors.keep("/targetBranch", BranchName::new(branch).map_err(|error| broken(&error)))
    });
    Some((repo?, branch?))
}

/// Checks one setting by the queue's own rules, before the queue is touched.
pub(super) fn check_setting(errors: &mut Errors, alone: &SettingsPatch) {
    match alone.applied_to(&Settings::new(Mode::Single, 1)) {
        Ok(_) => {}
        Err(Refusal::InvalidSetting { field, rule }) => errors.add(format!("/{field}"), rule),
        Err(refusal) => errors.add("", refusal.to_string()),
    }
}

/// What every request names.
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
    #[schema(value_type = String, required)]
    target_branch: Field<Text>,
}

impl Request for QueueRequest {
    type Asked = Place;

    fn check(self, errors: &mut Errors) -> Option<Place> {
        check_place(self.repo, self.target_branch, errors)
    }
}

/// A pull request by number.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(example = json!({"number": 42}))]
pub(crate) struct PrByNumber {
    /// Its number; a decimal string is accepted too.
    #[schema(value_type = u32, required)]
    number: Field<Number>,
}

impl PrByNumber {
    fn check(pr: Field<Self>, errors: &mut Errors) -> Option<PrNumber> {
        let pr = errors.required("/pr", pr)?;
        errors.required("/pr/number", pr.number).map(|number| PrNumber(number.0))
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
    #[schema(value_type = String, required)]
    target_branch: Field<Text>,
    /// The pull request.
    #[schema(value_type = PrByNumber, required)]
    pr: Field<PrByNumber>,
}

impl Request for PullRequestRequest {
    type Asked = (Place, PrNumber);

    fn check(self, errors: &mut Errors) -> Option<Self::Asked> {
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
    #[schema(value_type = String, required)]
    target_branch: Field<Text>,
    /// The pull request.
    #[schema(value_type = PrByNumber, required)]
    pr: Field<PrByNumber>,
    /// How soon it wants its turn: lower is sooner, 0 interrupts. Medium (100) when nothing is
    /// said.
    #[schema(value_type = Option<PriorityChoice>)]
    priority: Field<PriorityForm>,
    /// Whether it must be tested alone.
    #[schema(value_type = Option<bool>)]
    no_batch: Field<Flag>,
}

/// A priority by number or by name.
#[derive(ToSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "describes the two forms")]
pub(crate) enum PriorityChoice {
    /// Lower is sooner; 0 is urgent.
    Number(u32),
    /// `urgent` (0), `high` (10), `medium` (100) or `low` (200).
    Name(String),
}

/// What a submission asks for.
#[derive(Debug)]
pub(crate) struct Submit {
    pub(crate) place: Place,
    pub(crate) pr: PrNumber,
    pub(crate) priority: Option<Priority>,
    pub(crate) no_batch: Option<bool>,
}

impl Request for SubmitRequest {
    type Asked = Submit;

    fn check(self, errors: &mut Errors) -> Option<Submit> {
        let place = check_place(self.repo, self.target_branch, errors);
        let pr = PrByNumber::check(self.pr, errors);
        let priority = errors.optional("/priority", self.priority).map(|it| it.0);
        let no_batch = errors.optional("/noBatch", self.no_batch).map(|it| it.0);
        Some(Submit { place: place?, pr: pr?, priority, no_batch })
    }
}

/// A pull request by exactly one of its number and the branch that it comes from.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(example = json!({"number": 42}))]
pub(crate) struct PrByEither {
    /// Its number; a decimal string is accepted too.
    #[schema(value_type = Option<u32>)]
    number: Field<Number>,
    /// Its head branch: the open pull request from it, else the one closed last.
    #[schema(value_type = Option<String>)]
    branch: Field<Text>,
}

impl PrByEither {
    fn check(pr: Field<Self>, errors: &mut Errors) -> Option<PullRequestQuery> {
        let pr = errors.required("/pr", pr)?;
        if matches!((&pr.number, &pr.branch), (Field::Absent, Field::Absent)) {
            errors.add("/pr", "needs one of number and branch");
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
                errors.add("/pr", "takes number or branch, not both");
                None
            }
            (None, None) => None,
        }
    }
}

/// A look-up of a submitted pull request.
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
    #[schema(value_type = String, required)]
    target_branch: Field<Text>,
    /// The pull request.
    #[schema(value_type = PrByEither, required)]
    pr: Field<PrByEither>,
}

impl Request for EntryRequest {
    type Asked = (Place, PullRequestQuery);

    fn check(self, errors: &mut Errors) -> Option<Self::Asked> {
        let place = check_place(self.repo, self.target_branch, errors);
        let query = PrByEither::check(self.pr, errors);
        Some((place?, query?))
    }
}

/// A pull request and the head that targets hold for.
#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct PrWithHead {
    /// Its number, from 1; a decimal string is accepted too.
    #[schema(value_type = u32, required, minimum = 1)]
    number: Field<Number>,
    /// The head that the targets were computed for: a push makes them stale. Without it they hold
    /// for any head.
    #[schema(value_type = Option<String>)]
    sha: Field<Text>,
}

impl PrWithHead {
    fn check(pr: Field<Self>, errors: &mut Errors) -> Option<(PrNumber, Option<Sha>)> {
        let pr = errors.required("/pr", pr)?;
        let number = errors.required("/pr/number", pr.number);
        if number.as_ref().is_some_and(|number| number.0 == 0) {
            errors.add("/pr/number", "must be a whole number from 1 to 4294967295, but is 0");
        }
        let sha = errors.optional("/pr/sha", pr.sha).filter(|sha| !sha.0.is_empty());
        let sha = sha.and_then(|Text(sha)| {
            let sha = Sha::new(sha.to_ascii_lowercase()).map_err(|error| broken(&error));
            errors.keep("/pr/sha", sha)
        });
        number.map(|number| (PrNumber(number.0), sha))
    }
}

/// A report of impacted targets.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({
    "repo": {"host": "github.com", "owner": "acme", "name": "calc"},
    "targetBranch": "main",
    "pr": {"number": 42, "sha": "1f0c1b9d2f3f4e5a6b7c8d9e0f1a2b3c4d5e6f70"},
    "impactedTargets": ["//calc:core", "//calc:ui"]
}))]
pub(crate) struct TargetsRequest {
    /// The repository.
    #[schema(value_type = RepoRef, required)]
    repo: Field<RepoRef>,
    /// The branch that the merge queue targets.
    #[schema(value_type = String, required)]
    target_branch: Field<Text>,
    /// The pull request.
    #[schema(value_type = PrWithHead, required)]
    pr: Field<PrWithHead>,
    /// What it touches.
    #[schema(value_type = TargetsChoice, required)]
    impacted_targets: Field<TargetsForm>,
}

/// Impacted targets: a list of at most 100,000, or everything.
#[derive(ToSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "describes the two forms")]
pub(crate) enum TargetsChoice {
    /// Exactly these; an empty list touches nothing.
    Only(Vec<String>),
    /// The string `ALL`.
    All(String),
}

/// What a report of targets says.
#[derive(Debug)]
pub(crate) struct SetTargets {
    pub(crate) place: Place,
    pub(crate) pr: PrNumber,
    pub(crate) targets: ReportedTargets,
}

impl Request for TargetsRequest {
    type Asked = SetTargets;

    fn check(self, errors: &mut Errors) -> Option<SetTargets> {
        let place = check_place(self.repo, self.target_branch, errors);
        let pr = PrWithHead::check(self.pr, errors);
        let given = errors.required("/impactedTargets", self.impacted_targets);
        let targets = match given? {
            TargetsForm::All => Targets::All,
            TargetsForm::Only(names) => Targets::Only(names),
            TargetsForm::TooMany => {
                let rule = format!("has more than {MAX_TARGETS} items; send \"ALL\" instead");
                errors.add("/impactedTargets", rule);
                return None;
            }
            TargetsForm::WrongItem(at) => {
                errors.add(format!("/impactedTargets/{at}"), "must be a string");
                return None;
            }
        };
        let (pr, sha) = pr?;
        Some(SetTargets { place: place?, pr, targets: ReportedTargets { sha, targets } })
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
    #[schema(value_type = String, required)]
    target_branch: Field<Text>,
    /// SINGLE when nothing is said.
    #[schema(value_type = Option<ModeWord>)]
    mode: Field<Text>,
    /// Test runs at the same time; 1 when nothing is said.
    #[schema(value_type = Option<u32>, minimum = 1, maximum = 1000)]
    concurrency: Field<Count>,
}

/// What a new queue is to be like.
#[derive(Debug)]
pub(crate) struct Create {
    pub(crate) place: Place,
    pub(crate) mode: Mode,
    pub(crate) concurrency: Option<u32>,
}

impl Request for CreateRequest {
    type Asked = Create;

    fn check(self, errors: &mut Errors) -> Option<Create> {
        let place = check_place(self.repo, self.target_branch, errors);
        let mode = errors.optional("/mode", self.mode).map(|Text(text)| {
            let wrong = || format!("must be SINGLE or PARALLEL, but is {}", shown(&text));
            errors.keep("/mode", Mode::parse(&text).ok_or_else(wrong))
        });
        let concurrency = errors.optional("/concurrency", self.concurrency).map(|it| it.0);
        check_setting(errors, &SettingsPatch { concurrency, ..SettingsPatch::default() });
        Some(Create { place: place?, mode: mode.unwrap_or(Some(Mode::Single))?, concurrency })
    }
}

/// A look-up of test runs.
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
    #[schema(value_type = String, required)]
    target_branch: Field<Text>,
    /// One run, also as the end of its branch's name; without it all that are in progress.
    #[schema(value_type = Option<String>)]
    test_run_id: Field<Text>,
}

impl Request for RunRequest {
    type Asked = (Place, Option<String>);

    fn check(self, errors: &mut Errors) -> Option<Self::Asked> {
        let place = check_place(self.repo, self.target_branch, errors);
        let run = errors.optional("/testRunId", self.test_run_id).map(|it| it.0);
        Some((place?, run.filter(|run| !run.is_empty())))
    }
}

object_form!(
    RepoRef,
    QueueRequest,
    PrByNumber,
    PullRequestRequest,
    SubmitRequest,
    PrByEither,
    EntryRequest,
    PrWithHead,
    TargetsRequest,
    CreateRequest,
    RunRequest,
);
