//! A pull request as its host shows it.

use crate::ids::{BranchName, PrNumber, Sha};

/// Whether a pull request can still be merged at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum PullRequestState {
    /// Waiting to be merged.
    Open,
    /// Closed without a merge.
    Closed,
    /// Merged.
    Merged,
}

/// What the host says under its own rules about merging the pull request into its base.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Mergeability {
    /// Not asked yet.
    Unspecified,
    /// The host is still computing.
    InProgress,
    /// Nothing stands in the way.
    Mergeable,
    /// Something does; the host's words.
    NotMergeable(String),
}

impl Mergeability {
    /// The word on the wire, upper case.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Unspecified => "UNSPECIFIED",
            Self::InProgress => "IN_PROGRESS",
            Self::Mergeable => "MERGEABLE",
            Self::NotMergeable(_) => "NOT_MERGEABLE",
        }
    }
}

/// A pull request as last seen on its host.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct PullRequest {
    /// Its number.
    pub number: PrNumber,
    /// Its title, at most 1,024 characters.
    pub title: String,
    /// Its description; a line `merge-commit-title: …` sets the title of its commit.
    pub body: String,
    /// The login or name of its author.
    pub author: String,
    /// The commit that it proposes.
    pub head: Sha,
    /// The branch that it comes from, when the host knows one.
    pub head_branch: Option<String>,
    /// The branch that it wants to be merged into.
    pub base: BranchName,
    /// Open, closed or merged.
    pub state: PullRequestState,
    /// The commit of the target that it landed with, when it is merged and the host remembers.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub merged_as: Option<Sha>,
    /// Whether its author marked it as unfinished.
    pub draft: bool,
    /// Whether the host would let it be merged.
    pub mergeability: Mergeability,
    /// Its page.
    pub url: String,
}

impl PullRequest {
    /// The title of its commit: the `merge-commit-title:` line of the body, else its own title.
    pub fn commit_title(&self) -> &str {
        self.body
            .lines()
            .find_map(|line| line.strip_prefix("merge-commit-title:"))
            .map(str::trim)
            .filter(|title| !title.is_empty())
            .unwrap_or(&self.title)
    }
}
