//! Answers of the host, as far as they are used. Decoded leniently: what may be missing may be
//! missing, despite the published description.

use serde::Deserialize;
use signalbox_domain::ids::Sha;

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct User {
    pub(crate) login: String,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct RepoShort {
    pub(crate) full_name: Option<String>,
}

/// One end of a pull request. Its repository is omitted: it is null when a fork was deleted.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct End {
    #[serde(rename = "ref")]
    pub(crate) name: String,
    pub(crate) sha: String,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Pull {
    pub(crate) number: u32,
    pub(crate) title: Option<String>,
    pub(crate) body: Option<String>,
    pub(crate) user: Option<User>,
    pub(crate) state: String,
    #[serde(default)]
    pub(crate) draft: Option<bool>,
    pub(crate) merged: Option<bool>,
    pub(crate) merged_at: Option<String>,
    pub(crate) mergeable: Option<bool>,
    pub(crate) mergeable_state: Option<String>,
    pub(crate) html_url: Option<String>,
    /// How many comments there are; not in lists.
    pub(crate) comments: Option<u64>,
    #[serde(default)]
    pub(crate) labels: Vec<Label>,
    pub(crate) head: End,
    pub(crate) base: End,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Object {
    pub(crate) sha: String,
}

/// A folder of a commit.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Tree {
    tree: Vec<TreeEntry>,
    #[serde(default)]
    truncated: bool,
}

#[derive(Clone, Debug, Deserialize)]
struct TreeEntry {
    path: String,
    sha: String,
    #[serde(default)]
    mode: String,
    #[serde(default, rename = "type")]
    kind: String,
}

impl Tree {
    /// Path, mode and id of its files, links and submodules, also of those in folders if it was
    /// read recursively. `None` if it is too large to be listed.
    pub(crate) fn objects(self) -> Option<impl Iterator<Item = (String, String, String)>> {
        let entries = (!self.truncated).then_some(self.tree)?;
        let objects = entries.into_iter().filter(|entry| entry.kind != "tree");
        Some(objects.map(|entry| (entry.path, entry.mode, entry.sha)))
    }

    /// The id of the object under that name. Of a folder that is too large to be listed it is
    /// taken to be there, and another one in every commit.
    pub(crate) fn has(&self, name: &str, at: &Sha) -> Option<String> {
        let found = self.tree.iter().find(|entry| entry.path == name);
        let unknown = || self.truncated.then(|| at.as_str().to_owned());
        found.map(|entry| entry.sha.clone()).or_else(unknown)
    }
}

/// A branch with the commit that it points at.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Branch {
    pub(crate) commit: ListedCommit,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Reference {
    #[serde(rename = "ref")]
    pub(crate) name: String,
    pub(crate) object: Object,
}

/// The author or committer of a commit.
#[derive(Clone, Debug, Deserialize, serde::Serialize)]
pub(crate) struct Signature {
    pub(crate) name: Option<String>,
    pub(crate) email: Option<String>,
    pub(crate) date: Option<String>,
}

/// A commit as git has it.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct GitCommit {
    pub(crate) sha: String,
    pub(crate) tree: Object,
    pub(crate) message: Option<String>,
}

/// The git part of a commit in a list.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct CommitBody {
    pub(crate) tree: Object,
    pub(crate) message: Option<String>,
    pub(crate) author: Option<Signature>,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct ListedCommit {
    pub(crate) sha: String,
    pub(crate) commit: CommitBody,
    #[serde(default)]
    pub(crate) parents: Vec<Object>,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct ChangedFile {
    pub(crate) filename: String,
    pub(crate) previous_filename: Option<String>,
}

impl ChangedFile {
    /// Its name, and its former one.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        [Some(self.filename.as_str()), self.previous_filename.as_deref()].into_iter().flatten()
    }
}

/// The files of a commit.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct CommitFiles {
    #[serde(default)]
    pub(crate) files: Option<Vec<ChangedFile>>,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Comparison {
    pub(crate) status: Option<String>,
    #[serde(default)]
    pub(crate) commits: Vec<ListedCommit>,
    #[serde(default)]
    pub(crate) files: Option<Vec<ChangedFile>>,
    pub(crate) base_commit: Option<ListedCommit>,
    pub(crate) merge_base_commit: Option<ListedCommit>,
    pub(crate) total_commits: Option<usize>,
}

impl Comparison {
    /// Whether all commits are listed, and none of them is a merge.
    pub(crate) fn is_linear(&self) -> bool {
        let all = self.total_commits.is_some_and(|total| total <= self.commits.len());
        all && self.commits.iter().all(|commit| commit.parents.len() < 2)
    }
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct CheckOutput {
    pub(crate) title: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct CheckRun {
    pub(crate) id: u64,
    pub(crate) name: String,
    pub(crate) status: Option<String>,
    pub(crate) conclusion: Option<String>,
    pub(crate) html_url: Option<String>,
    pub(crate) details_url: Option<String>,
    pub(crate) started_at: Option<String>,
    pub(crate) completed_at: Option<String>,
    pub(crate) output: Option<CheckOutput>,
    pub(crate) app: Option<AppShort>,
    pub(crate) check_suite: Option<Numbered>,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Numbered {
    pub(crate) id: u64,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Creator {
    pub(crate) login: String,
    #[serde(rename = "type")]
    pub(crate) kind: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct CommitStatus {
    pub(crate) context: String,
    pub(crate) state: String,
    pub(crate) description: Option<String>,
    pub(crate) target_url: Option<String>,
    pub(crate) updated_at: Option<String>,
    pub(crate) creator: Option<Creator>,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Contents {
    pub(crate) content: Option<String>,
    pub(crate) encoding: Option<String>,
    #[serde(rename = "type")]
    pub(crate) kind: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct RequiredCheck {
    pub(crate) context: String,
    /// The app that must report it, in a ruleset.
    pub(crate) integration_id: Option<i64>,
    /// The same in classic protection; -1 stands for any.
    pub(crate) app_id: Option<i64>,
}

impl RequiredCheck {
    /// The app that must report it.
    pub(crate) fn pinned(&self) -> Option<u64> {
        self.integration_id.or(self.app_id).and_then(|id| id.try_into().ok())
    }
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct RuleParameters {
    pub(crate) required_status_checks: Vec<RequiredCheck>,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Rule {
    #[serde(rename = "type")]
    pub(crate) kind: String,
    #[serde(default)]
    pub(crate) parameters: Option<RuleParameters>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ProtectedChecks {
    pub(crate) contexts: Vec<String>,
    pub(crate) checks: Vec<RequiredCheck>,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct IssueComment {
    pub(crate) id: u64,
    pub(crate) body: Option<String>,
    pub(crate) user: Option<User>,
    pub(crate) created_at: Option<String>,
    pub(crate) issue_url: Option<String>,
    pub(crate) performed_via_github_app: Option<AppShort>,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct AppShort {
    pub(crate) id: Option<u64>,
    pub(crate) slug: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Label {
    pub(crate) name: String,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Granted {
    pub(crate) permission: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct ListedRun {
    pub(crate) id: u64,
    pub(crate) status: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct WorkflowRun {
    pub(crate) status: Option<String>,
    pub(crate) event: Option<String>,
    pub(crate) head_sha: String,
    pub(crate) head_repository: Option<RepoShort>,
    pub(crate) repository: Option<RepoShort>,
}
