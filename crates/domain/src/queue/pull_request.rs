//! A pull request as its host shows it.

use thiserror::Error;

use crate::ids::{BranchName, PrNumber, Sha};

use super::Dependency;

/// Whether a pull request can still be merged at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum PullRequestState {
    /// Open: it can be merged.
    Open,
    /// Closed without a merge.
    Closed,
    /// Merged.
    Merged,
}

/// Whether the host, by its own rules, allows merging the pull request into its base.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Mergeability {
    /// Not read yet.
    Unspecified,
    /// The host is still computing it.
    InProgress,
    /// The host allows the merge.
    Mergeable,
    /// The host does not allow the merge; holds the host's reason.
    NotMergeable(String),
}

impl Mergeability {
    /// The name in the API, upper case.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Unspecified => "UNSPECIFIED",
            Self::InProgress => "IN_PROGRESS",
            Self::Mergeable => "MERGEABLE",
            Self::NotMergeable(_) => "NOT_MERGEABLE",
        }
    }
}

/// A pull request as last read from its host.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct PullRequest {
    /// Its number on the host, from 1.
    pub number: PrNumber,
    /// Its title, at most 1,024 characters.
    pub title: String,
    /// Its description; a line `merge-commit-title: …` sets the title of its commit.
    pub body: String,
    /// The pull requests that its description names in lines `Depends-On: …`; see
    /// [`Dependency::read`].
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Vec::is_empty"))]
    pub depends_on: Vec<Dependency>,
    /// The login or name of its author.
    pub author: String,
    /// Its head commit.
    pub head: Sha,
    /// The branch that it comes from, if the host knows one.
    pub head_branch: Option<String>,
    /// The branch that it targets.
    pub base: BranchName,
    /// Open, closed or merged.
    pub state: PullRequestState,
    /// The commit that it was merged as, if it is merged and the host remembers it.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub merged_as: Option<Sha>,
    /// Whether it is a draft.
    pub draft: bool,
    /// Whether the host allows the merge.
    pub mergeability: Mergeability,
    /// The URL of its page; may be empty.
    pub url: String,
    /// Its labels on the host, without those of [`STATE_LABELS`].
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Vec::is_empty"))]
    pub labels: Vec<String>,
}

impl PullRequest {
    /// Builds a pull request; the defaults are open, mergeable, not a draft, and empty texts and lists.
    pub fn builder(number: PrNumber, head: Sha, base: BranchName) -> PullRequestBuilder {
        PullRequestBuilder(Self {
            number,
            title: String::new(),
            body: String::new(),
            depends_on: Vec::new(),
            author: String::new(),
            head,
            head_branch: None,
            base,
            state: PullRequestState::Open,
            merged_as: None,
            draft: false,
            mergeability: Mergeability::Mergeable,
            url: String::new(),
            labels: Vec::new(),
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

/// What the names of the labels begin with by which Signalbox shows the state of a pull request. They are
/// not among its [labels](PullRequest::labels).
pub const STATE_LABELS: &str = "signalbox: ";

/// The maximum length of a title, in characters.
const MAX_TITLE: usize = 1_024;

/// Why a pull request cannot be built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum InvalidPullRequest {
    /// Hosts number pull requests from 1.
    #[error("invalid pull request number 0: must be at least 1")]
    Number,
    /// The title is too long.
    #[error("invalid pull request title: must have at most {MAX_TITLE} characters")]
    Title,
}

/// Builder of a [`PullRequest`].
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
        /// The pull requests that it depends on.
        depends_on: Vec<Dependency>;
        /// The login or name of its author.
        author: String;
        /// The branch that it comes from.
        head_branch: Option<String>;
        /// Open, closed or merged.
        state: PullRequestState;
        /// The commit that it was merged as.
        merged_as: Option<Sha>;
        /// Whether it is a draft.
        draft: bool;
        /// Whether the host allows the merge.
        mergeability: Mergeability;
        /// The URL of its page; may be empty.
        url: String;
        /// Its labels on the host.
        labels: Vec<String>;
    }

    /// Returns the pull request. Fails for the number 0 and for a title of more than 1,024
    /// characters.
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
    fn a_line_of_the_body_sets_the_title_of_the_commit() {
        let titled = |body: &str| {
            let sha = Sha::new("a".repeat(40)).expect("a commit");
            let main = BranchName::new("main").expect("a branch");
            let made = PullRequest::builder(PrNumber(1), sha, main).title("Add").body(body).build();
            made.expect("valid").commit_title().to_owned()
        };
        assert_eq!(titled("Why.\nmerge-commit-title: Add sums \n"), "Add sums");
        assert_eq!(titled("merge-commit-title:  \n"), "Add");
        assert_eq!(titled("Why."), "Add");
    }

    #[test]
    fn the_builder_refuses_number_zero_and_long_titles() {
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
