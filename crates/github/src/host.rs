//! The host behind the port.

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use signalbox_domain::ids::{BranchName, RepoName, Sha, TreeId};
use signalbox_domain::ports::{
    Abilities, Built, Clock, GitHost, Head, HostError, LandAnswer, Landed, PastLanding,
    PullRequestQuery, Repository, TestBranch,
};
use signalbox_domain::queue::{
    BuildCandidate, ChangedPaths, Composition, HostStatuses, Land, MergeMethod, Mismatch,
    PullRequest,
};
use signalbox_domain::time::Span;
use signalbox_hosts::Recomputer;
use thiserror::Error;
use url::Url;

use crate::announce::Shown;
use crate::checks::Reporters;
use crate::client::{Client, Credentials, CredentialsError, Operation, Refused, part};
use crate::complaints::Complaints;
use crate::composition::{Trees, Verify};
use crate::recomputed::Recomputing;
use crate::runner::Waiters;
use crate::scratch_branches::{Places, ScratchBranches};
use crate::statuses::Requirements;
use crate::wire;

/// GitHub does not distinguish upper and lower case in names of repositories.
pub(crate) const CASE_INSENSITIVE_NAMES: bool = true;

/// How a host is reached.
#[derive(Debug)]
pub struct GitHubConfig {
    /// The name by which clients call the host: `github.com`.
    pub host: String,
    /// The API's address: `https://api.github.com`, or `https://HOST/api/v3`.
    pub api_url: String,
    /// Who we are.
    pub credentials: Credentials,
    /// The file that the credentials were read from. Later changes of it take effect
    /// immediately.
    pub credentials_file: Option<PathBuf>,
    /// The secrets that deliveries may be signed with: one, or two while it is changed. Without
    /// one, deliveries are refused and everything is read at intervals.
    pub webhook_secrets: Vec<String>,
    /// The interval at which the host is read again for changes that it has not reported: pull
    /// requests and targets after it, the checks of a candidate after a tenth to a half of it.
    pub reread_after: Span,
    /// The word that commands in comments start with: `/signalbox`.
    pub command_prefix: String,
    /// Where our own pages are, for links; without a slash at its end.
    pub public_url: String,
    /// Whether the composition of candidates is checked.
    pub verify: Verify,
    /// Whether writes are kept below the limits that GitHub publishes beside the quota.
    pub pace_writes: bool,
}

/// Why a host cannot be set up.
#[derive(Debug, Error)]
pub enum ConfigError {
    /// The address is no URL, or not one of the web.
    #[error("api_url {0:?} must start with https:// or http://")]
    Address(String),
    /// The credentials cannot be used.
    #[error(transparent)]
    Credentials(#[from] CredentialsError),
    /// The HTTP client cannot be made.
    #[error("could not create the HTTP client: {0}")]
    Client(String),
}

/// GitHub, or a GitHub Enterprise server.
pub struct GitHubHost {
    pub(crate) client: Client,
    pub(crate) webhook_secrets: Vec<String>,
    pub(crate) reread_after: Span,
    pub(crate) command_prefix: String,
    pub(crate) public_url: String,
    pub(crate) requirements: Requirements,
    pub(crate) reporters: Reporters,
    complaints: Complaints,
    pub(crate) waiters: Waiters,
    pub(crate) shown: Shown,
    pub(crate) scratch_branches: ScratchBranches,
    pub(crate) places: Places,
    pub(crate) verify: Verify,
    pub(crate) trees: Trees,
    pub(crate) recomputing: Option<Recomputing>,
}

impl GitHubHost {
    /// A host with these credentials.
    pub fn new(config: GitHubConfig, clock: Arc<dyn Clock>) -> Result<Self, ConfigError> {
        let url = Url::parse(&config.api_url).ok();
        let url = url.filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
        let url = url.ok_or_else(|| ConfigError::Address(config.api_url.clone()))?;
        let (credentials, file) = (config.credentials, config.credentials_file);
        let client = Client::new(&url, credentials, file, config.pace_writes, clock);
        let client = client.map_err(|error| ConfigError::Client(error.to_string()))?;
        Ok(Self {
            client,
            webhook_secrets: config.webhook_secrets,
            reread_after: config.reread_after,
            command_prefix: config.command_prefix,
            public_url: config.public_url,
            requirements: Requirements::default(),
            reporters: Reporters::default(),
            complaints: Complaints::default(),
            waiters: Waiters::default(),
            shown: Shown::default(),
            scratch_branches: ScratchBranches::default(),
            places: Places::default(),
            verify: config.verify,
            trees: Trees::default(),
            recomputing: None,
        })
    }

    /// The same host, with what [`Verify::Local`] needs: git, and a folder for mirrors, which may
    /// not exist yet.
    #[must_use]
    pub fn recomputing(self, recomputer: Arc<dyn Recomputer>, folder: PathBuf) -> Self {
        Self { recomputing: Some(Recomputing { recomputer, folder }), ..self }
    }

    /// How many calls were made since the start.
    pub fn calls(&self) -> u64 {
        self.client.calls()
    }

    /// Logs once when the host begins to deny an operation, and when it allows it again.
    pub(crate) fn noted<T>(
        &self,
        repo: &RepoName,
        doing: &'static str,
        answer: Result<T, HostError>,
    ) -> Result<T, HostError> {
        self.complaints.note(repo, doing, answer.as_ref().err());
        answer
    }

    /// The head of a branch; one call for the commit and its tree.
    pub(crate) async fn head_of(
        &self,
        repo: &RepoName,
        branch: &str,
    ) -> Result<Option<Head>, HostError> {
        let rest = format!("/branches/{}", part(branch));
        let found: Option<wire::Branch> = self.client.find(repo, &rest).await?;
        found
            .map(|it| {
                Ok(Head { sha: sha(&it.commit.sha)?, tree: tree(&it.commit.commit.tree.sha)? })
            })
            .transpose()
    }
}

pub(crate) fn sha(text: &str) -> Result<Sha, HostError> {
    Sha::new(text).map_err(|error| HostError::Unavailable { words: error.to_string() })
}

pub(crate) fn tree(text: &str) -> Result<TreeId, HostError> {
    TreeId::new(text).map_err(|error| HostError::Unavailable { words: error.to_string() })
}

#[async_trait]
impl GitHost for GitHubHost {
    fn abilities(&self) -> Abilities {
        Abilities {
            case_insensitive_names: CASE_INSENSITIVE_NAMES,
            registers_on_first_use: true,
            needs_polling: false,
            reread_after: self.reread_after,
        }
    }

    async fn locate(&self, repository: &Repository) -> Result<Option<String>, HostError> {
        let name = &repository.name;
        match self.client.get::<wire::RepoShort>(name, "").await {
            Ok(it) => {
                Ok(Some(it.full_name.unwrap_or_else(|| format!("{}/{}", name.owner, name.name))))
            }
            // Also when the app is not installed there, so that its existence is not revealed.
            Err(Refused { status: 404, .. }) => Ok(None),
            Err(refused) => Err(refused.error),
        }
    }

    async fn pull_request(
        &self,
        repository: &Repository,
        query: &PullRequestQuery,
    ) -> Result<Option<PullRequest>, HostError> {
        let name = &repository.name;
        self.noted(name, "reading pull requests", self.read_pull_request(name, query).await)
    }

    async fn head(
        &self,
        repository: &Repository,
        branch: &BranchName,
    ) -> Result<Option<Head>, HostError> {
        let name = &repository.name;
        self.noted(name, "reading branches", self.head_of(name, branch.as_str()).await)
    }

    async fn changed_paths(
        &self,
        repository: &Repository,
        target: &Sha,
        head: &Sha,
        method: MergeMethod,
    ) -> Result<ChangedPaths, HostError> {
        let name = &repository.name;
        let read = self.read_changed_paths(name, target, head, method).await;
        self.noted(name, "comparing commits", read)
    }

    async fn required_statuses(
        &self,
        repository: &Repository,
        target: &BranchName,
        at: &Sha,
    ) -> Result<HostStatuses, HostError> {
        let name = &repository.name;
        let read = self.read_required_statuses(name, target, at).await;
        self.noted(name, "reading required statuses", read)
    }

    async fn build_candidate(
        &self,
        repository: &Repository,
        build: &BuildCandidate,
    ) -> Result<Built, HostError> {
        let name = &repository.name;
        self.client.begin(Operation::Build(build.run))?;
        self.noted(name, "building candidates", self.build(name, build).await)
    }

    async fn land(&self, repository: &Repository, land: &Land) -> Result<LandAnswer, HostError> {
        let name = &repository.name;
        self.client.begin(Operation::Landing)?;
        self.noted(name, "landing", self.land_candidate(name, land).await)
    }

    async fn contained(
        &self,
        repository: &Repository,
        _target: &BranchName,
        head: &Sha,
        landings: &[Landed],
    ) -> Result<Vec<bool>, HostError> {
        let mut contained = Vec::with_capacity(landings.len());
        for landed in landings {
            let (name, commit) = (&repository.name, landed.commit.as_str());
            contained.push(self.is_ancestor(name, commit, head.as_str()).await?);
        }
        Ok(contained)
    }

    async fn prove(
        &self,
        repository: &Repository,
        landing: &PastLanding,
    ) -> Result<Result<Composition, Mismatch>, HostError> {
        self.composition_again(&repository.name, landing).await
    }

    async fn delete_branch(
        &self,
        repository: &Repository,
        branch: &BranchName,
        expected: Option<&Sha>,
    ) -> Result<(), HostError> {
        let name = &repository.name;
        self.client.begin(Operation::Deletion)?;
        let deleted = self.delete(name, branch.as_str(), expected).await;
        self.noted(name, "deleting test branches", deleted)
    }

    async fn test_branches(&self, repository: &Repository) -> Result<Vec<TestBranch>, HostError> {
        let name = &repository.name;
        self.noted(name, "listing test branches", self.list_test_branches(name).await)
    }
}
