//! The plain git host: bare repositories under a folder.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use signalbox_domain::ids::{BranchName, Sha};
use signalbox_domain::ports::{
    Abilities, Built, Clock, GitHost, Head, HostError, LandAnswer, Landed, PastLanding,
    PullRequestQuery, PullRequestStore, Repository, Snapshot, StoreError, TestBranch,
};
use signalbox_domain::queue::{
    BuildCandidate, Change, ChangedPaths, Composition, HostStatuses, Land, MergeMethod, Mismatch,
    PullRequest, PullRequestState,
};

use crate::config::{self, Required};
use crate::git::{Git, parse_sha};
use crate::processes::Processes;
use crate::snapshot::{self, MergedSets};
use crate::{candidate, changes, land, landed, proof};

/// The prefixes of the queue's own branches.
pub(crate) const TEST_BRANCHES: [&str; 2] =
    ["refs/heads/signalbox-temp/", "refs/heads/signalbox-merge/"];
/// All refs that only the server writes. A push to one of them could claim that a pull request has
/// landed, or take the name of a test branch.
pub(crate) const OWN_REFS: [&str; 4] =
    ["refs/signalbox", "refs/pull", "refs/heads/signalbox-merge", "refs/heads/signalbox-temp"];

/// Folders with different cases are different repositories.
pub(crate) const CASE_INSENSITIVE_NAMES: bool = false;

/// Where a host keeps its repositories.
#[derive(Clone, Debug)]
pub struct HostConfig {
    /// The folder with `OWNER/NAME.git`; without one only repositories with a path are known.
    pub root: Option<PathBuf>,
    /// The server's own address, for links.
    pub public_url: String,
}

/// Bare repositories in folders. It has no rules of its own about merging, so it calls every open
/// pull request mergeable: conflicts are found when a candidate is built.
pub struct PlainGitHost {
    pub(crate) config: HostConfig,
    pub(crate) store: Arc<dyn PullRequestStore>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) merged: MergedSets,
    processes: Arc<Processes>,
}

impl PlainGitHost {
    /// A host on that folder, with pull requests in that store.
    pub fn new(
        config: HostConfig,
        store: Arc<dyn PullRequestStore>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self { config, store, clock, merged: MergedSets::new(), processes: Arc::default() }
    }

    /// The repository's folder: the path that was given for it, or `root/OWNER/NAME.git`, which
    /// must really be inside the root. `None` when there is no such folder, though it can be seen
    /// where it would be.
    fn folder(&self, repository: &Repository) -> Result<Option<PathBuf>, HostError> {
        let (within, folder) = match (&repository.path, &self.config.root) {
            (Some(path), _) => (None, PathBuf::from(path)),
            (None, Some(root)) => {
                let root = root.canonicalize().map_err(|error| unreadable(root, &error))?;
                let name = format!("{}.git", repository.name.name);
                let folder = root.join(&repository.name.owner).join(name);
                (Some(root), folder)
            }
            (None, None) => return Ok(None),
        };
        match folder.canonicalize() {
            Ok(real) if within.is_some_and(|root| !real.starts_with(root)) => Ok(None),
            Ok(real) if repository.path.is_none() => Ok(Some(real)),
            Ok(_) => Ok(Some(folder)),
            // The last three are names that no folder can have.
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::NotFound
                        | ErrorKind::NotADirectory
                        | ErrorKind::InvalidFilename
                        | ErrorKind::InvalidInput
                ) =>
            {
                Ok(None)
            }
            Err(error) => Err(unreadable(&folder, &error)),
        }
    }

    /// The repository, which must exist: that it does not is not the fault of any
    /// change.
    pub(crate) fn git(&self, repository: &Repository) -> Result<Git, HostError> {
        let Some(folder) = self.folder(repository)? else {
            let place = repository.path.as_deref().unwrap_or("the folder of its host");
            let words = format!("repository {} does not exist: {place}", repository.name);
            return Err(HostError::Unavailable { words });
        };
        match lacks(&folder)? {
            Some(part) => {
                let words = format!("{} has no {part}", folder.display());
                Err(HostError::Unavailable { words })
            }
            None => Ok(Git::at(folder).with(&self.processes)),
        }
    }
}

fn unreadable(path: &Path, error: &std::io::Error) -> HostError {
    HostError::Unavailable { words: format!("{}: {error}", path.display()) }
}

/// What a folder lacks to be a bare repository.
fn lacks(folder: &Path) -> Result<Option<&'static str>, HostError> {
    for (part, is_folder) in [("HEAD", false), ("objects", true), ("refs", true)] {
        let path = folder.join(part);
        match std::fs::metadata(&path) {
            Ok(found) if found.is_dir() == is_folder => {}
            Ok(_) => return Ok(Some(part)),
            Err(error)
                if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) =>
            {
                return Ok(Some(part));
            }
            Err(error) => return Err(unreadable(&path, &error)),
        }
    }
    Ok(None)
}

/// A store that fails is a host that does not answer.
#[expect(clippy::needless_pass_by_value, reason = "it is handed to map_err")]
pub(crate) fn silent(error: StoreError) -> HostError {
    HostError::Unavailable { words: error.to_string() }
}

#[async_trait]
impl GitHost for PlainGitHost {
    fn abilities(&self) -> Abilities {
        Abilities {
            case_insensitive_names: CASE_INSENSITIVE_NAMES,
            registers_on_first_use: true,
            needs_polling: true,
            reread_after: signalbox_domain::time::Span::default(),
        }
    }

    async fn locate(&self, repository: &Repository) -> Result<Option<String>, HostError> {
        let Some(folder) = self.folder(repository)? else { return Ok(None) };
        Ok(lacks(&folder)?.is_none().then(|| folder.to_string_lossy().into_owned()))
    }

    async fn snapshot(&self, repository: &Repository) -> Result<Option<Snapshot>, HostError> {
        let git = self.git(repository)?;
        snapshot::take(self, &git, repository).await.map(Some)
    }

    async fn pull_request(
        &self,
        repository: &Repository,
        query: &PullRequestQuery,
    ) -> Result<Option<PullRequest>, HostError> {
        let (org, repo) = (repository.org, repository.id);
        let stored = match query {
            PullRequestQuery::Number(number) => self.store.find(org, repo, *number).await,
            PullRequestQuery::Branch(branch) => {
                let Ok(branch) = BranchName::new(branch.as_str()) else { return Ok(None) };
                self.store.find_by_branch(org, repo, &branch).await
            }
        };
        let Some(stored) = stored.map_err(silent)? else {
            self.git(repository)?;
            return Ok(None);
        };
        let stored = self.refreshed(repository, stored).await?;
        let merged_as = match stored.state {
            PullRequestState::Merged => {
                landed::commit(&self.git(repository)?, &stored.base, &stored.head).await?
            }
            PullRequestState::Open | PullRequestState::Closed => None,
        };
        Ok(Some(PullRequest { merged_as, ..self.shown(repository, stored) }))
    }

    async fn head(
        &self,
        repository: &Repository,
        branch: &BranchName,
    ) -> Result<Option<Head>, HostError> {
        self.git(repository)?.head(&format!("refs/heads/{branch}")).await
    }

    async fn changed_paths(
        &self,
        repository: &Repository,
        target: &Sha,
        head: &Sha,
        method: MergeMethod,
    ) -> Result<ChangedPaths, HostError> {
        changes::paths(&self.git(repository)?, target, head, method).await
    }

    async fn required_statuses(
        &self,
        repository: &Repository,
        _target: &BranchName,
        at: &Sha,
    ) -> Result<HostStatuses, HostError> {
        let git = self.git(repository)?;
        Ok(match config::required_statuses(&git, at.as_str()).await? {
            None => HostStatuses::default(),
            Some(Ok(Required { names, external })) => {
                HostStatuses { repository: Some(names), external, ..HostStatuses::default() }
            }
            Some(Err(words)) => {
                HostStatuses { repository_error: Some(words), ..HostStatuses::default() }
            }
        })
    }

    async fn build_candidate(
        &self,
        repository: &Repository,
        build: &BuildCandidate,
    ) -> Result<Built, HostError> {
        let git = self.git(repository)?;
        if let Some(change) = landed::first(&git, &build.target, &build.changes).await? {
            return Ok(Built::MergedBefore { pr: change.pr });
        }
        let answer = candidate::build(&git, build, self.clock.now()).await?;
        if let Built::Candidate { empty, .. } = &answer
            && build.ahead.is_empty()
            && build.before.is_empty()
        {
            // Those behind another change of their group may add nothing to that one only.
            let is_empty = |change: &&Change| empty.contains(&change.pr);
            let there: Vec<&Change> = build.changes.iter().take_while(is_empty).collect();
            let heads: Vec<&Sha> = there.iter().map(|change| &change.head).collect();
            landed::remember(&git, &build.target, &heads, build.base.as_str()).await?;
            self.mark_merged(repository, there).await?;
        }
        Ok(answer)
    }

    async fn land(&self, repository: &Repository, order: &Land) -> Result<LandAnswer, HostError> {
        let git = self.git(repository)?;
        let heads: Vec<&Sha> = order.changes.iter().map(|change| &change.head).collect();
        let (candidate, expected) = (order.candidate.sha.as_str(), order.expected.as_str());
        let now = self.clock.now();
        // Whatever is in it is on the target by now: there is no commit to land.
        let adds_nothing = git.is_ancestor(candidate, expected).await?;
        if !adds_nothing && let Some(head) = land::already_landed(&git, order).await? {
            landed::remember(&git, &order.target, &heads, head.sha.as_str()).await?;
            self.mark_merged(repository, &order.changes).await?;
            let composition = proof::of_landed(&git, order, head.sha.as_str(), now).await?;
            return Ok(LandAnswer::Landed(head, Some(composition)));
        }
        let Some(head) = git.head(&format!("refs/heads/{}", order.target)).await? else {
            return Err(HostError::NotFound { what: format!("branch {}", order.target) });
        };
        // Changes that have landed before do not land again: the candidate is built again, and the
        // earlier landing is reported.
        if head.sha != order.expected
            || (!adds_nothing
                && landed::first(&git, &order.target, &order.changes).await?.is_some())
        {
            return Ok(LandAnswer::TargetMoved(head));
        }
        for change in &order.changes {
            let query = PullRequestQuery::Number(change.pr);
            let may_land = |state| match state {
                PullRequestState::Open => true,
                PullRequestState::Merged => adds_nothing,
                PullRequestState::Closed => false,
            };
            let unchanged = self
                .pull_request(repository, &query)
                .await?
                .is_some_and(|it| it.head == change.head && may_land(it.state));
            if !unchanged {
                return Ok(LandAnswer::HeadMoved { pr: change.pr });
            }
        }
        let answer = if adds_nothing {
            landed::remember(&git, &order.target, &heads, expected).await?;
            LandAnswer::Landed(head, None)
        } else {
            land::land(&git, order, head, now).await?
        };
        if let LandAnswer::Landed(..) = answer {
            self.mark_merged(repository, &order.changes).await?;
        }
        Ok(answer)
    }

    async fn contained(
        &self,
        repository: &Repository,
        target: &BranchName,
        head: &Sha,
        landings: &[Landed],
    ) -> Result<Vec<bool>, HostError> {
        landed::contained(&self.git(repository)?, target, head, landings).await
    }

    async fn prove(
        &self,
        repository: &Repository,
        landing: &PastLanding,
    ) -> Result<Result<Composition, Mismatch>, HostError> {
        proof::again(&self.git(repository)?, landing).await
    }

    async fn delete_branch(
        &self,
        repository: &Repository,
        branch: &BranchName,
        expected: Option<&Sha>,
    ) -> Result<(), HostError> {
        let git = self.git(repository)?;
        let name = format!("refs/heads/{branch}");
        let Some(at) = git.tip(&name).await? else { return Ok(()) };
        if expected.is_some_and(|expected| expected.as_str() != at) {
            return Ok(());
        }
        git.ok(&["update-ref", "-d", &name, &at]).await.map(drop)
    }

    async fn test_branches(&self, repository: &Repository) -> Result<Vec<TestBranch>, HostError> {
        let git = self.git(repository)?;
        let mut args = vec!["for-each-ref", "--format=%(refname)%00%(objectname)"];
        args.extend(TEST_BRANCHES);
        let mut branches = Vec::new();
        for line in git.ok(&args).await?.text().lines() {
            let Some((name, sha)) = line.split_once('\0') else { continue };
            let name = name.strip_prefix("refs/heads/").unwrap_or(name);
            if let Ok(branch) = BranchName::new(name) {
                branches.push(TestBranch { branch, sha: parse_sha(sha)? });
            }
        }
        Ok(branches)
    }
}
