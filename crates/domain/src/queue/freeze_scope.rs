//! The scope of a freeze: the pull requests that it applies to, by labels and impacted targets.

use std::fmt;

use super::{Entry, Targets, batch};

/// The pull requests that a freeze applies to. Its text is a list such as
/// `target:ios-*; label:mobile; !label:docs`: the freeze applies to a pull request with one of these
/// labels or targets, or to all if only exceptions are listed; and to none with an exception, which
/// begins with `!`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(into = "String", try_from = "String"))]
pub struct FreezeScope {
    terms: Vec<Term>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Term {
    is_exception: bool,
    of: Of,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Of {
    /// A label on the host, regardless of case.
    Label(String),
    /// A pattern for impacted targets; `*` matches any text.
    Target(String),
}

/// A text that is not the scope of a freeze.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the scope must be a list of labels and targets, such as \
     \"{{target:ios-*; label:mobile; !label:docs}}\""
)]
pub struct InvalidScope;

impl FreezeScope {
    /// Parses a scope without its braces.
    pub fn parse(text: &str) -> Result<Self, InvalidScope> {
        let terms = text.split(';').map(Term::parse).collect::<Option<Vec<Term>>>();
        terms.map(|terms| Self { terms }).ok_or(InvalidScope)
    }

    /// Whether the freeze applies to an entry. Unknown targets count as all of them, and an exception for
    /// targets applies to an entry that impacts no other targets.
    pub(super) fn covers(&self, entry: &Entry) -> bool {
        let (exceptions, included): (Vec<&Term>, Vec<&Term>) =
            self.terms.iter().partition(|term| term.is_exception);
        let is_included = included.is_empty() || included.iter().any(|term| term.of.meets(entry));
        is_included && !is_excepted(&exceptions, entry)
    }
}

/// Whether an entry has a label of an exception, or all of its targets are exceptions.
fn is_excepted(exceptions: &[&Term], entry: &Entry) -> bool {
    let patterns: Vec<&str> = exceptions.iter().filter_map(|term| term.of.target()).collect();
    let are_targets_excepted = || match entry.applied_targets().map(|applied| &applied.targets) {
        None | Some(Targets::All) => false,
        Some(Targets::Only(targets)) => targets
            .iter()
            .all(|target| patterns.iter().any(|pattern| batch::matches(pattern, target))),
    };
    let mut labels = exceptions.iter().filter(|term| term.of.target().is_none());
    labels.any(|term| term.of.meets(entry)) || (!patterns.is_empty() && are_targets_excepted())
}

impl Term {
    fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let (is_exception, text) = match text.strip_prefix('!') {
            Some(text) => (true, text),
            None => (false, text),
        };
        let (kind, name) = text.trim_start().split_once(':')?;
        let name = Some(name.trim()).filter(|name| !name.is_empty() && !name.contains('}'))?;
        let of = match kind {
            "label" => Of::Label(name.to_owned()),
            "target" => Of::Target(name.to_owned()),
            _ => return None,
        };
        Some(Self { is_exception, of })
    }
}

impl Of {
    fn target(&self) -> Option<&str> {
        match self {
            Self::Target(pattern) => Some(pattern),
            Self::Label(_) => None,
        }
    }

    /// Whether an entry has the label, or may impact the target.
    fn meets(&self, entry: &Entry) -> bool {
        match self {
            Self::Label(name) => {
                let name = name.to_lowercase();
                entry.pull_request.labels.iter().any(|label| label.to_lowercase() == name)
            }
            Self::Target(pattern) => {
                match entry.applied_targets().map(|applied| &applied.targets) {
                    None | Some(Targets::All) => true,
                    Some(Targets::Only(targets)) => {
                        targets.iter().any(|target| batch::matches(pattern, target))
                    }
                }
            }
        }
    }
}

impl fmt::Display for FreezeScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, Term { is_exception, of }) in self.terms.iter().enumerate() {
            let separator = if number == 0 { "" } else { "; " };
            let not = if *is_exception { "!" } else { "" };
            match of {
                Of::Label(name) => write!(f, "{separator}{not}label:{name}")?,
                Of::Target(pattern) => write!(f, "{separator}{not}target:{pattern}")?,
            }
        }
        Ok(())
    }
}

impl From<FreezeScope> for String {
    fn from(scope: FreezeScope) -> Self {
        scope.to_string()
    }
}

impl TryFrom<String> for FreezeScope {
    type Error = InvalidScope;

    fn try_from(text: String) -> Result<Self, InvalidScope> {
        Self::parse(&text)
    }
}
