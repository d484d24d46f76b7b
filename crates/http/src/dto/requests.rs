//! Request bodies. Keys that are not known are ignored; optional ones may be null.

use serde::{Deserialize, Serialize};
use signalbox_domain::ids::{BranchName, PrNumber, RepoName, Sha};
use signalbox_domain::ports::PullRequestQuery;
use signalbox_domain::queue::{Mode, Priority, ReportedTargets};
use utoipa::ToSchema;

use super::{Number, PriorityField, TargetsField};
use crate::problem::Problem;

/// A repository.
#[derive(Clone, Debug, Deserialize, ToSchema)]
pub(crate) struct RepoRef {
    /// The git host.
    #[schema(example = "github.com")]
    host: String,
    /// The owner; may contain `/` on hosts with groups.
    #[schema(example = "acme")]
    owner: String,
    /// The repository's own name.
    #[schema(example = "calc")]
    name: String,
}

/// A repository and a target branch, checked.
pub(crate) type Place = (RepoName, BranchName);

fn place(repo: &RepoRef, branch: &str) -> Result<Place, Problem> {
    let repo = RepoName::new(&repo.host, repo.owner.as_str(), repo.name.as_str())
        .map_err(|error| Problem::invalid("/repo", error.to_string()));
    let branch = BranchName::new(branch)
        .map_err(|error| Problem::invalid("/targetBranch", error.to_string()));
    match (repo, branch) {
        (Ok(repo), Ok(branch)) => Ok((repo, branch)),
        (Err(one), Err(other)) => Err(one.and(other)),
        (Err(problem), Ok(_)) | (Ok(_), Err(problem)) => Err(problem),
    }
}

/// A reply without data.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Empty {}

/// What every request names.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PlaceOnly {
    /// The repository.
    repo: RepoRef,
    /// The branch that the merge queue targets.
    #[schema(example = "main")]
    target_branch: String,
}

impl PlaceOnly {
    pub(crate) fn place(&self) -> Result<Place, Problem> {
        place(&self.repo, &self.target_branch)
    }
}

/// A pull request by number.
#[derive(Debug, Deserialize, ToSchema)]
struct PrByNumber {
    /// Its number.
    number: Number,
}

/// A request about one pull request.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PullRequestCommand {
    /// The repository.
    repo: RepoRef,
    /// The branch that the merge queue targets.
    #[schema(example = "main")]
    target_branch: String,
    /// The pull request.
    pr: PrByNumber,
}

impl PullRequestCommand {
    pub(crate) fn place(&self) -> Result<Place, Problem> {
        place(&self.repo, &self.target_branch)
    }

    pub(crate) const fn pr(&self) -> PrNumber {
        PrNumber(self.pr.number.0)
    }
}

/// A submission.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Submit {
    /// The repository.
    repo: RepoRef,
    /// The branch that the merge queue targets.
    #[schema(example = "main")]
    target_branch: String,
    /// The pull request.
    pr: PrByNumber,
    /// How soon it wants its turn; medium (100) when nothing is said.
    priority: Option<PriorityField>,
    /// Whether it must be tested alone.
    pub(crate) no_batch: Option<bool>,
}

impl Submit {
    pub(crate) fn place(&self) -> Result<Place, Problem> {
        place(&self.repo, &self.target_branch)
    }

    pub(crate) const fn pr(&self) -> PrNumber {
        PrNumber(self.pr.number.0)
    }

    pub(crate) fn priority(&self) -> Result<Option<Priority>, Problem> {
        match &self.priority {
            None => Ok(None),
            Some(PriorityField::Number(value)) => Ok(Some(Priority::number(*value))),
            Some(PriorityField::Name(name)) => Priority::named(name).map(Some).ok_or_else(|| {
                let rule = format!(
                    "{name:?} is no priority: use urgent, high, medium, low or a whole number"
                );
                Problem::invalid("/priority", rule)
            }),
        }
    }
}

/// A pull request by number or by the branch that it comes from.
#[derive(Debug, Deserialize, ToSchema)]
struct PrByEither {
    /// Its number.
    number: Option<Number>,
    /// Its head branch.
    branch: Option<String>,
}

/// A look-up of an entry.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct EntryQuery {
    /// The repository.
    repo: RepoRef,
    /// The branch that the merge queue targets.
    #[schema(example = "main")]
    target_branch: String,
    /// The pull request: exactly one of `number` and `branch`.
    pr: PrByEither,
}

impl EntryQuery {
    pub(crate) fn place(&self) -> Result<Place, Problem> {
        place(&self.repo, &self.target_branch)
    }

    pub(crate) fn query(&self) -> Result<PullRequestQuery, Problem> {
        match (&self.pr.number, &self.pr.branch) {
            (Some(number), None) => Ok(PullRequestQuery::Number(PrNumber(number.0))),
            (None, Some(branch)) => Ok(PullRequestQuery::Branch(branch.clone())),
            (Some(_), Some(_)) | (None, None) => {
                Err(Problem::invalid("/pr", "exactly one of number and branch is required"))
            }
        }
    }
}

/// A report of impacted targets.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SetTargets {
    /// The repository.
    repo: RepoRef,
    /// The branch that the merge queue targets.
    #[schema(example = "main")]
    target_branch: String,
    /// The pull request.
    pr: PrWithHead,
    /// What it touches: a list of targets, or the string `ALL`.
    impacted_targets: TargetsField,
}

/// A pull request and the head that targets hold for.
#[derive(Debug, Deserialize, ToSchema)]
struct PrWithHead {
    /// Its number.
    number: Number,
    /// The head that the targets were computed for; without it they hold for any.
    sha: Option<String>,
}

impl SetTargets {
    pub(crate) fn place(&self) -> Result<Place, Problem> {
        place(&self.repo, &self.target_branch)
    }

    pub(crate) const fn pr(&self) -> PrNumber {
        PrNumber(self.pr.number.0)
    }

    pub(crate) fn targets(self) -> Result<ReportedTargets, Problem> {
        let sha = self
            .pr
            .sha
            .filter(|sha| !sha.is_empty())
            .map(|sha| Sha::new(sha.to_ascii_lowercase()))
            .transpose()
            .map_err(|error| Problem::invalid("/pr/sha", error.to_string()))?;
        match self.impacted_targets {
            TargetsField::List(names) => Ok(ReportedTargets::only(sha, names)?),
            TargetsField::All(word) if matches!(word.as_str(), "ALL" | "IMPACTS_ALL") => {
                Ok(ReportedTargets::all(sha))
            }
            TargetsField::All(word) => {
                let rule = format!("must be an array of strings or \"ALL\", not {word:?}");
                Err(Problem::invalid("/impactedTargets", rule))
            }
        }
    }
}

/// A new queue.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CreateQueue {
    /// The repository.
    repo: RepoRef,
    /// The branch that the merge queue targets.
    #[schema(example = "main")]
    target_branch: String,
    /// SINGLE (the default) or PARALLEL.
    #[schema(example = "SINGLE")]
    mode: Option<String>,
    /// Test runs at the same time, 1 to 1000; 1 when nothing is said.
    pub(crate) concurrency: Option<u32>,
}

impl CreateQueue {
    pub(crate) fn place(&self) -> Result<Place, Problem> {
        place(&self.repo, &self.target_branch)
    }

    pub(crate) fn mode(&self) -> Result<Mode, Problem> {
        let Some(text) = &self.mode else { return Ok(Mode::Single) };
        Mode::parse(text)
            .ok_or_else(|| Problem::invalid("/mode", format!("{text:?} is not SINGLE or PARALLEL")))
    }
}

/// A look-up of test runs.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RunQuery {
    /// The repository.
    repo: RepoRef,
    /// The branch that the merge queue targets.
    #[schema(example = "main")]
    target_branch: String,
    /// One run; without it all that are in progress.
    pub(crate) test_run_id: Option<String>,
}

impl RunQuery {
    pub(crate) fn place(&self) -> Result<Place, Problem> {
        place(&self.repo, &self.target_branch)
    }
}
