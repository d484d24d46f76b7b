//! A git host whose calls are counted and timed. For hosts that do not report their calls
//! themselves.

use std::sync::Arc;

use async_trait::async_trait;
use signalbox_domain::ids::{BranchName, Sha};
use signalbox_domain::ports::{
    Abilities, Built, Clock, GitHost, Head, HostError, LandAnswer, Landed, Observed, Observer,
    PastLanding, PullRequestQuery, Repository, Snapshot, TestBranch,
};
use signalbox_domain::queue::{
    BuildCandidate, ChangedPaths, Composition, HostStatuses, Land, MergeMethod, Mismatch,
    PullRequest,
};

/// A host, and the observer of its calls.
pub(crate) struct Measured {
    pub(crate) host: Arc<dyn GitHost>,
    /// The name under which calls are counted.
    pub(crate) name: String,
    pub(crate) observer: Arc<dyn Observer>,
    pub(crate) clock: Arc<dyn Clock>,
}

impl Measured {
    async fn call<T>(
        &self,
        call: &'static str,
        made: impl Future<Output = Result<T, HostError>> + Send,
    ) -> Result<T, HostError> {
        let started = self.clock.now();
        let answer = made.await;
        let outcome = match &answer {
            Ok(_) => "ok",
            Err(HostError::RateLimited { .. }) => "rate_limited",
            Err(HostError::Unavailable { .. }) => "unavailable",
            Err(HostError::AccessDenied { .. }) => "access_denied",
            Err(HostError::CredentialRejected { .. }) => "credential_rejected",
            Err(HostError::Rejected { .. }) => "rejected",
            Err(HostError::NotFound { .. }) => "not_found",
            Err(HostError::Conflict { .. }) => "conflict",
        };
        let took = self.clock.now().since(started);
        self.observer.observe(&Observed::HostCall { host: &self.name, call, outcome, took });
        answer
    }
}

#[async_trait]
impl GitHost for Measured {
    fn abilities(&self) -> Abilities {
        self.host.abilities()
    }

    async fn locate(&self, repository: &Repository) -> Result<Option<String>, HostError> {
        self.call("locate", self.host.locate(repository)).await
    }

    async fn snapshot(&self, repository: &Repository) -> Result<Option<Snapshot>, HostError> {
        self.call("snapshot", self.host.snapshot(repository)).await
    }

    async fn pull_request(
        &self,
        repository: &Repository,
        query: &PullRequestQuery,
    ) -> Result<Option<PullRequest>, HostError> {
        self.call("pull_request", self.host.pull_request(repository, query)).await
    }

    async fn head(
        &self,
        repository: &Repository,
        branch: &BranchName,
    ) -> Result<Option<Head>, HostError> {
        self.call("head", self.host.head(repository, branch)).await
    }

    async fn changed_paths(
        &self,
        repository: &Repository,
        target: &Sha,
        head: &Sha,
        method: MergeMethod,
    ) -> Result<ChangedPaths, HostError> {
        self.call("changed_paths", self.host.changed_paths(repository, target, head, method)).await
    }

    async fn required_statuses(
        &self,
        repository: &Repository,
        target: &BranchName,
        at: &Sha,
    ) -> Result<HostStatuses, HostError> {
        let made = self.host.required_statuses(repository, target, at);
        self.call("required_statuses", made).await
    }

    async fn build_candidate(
        &self,
        repository: &Repository,
        build: &BuildCandidate,
    ) -> Result<Built, HostError> {
        self.call("build_candidate", self.host.build_candidate(repository, build)).await
    }

    async fn land(&self, repository: &Repository, land: &Land) -> Result<LandAnswer, HostError> {
        self.call("land", self.host.land(repository, land)).await
    }

    async fn contained(
        &self,
        repository: &Repository,
        target: &BranchName,
        head: &Sha,
        landings: &[Landed],
    ) -> Result<Vec<bool>, HostError> {
        let made = self.host.contained(repository, target, head, landings);
        self.call("contained", made).await
    }

    async fn prove(
        &self,
        repository: &Repository,
        landing: &PastLanding,
    ) -> Result<Result<Composition, Mismatch>, HostError> {
        self.call("prove", self.host.prove(repository, landing)).await
    }

    async fn delete_branch(
        &self,
        repository: &Repository,
        branch: &BranchName,
        expected: Option<&Sha>,
    ) -> Result<(), HostError> {
        let made = self.host.delete_branch(repository, branch, expected);
        self.call("delete_branch", made).await
    }

    async fn test_branches(&self, repository: &Repository) -> Result<Vec<TestBranch>, HostError> {
        self.call("test_branches", self.host.test_branches(repository)).await
    }
}
