//! A report of impacted targets.

use serde::Deserialize;
use signalbox_domain::ids::{PrNumber, Sha};
use signalbox_domain::queue::{ReportedTargets, Targets};
use utoipa::ToSchema;

use super::field::{Errors, Field, object_form};
use super::forms::{Number, TargetsForm, Text};
use super::place::{RepoBranch, RepoRef, Request, broken, check_place};
use super::shapes::{BranchText, PrNumberFromOne};
use super::words::AllTargetsWord;

/// A pull request and the head that the targets belong to.
#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct PrWithHead {
    /// Its number, from 1; a decimal string is accepted too.
    #[schema(value_type = PrNumberFromOne, required)]
    number: Field<Number>,
    /// The head that the targets were computed for: a push makes them stale. Without it they apply
    /// to any head.
    #[schema(value_type = Option<String>, pattern = r"^([0-9A-Fa-f]{40}|[0-9A-Fa-f]{64})?$")]
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
    #[schema(value_type = BranchText, required)]
    target_branch: Field<Text>,
    /// The pull request.
    #[schema(value_type = PrWithHead, required)]
    pr: Field<PrWithHead>,
    /// Its impacted targets.
    #[schema(value_type = TargetsChoice, required)]
    impacted_targets: Field<TargetsForm>,
}

/// Impacted targets: a list, limited by the size of the body, or `ALL`.
#[derive(ToSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "describes the two types")]
pub(crate) enum TargetsChoice {
    /// Exactly these; an empty list means no targets.
    Only(Vec<String>),
    All(AllTargetsWord),
}

/// A checked report of targets.
#[derive(Debug)]
pub(crate) struct SetTargets {
    pub(crate) place: RepoBranch,
    pub(crate) pr: PrNumber,
    pub(crate) targets: ReportedTargets,
}

impl Request for TargetsRequest {
    type Checked = SetTargets;

    fn check(self, errors: &mut Errors) -> Option<SetTargets> {
        let place = check_place(self.repo, self.target_branch, errors);
        let pr = PrWithHead::check(self.pr, errors);
        let given = errors.required("/impactedTargets", self.impacted_targets);
        let targets = match given? {
            TargetsForm::All => Targets::All,
            TargetsForm::Only(names) => Targets::Only(names),
            TargetsForm::WrongItem(at, found) => {
                let rule = format!("must be a string, but is {found}");
                errors.add(format!("/impactedTargets/{at}"), rule);
                return None;
            }
        };
        let (pr, sha) = pr?;
        Some(SetTargets { place: place?, pr, targets: ReportedTargets::new(sha, targets) })
    }
}

object_form!(PrWithHead, TargetsRequest);
