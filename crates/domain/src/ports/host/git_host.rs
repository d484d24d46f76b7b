//! Git hosts: what the queue needs from them.

use std::collections::BTreeMap;

use async_trait::async_trait;
use thiserror::Error;

use crate::ids::{BranchName, PrNumber, Sha, TreeId};
use crate::ports::Repository;
use crate::queue::{
    BuildCandidate, Candidate, ChangedPaths, CheckReport, Composition, ConflictWith, HostStatuses,
    HostTrouble, HostTroubleKind, Land, LandingProof, MergeMethod, Mismatch, PullRequest,
};
use crate::time::{Span, Timestamp};

/// The abilities of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Abilities {
    /// Whether names of owners and repositories are case-insensitive.
    pub case_insensitive_names: bool,
    /// Whether repositories are registered on first use.
    pub registers_on_first_use: bool,
    /// Whether pull requests and targets must be polled, because the host sends no webhooks.
    pub needs_polling: bool,
    /// The interval of rereading a queue in case a webhook delivery was lost.
    pub reread_after: Span,
}

/// Why a call to a host failed.
#[derive(Debug, Error)]
pub enum HostError {
    /// The host limits the rate of calls.
    #[error("rate limit of the host exceeded until {retry_at}")]
    RateLimited {
        /// When to retry.
        retry_at: Timestamp,
    },
    /// The host does not answer, or the host or its machine fails: no disk space, a folder without
    /// permission, a stale lock, unreadable objects. Unrelated to any change; retry later.
    #[error("the host is not available: {words}")]
    Unavailable {
        /// The error.
        words: String,
    },
    /// The host denies access: a missing permission, an IP allow list, an archived repository, a
    /// repository that is no longer visible. Unrelated to any change; the call succeeds once an
    /// operator has fixed the cause.
    #[error("the host denies access: {words}")]
    AccessDenied {
        /// The host's message and the denied call.
        words: String,
    },
    /// The host rejects the credential. Unrelated to any change; the call succeeds once an operator
    /// has replaced it.
    #[error("the host rejected the credential: {words}")]
    CredentialRejected {
        /// The host's message.
        words: String,
    },
    /// The host refuses this change. The only error that may fail a pull request, besides
    /// [`Conflict`](Self::Conflict).
    #[error("the host refused: {words}")]
    Rejected {
        /// The host's message.
        words: String,
    },
    /// The object does not exist.
    #[error("not found on the host: {what}")]
    NotFound {
        /// The missing object.
        what: String,
    },
    /// A branch or an object is not in the expected state.
    #[error("changed concurrently: {what}")]
    Conflict {
        /// What has changed.
        what: String,
    },
}

impl HostError {
    /// Whether the same call may succeed later without any change.
    pub const fn is_passing(&self) -> bool {
        match self {
            Self::RateLimited { .. }
            | Self::Unavailable { .. }
            | Self::AccessDenied { .. }
            | Self::CredentialRejected { .. } => true,
            Self::Rejected { .. } | Self::NotFound { .. } | Self::Conflict { .. } => false,
        }
    }

    /// The outage of the host that the error indicates, if any.
    pub fn trouble(&self) -> Option<HostTrouble> {
        let (kind, words) = match self {
            Self::Unavailable { words } => (HostTroubleKind::Unreachable, words),
            Self::AccessDenied { words } => (HostTroubleKind::AccessDenied, words),
            Self::CredentialRejected { words } => (HostTroubleKind::CredentialRejected, words),
            Self::RateLimited { .. }
            | Self::Rejected { .. }
            | Self::NotFound { .. }
            | Self::Conflict { .. } => return None,
        };
        Some(HostTrouble { kind, words: words.clone() })
    }
}

/// A branch's head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// The commit.
    pub sha: Sha,
    /// Its tree.
    pub tree: TreeId,
}

/// The result of building a candidate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Built {
    /// The candidate is on its branch.
    Candidate {
        /// The commit.
        candidate: Candidate,
        /// The checks of the pull request's head, if [`BuildCandidate::direct`] is set and the head
        /// has the candidate's tree.
        head_checks: Vec<CheckReport>,
        /// The pull requests that add no changes; they have no commit.
        empty: Vec<PrNumber>,
        /// How its composition was checked; `None` on hosts that check it when it lands.
        composition: Option<Composition>,
    },
    /// The candidate that was built is not its base with the changes; the test branch does not
    /// exist.
    Mismatch(Mismatch),
    /// A pull request of the group has already landed on the target with this head. The host shows
    /// it as merged; the test branch does not exist.
    MergedBefore {
        /// The pull request.
        pr: PrNumber,
    },
    /// The changes conflict; the test branch does not exist. An answer that names an unrelated pull
    /// request or run is ignored, and the build is repeated.
    Conflict {
        /// The conflicting pull request: one of [`BuildCandidate::changes`].
        pr: PrNumber,
        /// What it conflicts with: the target if the change conflicts with it alone; otherwise the
        /// first run ahead whose candidate it conflicts with (one of [`BuildCandidate::ahead`]);
        /// otherwise an earlier pull request in [`BuildCandidate::changes`].
        with: ConflictWith,
        /// The conflicting paths, at most 100, each at most 1,024 bytes.
        paths: Vec<String>,
    },
}

/// The result of a landing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LandAnswer {
    /// The candidate, or a commit with the tree that had to land, is on the target. With how its
    /// composition was checked for the landing, if it was.
    Landed(Head, Option<Composition>),
    /// A pull request's head is not the tested one; the target was not touched.
    HeadMoved {
        /// The pull request: one of [`Land::changes`].
        pr: PrNumber,
    },
    /// The target has moved and the tested tree would not be what lands; the target was not
    /// touched.
    TargetMoved(Head),
    /// The commit to land is not the target with the changes; the target was not touched.
    Mismatch(Mismatch),
}

/// A landing to look for on the target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Landed {
    /// The head of the pull request that landed.
    pub head: Sha,
    /// The target's head after it.
    pub commit: Sha,
}

/// A landing of the past.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PastLanding {
    /// The target's head after it, and its tree, as they were recorded.
    pub landed: Candidate,
    /// What it consists of.
    pub proof: LandingProof,
}

/// A query for a pull request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PullRequestQuery {
    /// By its number.
    Number(PrNumber),
    /// The newest one from that branch, open ones first.
    Branch(String),
}

/// A test branch that exists on the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestBranch {
    /// Its name.
    pub branch: BranchName,
    /// Its head.
    pub sha: Sha,
}

/// A summary of a repository from one cheap call, to find what must be read again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// The heads of the branches.
    pub heads: BTreeMap<BranchName, Sha>,
    /// A fingerprint of each open pull request. While it is unchanged, so is the pull request; a
    /// pull request without a fingerprint is not open.
    pub fingerprints: BTreeMap<PrNumber, String>,
}

/// A git host. Every call that changes a branch names the commit that it expects, so a late call
/// cannot overwrite a branch that has moved.
#[async_trait]
pub trait GitHost: Send + Sync {
    /// The abilities of the host.
    fn abilities(&self) -> Abilities;

    /// The repository's location, if it exists: its folder on hosts with repositories in the file
    /// system, empty on others.
    async fn locate(&self, repository: &Repository) -> Result<Option<String>, HostError>;

    /// The heads of all branches and a fingerprint of each open pull request, at a cost that does
    /// not grow with the number of pull requests. `None` on hosts without such a call: every object
    /// is then read on its own.
    async fn snapshot(&self, _repository: &Repository) -> Result<Option<Snapshot>, HostError> {
        Ok(None)
    }

    /// Reads a pull request; a branch that it follows is read first. `None` if it does not exist,
    /// which a host reports only if the repository itself is readable.
    async fn pull_request(
        &self,
        repository: &Repository,
        query: &PullRequestQuery,
    ) -> Result<Option<PullRequest>, HostError>;

    /// Reads a branch's head; `None` if the branch does not exist, which a host reports only if the
    /// repository itself is readable.
    async fn head(
        &self,
        repository: &Repository,
        branch: &BranchName,
    ) -> Result<Option<Head>, HostError>;

    /// The paths that applying a pull request to a commit of the target can change: the paths that differ
    /// between its head and the merge base, the old and the new one of a renamed file. Unless the method is
    /// [`MergeMethod::Squash`], the paths of each of its own commits that is no merge are added. A submodule
    /// is one path.
    ///
    /// They are incomplete if the host cannot list all of them with bounded effort, and if there is not
    /// exactly one merge base.
    async fn changed_paths(
        &self,
        repository: &Repository,
        target: &Sha,
        head: &Sha,
        method: MergeMethod,
    ) -> Result<ChangedPaths, HostError>;

    /// The statuses that the repository's configuration, at this commit of the target, and the host
    /// require of a candidate.
    async fn required_statuses(
        &self,
        repository: &Repository,
        target: &BranchName,
        at: &Sha,
    ) -> Result<HostStatuses, HostError>;

    /// Builds a candidate by a three-way merge and pushes it as its test branch. A repeat after a
    /// success gives a candidate with the same tree. A change that adds nothing gets no commit.
    ///
    /// Where the host itself merges, the composition of the candidate is checked before the push,
    /// unless the check is switched off.
    async fn build_candidate(
        &self,
        repository: &Repository,
        build: &BuildCandidate,
    ) -> Result<Built, HostError>;

    /// Lands a tested candidate on the target by compare-and-swap, after reading the heads of the
    /// target and of the pull requests:
    ///
    /// * the target already contains the candidate: [`LandAnswer::Landed`], nothing is repeated;
    /// * the target has the expected head: it moves to the candidate. If the candidate is not its
    ///   descendant, the changes are applied to it again, and the tree must be the tested one or,
    ///   unless [`Land::exact`] is set, that of the clean three-way merge of target and candidate;
    /// * the changes cannot be applied that way: nothing is touched, and the answer is
    ///   [`LandAnswer::TargetMoved`] with the expected head;
    /// * the target or a pull request's head has moved: nothing is touched;
    /// * the tree of expected head and changes, computed again where the repository is at hand, is
    ///   not the one that would land: nothing is touched, and the answer is
    ///   [`LandAnswer::Mismatch`];
    /// * the target does not exist: [`HostError::NotFound`].
    ///
    /// Landed pull requests are marked as merged, by this call or soon after by the host, except
    /// for pull requests that [`close_landed`](crate::ports::Forge::close_landed) closes. The host
    /// records what has landed, so that it is known without a database.
    async fn land(&self, repository: &Repository, land: &Land) -> Result<LandAnswer, HostError>;

    /// The landings, out of these (newest first), that the target contains when its head is this
    /// commit. A landing whose commit is missing is not contained.
    async fn contained(
        &self,
        repository: &Repository,
        target: &BranchName,
        head: &Sha,
        landings: &[Landed],
    ) -> Result<Vec<bool>, HostError>;

    /// Proves a landing again, from its record and the commits. The inner error is a commit that is
    /// not its base with only the recorded changes.
    async fn prove(
        &self,
        _repository: &Repository,
        _landing: &PastLanding,
    ) -> Result<Result<Composition, Mismatch>, HostError> {
        Ok(Ok(Composition::not_checked("this kind of git host has no such check")))
    }

    /// Deletes a test branch if it has the expected head, or any head for `None`. Deleting a
    /// missing branch succeeds.
    async fn delete_branch(
        &self,
        repository: &Repository,
        branch: &BranchName,
        expected: Option<&Sha>,
    ) -> Result<(), HostError>;

    /// The test branches on the host, for the sweep of orphaned ones.
    async fn test_branches(&self, repository: &Repository) -> Result<Vec<TestBranch>, HostError>;
}
