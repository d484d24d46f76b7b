//! The git host: bare repositories in a folder, and pull requests in memory.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use signalbox_domain::ids::{BranchName, PrNumber, RepoName, Sha, TreeId};
use signalbox_domain::ports::{
    Abilities, Built, GitHost, Head, HostError, LandAnswer, Landed, PullRequestQuery, Repository,
    TestBranch,
};
use signalbox_domain::queue::{
    BuildCandidate, ChangedPaths, CheckReport, HostStatuses, Land, MergeMethod, PullRequest,
    PullRequestState,
};
use signalbox_domain::time::Span;

use super::candidate::{self, Put, landed};
use super::git::{Git, sha};

/// The folder of a repository in which each file is a check: a script that `sh` runs.
pub(super) const CHECKS: &str = "checks";

#[derive(Default)]
struct State {
    pulls: BTreeMap<(RepoName, PrNumber), PullRequest>,
    reports: BTreeMap<Sha, Vec<CheckReport>>,
}

/// A host for the repositories `OWNER/NAME.git` below a folder.
pub(crate) struct FolderHost {
    root: PathBuf,
    state: Mutex<State>,
}

impl FolderHost {
    /// Creates a host for the repositories below a folder.
    pub(crate) fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into(), state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn git(&self, repository: &Repository) -> Result<Git, HostError> {
        let RepoName { owner, name, .. } = &repository.name;
        Git::open(self.root.join(owner).join(format!("{name}.git")))
    }

    /// Opens a pull request from a branch.
    pub(crate) fn open(
        &self,
        repository: &Repository,
        from: &BranchName,
        to: &BranchName,
    ) -> PrNumber {
        let mut state = self.state();
        let number = PrNumber(u32::try_from(state.pulls.len()).unwrap_or(u32::MAX - 1) + 1);
        // The head is read whenever the pull request is.
        let head = Sha::new("0".repeat(40)).expect("a commit");
        let opened = PullRequest::builder(number, head, to.clone());
        let mut opened = opened.title(format!("change {number}")).build().expect("a title");
        opened.head_branch = Some(from.to_string());
        state.pulls.insert((repository.name.clone(), number), opened);
        number
    }

    /// Closes a pull request.
    pub(crate) fn close(&self, repository: &Repository, number: PrNumber) {
        if let Some(pull) = self.state().pulls.get_mut(&(repository.name.clone(), number)) {
            pull.state = PullRequestState::Closed;
        }
    }

    /// Records a check of a commit.
    pub(crate) fn report(&self, commit: &Sha, report: CheckReport) {
        self.state().reports.entry(commit.clone()).or_default().push(report);
    }

    /// Updates the head of an open pull request from its branch.
    fn refresh(git: &Git, mut pull: PullRequest) -> Result<PullRequest, HostError> {
        if let (PullRequestState::Open, Some(branch)) = (pull.state, &pull.head_branch)
            && let Some(head) = git.tip(&format!("refs/heads/{branch}"))?
        {
            pull.head = head;
        }
        Ok(pull)
    }

    fn pulls(&self, repository: &Repository) -> Vec<PullRequest> {
        let state = self.state();
        let of = state.pulls.iter().filter(|((name, _), _)| *name == repository.name);
        of.map(|(_, pull)| pull.clone()).collect()
    }
}

#[async_trait]
impl GitHost for FolderHost {
    fn abilities(&self) -> Abilities {
        Abilities {
            case_insensitive_names: false,
            registers_on_first_use: true,
            needs_polling: true,
            reread_after: Span::default(),
        }
    }

    async fn locate(&self, repository: &Repository) -> Result<Option<String>, HostError> {
        match self.git(repository) {
            Ok(git) => Ok(Some(git.folder.display().to_string())),
            Err(HostError::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn pull_request(
        &self,
        repository: &Repository,
        query: &PullRequestQuery,
    ) -> Result<Option<PullRequest>, HostError> {
        let git = self.git(repository)?;
        let mut newest_first = self.pulls(repository).into_iter().rev();
        let found = match query {
            PullRequestQuery::Number(number) => newest_first.find(|it| it.number == *number),
            PullRequestQuery::Branch(branch) => {
                let from: Vec<PullRequest> =
                    newest_first.filter(|it| it.head_branch.as_ref() == Some(branch)).collect();
                let open = from.iter().find(|it| it.state == PullRequestState::Open);
                open.or(from.first()).cloned()
            }
        };
        found.map(|pull| Self::refresh(&git, pull)).transpose()
    }

    async fn head(
        &self,
        repository: &Repository,
        branch: &BranchName,
    ) -> Result<Option<Head>, HostError> {
        let git = self.git(repository)?;
        let tip = git.tip(&format!("refs/heads/{branch}"))?;
        tip.map(|commit| git.head(commit)).transpose()
    }

    async fn changed_paths(
        &self,
        repository: &Repository,
        target: &Sha,
        head: &Sha,
        method: MergeMethod,
    ) -> Result<ChangedPaths, HostError> {
        let git = self.git(repository)?;
        let (target, head) = (target.as_str(), head.as_str());
        let bases = git.find(&["merge-base", "--all", target, head])?.unwrap_or_default();
        let [base] = bases.lines().collect::<Vec<_>>()[..] else {
            let why = "it has no single merge base with the target branch".to_owned();
            return Ok(ChangedPaths::Incomplete { why });
        };
        let net = ["diff-tree", "-r", "-z", "--name-only", "--no-renames", base, head];
        let mut listed = git.text(&net)?;
        if method != MergeMethod::Squash {
            let range = format!("{target}..{head}");
            let each =
                ["log", "-z", "--no-merges", "--format=", "--name-only", "--no-renames", &range];
            listed = format!("{listed}\0{}", git.text(&each)?);
        }
        let paths = listed.split('\0').filter(|path| !path.is_empty());
        Ok(ChangedPaths::Complete(paths.map(ToOwned::to_owned).collect()))
    }

    /// All checks of the target are required.
    async fn required_statuses(
        &self,
        repository: &Repository,
        _target: &BranchName,
        at: &Sha,
    ) -> Result<HostStatuses, HostError> {
        let listed =
            self.git(repository)?.find(&["ls-tree", "--name-only", &format!("{at}:{CHECKS}")])?;
        let names = |text: String| text.lines().map(ToOwned::to_owned).collect();
        Ok(HostStatuses { repository: listed.map(names), ..HostStatuses::default() })
    }

    async fn build_candidate(
        &self,
        repository: &Repository,
        build: &BuildCandidate,
    ) -> Result<Built, HostError> {
        let reports = build.changes.first().and_then(|change| {
            let state = self.state();
            state.reports.get(&change.head).cloned()
        });
        candidate::build(&self.git(repository)?, build, &reports.unwrap_or_default())
    }

    async fn land(&self, repository: &Repository, land: &Land) -> Result<LandAnswer, HostError> {
        let git = self.git(repository)?;
        let target = format!("refs/heads/{}", land.target);
        let missing = || HostError::NotFound { what: format!("branch {}", land.target) };
        let now = git.tip(&target)?.ok_or_else(missing)?;
        if let Some(commit) = already_landed(&git, land, &now)? {
            return Ok(LandAnswer::Landed(git.head(commit)?, None));
        }
        let pulls = self.pulls(repository);
        for change in &land.changes {
            let shown = pulls.iter().find(|it| it.number == change.pr).cloned();
            let shown = shown.map(|pull| Self::refresh(&git, pull)).transpose()?;
            let is_same =
                |it: &PullRequest| it.state == PullRequestState::Open && it.head == change.head;
            if !shown.is_some_and(|it| is_same(&it)) {
                return Ok(LandAnswer::HeadMoved { pr: change.pr });
            }
        }
        let to = if now == land.expected { commit_to_land(&git, land)? } else { None };
        let Some(to) = to else { return Ok(LandAnswer::TargetMoved(git.head(now)?)) };
        if !git.move_ref(&target, &to, &land.expected)? {
            let now = git.tip(&target)?.ok_or_else(missing)?;
            return Ok(LandAnswer::TargetMoved(git.head(now)?));
        }
        for change in &land.changes {
            let name = landed(land.target.as_str(), &change.head);
            git.text(&["update-ref", &name, to.as_str()])?;
            if let Some(pull) = self.state().pulls.get_mut(&(repository.name.clone(), change.pr)) {
                pull.head.clone_from(&change.head);
                pull.state = PullRequestState::Merged;
                pull.merged_as = Some(to.clone());
            }
        }
        Ok(LandAnswer::Landed(git.head(to)?, None))
    }

    async fn contained(
        &self,
        repository: &Repository,
        _target: &BranchName,
        head: &Sha,
        landings: &[Landed],
    ) -> Result<Vec<bool>, HostError> {
        let git = self.git(repository)?;
        landings.iter().map(|landing| git.is_ancestor(&landing.commit, head)).collect()
    }

    async fn delete_branch(
        &self,
        repository: &Repository,
        branch: &BranchName,
        expected: Option<&Sha>,
    ) -> Result<(), HostError> {
        let git = self.git(repository)?;
        let name = format!("refs/heads/{branch}");
        let Some(tip) = git.tip(&name)? else { return Ok(()) };
        if expected.is_none_or(|expected| *expected == tip) {
            // A branch that moves concurrently is kept.
            git.find(&["update-ref", "-d", &name, tip.as_str()])?;
        }
        Ok(())
    }

    async fn test_branches(&self, repository: &Repository) -> Result<Vec<TestBranch>, HostError> {
        let format = "--format=%(objectname) %(refname:strip=2)";
        let listed =
            self.git(repository)?.text(&["for-each-ref", format, "refs/heads/signalbox-merge/"])?;
        let read = |line: &str| {
            let (commit, name) = line.split_once(' ')?;
            Some(TestBranch { branch: BranchName::new(name).ok()?, sha: sha(commit).ok()? })
        };
        Ok(listed.lines().filter_map(read).collect())
    }
}

/// The commit that an earlier attempt has landed, if its answer was lost.
fn already_landed(git: &Git, land: &Land, now: &Sha) -> Result<Option<Sha>, HostError> {
    if git.is_ancestor(&land.candidate.sha, now)? {
        return Ok(Some(land.candidate.sha.clone()));
    }
    let Some(last) = land.changes.last() else { return Ok(None) };
    let Some(commit) = git.tip(&landed(land.target.as_str(), &last.head))? else { return Ok(None) };
    let is_ours = git.is_ancestor(&commit, now)? && git.is_ancestor(&land.expected, &commit)?;
    Ok((is_ours && wanted_tree(git, land)? == Some(git.tree(&commit)?)).then_some(commit))
}

/// The tree that must land: the tested one, or the clean merge of the target with it.
fn wanted_tree(git: &Git, land: &Land) -> Result<Option<TreeId>, HostError> {
    if land.exact {
        return Ok(Some(land.candidate.tree.clone()));
    }
    Ok(git.merge(None, &land.expected, &land.candidate.sha)?.ok())
}

/// The candidate, or the changes applied to the target again; `None` if the result would not have
/// the tree that must land.
fn commit_to_land(git: &Git, land: &Land) -> Result<Option<Sha>, HostError> {
    if git.is_ancestor(&land.expected, &land.candidate.sha)? {
        return Ok(Some(land.candidate.sha.clone()));
    }
    let Some(wanted) = wanted_tree(git, land)? else { return Ok(None) };
    match candidate::put(git, &land.expected, &land.changes, land.method)? {
        Put::On { commit, .. } if git.tree(&commit)? == wanted => Ok(Some(commit)),
        Put::On { .. } | Put::Conflict { .. } => Ok(None),
    }
}
