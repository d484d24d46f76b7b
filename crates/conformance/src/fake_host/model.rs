//! Commits, branches and the three-way merge by path.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Write as _;

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};
use signalbox_domain::ids::{BranchName, PrNumber, Sha, TreeId};
use signalbox_domain::ports::Head;
use signalbox_domain::queue::{Candidate, ChangedPaths, CheckReport, MergeMethod, PullRequest};

/// The files of a commit: path to content.
pub type Tree = BTreeMap<String, String>;

/// A commit.
#[derive(Clone, Debug)]
pub(super) struct Commit {
    pub(super) tree: Tree,
    pub(super) parents: Vec<Sha>,
    pub(super) title: String,
}

/// A repository.
#[derive(Debug, Default)]
pub(super) struct Repo {
    pub(super) commits: BTreeMap<Sha, Commit>,
    pub(super) branches: BTreeMap<BranchName, Sha>,
    /// The test branches.
    pub(super) test_branches: BTreeSet<BranchName>,
    pub(super) pull_requests: BTreeMap<PrNumber, PullRequest>,
    /// The checks of heads of pull requests.
    pub(super) head_checks: BTreeMap<Sha, Vec<CheckReport>>,
    /// All moves of branches, oldest first.
    pub(super) moves: Vec<(BranchName, Sha)>,
}

/// The paths that two sides changed differently.
#[derive(Debug)]
pub(super) struct ConflictingPaths(pub(super) Vec<String>);

impl Repo {
    pub(super) fn commit(&mut self, tree: Tree, parents: Vec<Sha>, title: &str) -> Sha {
        let commit = Commit { tree, parents, title: title.to_owned() };
        let mut text = format!("tree {}\n", tree_id(&commit.tree));
        for parent in &commit.parents {
            let _ = writeln!(text, "parent {parent}");
        }
        text.push_str(title);
        let sha = Sha::new(digest(&text)).expect("a digest is an object id");
        self.commits.insert(sha.clone(), commit);
        sha
    }

    pub(super) fn move_branch(&mut self, branch: &BranchName, to: &Sha) {
        self.branches.insert(branch.clone(), to.clone());
        self.moves.push((branch.clone(), to.clone()));
    }

    pub(super) fn tree(&self, sha: &Sha) -> Tree {
        self.commits.get(sha).map(|commit| commit.tree.clone()).unwrap_or_default()
    }

    pub(super) fn head(&self, sha: &Sha) -> Head {
        Head { sha: sha.clone(), tree: tree_id(&self.tree(sha)) }
    }

    pub(super) fn candidate(&self, sha: &Sha) -> Candidate {
        Candidate { sha: sha.clone(), tree: tree_id(&self.tree(sha)) }
    }

    /// A commit and its ancestors, nearest first.
    pub(super) fn history(&self, of: &Sha) -> Vec<Sha> {
        let mut seen = BTreeSet::new();
        let mut order = Vec::new();
        let mut next = VecDeque::from([of.clone()]);
        while let Some(sha) = next.pop_front() {
            if !seen.insert(sha.clone()) {
                continue;
            }
            if let Some(commit) = self.commits.get(&sha) {
                next.extend(commit.parents.iter().cloned());
            }
            order.push(sha);
        }
        order
    }

    /// Applies a pull request's changes to a commit.
    pub(super) fn put(
        &mut self,
        head: &Sha,
        onto: &Sha,
        method: MergeMethod,
        title: &str,
    ) -> Result<Sha, ConflictingPaths> {
        match method {
            MergeMethod::Squash | MergeMethod::MergeCommit => {
                let tree = self.merged(onto, head)?;
                let parents = if method == MergeMethod::Squash {
                    vec![onto.clone()]
                } else {
                    vec![onto.clone(), head.clone()]
                };
                Ok(self.commit(tree, parents, title))
            }
            MergeMethod::Rebase => {
                let mut on = onto.clone();
                for own in self.own_commits(head, onto) {
                    let Some(commit) = self.commits.get(&own).cloned() else { continue };
                    let before = commit.parents.first().map(|it| self.tree(it)).unwrap_or_default();
                    let tree = merge(&before, &self.tree(&on), &commit.tree)?;
                    on = self.commit(tree, vec![on], &commit.title);
                }
                Ok(on)
            }
        }
    }

    /// Merges the changes of `theirs` since the merge base into the tree of `ours`.
    pub(super) fn merged(&self, ours: &Sha, theirs: &Sha) -> Result<Tree, ConflictingPaths> {
        let base = self.common(ours, theirs).map(|sha| self.tree(&sha)).unwrap_or_default();
        merge(&base, &self.tree(ours), &self.tree(theirs))
    }

    /// The nearest common ancestor.
    fn common(&self, ours: &Sha, theirs: &Sha) -> Option<Sha> {
        let known: BTreeSet<Sha> = self.history(ours).into_iter().collect();
        self.history(theirs).into_iter().find(|sha| known.contains(sha))
    }

    /// The paths that applying `head` to `onto` can change.
    pub(super) fn changed_paths(
        &self,
        onto: &Sha,
        head: &Sha,
        method: MergeMethod,
    ) -> ChangedPaths {
        let Some(base) = self.common(onto, head) else {
            return ChangedPaths::Incomplete { why: "it shares no commit with the target".into() };
        };
        let mut paths = differing(&self.tree(&base), &self.tree(head));
        if method != MergeMethod::Squash {
            for own in self.own_commits(head, onto) {
                let parents = self.commits.get(&own).map(|it| it.parents.as_slice());
                if let Some([parent]) = parents {
                    paths.extend(differing(&self.tree(parent), &self.tree(&own)));
                }
            }
        }
        ChangedPaths::Complete(paths.into_iter().collect())
    }

    /// The commits of `head` that `onto` does not contain, oldest first.
    fn own_commits(&self, head: &Sha, onto: &Sha) -> Vec<Sha> {
        let known: BTreeSet<Sha> = self.history(onto).into_iter().collect();
        let mut own: Vec<Sha> =
            self.history(head).into_iter().filter(|sha| !known.contains(sha)).collect();
        own.reverse();
        own
    }
}

fn differing(one: &Tree, other: &Tree) -> BTreeSet<String> {
    let paths: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
    paths.into_iter().filter(|path| one.get(*path) != other.get(*path)).cloned().collect()
}

/// The id of a tree, derived from its contents.
pub(super) fn tree_id(tree: &Tree) -> TreeId {
    let mut text = String::new();
    for (path, content) in tree {
        let _ = writeln!(text, "{path:?} {content:?}");
    }
    TreeId::new(digest(&text)).expect("a digest is an object id")
}

fn merge(base: &Tree, ours: &Tree, theirs: &Tree) -> Result<Tree, ConflictingPaths> {
    let mut merged = Tree::new();
    let mut conflicts = Vec::new();
    let paths: BTreeSet<&String> = base.keys().chain(ours.keys()).chain(theirs.keys()).collect();
    for path in paths {
        let (was, own, new) = (base.get(path), ours.get(path), theirs.get(path));
        let content = if own == new || new == was {
            own
        } else if own == was {
            new
        } else {
            conflicts.push(path.clone());
            continue;
        };
        if let Some(content) = content {
            merged.insert(path.clone(), content.clone());
        }
    }
    if conflicts.is_empty() { Ok(merged) } else { Err(ConflictingPaths(conflicts)) }
}

fn digest(text: &str) -> String {
    let bytes: [u8; 32] = Sha256::digest(text.as_bytes()).into();
    HEXLOWER.encode(bytes.get(..20).unwrap_or_default())
}
