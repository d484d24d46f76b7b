//! The store of pull requests of plain git hosts.

use async_trait::async_trait;
use signalbox_domain::ids::{BranchName, OrgId, PrNumber, RepoId};
use signalbox_domain::ports::{
    NewPullRequest, OpenPullRequest, PullRequestStore, StoreError, StoredPullRequest,
};
use signalbox_domain::queue::PullRequestState;

use super::MemoryDatabase;
use super::tables::Tables;

#[async_trait]
impl PullRequestStore for MemoryDatabase {
    async fn open(&self, new: &NewPullRequest) -> Result<StoredPullRequest, StoreError> {
        let mut tables = self.tables();
        let last = newest_first(&tables, new.org, new.repo).next().map_or(0, |it| it.number.0);
        let opened = StoredPullRequest {
            org: new.org,
            repo: new.repo,
            number: PrNumber(last + 1),
            title: new.title.clone(),
            body: new.body.clone(),
            author: new.author.clone(),
            head_branch: new.head_branch.clone(),
            topic: new.topic.clone(),
            head: new.head.clone(),
            base: new.base.clone(),
            state: PullRequestState::Open,
            draft: false,
            created_at: new.at,
            updated_at: new.at,
        };
        tables.pull_requests.insert((new.org, new.repo, opened.number), opened.clone());
        Ok(opened)
    }

    async fn find(
        &self,
        org: OrgId,
        repo: RepoId,
        number: PrNumber,
    ) -> Result<Option<StoredPullRequest>, StoreError> {
        Ok(self.tables().pull_requests.get(&(org, repo, number)).cloned())
    }

    async fn find_open_by_topic(
        &self,
        org: OrgId,
        repo: RepoId,
        topic: &str,
        base: &BranchName,
    ) -> Result<Option<StoredPullRequest>, StoreError> {
        let tables = self.tables();
        let mut open = newest_first(&tables, org, repo).filter(|it| is_open(it));
        Ok(open.find(|it| it.topic.as_deref() == Some(topic) && it.base == *base).cloned())
    }

    async fn find_by_branch(
        &self,
        org: OrgId,
        repo: RepoId,
        branch: &BranchName,
    ) -> Result<Option<StoredPullRequest>, StoreError> {
        let tables = self.tables();
        let from_it = || {
            newest_first(&tables, org, repo).filter(|it| it.head_branch.as_ref() == Some(branch))
        };
        let open = from_it().find(|it| is_open(it));
        Ok(open.or_else(|| from_it().next()).cloned())
    }

    async fn update(&self, pull_request: &StoredPullRequest) -> Result<bool, StoreError> {
        let key = (pull_request.org, pull_request.repo, pull_request.number);
        let mut tables = self.tables();
        let Some(kept) = tables.pull_requests.get_mut(&key) else { return Ok(false) };
        kept.clone_from(pull_request);
        Ok(true)
    }

    async fn open_ones(
        &self,
        org: OrgId,
        repo: RepoId,
    ) -> Result<Vec<OpenPullRequest>, StoreError> {
        let tables = self.tables();
        let mut open: Vec<OpenPullRequest> = newest_first(&tables, org, repo)
            .filter(|it| is_open(it))
            .map(|it| OpenPullRequest {
                number: it.number,
                head_branch: it.head_branch.clone(),
                base: it.base.clone(),
                updated_at: it.updated_at,
            })
            .collect();
        open.reverse();
        Ok(open)
    }

    async fn list(
        &self,
        org: OrgId,
        repo: RepoId,
        only_open: bool,
    ) -> Result<Vec<StoredPullRequest>, StoreError> {
        let tables = self.tables();
        let all = newest_first(&tables, org, repo);
        Ok(all.filter(|it| !only_open || is_open(it)).cloned().collect())
    }
}

fn newest_first(
    tables: &Tables,
    org: OrgId,
    repo: RepoId,
) -> impl Iterator<Item = &StoredPullRequest> {
    let all = (org, repo, PrNumber(0))..=(org, repo, PrNumber(u32::MAX));
    tables.pull_requests.range(all).rev().map(|(_, it)| it)
}

fn is_open(pull_request: &StoredPullRequest) -> bool {
    pull_request.state == PullRequestState::Open
}
