//! Git hosts, in the queue's words.

use std::collections::BTreeMap;

use async_trait::async_trait;
use thiserror::Error;

use crate::ids::{BranchName, PrNumber, Sha, TreeId};
use crate::ports::Repository;
use crate::queue::{
    BuildCandidate, Candidate, CheckReport, ConflictWith, HostStatuses, HostTrouble,
    HostTroubleKind, Land, PullRequest,
};
use crate::time::{Span, Timestamp};

/// What a host can do, as data for the planner's settings and the effect runner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Abilities {
    /// Whether names of owners and repositories are matched in any case.
    pub case_insensitive_names: bool,
    /// Whether repositories are registered on first use.
    pub registers_on_first_use: bool,
    /// Whether pull requests and targets must be read at short intervals, because the host does
    /// not tell.
    pub needs_polling: bool,
    /// How long a queue that was read is not read again to find what the host did not tell of, or
    /// told of in vain.
    pub reread_after: Span,
}

/// Why a host did not do what was asked.
#[derive(Debug, Error)]
pub enum HostError {
    /// Too many calls: try again then.
    #[error("the host asks for fewer calls until {retry_at}")]
    RateLimited {
        /// When to try again.
        retry_at: Timestamp,
    },
    /// The host does not answer, or it or the machine that it runs on is unwell: no disk, no
    /// permission on a folder, a lock in the way, unreadable objects. Says nothing about any
    /// change; try again later.
    #[error("the host is not available: {words}")]
    Unavailable {
        /// What was seen.
        words: String,
    },
    /// The host does not let this installation do it: a missing permission, an IP allow list, an
    /// archived repository, a repository that is no longer visible. Says nothing about any change;
    /// an operator must act, then the same call succeeds.
    #[error("the host denies access: {words}")]
    AccessDenied {
        /// The host's words, and what it was asked for.
        words: String,
    },
    /// The host does not accept the credential. Says nothing about any change; an operator must
    /// replace it, then the same call succeeds.
    #[error("the host rejected the credential: {words}")]
    CredentialRejected {
        /// The host's words.
        words: String,
    },
    /// The host understood and refuses this very change. The only error that may fail a pull
    /// request, besides [`Conflict`](Self::Conflict).
    #[error("the host refused: {words}")]
    Rejected {
        /// The host's words.
        words: String,
    },
    /// There is no such thing.
    #[error("not found on the host: {what}")]
    NotFound {
        /// What was looked for.
        what: String,
    },
    /// Something is not where it was expected.
    #[error("changed meanwhile: {what}")]
    Conflict {
        /// What has changed.
        what: String,
    },
}

impl HostError {
    /// Whether the same call may succeed later.
    pub const fn is_passing(&self) -> bool {
        match self {
            Self::RateLimited { .. }
            | Self::Unavailable { .. }
            | Self::AccessDenied { .. }
            | Self::CredentialRejected { .. } => true,
            Self::Rejected { .. } | Self::NotFound { .. } | Self::Conflict { .. } => false,
        }
    }

    /// What is wrong with the host itself, if that is what this says.
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

/// How building a candidate ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Built {
    /// It is on its branch.
    Candidate {
        /// The commit.
        candidate: Candidate,
        /// If the order asks for it and the pull request's head has the candidate's tree: what was
        /// reported on that head.
        head_checks: Vec<CheckReport>,
        /// The pull requests whose changes add nothing to what they were put on; no commit was
        /// made for them.
        empty: Vec<PrNumber>,
    },
    /// A pull request of the group has landed on the target before, with this very head. It is
    /// shown as merged; no branch is left behind.
    MergedBefore {
        /// Which one.
        pr: PrNumber,
    },
    /// The changes conflict; no branch is left behind. An answer that names a pull request or a run
    /// that has no part in what was asked is ignored, and the host is asked again.
    Conflict {
        /// Which pull request of the group conflicts: one of [`BuildCandidate::changes`].
        pr: PrNumber,
        /// With what: the target if it conflicts with that alone, else the first run ahead of which
        /// that is true (one of [`BuildCandidate::ahead`]), else a pull request that comes before it
        /// in [`BuildCandidate::changes`].
        with: ConflictWith,
        /// The conflicting paths, at most 100, each at most 1,024 bytes.
        paths: Vec<String>,
    },
}

/// How landing ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LandAnswer {
    /// The candidate, or a commit with the tree that had to land, is on the target.
    Landed(Head),
    /// A pull request's head is not the tested one; the target was not touched.
    HeadMoved {
        /// Which pull request: one of [`Land::changes`].
        pr: PrNumber,
    },
    /// The target is elsewhere and the tested tree would not be what lands; it was not touched.
    TargetMoved(Head),
}

/// A landing that is looked for on the target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Landed {
    /// The head of the pull request that landed.
    pub head: Sha,
    /// The target's head after it.
    pub commit: Sha,
}

/// How a pull request is looked up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PullRequestQuery {
    /// By its number.
    Number(PrNumber),
    /// The newest one from that branch, open ones first.
    Branch(String),
}

/// A test branch that is on the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestBranch {
    /// Its name.
    pub branch: BranchName,
    /// Its head.
    pub sha: Sha,
}

/// What one cheap call tells about a repository, to find out what must be read again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// The heads of the branches.
    pub heads: BTreeMap<BranchName, Sha>,
    /// A mark for each open pull request. While the mark is the same, the host shows the same pull
    /// request; a pull request without a mark is not open.
    pub marks: BTreeMap<PrNumber, String>,
}

/// A git host. Every call that changes something names the commit that it expects, so a late call
/// cannot move a branch that has moved.
#[async_trait]
pub trait GitHost: Send + Sync {
    /// What it can do.
    fn abilities(&self) -> Abilities;

    /// Whether the repository exists on the host, and where, for hosts that keep folders.
    async fn locate(&self, repository: &Repository) -> Result<Option<String>, HostError>;

    /// The heads of all branches, and a mark for each open pull request, at a cost that does not
    /// grow with the number of pull requests. `None` on hosts that have no such call: everything is
    /// then read one by one.
    async fn snapshot(&self, _repository: &Repository) -> Result<Option<Snapshot>, HostError> {
        Ok(None)
    }

    /// A pull request as it is now; a branch that it follows is read first. `None` when there is
    /// none, which only a host whose repository can be read may say.
    async fn pull_request(
        &self,
        repository: &Repository,
        query: &PullRequestQuery,
    ) -> Result<Option<PullRequest>, HostError>;

    /// A branch's head as it is now. `None` when there is no such branch, which only a host whose
    /// repository can be read may say.
    async fn head(
        &self,
        repository: &Repository,
        branch: &BranchName,
    ) -> Result<Option<Head>, HostError>;

    /// What the repository's configuration, read at that commit of the target, and the host
    /// require of a candidate.
    async fn required_statuses(
        &self,
        repository: &Repository,
        target: &BranchName,
        at: &Sha,
    ) -> Result<HostStatuses, HostError>;

    /// Builds a candidate by a real three-way merge and puts it on its branch. Repeating it after
    /// a success gives a candidate with the same tree. A change that adds nothing gets no commit.
    async fn build_candidate(
        &self,
        repository: &Repository,
        build: &BuildCandidate,
    ) -> Result<Built, HostError>;

    /// Puts a tested candidate on the target by compare-and-swap, after asking where the target
    /// and the pull requests are now:
    ///
    /// * the target has the candidate already: [`LandAnswer::Landed`], nothing is repeated;
    /// * the target is where it was expected: it moves to the candidate; if the candidate is not
    ///   its descendant, the changes are put on it once more and the tree must be the tested one,
    ///   or, when the order is not exact, that of the clean three-way merge of the target and the
    ///   candidate;
    /// * the changes cannot be put on it so: nothing is touched, and the answer is
    ///   [`LandAnswer::TargetMoved`] with the expected head;
    /// * a pull request's head has moved, or the target has: nothing is touched;
    /// * there is no such target: [`HostError::NotFound`].
    ///
    /// Pull requests that landed are marked as merged, by this call or soon by the host itself, but
    /// for those that [`close_landed`](crate::ports::Forge::close_landed) closes. What has landed is remembered on the host, so
    /// that it is known without any database.
    async fn land(&self, repository: &Repository, land: &Land) -> Result<LandAnswer, HostError>;

    /// Which of these landings, newest first, the target contains when its head is that commit.
    /// One that was not found is not contained.
    async fn contained(
        &self,
        repository: &Repository,
        target: &BranchName,
        head: &Sha,
        landings: &[Landed],
    ) -> Result<Vec<bool>, HostError>;

    /// Deletes a test branch if it is where expected (`None`: wherever it is). A branch that is
    /// gone is fine.
    async fn delete_branch(
        &self,
        repository: &Repository,
        branch: &BranchName,
        expected: Option<&Sha>,
    ) -> Result<(), HostError>;

    /// The test branches that are on the host, for the sweep of strays.
    async fn test_branches(&self, repository: &Repository) -> Result<Vec<TestBranch>, HostError>;
}
