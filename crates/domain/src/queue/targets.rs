//! Impacted targets: which parts of the repository a pull request touches.

use std::collections::BTreeSet;

use crate::ids::Sha;

use super::Refusal;

/// The most targets that one pull request may report.
pub const MAX_TARGETS: usize = 100_000;

/// The targets themselves.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Targets {
    /// Everything: the pull request meets all others.
    All,
    /// Exactly these, possibly none.
    Only(BTreeSet<String>),
}

/// Targets and the head that they were computed for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ReportedTargets {
    /// The head that they hold for; `None` holds for any.
    pub sha: Option<Sha>,
    /// What is touched.
    pub targets: Targets,
}

impl ReportedTargets {
    /// Takes a reported list: empty strings are dropped, repeats count once.
    pub fn only(
        sha: Option<Sha>,
        names: impl IntoIterator<Item = String>,
    ) -> Result<Self, Refusal> {
        let names: BTreeSet<String> = names.into_iter().filter(|name| !name.is_empty()).collect();
        if names.len() > MAX_TARGETS {
            return Err(Refusal::TooManyTargets { given: names.len(), limit: MAX_TARGETS });
        }
        Ok(Self { sha, targets: Targets::Only(names) })
    }

    /// Everything is touched.
    pub const fn all(sha: Option<Sha>) -> Self {
        Self { sha, targets: Targets::All }
    }

    /// Whether they say something about that head.
    pub fn hold_for(&self, head: &Sha) -> bool {
        self.sha.as_ref().is_none_or(|sha| sha == head)
    }
}
