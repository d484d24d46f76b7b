//! Candidates, built on the host without a clone.

use signalbox_domain::ids::{RepoName, TreeId};
use signalbox_domain::ports::{Built, HostError};
use signalbox_domain::queue::{
    BuildCandidate, Candidate, Change, CheckReport, ConflictWith, MergeMethod,
};

use crate::composition::Composed;
use crate::host::{GitHubHost, sha};
use crate::scratch_branch::{Applied, Made, ScratchBranch};

impl GitHubHost {
    /// Builds a candidate and puts it on its branch.
    pub(crate) async fn build(
        &self,
        repo: &RepoName,
        build: &BuildCandidate,
    ) -> Result<Built, HostError> {
        let mut bench = ScratchBranch::new(self, repo, build.run, "build");
        let answer = self.build_on(&mut bench, repo, build).await;
        bench.leave();
        answer
    }

    async fn build_on(
        &self,
        bench: &mut ScratchBranch<'_>,
        repo: &RepoName,
        build: &BuildCandidate,
    ) -> Result<Built, HostError> {
        let before: Vec<Change> =
            build.before.iter().map(|(_, change)| Change::clone(change)).collect();
        let base = self.ground(repo, build, build.base.as_str()).await?;
        let ground = match bench.apply(base, &before, build.method).await? {
            Applied::Commit { made, .. } => made,
            // The pull requests ahead conflict: the group waits for the later of the two.
            Applied::Conflict { change, paths } => {
                let (Some((run, _)), Some(first)) =
                    (build.before.get(change), build.changes.first())
                else {
                    return Err(HostError::Rejected {
                        words: "a conflict without a conflicting change".into(),
                    });
                };
                return Ok(Built::Conflict {
                    pr: first.pr,
                    with: ConflictWith::Ahead(*run),
                    paths,
                });
            }
        };
        match bench.apply(ground, &build.changes, build.method).await? {
            Applied::Commit { made: Made { commit, tree }, empty } => {
                let empty = empty.into_iter().filter_map(|at| build.changes.get(at));
                let empty = empty.map(|change| change.pr).collect();
                let candidate = Candidate { sha: sha(&commit)?, tree };
                let composed = Composed {
                    base: build.base.as_str(),
                    changes: &before.iter().chain(&build.changes).collect::<Vec<_>>(),
                    method: build.method,
                    candidate: &candidate,
                };
                let composition = match self.composition(repo, &composed).await? {
                    Ok(composition) => Some(composition),
                    Err(mismatch) => return Ok(Built::Mismatch(mismatch)),
                };
                self.put_branch(repo, build.branch.as_str(), &commit).await?;
                let head_checks = self.head_checks(repo, build, &candidate.tree).await?;
                Ok(Built::Candidate { candidate, head_checks, empty, composition })
            }
            Applied::Conflict { change, paths } => {
                self.conflict(bench, repo, build, change, paths).await
            }
        }
    }

    /// A commit to build on. Its tree is read, which costs a call, where commits are replayed and
    /// where a change of a group may add nothing to it. For a single change the planner compares
    /// the candidate's tree itself.
    async fn ground(
        &self,
        repo: &RepoName,
        build: &BuildCandidate,
        commit: &str,
    ) -> Result<Made, HostError> {
        let is_needed = build.method == MergeMethod::Rebase || build.changes.len() != 1;
        let tree = if is_needed { self.tree_of(repo, commit).await? } else { unknown_tree()? };
        Ok(Made { commit: commit.to_owned(), tree })
    }

    /// The reports on the head of the only pull request, if its own commit stands on the
    /// target and has the candidate's tree.
    async fn head_checks(
        &self,
        repo: &RepoName,
        build: &BuildCandidate,
        tree: &TreeId,
    ) -> Result<Vec<CheckReport>, HostError> {
        let Some(change) = build.changes.first().filter(|_| build.direct) else {
            return Ok(Vec::new());
        };
        let (head, target) = (change.head.as_str(), build.target_head.as_str());
        if self.tree_of(repo, head).await? != *tree || !self.is_ancestor(repo, target, head).await?
        {
            return Ok(Vec::new());
        }
        self.reports(repo, head, &build.target, &build.target_head).await
    }

    /// Finds with whom a change conflicts: with the target itself, with the first candidate ahead
    /// on which it cannot be put any more, or with one before it in its own group.
    async fn conflict(
        &self,
        bench: &mut ScratchBranch<'_>,
        repo: &RepoName,
        build: &BuildCandidate,
        change: usize,
        paths: Vec<String>,
    ) -> Result<Built, HostError> {
        let Some(changed) = build.changes.get(change) else {
            return Err(HostError::Rejected {
                words: "a conflict without a conflicting change".into(),
            });
        };
        let pr = changed.pr;
        let alone = std::slice::from_ref(changed);
        let target = self.ground(repo, build, build.target_head.as_str()).await?;
        if let Applied::Conflict { paths, .. } =
            bench.apply(target.clone(), alone, build.method).await?
        {
            return Ok(Built::Conflict { pr, with: ConflictWith::Target, paths });
        }
        for ahead in &build.ahead {
            let ground = self.ground(repo, build, ahead.sha.as_str()).await?;
            if let Applied::Conflict { paths, .. } =
                bench.apply(ground, alone, build.method).await?
            {
                return Ok(Built::Conflict { pr, with: ConflictWith::Ahead(ahead.run), paths });
            }
        }
        for other in build.changes.iter().take(change) {
            let both = [other.clone(), changed.clone()];
            let applied = bench.apply(target.clone(), &both, build.method).await?;
            if let Applied::Conflict { change: 1, paths } = applied {
                return Ok(Built::Conflict { pr, with: ConflictWith::Group(other.pr), paths });
            }
        }
        // It takes more than one other change: the nearest before it is named.
        let with = match change.checked_sub(1).and_then(|before| build.changes.get(before)) {
            Some(before) => ConflictWith::Group(before.pr),
            None => {
                build.ahead.last().map_or(ConflictWith::Target, |it| ConflictWith::Ahead(it.run))
            }
        };
        Ok(Built::Conflict { pr, with, paths })
    }
}

/// Stands for a tree that was not read: all zeros, as git writes "none".
fn unknown_tree() -> Result<TreeId, HostError> {
    crate::host::tree("0000000000000000000000000000000000000000")
}
