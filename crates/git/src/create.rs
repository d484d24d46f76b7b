//! A bare repository before it is registered: creating it, and its first commit.

use std::path::Path;

use signalbox_domain::ids::BranchName;
use signalbox_domain::ports::HostError;
use signalbox_domain::time::Timestamp;
use signalbox_hosts::{CONFIG_FILE, TRUNK_FILE};

use crate::commit::COMMITTER;
use crate::git::{Author, Git};

/// A bare repository in a folder.
pub struct BareRepository {
    git: Git,
}

impl BareRepository {
    /// The repository in that folder, which need not exist.
    pub fn at(folder: &Path) -> Self {
        Self { git: Git::at(folder.to_owned()) }
    }

    /// Creates it without commits.
    pub async fn create(&self, branch: &BranchName) -> Result<(), HostError> {
        let branch = format!("--initial-branch={branch}");
        self.git.ok(&["init", "--quiet", "--bare", &branch]).await.map(drop)
    }

    /// Its branches.
    pub async fn branches(&self) -> Result<Vec<String>, HostError> {
        let args = ["for-each-ref", "--format=%(refname:lstrip=2)", "refs/heads"];
        let names = self.git.ok(&args).await?.text();
        Ok(names.lines().filter(|name| !name.is_empty()).map(ToOwned::to_owned).collect())
    }

    /// Its default branch, which need not exist.
    pub async fn default_branch(&self) -> Result<Option<BranchName>, HostError> {
        let done = self.git.call(&["symbolic-ref", "--quiet", "HEAD"]).await?;
        let name = done.text();
        Ok(name.trim().strip_prefix("refs/heads/").and_then(|name| BranchName::new(name).ok()))
    }

    /// Whether a branch defines what to test.
    pub async fn is_configured(&self, branch: &BranchName) -> Result<bool, HostError> {
        for file in [CONFIG_FILE, TRUNK_FILE] {
            let name = format!("refs/heads/{branch}:{file}");
            if self.git.call(&["cat-file", "-e", &name]).await?.code == Some(0) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Makes the first commit of a branch, with that configuration.
    pub async fn configure(
        &self,
        branch: &BranchName,
        configuration: &str,
        at: Timestamp,
    ) -> Result<(), HostError> {
        let git = &self.git;
        let blob = git.call_with(&["hash-object", "-w", "--stdin"], configuration).await?;
        let blob = blob.succeeded()?.text();
        let entry = format!("100644 blob {}\t{CONFIG_FILE}\n", blob.trim());
        let tree = git.call_with(&["mktree"], &entry).await?.succeeded()?.text();
        let (name, email) = COMMITTER;
        let author = Author { name: name.to_owned(), email: email.to_owned(), date: None };
        let message = "Define what the merge queue tests\n";
        let commit = git.commit_tree(tree.trim(), &[], message, &author, at).await?;
        let branch = format!("refs/heads/{branch}");
        git.move_ref(&branch, commit.trim(), None, "signalbox: init").await.map(drop)
    }
}
