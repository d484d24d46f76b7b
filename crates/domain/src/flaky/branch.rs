//! Branches as flaky-test rules see them: patterns, classes and the scope of a monitor.

use crate::words::words;

use super::Refusal;

words!(
    /// What the runs of a branch are for.
    BranchClass {
        /// A pull request before it is merged.
        PullRequest = "pull_request",
        /// A merge queue's candidate.
        Merge = "merge",
        /// A branch that is meant to be green.
        Stable = "stable",
        /// Any other branch.
        Other = "other",
    }
);

/// The most patterns in one list.
pub const MAX_PATTERNS: usize = 10;

/// A pattern of branch names, 1 to 255 bytes: `*` is any text, slashes too, `?` is one character,
/// everything else is itself.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(transparent))]
pub struct BranchPattern(pub String);

impl BranchPattern {
    /// The pattern of every branch.
    pub fn any() -> Self {
        Self("*".into())
    }

    /// Whether the branch fits the pattern.
    pub fn matches(&self, branch: &str) -> bool {
        let text: Vec<char> = branch.chars().collect();
        let mut parts: Vec<Vec<char>> = self.0.split('*').map(|it| it.chars().collect()).collect();
        let last = parts.pop().unwrap_or_default();
        let Some(first) = parts.first().cloned() else { return fits(&last, &text) };
        let Some((start, rest)) = text.split_at_checked(first.len()) else { return false };
        let end_at = rest.len().checked_sub(last.len());
        let Some((mut middle, end)) = end_at.and_then(|at| rest.split_at_checked(at)) else {
            return false;
        };
        let inner = parts.iter().skip(1).filter(|part| !part.is_empty());
        fits(&first, start)
            && fits(&last, end)
            && inner.into_iter().all(|part| {
                let found = middle.windows(part.len()).position(|window| fits(part, window));
                let after = found.and_then(|at| middle.get(at + part.len()..));
                middle = after.unwrap_or_default();
                after.is_some()
            })
    }
}

/// Whether a text fits a pattern without `*`.
fn fits(pattern: &[char], text: &[char]) -> bool {
    pattern.len() == text.len() && pattern.iter().zip(text).all(|(p, c)| *p == '?' || p == c)
}

/// Which runs a monitor looks at: those of a branch that fits a pattern and is of a listed class.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct BranchScope {
    /// 1 to [`MAX_PATTERNS`] patterns.
    pub patterns: Vec<BranchPattern>,
    /// The classes; none means all.
    pub classes: Vec<BranchClass>,
}

impl BranchScope {
    /// All runs.
    pub fn all() -> Self {
        Self { patterns: vec![BranchPattern::any()], classes: Vec::new() }
    }

    /// All runs of one class.
    pub fn class(class: BranchClass) -> Self {
        Self { classes: vec![class], ..Self::all() }
    }

    /// Whether a run on that branch belongs to it.
    pub fn covers(&self, branch: &str, class: BranchClass) -> bool {
        (self.classes.is_empty() || self.classes.contains(&class))
            && self.patterns.iter().any(|pattern| pattern.matches(branch))
    }

    /// Checks the bounds. `field` is the scope's name on the wire.
    pub fn check(&self, field: &str) -> Result<(), Refusal> {
        check_patterns(field, &self.patterns)
    }
}

/// Checks a list of patterns: 1 to [`MAX_PATTERNS`] of 1 to 255 bytes each.
pub(super) fn check_patterns(field: &str, patterns: &[BranchPattern]) -> Result<(), Refusal> {
    if patterns.is_empty() || patterns.len() > MAX_PATTERNS {
        return Err(Refusal::setting(field, format!("must have 1 to {MAX_PATTERNS} patterns")));
    }
    if patterns.iter().any(|pattern| pattern.0.is_empty() || pattern.0.len() > 255) {
        return Err(Refusal::setting(field, "must have patterns of 1 to 255 bytes"));
    }
    Ok(())
}

/// The rules that classify the branches of a repository.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct BranchRules {
    /// Branches that are meant to be green.
    pub stable: Vec<BranchPattern>,
    /// Branches on which merge queues test their candidates.
    pub merge: Vec<BranchPattern>,
}

impl Default for BranchRules {
    fn default() -> Self {
        let patterns =
            |texts: &[&str]| texts.iter().map(|it| BranchPattern((*it).into())).collect();
        Self {
            stable: patterns(&["main", "master", "develop"]),
            merge: patterns(&[
                "signalbox-merge/*",
                "trunk-merge/*",
                "gh-readonly-queue/*",
                "graphite-merge/*",
            ]),
        }
    }
}

impl BranchRules {
    /// The class of a run: what looks like a merge queue's branch is one, even if a pull request is
    /// named with it; then what has a pull request; then what is stable.
    ///
    /// A pull request comes before a stable name: a fork's `main` is not ours.
    pub fn classify(&self, branch: &str, has_pull_request: bool) -> BranchClass {
        let listed = |patterns: &[BranchPattern]| patterns.iter().any(|it| it.matches(branch));
        if listed(&self.merge) {
            BranchClass::Merge
        } else if has_pull_request {
            BranchClass::PullRequest
        } else if listed(&self.stable) {
            BranchClass::Stable
        } else {
            BranchClass::Other
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_know_two_signs() {
        let matches = |pattern: &str, branch: &str| BranchPattern(pattern.into()).matches(branch);
        for (pattern, branch) in [
            ("*", ""),
            ("*", "a/b"),
            ("main", "main"),
            ("trunk-merge/*", "trunk-merge/pr-1/x"),
            ("**", "a/b"),
            ("a**b*c", "a/x/b/c"),
            ("release-?", "release-ü"),
            ("*a*a*", "aa"),
            ("[a]", "[a]"),
            ("a*?", "ab"),
        ] {
            assert!(matches(pattern, branch), "{pattern} {branch}");
        }
        for (pattern, branch) in [
            ("main", "mainline"),
            ("main", "my-main"),
            ("trunk-merge/*", "trunk-merge"),
            ("release-?", "release-10"),
            ("[a]", "a"),
            ("!main", "dev"),
            ("*a*a*", "a"),
            ("ab*ba", "aba"),
        ] {
            assert!(!matches(pattern, branch), "{pattern} {branch}");
        }
    }

    #[test]
    fn a_fork_cannot_pass_its_runs_off_as_stable() {
        let rules = BranchRules::default();
        assert_eq!(rules.classify("main", false), BranchClass::Stable);
        assert_eq!(rules.classify("main", true), BranchClass::PullRequest);
        assert_eq!(rules.classify("gh-readonly-queue/main/pr-1", true), BranchClass::Merge);
        assert_eq!(rules.classify("topic", false), BranchClass::Other);
    }
}
