//! Rules that compute the impacted targets of a pull request from the paths that it changes.

use std::collections::BTreeSet;
use std::fmt;

use globset::{Glob, GlobBuilder, GlobSet, GlobSetBuilder};
use thiserror::Error;

use super::{TargetSet, Targets};

/// The most changed paths for which targets are computed; a pull request that changes more impacts all
/// targets.
pub const MAX_CHANGED_PATHS: usize = 10_000;

const TOO_MANY_PATHS: &str = "it changes more than 10,000 files";

/// The most bytes of a path or rule in [`WhyAll`].
const KEPT_BYTES: usize = 255;

/// A rule of `impactedTargetRules` that is not valid.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum InvalidTargetRule {
    /// It has a pattern only.
    #[error("{0:?} has no targets: add target names, ALL, or NONE after the pattern")]
    NoTarget(String),
    /// `ALL` or `NONE` is one of several targets.
    #[error(
        "{0:?} combines ALL or NONE with other targets: each must be the only target of a rule"
    )]
    NotAlone(String),
    /// Its pattern starts with a slash, which no path does.
    #[error(
        "{0:?} must not start with a slash: patterns match paths from the top of the repository"
    )]
    LeadingSlash(String),
    /// Its pattern ends with a slash, which no path does.
    #[error("{0:?} has a pattern that ends with a slash: write {1:?} for all files in the folder")]
    Folder(String, String),
    /// Its pattern is negated, which only ignore files can be.
    #[error("{0:?} must not start with an exclamation mark: patterns cannot be negated")]
    Negated(String),
    /// Its pattern is not valid.
    #[error("{0:?} has an invalid pattern: {1}")]
    Pattern(String, String),
    /// It has a comma, which separates rules on the command line, or a line break, which separates them
    /// on pages.
    #[error("{0:?} must not contain commas, tabs, or other control characters")]
    Separator(String),
}

/// Checks all rules of the setting together.
pub(super) fn check_all(rules: &[String]) -> Result<(), InvalidTargetRule> {
    TargetRules::new(rules).map(drop)
}

/// The paths that a pull request changes, as a host lists them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChangedPaths {
    /// All of them, in any order; repeats do not matter.
    Complete(Vec<String>),
    /// The host cannot list all of them.
    Incomplete {
        /// Why, as part of a sentence: `it changes 300 files or more`.
        why: String,
    },
}

/// Why the rules give all targets.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum WhyAll {
    /// No rule matches this path.
    NoRule {
        /// The path.
        path: String,
    },
    /// A rule for `ALL` matches this path.
    Rule {
        /// The path.
        path: String,
        /// The rule.
        rule: String,
    },
    /// The host cannot list all changed paths.
    Incomplete {
        /// Why, as part of a sentence.
        why: String,
    },
    /// The host failed to list the changed paths for too long, or refused to.
    HostFailed {
        /// Its error.
        error: String,
    },
}

impl fmt::Display for WhyAll {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoRule { path } => write!(f, "no rule matches {path}"),
            Self::Rule { path, rule } => write!(f, "{path} matches the rule {rule}"),
            Self::Incomplete { why } => f.write_str(why),
            Self::HostFailed { error } => {
                write!(f, "the git host did not list its changed files: {error}")
            }
        }
    }
}

/// The targets that rules give for changed paths.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ComputedTargets {
    /// The targets.
    pub targets: Targets,
    /// Why these are all targets; `None` if they are not.
    pub why_all: Option<WhyAll>,
}

/// The rules of a queue, ready to match.
#[derive(Debug)]
pub struct TargetRules {
    patterns: GlobSet,
    rules: Vec<(String, Impact)>,
}

/// What a changed path that matches a rule impacts.
#[derive(Debug)]
enum Impact {
    All,
    Only(Vec<String>),
}

struct Rule {
    pattern: Glob,
    impact: Impact,
}

impl Rule {
    fn parse(text: &str) -> Result<Self, InvalidTargetRule> {
        let rule = || text.to_owned();
        if text.contains(|c: char| c == ',' || c.is_control()) {
            return Err(InvalidTargetRule::Separator(rule()));
        }
        let mut words = text.split_whitespace();
        let pattern = words.next().unwrap_or_default();
        let names: Vec<String> = words.map(ToOwned::to_owned).collect();
        if pattern.starts_with('/') {
            return Err(InvalidTargetRule::LeadingSlash(rule()));
        }
        if pattern.starts_with('!') {
            return Err(InvalidTargetRule::Negated(rule()));
        }
        if pattern.ends_with('/') {
            return Err(InvalidTargetRule::Folder(rule(), format!("{pattern}**")));
        }
        let is = |name: &String, word: &str| name.eq_ignore_ascii_case(word);
        let impact = match names.as_slice() {
            [] => return Err(InvalidTargetRule::NoTarget(rule())),
            [name] if is(name, "ALL") => Impact::All,
            [name] if is(name, "NONE") => Impact::Only(Vec::new()),
            names if names.iter().any(|name| is(name, "ALL") || is(name, "NONE")) => {
                return Err(InvalidTargetRule::NotAlone(rule()));
            }
            _ => Impact::Only(names),
        };
        let pattern = GlobBuilder::new(pattern)
            .literal_separator(true)
            .backslash_escape(true)
            .build()
            .map_err(|error| InvalidTargetRule::Pattern(rule(), error.kind().to_string()))?;
        Ok(Self { pattern, impact })
    }
}

impl TargetRules {
    /// The rules of the setting; fails with the first that is invalid.
    pub fn new(rules: &[String]) -> Result<Self, InvalidTargetRule> {
        let (mut patterns, mut parsed) = (GlobSetBuilder::new(), Vec::with_capacity(rules.len()));
        for text in rules {
            let Rule { pattern, impact } = Rule::parse(text)?;
            patterns.add(pattern);
            parsed.push((text.clone(), impact));
        }
        let patterns = patterns.build().map_err(|error| {
            InvalidTargetRule::Pattern(rules.join("; "), error.kind().to_string())
        })?;
        Ok(Self { patterns, rules: parsed })
    }

    /// The rules that match a path, in their order.
    pub fn matching(&self, path: &str) -> impl Iterator<Item = &str> {
        self.matches(path).map(|(rule, _)| rule.as_str())
    }

    fn matches(&self, path: &str) -> impl Iterator<Item = &(String, Impact)> {
        self.patterns.matches(path).into_iter().filter_map(|at| self.rules.get(at))
    }

    /// The targets of a pull request that changes these paths: those of all rules that match one of
    /// them. They are all targets if a path matches a rule for `ALL`, or no rule, if the paths are
    /// incomplete, or if there are more than [`MAX_CHANGED_PATHS`].
    pub fn computed(&self, paths: &ChangedPaths) -> ComputedTargets {
        match paths {
            ChangedPaths::Complete(paths) if paths.len() <= MAX_CHANGED_PATHS => {
                self.targets(paths)
            }
            ChangedPaths::Complete(_) => ComputedTargets::incomplete(TOO_MANY_PATHS),
            ChangedPaths::Incomplete { why } => ComputedTargets::incomplete(why),
        }
    }

    fn targets(&self, paths: &[String]) -> ComputedTargets {
        let mut targets = BTreeSet::new();
        for path in paths {
            let mut has_rule = false;
            for (rule, impact) in self.matches(path) {
                has_rule = true;
                match impact {
                    Impact::All => {
                        let (path, rule) = (shortened(path), shortened(rule));
                        return ComputedTargets::all(WhyAll::Rule { path, rule });
                    }
                    Impact::Only(names) => targets.extend(names.iter().map(String::as_str)),
                }
            }
            if !has_rule {
                return ComputedTargets::all(WhyAll::NoRule { path: shortened(path) });
            }
        }
        let targets: TargetSet = targets.into_iter().collect();
        ComputedTargets { targets: Targets::Only(targets), why_all: None }
    }
}

impl ComputedTargets {
    /// All targets, because the changed paths are not all known.
    pub fn incomplete(why: impl Into<String>) -> Self {
        Self::all(WhyAll::Incomplete { why: shortened(&why.into()) })
    }

    /// All targets, because the host has failed.
    pub fn host_failed(error: &str) -> Self {
        Self::all(WhyAll::HostFailed { error: shortened(error) })
    }

    const fn all(why: WhyAll) -> Self {
        Self { targets: Targets::All, why_all: Some(why) }
    }
}

fn shortened(text: &str) -> String {
    text.get(..text.floor_char_boundary(KEPT_BYTES)).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(rules: &[&str]) -> TargetRules {
        let rules: Vec<String> = rules.iter().map(|rule| (*rule).to_owned()).collect();
        TargetRules::new(&rules).expect("valid rules")
    }

    fn only(names: &[&str]) -> ComputedTargets {
        let targets = Targets::Only(names.iter().collect());
        ComputedTargets { targets, why_all: None }
    }

    fn targets(rules: &TargetRules, paths: &[&str]) -> ComputedTargets {
        let paths = paths.iter().map(|path| (*path).to_owned()).collect();
        rules.computed(&ChangedPaths::Complete(paths))
    }

    fn example() -> TargetRules {
        rules(&[
            "api/** api web",
            "web/** web",
            "docs/** NONE",
            "**/*.md none",
            "Cargo.lock ALL",
            "*/build.rs all",
        ])
    }

    #[test]
    fn a_pull_request_impacts_the_targets_of_every_matching_rule() {
        let computed = |paths: &[&str]| targets(&example(), paths);
        assert_eq!(computed(&["web/a.ts"]), only(&["web"]));
        assert_eq!(computed(&["api/src/a.rs", "web/a.ts", "docs/a/b.png"]), only(&["api", "web"]));
        assert_eq!(computed(&["docs/a.md", "README.md"]), only(&[]));
        assert_eq!(
            computed(&["api/README.md"]),
            only(&["api", "web"]),
            "a rule for NONE adds none"
        );
        assert_eq!(computed(&[]), only(&[]));
    }

    #[test]
    fn a_path_of_a_rule_for_all_or_of_no_rule_impacts_all_targets() {
        let why = |paths: &[&str]| {
            let ComputedTargets { targets, why_all } = targets(&example(), paths);
            assert_eq!(targets, Targets::All);
            why_all.expect("a reason").to_string()
        };
        assert_eq!(why(&["web/a.ts", "Cargo.lock"]), "Cargo.lock matches the rule Cargo.lock ALL");
        assert_eq!(why(&["api/build.rs"]), "api/build.rs matches the rule */build.rs all");
        assert_eq!(why(&["docs/a.md", "Makefile", "b"]), "no rule matches Makefile");
        assert_eq!(why(&["API/a.rs"]), "no rule matches API/a.rs");
        assert_eq!(why(&["api"]), "no rule matches api");
        assert_eq!(why(&["lib/web/a.ts"]), "no rule matches lib/web/a.ts");
        let long = why(&[&"ä".repeat(3_000)]);
        assert_eq!(long, format!("no rule matches {}", "ä".repeat(127)));
    }

    #[test]
    fn matching_takes_time_in_proportion_to_the_path() {
        let stars = format!("{}b ALL", "a*".repeat(100));
        let folders = format!("{}b ALL", "**/*a*/".repeat(30));
        let hostile = rules(&[&stars, &folders, "** x"]);
        let path = format!("{}c", "a/a".repeat(1_300));
        assert_eq!(targets(&hostile, &[&path, &"a".repeat(4_000)]), only(&["x"]));
    }

    #[test]
    fn an_invalid_rule_is_refused_with_what_it_breaks() {
        let refused = |rule: &str| check_all(&[rule.to_owned()]).expect_err("invalid").to_string();
        assert_eq!(
            refused("api/**"),
            r#""api/**" has no targets: add target names, ALL, or NONE after the pattern"#
        );
        assert_eq!(
            refused(" "),
            r#"" " has no targets: add target names, ALL, or NONE after the pattern"#
        );
        let alone =
            "combines ALL or NONE with other targets: each must be the only target of a rule";
        assert_eq!(refused("api/** api ALL"), format!("{:?} {alone}", "api/** api ALL"));
        assert_eq!(refused("api/** NONE ALL"), format!("{:?} {alone}", "api/** NONE ALL"));
        assert_eq!(
            refused("/api/** api"),
            r#""/api/** api" must not start with a slash: patterns match paths from the top of the repository"#
        );
        assert_eq!(
            refused("api/ api"),
            r#""api/ api" has a pattern that ends with a slash: write "api/**" for all files in the folder"#
        );
        assert_eq!(
            refused("!api/** api"),
            r#""!api/** api" must not start with an exclamation mark: patterns cannot be negated"#
        );
        let separator = "must not contain commas, tabs, or other control characters";
        assert_eq!(refused("{a,b}/** x"), format!("{:?} {separator}", "{a,b}/** x"));
        assert_eq!(refused("a\tx"), format!("{:?} {separator}", "a\tx"));
        assert_eq!(
            refused("a[/** x"),
            r#""a[/** x" has an invalid pattern: unclosed character class; missing ']'"#
        );
        assert_eq!(check_all(&["  a?/[b-d]*/{e}   //x:y  @z ".to_owned()]), Ok(()));
    }

    #[test]
    fn paths_that_are_not_all_known_impact_all_targets() {
        let why = |paths: &ChangedPaths| {
            let ComputedTargets { targets, why_all } = example().computed(paths);
            assert_eq!(targets, Targets::All);
            why_all.expect("a reason").to_string()
        };
        let listed = |count| ChangedPaths::Complete(vec!["docs/a".to_owned(); count]);
        assert_eq!(example().computed(&listed(10_000)), only(&[]));
        assert_eq!(why(&listed(10_001)), TOO_MANY_PATHS);
        let incomplete = ChangedPaths::Incomplete { why: "it has no head".to_owned() };
        assert_eq!(why(&incomplete), "it has no head");
    }
}
