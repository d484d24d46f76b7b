//! Pull requests of a host that has none: opened here, followed, closed, marked as merged.

use signalbox_domain::ids::{BranchName, PrNumber};
use signalbox_domain::ports::{HostError, NewPullRequest, Repository, StoredPullRequest};
use signalbox_domain::queue::{Change, Dependency, Mergeability, PullRequest, PullRequestState};
use signalbox_hosts::OpenRequest;

use crate::git::{Git, parse_sha};
use crate::host::{CASE_INSENSITIVE_NAMES, PlainGitHost, silent};
use crate::landed;

/// The most characters of a title, and bytes of a description.
const MAX_TITLE: usize = 1_024;
const MAX_BODY: usize = 64 * 1024;

/// A pull request that comes with its head commit and topic, from a push.
pub(crate) struct Proposal<'a> {
    pub(crate) head: String,
    pub(crate) head_branch: Option<BranchName>,
    pub(crate) topic: Option<String>,
    pub(crate) target: &'a BranchName,
    pub(crate) title: Option<String>,
    pub(crate) body: Option<String>,
    pub(crate) author: Option<String>,
}

impl PlainGitHost {
    /// Opens a pull request from a branch.
    pub async fn open_pull_request(
        &self,
        repository: &Repository,
        request: OpenRequest,
    ) -> Result<StoredPullRequest, HostError> {
        let git = self.git(repository)?;
        let OpenRequest { branch, target, title, body, author } = request;
        if branch == target {
            let words = format!("branch `{branch}` cannot be merged into itself");
            return Err(HostError::Rejected { words });
        }
        let head = git
            .tip(&format!("refs/heads/{branch}"))
            .await?
            .ok_or_else(|| HostError::NotFound { what: format!("branch `{branch}`") })?;
        let known = self.store.find_by_branch(repository.org, repository.id, &branch).await;
        if let Some(known) = known.map_err(silent)?
            && known.state == PullRequestState::Open
            && known.base == target
        {
            let words = format!(
                "pull request {} from `{branch}` into `{target}` is already open",
                known.number
            );
            return Err(HostError::Rejected { words });
        }
        let head_branch = Some(branch);
        let proposal =
            Proposal { head, head_branch, topic: None, target: &target, title, body, author };
        self.propose(repository, &git, proposal).await
    }

    /// Opens a pull request for a commit.
    pub(crate) async fn propose(
        &self,
        repository: &Repository,
        git: &Git,
        proposal: Proposal<'_>,
    ) -> Result<StoredPullRequest, HostError> {
        let Proposal { head, head_branch, topic, target, title, body, author } = proposal;
        let target_ref = format!("refs/heads/{target}");
        if git.tip(&target_ref).await?.is_none() {
            return Err(HostError::NotFound { what: format!("branch `{target}`") });
        }
        if git.is_ancestor(&head, &target_ref).await? {
            let words = format!("nothing to merge: `{target}` already contains that commit");
            return Err(HostError::Rejected { words });
        }
        let sha = parse_sha(&head)?;
        if let Some(commit) = landed::commit(git, target, &sha).await? {
            let words = format!(
                "nothing to merge: commit {head} landed on `{target}` before, with {commit}; \
                 to land it again after a revert, revert the revert or make a new commit"
            );
            return Err(HostError::Rejected { words });
        }
        let args = ["show", "-s", "--format=%s", &head];
        let subject = git.call_with_content(&args).await?.succeeded()?.text();
        let new = NewPullRequest {
            org: repository.org,
            repo: repository.id,
            title: clean_title(&title.unwrap_or(subject)),
            body: clean_body(&body.unwrap_or_default()),
            author: clean_title(&match author {
                Some(author) => author,
                None => git.author(&head).await?.name,
            }),
            head_branch,
            topic,
            head: sha,
            base: target.clone(),
            at: self.clock.now(),
        };
        let opened = self.store.open(&new).await.map_err(silent)?;
        keep_head(git, opened.number, &head).await?;
        Ok(opened)
    }

    /// Closes an open pull request. `None` when there is none of that number.
    pub async fn close_pull_request(
        &self,
        repository: &Repository,
        number: PrNumber,
    ) -> Result<Option<StoredPullRequest>, HostError> {
        let found = self.store.find(repository.org, repository.id, number).await.map_err(silent)?;
        let Some(mut stored) = found else { return Ok(None) };
        if stored.state == PullRequestState::Open {
            stored.state = PullRequestState::Closed;
            self.keep(&mut stored).await?;
        }
        Ok(Some(stored))
    }

    pub(crate) async fn keep(&self, stored: &mut StoredPullRequest) -> Result<(), HostError> {
        stored.updated_at = self.clock.now();
        self.store.update(stored).await.map_err(silent).map(drop)
    }

    /// An open pull request, refreshed from the repository: its branch may have moved, it may have
    /// been merged manually, and it may have landed without a record in the store.
    pub(crate) async fn refreshed(
        &self,
        repository: &Repository,
        mut stored: StoredPullRequest,
    ) -> Result<StoredPullRequest, HostError> {
        if stored.state != PullRequestState::Open {
            return Ok(stored);
        }
        let git = self.git(repository)?;
        if landed::commit(&git, &stored.base, &stored.head).await?.is_some() {
            stored.state = PullRequestState::Merged;
            self.keep(&mut stored).await?;
            return Ok(stored);
        }
        let of_branch = match &stored.head_branch {
            Some(branch) => git.tip(&format!("refs/heads/{branch}")).await?,
            None => None,
        };
        let followed = match of_branch {
            Some(head) => Some(head),
            None => git.tip(&format!("refs/pull/{}/head", stored.number)).await?,
        };
        let mut landed = false;
        if let Some(head) = followed.filter(|head| *head != stored.head.as_str()) {
            stored.head = parse_sha(&head)?;
            keep_head(&git, stored.number, &head).await?;
            self.keep(&mut stored).await?;
            landed = landed::commit(&git, &stored.base, &stored.head).await?.is_some();
        }
        let base = git.tip(&format!("refs/heads/{}", stored.base)).await?;
        if let Some(base) = base.filter(|_| !landed)
            && git.is_ancestor(stored.head.as_str(), &base).await?
        {
            landed::remember(&git, &stored.base, &[&stored.head], &base).await?;
            landed = true;
        }
        if landed {
            stored.state = PullRequestState::Merged;
            self.keep(&mut stored).await?;
        }
        Ok(stored)
    }

    pub(crate) fn shown(&self, repository: &Repository, it: StoredPullRequest) -> PullRequest {
        let url =
            format!("{}/repos/{}/pulls/{}", self.config.public_url, repository.name, it.number);
        PullRequest {
            number: it.number,
            title: it.title,
            depends_on: Dependency::read(&it.body, &repository.name, CASE_INSENSITIVE_NAMES),
            body: it.body,
            author: it.author,
            head: it.head,
            head_branch: it.head_branch.map(String::from),
            base: it.base,
            state: it.state,
            merged_as: None,
            draft: it.draft,
            mergeability: Mergeability::Mergeable,
            url,
            labels: Vec::new(),
        }
    }

    pub(crate) async fn mark_merged(
        &self,
        repository: &Repository,
        changes: impl IntoIterator<Item = &Change> + Send,
    ) -> Result<(), HostError> {
        let numbers: Vec<PrNumber> = changes.into_iter().map(|change| change.pr).collect();
        for number in numbers {
            let found = self.store.find(repository.org, repository.id, number).await;
            if let Some(mut stored) = found.map_err(silent)?
                && stored.state != PullRequestState::Merged
            {
                stored.state = PullRequestState::Merged;
                self.keep(&mut stored).await?;
            }
        }
        Ok(())
    }
}

/// Keeps the head of a pull request reachable, whatever becomes of its branch.
pub(crate) async fn keep_head(git: &Git, number: PrNumber, head: &str) -> Result<(), HostError> {
    let name = format!("refs/pull/{number}/head");
    git.move_ref(&name, head, None, "signalbox: pull request").await.map(drop)
}

/// One line without control characters, not too long.
pub(crate) fn clean_title(text: &str) -> String {
    let line: String =
        text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(MAX_TITLE).collect();
    let line = line.trim();
    if line.is_empty() { "(no title)".into() } else { line.to_owned() }
}

/// Text without control characters but line breaks and tabs, not too long.
pub(crate) fn clean_body(text: &str) -> String {
    let kept = text.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t'));
    let mut body = String::new();
    for c in kept {
        if body.len() + c.len_utf8() > MAX_BODY {
            break;
        }
        body.push(c);
    }
    body
}
