//! Verifies the record of a landing in a clone, with git alone: no server and no git host is called.

use std::path::Path;

use signalbox_domain::ids::{BranchName, Sha, TreeId};
use signalbox_domain::ports::HostError;
use signalbox_domain::queue::LandingProof;
use signalbox_domain::time::Timestamp;

use crate::git::Git;
use crate::proof::Composed;

/// A landing as the server recorded it.
#[derive(Clone, Debug)]
pub struct LandingRecord {
    /// The commit on the target branch.
    pub sha: Sha,
    /// The tree that was tested, if a test run tested it.
    pub tested_tree: Option<TreeId>,
    /// The tree that landed.
    pub landed_tree: TreeId,
    /// The target branch, if known.
    pub branch: Option<BranchName>,
    /// What the landing consists of.
    pub proof: LandingProof,
}

/// A step of a verification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifiedStep {
    /// The statement that was checked.
    pub statement: String,
    /// Why it does not hold.
    pub fault: Option<String>,
}

/// Checks a record against a clone: that the objects are intact, that the landed commit is on the
/// target branch, that it descends from the former head, and that its tree is that head's with only
/// the recorded changes. Nothing is written to the clone, and its replacements and grafts do not
/// apply.
pub async fn verify_landing(
    clone: &Path,
    record: &LandingRecord,
) -> Result<Vec<VerifiedStep>, HostError> {
    let scratch = tempfile::tempdir().map_err(|error| HostError::Unavailable {
        words: format!("could not create a temporary folder: {error}"),
    })?;
    let git = beside(clone, scratch.path()).await?;
    let mut steps = Steps::default();
    let proof = &record.proof;
    let heads = proof.changes.iter().map(|(_, head)| head);
    let commits: Vec<&str> =
        [&record.sha, &proof.base].into_iter().chain(heads).map(Sha::as_str).collect();
    for commit in &commits {
        if let Err(error @ HostError::NotFound { .. }) = git.tree(commit).await {
            let advice = format!("{error}; fetch it: git fetch origin {commit}");
            steps.check(format!("{commit} is in the clone"), Some(advice));
        }
    }
    if steps.has_fault() {
        return Ok(steps.0);
    }
    steps.check(
        "the objects of these commits are intact".to_owned(),
        corruption(&git, &commits).await?,
    );
    if let Some(branch) = &record.branch {
        on_branch(&Git::at(repository(clone).await?), branch, &record.sha, &mut steps).await?;
    }
    let base = &proof.base;
    let descends = git.is_ancestor(base.as_str(), record.sha.as_str()).await?;
    steps.check(
        format!("{} descends from the former head {base}", record.sha),
        (!descends).then(|| "it does not".to_owned()),
    );
    let found = git.tree(record.sha.as_str()).await?;
    steps.same("the landed tree is the recorded one", &record.landed_tree, &found);
    match &record.tested_tree {
        Some(tested) if proof.exact => steps.same("the tested tree is that tree", tested, &found),
        // It is the clean merge of the target and the tested candidate, as the next steps show.
        Some(_) | None => {}
    }
    let mut composed =
        Composed::of(&git, base, proof.method, Timestamp::from_unix_seconds(0)).await?;
    steps.check(format!("{base} has the tree {}", composed.tree()?), None);
    for (pr, head) in &proof.changes {
        let conflicting = composed.add(head).await?.err();
        let tree = composed.tree()?;
        let fault = conflicting.map(|paths| format!("it conflicts: {}", paths.join(", ")));
        let conflicts = fault.is_some();
        steps.check(format!("with #{pr} at {head}: the tree {tree}"), fault);
        if conflicts {
            return Ok(steps.0);
        }
    }
    let expected = composed.tree()?;
    steps.same("the landed tree has only these changes", &expected, &found);
    if expected != found {
        let args = ["diff-tree", "-r", "--name-status", expected.as_str(), found.as_str()];
        let differences = git.ok(&args).await?.text();
        let listed = differences.lines().map(|line| line.replace('\t', " "));
        for difference in listed {
            steps.check(difference, Some("not by the recorded changes".to_owned()));
        }
    }
    Ok(steps.0)
}

#[derive(Default)]
struct Steps(Vec<VerifiedStep>);

impl Steps {
    fn check(&mut self, statement: String, fault: Option<String>) {
        self.0.push(VerifiedStep { statement, fault });
    }

    fn same(&mut self, statement: &str, expected: &TreeId, found: &TreeId) {
        let fault = (expected != found).then(|| format!("expected {expected}, found {found}"));
        self.check(format!("{statement}: {found}"), fault);
    }

    fn has_fault(&self) -> bool {
        self.0.iter().any(|step| step.fault.is_some())
    }
}

/// An empty repository that reads the objects of a clone.
async fn beside(clone: &Path, scratch: &Path) -> Result<Git, HostError> {
    let own = Git::at(repository(clone).await?);
    let objects = own.ok(&["rev-parse", "--path-format=absolute", "--git-path", "objects"]).await?;
    let format = own.ok(&["rev-parse", "--show-object-format"]).await?.text();
    let git = Git::at(scratch.join("proof.git"));
    git.ok(&["init", "--quiet", &format!("--object-format={format}")]).await?;
    let alternates = git.dir().join("objects/info/alternates");
    let mut path = objects.stdout;
    path.push(b'\n');
    std::fs::write(&alternates, path).map_err(|error| HostError::Unavailable {
        words: format!("could not write {}: {error}", alternates.display()),
    })?;
    Ok(git)
}

/// The folder of a repository: a bare one, or that of a working tree.
async fn repository(clone: &Path) -> Result<std::path::PathBuf, HostError> {
    let inner = clone.join(".git");
    if inner.is_dir() {
        return Ok(inner);
    }
    if !inner.exists() {
        return Ok(clone.to_owned());
    }
    // A linked working tree or a submodule has a file that names the folder.
    let text = tokio::fs::read_to_string(&inner).await.map_err(|error| HostError::Unavailable {
        words: format!("could not read {}: {error}", inner.display()),
    })?;
    let folder = text.trim().strip_prefix("gitdir: ").unwrap_or_default();
    Ok(clone.join(folder))
}

/// Reads every object of these commits and compares its content with its id.
async fn corruption(git: &Git, commits: &[&str]) -> Result<Option<String>, HostError> {
    let args = ["rev-list", "--objects", "--verify-objects", "--no-walk", "--quiet"];
    let done = git.call(&[&args[..], commits].concat()).await?;
    // An object with another content than its id is an error message and no exit code.
    let is_damaged = done.code != Some(0) || done.complaints().next().is_some();
    Ok(is_damaged.then(|| done.words()))
}

/// Checks that the branches of that name in a clone contain a commit.
async fn on_branch(
    git: &Git,
    branch: &BranchName,
    sha: &Sha,
    steps: &mut Steps,
) -> Result<(), HostError> {
    let refs =
        git.ok(&["for-each-ref", "--format=%(refname)", "refs/heads", "refs/remotes"]).await?;
    let refs = refs.text();
    let is_it = |name: &&str| {
        let local = name.strip_prefix("refs/heads/");
        let remote = name.strip_prefix("refs/remotes/").and_then(|it| it.split_once('/'));
        local.or(remote.map(|(_, rest)| rest)) == Some(branch.as_str())
    };
    for name in refs.lines().filter(is_it) {
        let contains = git.is_ancestor(sha.as_str(), name).await?;
        steps.check(
            format!("{name} contains {sha}"),
            (!contains)
                .then(|| "it does not: the branch was moved, or is not up to date".to_owned()),
        );
    }
    Ok(())
}
