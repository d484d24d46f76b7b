//! Composing a candidate again with git on this server, for hosts that compose candidates
//! themselves.

use std::fmt;
use std::path::PathBuf;

use async_trait::async_trait;
use signalbox_domain::ids::{Sha, TreeId};
use signalbox_domain::ports::HostError;
use signalbox_domain::queue::MergeMethod;
use signalbox_domain::time::Timestamp;

/// A repository of a host, as git fetches from it.
#[derive(Clone)]
pub struct Remote {
    /// Its address, `https://…` or `http://…`, without a user name or password.
    pub url: String,
    /// The value of the header `Authorization`.
    pub authorization: String,
}

impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Remote").field("url", &self.url).finish_non_exhaustive()
    }
}

/// A candidate to compose again.
#[derive(Clone, Debug)]
pub struct Recomputation<'a> {
    /// The folder of the mirror of the repository. It may not exist yet.
    pub mirror: PathBuf,
    /// The repository.
    pub remote: Remote,
    /// The commit that the candidate was built on.
    pub base: &'a Sha,
    /// The heads of the pull requests, in order.
    pub heads: Vec<&'a Sha>,
    /// How they are merged.
    pub method: MergeMethod,
    /// The candidate.
    pub candidate: &'a Sha,
    /// The current time.
    pub now: Timestamp,
}

/// The result of composing a candidate again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Recomputed {
    /// The tree of the candidate, and the tree that was computed: the same, unless there are paths
    /// that differ.
    Tree {
        /// The tree of the candidate.
        found: TreeId,
        /// The tree that was computed.
        expected: TreeId,
        /// The paths that differ, at most [`MOST_PATHS`](signalbox_domain::queue::MOST_PATHS).
        paths: Vec<String>,
    },
    /// The head at this place in the list conflicts in these paths.
    Conflict {
        /// The place, from 0.
        head: usize,
        /// The conflicting paths.
        paths: Vec<String>,
    },
}

/// Composes candidates again in mirrors of their repositories.
#[async_trait]
pub trait Recomputer: Send + Sync {
    /// Fetches the commits of a candidate into the mirror and composes it again. Calls with the
    /// same mirror wait for each other, also those of other processes.
    ///
    /// `NotFound` means that there is no repository at the address, `Rejected` that the candidate
    /// cannot be composed here, for example because the host has no such commit or the
    /// repository is too large. No error contains the credential.
    async fn recompute(&self, order: Recomputation<'_>) -> Result<Recomputed, HostError>;
}
