//! A pull request as its host shows it.

use thiserror::Error;

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
    pub const fn as_str(&self) -> &'static str {
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
    /// A builder of an open, mergeable pull request that is no draft.
    pub fn builder(number: PrNumber, head: Sha, base: BranchName) -> PullRequestBuilder {
        PullRequestBuilder(Self {
            number,
            title: String::new(),
            body: String::new(),
            author: String::new(),
            head,
            head_branch: None,
            base,
            state: PullRequestState::Open,
            merged_as: None,
            draft: false,
            mergeability: Mergeability::Mergeable,
            url: String::new(),
        })
    }

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

/// The most characters of a title.
const MAX_TITLE: usize = 1_024;

/// Why a pull request cannot be built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum InvalidPullRequest {
    /// Hosts number pull requests from 1.
    #[error("the number of a pull request is at least 1")]
    Number,
    /// The title is too long.
    #[error("the title of a pull request has at most {MAX_TITLE} characters")]
    Title,
}

/// Makes a [`PullRequest`]. What is not named is empty.
#[derive(Clone, Debug)]
pub struct PullRequestBuilder(PullRequest);

macro_rules! setters {
    ($($(#[doc = $doc:literal])+ $field:ident: $type:ty;)+) => {
        $(
            $(#[doc = $doc])+
            #[must_use]
            pub fn $field(mut self, $field: impl Into<$type>) -> Self {
                self.0.$field = $field.into();
                self
            }
        )+
    };
}

impl PullRequestBuilder {
    setters! {
        /// Its title, at most 1,024 characters.
        title: String;
        /// Its description.
        body: String;
        /// The login or name of its author.
        author: String;
        /// The branch that it comes from.
        head_branch: Option<String>;
        /// Open, closed or merged.
        state: PullRequestState;
        /// The commit of the target that it landed with.
        merged_as: Option<Sha>;
        /// Whether its author marked it as unfinished.
        draft: bool;
        /// Whether the host would let it be merged.
        mergeability: Mergeability;
        /// Its page.
        url: String;
    }

    /// The pull request. Refuses the number 0 and a title of more than 1,024 characters.
    pub fn build(self) -> Result<PullRequest, InvalidPullRequest> {
        let Self(pull_request) = self;
        if pull_request.number.0 == 0 {
            return Err(InvalidPullRequest::Number);
        }
        if pull_request.title.chars().count() > MAX_TITLE {
            return Err(InvalidPullRequest::Title);
        }
        Ok(pull_request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_builder_refuses_what_no_host_has() {
        let sha = Sha::new("a".repeat(40)).expect("a commit");
        let of = |number, title: &str| {
            let main = BranchName::new("main").expect("a branch");
            PullRequest::builder(PrNumber(number), sha.clone(), main).title(title).build()
        };
        assert!(of(1, &"é".repeat(MAX_TITLE)).is_ok());
        assert_eq!(of(0, ""), Err(InvalidPullRequest::Number));
        assert_eq!(of(1, &"é".repeat(MAX_TITLE + 1)), Err(InvalidPullRequest::Title));
    }
}
