//! Changes put on commits, on the host: a temporary branch is the bench on which it merges.

use std::collections::BTreeSet;

use reqwest::Method;
use serde_json::{Value, json};
use signalbox_domain::ids::{RepoName, RunId, TreeId};
use signalbox_domain::ports::HostError;
use signalbox_domain::queue::{Change, MergeMethod};
use signalbox_hosts::{Authored, message, squash_message};

use crate::branches::TEMPORARY;
use crate::client::Refused;
use crate::host::{GitHubHost, tree};
use crate::wire;

/// The most conflicting paths that are reported, and the most characters of each.
const MAX_PATHS: (usize, usize) = (100, 1_024);

/// A commit and its tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Made {
    pub(crate) commit: String,
    pub(crate) tree: TreeId,
}

/// The outcome of applying changes to a commit.
pub(crate) enum Applied {
    /// A commit with them. The changes at the places in `empty` added nothing to the tree that
    /// they were put on; no commit was made for them.
    Commit { made: Made, empty: Vec<usize> },
    /// The change at this place in the list conflicts in these paths.
    Conflict { change: usize, paths: Vec<String> },
}

/// A new commit, or the conflicting paths.
type Outcome = Result<Made, Vec<String>>;

/// A temporary branch of one run.
pub(crate) struct ScratchBranch<'a> {
    host: &'a GitHubHost,
    repo: &'a RepoName,
    branch: String,
    /// Whether the branch is there, as far as is known.
    exists: bool,
    /// Where it is, when that is known.
    at: Option<String>,
}

impl<'a> ScratchBranch<'a> {
    /// A bench that is free, or a new one, named after the run.
    pub(crate) fn new(host: &'a GitHubHost, repo: &'a RepoName, run: RunId, what: &str) -> Self {
        let free = host.scratch_branches.take(repo);
        let exists = free.is_some();
        let branch = free.unwrap_or_else(|| format!("{TEMPORARY}{what}/{run}"));
        host.scratch_branches.begin(&branch);
        Self { host, repo, branch, exists, at: None }
    }

    /// Releases the branch for the next candidate. When it stays unused it is removed as a stray.
    pub(crate) fn leave(self) {
        let now = self.host.client.clock.now();
        self.host.scratch_branches.end(&self.branch, self.exists.then_some((self.repo, now)));
    }

    async fn put(&mut self, commit: &str) -> Result<(), HostError> {
        if self.at.as_deref() == Some(commit) {
            return Ok(());
        }
        let moved = if self.exists {
            match self.host.move_branch(self.repo, &self.branch, commit, true).await {
                // Another server has swept it away.
                Err(Refused { status: 404 | 422, words, .. }) if words.contains("not exist") => {
                    false
                }
                Err(refused) => return Err(refused.error),
                Ok(()) => true,
            }
        } else {
            false
        };
        if !moved {
            self.host.put_branch(self.repo, &self.branch, commit).await?;
        }
        (self.exists, self.at) = (true, Some(commit.to_owned()));
        Ok(())
    }

    /// Merges `theirs` into `ours`. `None` when they conflict.
    pub(crate) async fn merge(
        &mut self,
        ours: &str,
        theirs: &str,
        message: &str,
    ) -> Result<Option<Made>, HostError> {
        self.put(ours).await?;
        let body = json!({ "base": self.branch, "head": theirs, "commit_message": message });
        let answer = self.host.client.call(self.repo, Method::POST, "/merges", Some(&body)).await;
        match answer {
            Ok(answer) if answer.status == 204 => Ok(Some(Made {
                commit: ours.to_owned(),
                tree: self.host.tree_of(self.repo, ours).await?,
            })),
            Ok(answer) => {
                let made: wire::ListedCommit = answer.decoded("POST /merges")?;
                self.at = Some(made.sha.clone());
                Ok(Some(Made { commit: made.sha, tree: tree(&made.commit.tree.sha)? }))
            }
            Err(Refused { status: 409, words, .. })
                if words.to_lowercase().contains("conflict") =>
            {
                Ok(None)
            }
            // The branch was swept away, or is not visible yet.
            Err(Refused { status: 404, words, .. }) if words.contains("Base") => {
                (self.exists, self.at) = (false, None);
                Err(HostError::Unavailable { words: format!("POST /merges: {words}") })
            }
            Err(refused) => Err(refused.error),
        }
    }

    /// Puts changes on a commit, one after the other.
    pub(crate) async fn apply(
        &mut self,
        base: Made,
        changes: &[Change],
        method: MergeMethod,
    ) -> Result<Applied, HostError> {
        let (mut tip, mut empty) = (base, Vec::new());
        for (number, change) in changes.iter().enumerate() {
            let applied = match method {
                MergeMethod::Squash => self.squashed(&tip, change).await?,
                MergeMethod::MergeCommit => self.merged(&tip, change).await?,
                MergeMethod::Rebase => self.replayed(&tip, change).await?,
            };
            match applied {
                Ok(made) if made.tree == tip.tree => empty.push(number),
                Ok(made) => tip = made,
                Err(paths) => return Ok(Applied::Conflict { change: number, paths }),
            }
        }
        Ok(Applied::Commit { made: tip, empty })
    }

    async fn merged(&mut self, tip: &Made, change: &Change) -> Result<Outcome, HostError> {
        let head = change.head.as_str();
        match self.merge(&tip.commit, head, &message(change)).await? {
            Some(made) => Ok(Ok(made)),
            None => Ok(Err(self.conflicting(&tip.commit, head).await?)),
        }
    }

    async fn squashed(&mut self, tip: &Made, change: &Change) -> Result<Outcome, HostError> {
        let head = change.head.as_str();
        let Some(merged) = self.merge(&tip.commit, head, "signalbox: temporary merge").await?
        else {
            return Ok(Err(self.conflicting(&tip.commit, head).await?));
        };
        if merged.tree == tip.tree {
            return Ok(Ok(tip.clone()));
        }
        let (author, commits) = self.host.authors_of(self.repo, &tip.commit, head).await?;
        let email = author["email"].as_str().unwrap_or_default().to_owned();
        let message = squash_message(change, &email, &commits);
        let made = self.commit(&message, &merged.tree, &tip.commit, author).await?;
        Ok(Ok(made))
    }

    /// Replays the commits of a pull request, oldest first. Merges in between are skipped, as git
    /// itself does; so are commits that no longer change anything.
    async fn replayed(&mut self, tip: &Made, change: &Change) -> Result<Outcome, HostError> {
        let rest = format!("/compare/{}...{}", tip.commit, change.head);
        let commits: Vec<wire::ListedCommit> =
            self.host.client.list(self.repo, &rest, Some("commits")).await?;
        let mut tip = tip.clone();
        for commit in commits.iter().filter(|it| it.parents.len() < 2) {
            match self.picked(&tip, commit).await? {
                Ok(made) => tip = made,
                Err(paths) => return Ok(Err(paths)),
            }
        }
        Ok(Ok(tip))
    }

    /// Puts one commit on another. The merge base must be the commit's own parent: a helper commit
    /// that has the tip's tree and that parent makes it so.
    async fn picked(
        &mut self,
        tip: &Made,
        commit: &wire::ListedCommit,
    ) -> Result<Outcome, HostError> {
        let Some(parent) = commit.parents.first() else {
            let words = format!("could not replay commit {}: it has no parent", commit.sha);
            return Err(HostError::Rejected { words });
        };
        if parent.sha == tip.commit {
            let tree = tree(&commit.commit.tree.sha)?;
            return Ok(Ok(Made { commit: commit.sha.clone(), tree }));
        }
        let helper = self.commit("signalbox: helper", &tip.tree, &parent.sha, Value::Null).await?;
        let Some(merged) = self.merge(&helper.commit, &commit.sha, "signalbox: helper").await?
        else {
            return Ok(Err(self.conflicting(&helper.commit, &commit.sha).await?));
        };
        if merged.tree == tip.tree {
            return Ok(Ok(tip.clone()));
        }
        let author = json!(commit.commit.author);
        let message = commit.commit.message.as_deref().unwrap_or_default();
        Ok(Ok(self.commit(message, &merged.tree, &tip.commit, author).await?))
    }

    async fn commit(
        &self,
        message: &str,
        of: &TreeId,
        parent: &str,
        author: Value,
    ) -> Result<Made, HostError> {
        let mut body = json!({ "message": message, "tree": of.as_str(), "parents": [parent] });
        if author.is_object() {
            body["author"] = author;
        }
        let rest = "/git/commits";
        let made: wire::GitCommit =
            self.host.client.make(self.repo, Method::POST, rest, &body).await?;
        Ok(Made { commit: made.sha, tree: tree(&made.tree.sha)? })
    }

    /// The paths that both sides have changed. The host does not report which of them conflict, so
    /// this may name a few more.
    async fn conflicting(&self, ours: &str, theirs: &str) -> Result<Vec<String>, HostError> {
        let (most, longest) = MAX_PATHS;
        let changed = async |from: &str, to: &str| {
            let rest = format!("/compare/{from}...{to}");
            let found: wire::Comparison = self.host.client.get(self.repo, &rest).await?;
            Ok::<_, Refused>(found.files.unwrap_or_default())
        };
        // The paths are only shown to users: without them the conflict is the same.
        let (Ok(mine), Ok(others)) = (changed(theirs, ours).await, changed(ours, theirs).await)
        else {
            return Ok(Vec::new());
        };
        let both = met(&mine, &others).into_iter().chain(met(&others, &mine));
        let both: BTreeSet<&str> = both.collect();
        let both = both.into_iter().take(most);
        Ok(both.map(|path| path.chars().take(longest).collect()).collect())
    }
}

/// The names of the files, including former names, that the base has changed under any of their
/// names.
fn met<'a>(files: &'a [wire::ChangedFile], others: &[wire::ChangedFile]) -> Vec<&'a str> {
    let of_others: BTreeSet<&str> = others.iter().flat_map(wire::ChangedFile::names).collect();
    let is_met = |file: &&wire::ChangedFile| file.names().any(|name| of_others.contains(name));
    files.iter().filter(is_met).flat_map(wire::ChangedFile::names).collect()
}

impl GitHubHost {
    /// The tree of a commit.
    pub(crate) async fn tree_of(&self, repo: &RepoName, commit: &str) -> Result<TreeId, HostError> {
        tree(&self.commit_of(repo, commit).await?.tree.sha)
    }

    /// A commit.
    pub(crate) async fn commit_of(
        &self,
        repo: &RepoName,
        commit: &str,
    ) -> Result<wire::GitCommit, HostError> {
        Ok(self.client.get(repo, &format!("/git/commits/{commit}")).await?)
    }

    /// Who wrote the head of a pull request, without the time, and the commits that it adds to a
    /// commit, the oldest first and at most 100.
    async fn authors_of(
        &self,
        repo: &RepoName,
        base: &str,
        head: &str,
    ) -> Result<(Value, Vec<Authored>), HostError> {
        // The check of the composition reads the same comparison.
        let rest = format!("/compare/{base}...{head}?per_page=100");
        let since: wire::Comparison = self.client.get(repo, &rest).await?;
        let authored = |it: &wire::ListedCommit| {
            let author = it.commit.author.as_ref()?;
            Some(Authored {
                name: author.name.clone().filter(|name| !name.trim().is_empty())?,
                email: author.email.clone().filter(|email| !email.trim().is_empty())?,
                message: it.commit.message.clone().unwrap_or_default(),
            })
        };
        let last = since.commits.last().filter(|it| it.sha == head).and_then(authored);
        let author = match last {
            Some(author) => json!({ "name": author.name, "email": author.email }),
            None => self.author_of(repo, head).await?,
        };
        let own = since.commits.iter().filter(|it| it.parents.len() < 2);
        Ok((author, own.filter_map(authored).collect()))
    }

    /// Who wrote a commit, without the time.
    async fn author_of(&self, repo: &RepoName, commit: &str) -> Result<Value, HostError> {
        let found: Value = self.client.get(repo, &format!("/git/commits/{commit}")).await?;
        let part = |key: &str| found["author"][key].as_str().filter(|it| !it.trim().is_empty());
        Ok(match (part("name"), part("email")) {
            (Some(name), Some(email)) => json!({ "name": name, "email": email }),
            _ => Value::Null,
        })
    }

    /// Whether the first commit is an ancestor of the second, or the same.
    pub(crate) async fn is_ancestor(
        &self,
        repo: &RepoName,
        ancestor: &str,
        commit: &str,
    ) -> Result<bool, HostError> {
        let rest = format!("/compare/{ancestor}...{commit}?per_page=1");
        match self.client.get::<wire::Comparison>(repo, &rest).await {
            Ok(found) => Ok(matches!(found.status.as_deref(), Some("ahead" | "identical"))),
            Err(Refused { error: HostError::NotFound { .. }, .. }) => Ok(false),
            Err(refused) => Err(refused.error),
        }
    }
}
