//! The repository and the branch of a request.

use serde::{Deserialize, Serialize};
use signalbox_domain::ids::{BranchName, InvalidName, RepoName};
use utoipa::ToSchema;

use super::field::{Errors, Field, object_form};
use super::forms::Text;

/// A request body, and its checked form.
pub(crate) trait Request {
    /// The checked request.
    type Checked;

    /// Checks every field. `None` only when an error was added.
    fn check(self, errors: &mut Errors) -> Option<Self::Checked>;
}

/// An empty reply.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({}))]
pub(crate) struct Empty {}

/// A repository.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(example = json!({"host": "github.com", "owner": "acme", "name": "calc"}))]
pub(crate) struct RepoRef {
    /// The git host.
    #[schema(value_type = String, required, pattern = r"^[A-Za-z0-9._:-]{1,253}$")]
    host: Field<Text>,
    /// The owner; may contain `/` on hosts with groups. Bare repositories may also have letters of
    /// other scripts than Latin.
    #[schema(value_type = String, required, max_length = 255, pattern = r"^[A-Za-z0-9_][A-Za-z0-9._-]*(/[A-Za-z0-9_][A-Za-z0-9._-]*)*$")]
    owner: Field<Text>,
    /// The repository's own name. Bare repositories may also have letters of other scripts than Latin.
    #[schema(value_type = String, required, pattern = r"^[A-Za-z0-9_][A-Za-z0-9._-]{0,254}$")]
    name: Field<Text>,
}

/// A repository in a reply.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ShownRepo {
    /// The git host.
    host: String,
    /// The owner; may contain `/` on hosts with groups.
    owner: String,
    /// The repository's own name.
    name: String,
}

impl ShownRepo {
    pub(super) fn of(name: &RepoName) -> Self {
        Self { host: name.host.to_string(), owner: name.owner.clone(), name: name.name.clone() }
    }
}

/// A repository and a target branch, checked.
pub(crate) type RepoBranch = (RepoName, BranchName);

/// The rule of a name with the value that breaks it; the pointer has the field.
pub(super) fn broken(error: &InvalidName) -> String {
    format!("{:?} {}", error.value, error.rule)
}

/// The repository of a request without a branch.
pub(super) fn check_repository(repo: Field<RepoRef>, errors: &mut Errors) -> Option<RepoName> {
    errors.required("/repo", repo).and_then(|repo| check_repo(repo, errors))
}

pub(super) fn check_repo(repo: RepoRef, errors: &mut Errors) -> Option<RepoName> {
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
) -> Option<RepoBranch> {
    let repo = check_repository(repo, errors);
    let branch = errors.required("/targetBranch", branch).and_then(|Text(branch)| {
        errors.keep("/targetBranch", BranchName::new(branch).map_err(|error| broken(&error)))
    });
    Some((repo?, branch?))
}

object_form!(RepoRef);
