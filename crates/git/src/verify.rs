//! Verifies the record of a landing in a clone, with git alone: no server and no git host is called.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Stdio;

use signalbox_domain::ids::{BranchName, Sha, TreeId};
use signalbox_domain::ports::HostError;
use signalbox_domain::queue::LandingProof;
use signalbox_domain::time::Timestamp;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWriteExt, BufReader};

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
    /// The target branch.
    pub branch: BranchName,
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
    if steps.has_fault() {
        return Ok(steps.0);
    }
    let own = Git::at(repository(clone).await?);
    on_branch((&own, &git), &record.branch, &record.sha, &mut steps).await?;
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
        // It is the clean merge of the target and the tested candidate, which the record does not
        // name; the next steps show that it has only the recorded changes.
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
    // What a commit-graph of the clone says is not checked by its commits.
    git.ok(&["config", "core.commitGraph", "false"]).await?;
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

/// Reads every object of these commits and compares its content with its id; the first error.
async fn corruption(git: &Git, commits: &[&str]) -> Result<Option<String>, HostError> {
    let listed = git.call(&[&["rev-list", "--objects", "--no-walk"][..], commits].concat()).await?;
    if listed.code != Some(0) {
        return Ok(Some(listed.words()));
    }
    let text = listed.text();
    let ids: Vec<&str> = text.lines().filter_map(|line| line.split(' ').next()).collect();
    read_all(git, &ids)
        .await
        .map_err(|error| HostError::Unavailable { words: format!("git cat-file: {error}") })
}

async fn read_all(git: &Git, ids: &[&str]) -> std::io::Result<Option<String>> {
    let mut command = git.command();
    command.args(["cat-file", "--batch", "--buffer"]).stdin(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn()?;
    let (Some(mut input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
        return Ok(Some("git cat-file could not be read".to_owned()));
    };
    let mut requests = ids.join("\n");
    requests.push('\n');
    // It answers while it is still being sent requests.
    let sent = tokio::spawn(async move { input.write_all(requests.as_bytes()).await });
    let mut output = BufReader::new(output);
    for id in ids {
        let mut about = String::new();
        output.read_line(&mut about).await?;
        let mut words = about.trim_end().split(' ');
        let (kind, size) = match (words.next(), words.next(), words.next()) {
            (Some(found), Some(kind), Some(size)) if found == *id => (kind, size),
            _ => return Ok(Some(format!("object {id} could not be read"))),
        };
        let Ok(size) = size.parse::<u64>() else {
            return Ok(Some(format!("object {id} could not be read")));
        };
        let head = format!("{kind} {size}\0");
        let found = if id.len() == 40 {
            digest::<sha1::Sha1>(&head, &mut output, size).await?
        } else {
            digest::<sha2::Sha256>(&head, &mut output, size).await?
        };
        if found != *id {
            return Ok(Some(format!("object {id} has the content of another")));
        }
        output.read_u8().await?;
    }
    sent.await.ok();
    Ok(None)
}

/// The id of an object that is read from a stream.
async fn digest<D: sha2::Digest>(
    head: &str,
    input: &mut (impl AsyncRead + Unpin),
    size: u64,
) -> std::io::Result<String> {
    let mut digest = D::new();
    digest.update(head.as_bytes());
    let mut content = input.take(size);
    let mut part = vec![0; 1 << 16];
    loop {
        let read = content.read(&mut part).await?;
        if read == 0 {
            break;
        }
        digest.update(part.get(..read).unwrap_or_default());
    }
    let mut text = String::new();
    for byte in digest.finalize() {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
    }
    Ok(text)
}

/// Checks that a branch of that name in a clone contains a commit. The branches are the clone's; what
/// they contain is read without its grafts.
async fn on_branch(
    (own, git): (&Git, &Git),
    branch: &BranchName,
    sha: &Sha,
    steps: &mut Steps,
) -> Result<(), HostError> {
    let remotes = own.ok(&["remote"]).await?.text();
    let of_remotes = remotes.lines().map(|remote| format!("refs/remotes/{remote}/{branch}"));
    let mut names = vec![format!("refs/heads/{branch}")];
    names.extend(of_remotes);
    let mut found = Vec::new();
    for name in names {
        if let Some(tip) = own.tip(&name).await? {
            if git.is_ancestor(sha.as_str(), &tip).await? {
                steps.check(format!("{name} contains {sha}"), None);
                return Ok(());
            }
            found.push(name);
        }
    }
    let (statement, fault) = if found.is_empty() {
        let statement = format!("a branch {branch} contains {sha}");
        (statement, format!("the clone has no branch {branch}: fetch it"))
    } else {
        let statement = format!("{} contains {sha}", found.join(", "));
        (statement, "it does not: the branch was moved, or is not up to date".to_owned())
    };
    steps.check(statement, Some(fault));
    Ok(())
}
