//! Dependencies between pull requests, from lines `Depends-On: …` in their descriptions.

use std::fmt;

use crate::ids::{PrNumber, RepoName};
use crate::words::words;

use super::{PullRequestState, Queue};

/// The most dependencies of a pull request.
pub const MAX_DEPENDENCIES: usize = 10;
/// The most characters that are kept of a reference that names no pull request.
const MAX_TEXT: usize = 100;
/// The parts of URLs that are followed by the number of a pull request.
const BEFORE_NUMBER: [&str; 3] = ["pull", "pulls", "merge_requests"];

/// A pull request that another one depends on. `Display` gives `#12`, `owner/name#12`, or the text.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Dependency {
    /// A pull request of the same repository.
    Own(PrNumber),
    /// A pull request of another repository on the same host.
    Other(RepoName, PrNumber),
    /// A reference that names no pull request on the host, at most 100 characters.
    Unknown(String),
}

impl fmt::Display for Dependency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Own(pr) => write!(f, "#{pr}"),
            Self::Other(repository, pr) => {
                write!(f, "{}/{}#{pr}", repository.owner, repository.name)
            }
            Self::Unknown(text) => f.write_str(text),
        }
    }
}

words!(
    /// The state of a dependency, as last read from the host.
    DependencyState {
        /// It has not been read yet.
        Unread = "UNREAD",
        /// It is open.
        Open = "OPEN",
        /// It was closed without a merge.
        Closed = "CLOSED",
        /// The host has no such pull request, or the server may not read it.
        Missing = "MISSING",
        /// It has merged. This is final.
        Merged = "MERGED",
    }
);

impl From<PullRequestState> for DependencyState {
    fn from(state: PullRequestState) -> Self {
        match state {
            PullRequestState::Open => Self::Open,
            PullRequestState::Closed => Self::Closed,
            PullRequestState::Merged => Self::Merged,
        }
    }
}

/// A dependency and its state.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct DependsOn {
    /// The pull request.
    pub on: Dependency,
    /// Its state.
    pub state: DependencyState,
}

impl Dependency {
    /// Reads the dependencies of a pull request of the repository `own` from its description, in the
    /// order of their first mention. `any_case`: whether the names of repositories on the host are
    /// case-insensitive.
    ///
    /// A line `Depends-On: …`, also in a list or a quote, names one or more pull requests, separated by
    /// commas or spaces: `#12`, `owner/name#12`, or the URL of its page. Without a value, the list below
    /// names them. Case does not matter. HTML comments, fenced code and the texts of links do not count.
    ///
    /// Other words are ignored. A part between commas that has a digit but no reference, and a reference
    /// that names no pull request, become [`Dependency::Unknown`], which never merges. More than
    /// [`MAX_DEPENDENCIES`] become one such text.
    pub fn read(description: &str, own: &RepoName, any_case: bool) -> Vec<Self> {
        let mut found: Vec<Self> = Vec::new();
        let text = without_comments(description);
        let mut fence: Option<(char, usize)> = None;
        // In the list below `Depends-On:`, and whether the last line was empty.
        let mut list: Option<bool> = None;
        for line in text.lines().map(|line| line.trim_start_matches(['>', ' ', '\t'])) {
            if let Some((mark, length)) = fence {
                let is_end = fence_of(line).is_some_and(|(other, count, rest)| {
                    other == mark && count >= length && rest.trim().is_empty()
                });
                fence = fence.filter(|_| !is_end);
                continue;
            }
            let opened =
                fence_of(line).filter(|(mark, _, rest)| *mark != '`' || !rest.contains('`'));
            fence = opened.map(|(mark, length, _)| (mark, length));
            let value = match (value_of(line), list) {
                (Some(value), _) => {
                    list = value.trim().is_empty().then_some(false);
                    value
                }
                (None, None) => continue,
                (None, Some(false)) if line.trim().is_empty() => {
                    list = Some(true);
                    continue;
                }
                (None, Some(after_empty)) => {
                    let names = |item: &&str| !after_empty || references(item).next().is_some();
                    let item = item_of(line).filter(names);
                    list = item.map(|_| false);
                    item.unwrap_or_default()
                }
            };
            for part in without_link_texts(value).split([',', ';']) {
                for dependency in of_part(part, own, any_case) {
                    if found.contains(&dependency) {
                        continue;
                    }
                    if found.len() == MAX_DEPENDENCIES {
                        let text = format!("more than {MAX_DEPENDENCIES} dependencies");
                        return vec![Self::Unknown(text)];
                    }
                    found.push(dependency);
                }
            }
        }
        found
    }
}

impl Queue {
    /// What live entries depend on and has not merged, each once.
    pub fn dependencies(&self) -> impl Iterator<Item = &Dependency> {
        self.waiting.dependencies()
    }

    /// Whether a live entry waits for this pull request to merge.
    pub fn waits_for(&self, on: &Dependency) -> bool {
        self.waiting.dependents(on).next().is_some()
    }

    /// The state of a dependency that an entry waits for, as last read.
    pub fn dependency_state(&self, on: &Dependency) -> Option<DependencyState> {
        let entry = self.entry_of(self.waiting.dependents(on).next()?)?;
        entry.dependencies.iter().find(|it| it.on == *on).map(|it| it.state)
    }
}

/// A comment without an end is shown as text.
fn without_comments(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, comment)) = rest.split_once("<!--") {
        let Some((_, after)) = comment.split_once("-->") else { break };
        shown.push_str(before);
        rest = after;
    }
    shown.push_str(rest);
    shown
}

/// The targets of links count, and not their texts.
fn without_link_texts(value: &str) -> String {
    let mut shown = String::with_capacity(value.len());
    let mut rest = value;
    while let Some((before, link)) = rest.split_once('[') {
        let Some((_, target)) = link.split_once("](") else { break };
        shown.push_str(before);
        shown.push(' ');
        rest = target;
    }
    shown.push_str(rest);
    shown
}

/// The marks at the start of a line that open or close fenced code: which and how many, and the rest of
/// the line.
fn fence_of(line: &str) -> Option<(char, usize, &str)> {
    let mark = line.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
    let rest = line.trim_start_matches(mark);
    let count = line.len() - rest.len();
    (count >= 3).then_some((mark, count, rest))
}

/// The text of an item of a list.
fn item_of(line: &str) -> Option<&str> {
    let numbered = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let numbered = numbered.strip_prefix('.').filter(|_| numbered.len() < line.len());
    line.strip_prefix(['-', '*', '+']).or(numbered)
}

/// What a line has after `Depends-On:`.
fn value_of(line: &str) -> Option<&str> {
    let is_mark = |c: char| c.is_whitespace() || matches!(c, '-' | '*' | '+' | '_');
    let (key, value) = line.trim_start_matches(is_mark).split_once(':')?;
    let is_key = key.trim_end_matches(is_mark).eq_ignore_ascii_case("depends-on");
    is_key.then(|| value.trim_start_matches(['*', '_']))
}

fn has_digit(text: &str) -> bool {
    text.contains(|c: char| c.is_ascii_digit())
}

/// The words that look like references to pull requests.
fn references(part: &str) -> impl Iterator<Item = &str> {
    let is_around =
        |c: char| c.is_whitespace() || matches!(c, '(' | ')' | '[' | ']' | '<' | '>' | '`');
    let marks = ['.', ':', '!', '?', '*', '_', '~', '"', '\''];
    let words = part.split(is_around).map(move |word| word.trim_matches(marks));
    words.filter(|word| word.contains("://") || (word.contains('#') && has_digit(word)))
}

fn of_part(part: &str, own: &RepoName, any_case: bool) -> Vec<Dependency> {
    let found: Vec<Dependency> = references(part)
        .map(|word| parse(word, own, any_case).unwrap_or_else(|| unknown(word)))
        .collect();
    // `Depends-On: none` names nothing; `Depends-On: 12` should have named something.
    if found.is_empty() && has_digit(part) { vec![unknown(part.trim())] } else { found }
}

fn unknown(text: &str) -> Dependency {
    Dependency::Unknown(text.chars().take(MAX_TEXT).collect())
}

fn parse(word: &str, own: &RepoName, any_case: bool) -> Option<Dependency> {
    let (repository, pr) = if let Some((scheme, place)) = word.split_once("://") {
        let is_web = ["http", "https"].iter().any(|it| scheme.eq_ignore_ascii_case(it));
        of_url(place).filter(|_| is_web)?
    } else {
        let (path, number) = word.rsplit_once('#')?;
        let pr = pr_number(number)?;
        if path.is_empty() {
            return Some(Dependency::Own(pr));
        }
        let (owner, name) = path.rsplit_once('/')?;
        (RepoName::new(own.host.as_str(), owner, name).ok()?, pr)
    };
    if repository.host != own.host {
        return None;
    }
    let is_own = repository.key(any_case) == own.key(any_case);
    Some(if is_own { Dependency::Own(pr) } else { Dependency::Other(repository, pr) })
}

/// The repository and number of a page, from its URL without the scheme: `HOST/OWNER/NAME/pull/12`,
/// or a page of this server, whose path contains `repos/HOST/OWNER/NAME/pulls/12`.
fn of_url(place: &str) -> Option<(RepoName, PrNumber)> {
    let path = place.split(['?', '#']).next()?;
    let parts: Vec<&str> = path.split('/').collect();
    let at = parts.windows(2).rposition(|pair| {
        matches!(pair, [kind, number] if BEFORE_NUMBER.contains(kind) && pr_number(number).is_some())
    })?;
    let pr = pr_number(parts.get(at + 1)?)?;
    let before: Vec<&str> = parts.iter().take(at).copied().filter(|part| *part != "-").collect();
    let of_server = before.iter().rposition(|part| *part == "repos").filter(|at| *at > 0);
    let named = |from: usize| RepoName::parse(&before.get(from..)?.join("/")).ok();
    let repository = of_server.and_then(|at| named(at + 1)).or_else(|| named(0))?;
    Some((repository, pr))
}

fn pr_number(text: &str) -> Option<PrNumber> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|number| is_plain && *number > 0).map(PrNumber)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own() -> RepoName {
        RepoName::parse("git.example/acme/calc").expect("a repository")
    }

    fn read(description: &str) -> Vec<String> {
        let found = Dependency::read(description, &own(), false);
        found.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn every_form_of_a_reference_is_read() {
        for (line, names) in [
            ("Depends-On: #12", &["#12"][..]),
            ("depends-on:#12", &["#12"]),
            ("  DEPENDS-ON : #12, #13 and #14.", &["#12", "#13", "#14"]),
            ("Depends-On: #12 (the 2 first parts)", &["#12"]),
            ("Depends-On: acme/calc#12", &["#12"]),
            ("Depends-On: acme/web#12", &["acme/web#12"]),
            ("Depends-On: group/part/web#12", &["group/part/web#12"]),
            ("Depends-On: https://git.example/acme/calc/pull/12", &["#12"]),
            ("Depends-On: https://git.example/acme/web/pull/12/files?w=1#r3", &["acme/web#12"]),
            ("Depends-On: https://git.example/a/b/c/-/merge_requests/12", &["a/b/c#12"]),
            ("Depends-On: https://ci.example/x/repos/git.example/acme/calc/pulls/12", &["#12"]),
            ("Depends-On: [#12](https://git.example/acme/calc/pull/12)", &["#12"]),
            ("Depends-On: <https://git.example/acme/calc/pull/12>.", &["#12"]),
            ("Depends-On: HTTPS://git.example/acme/calc/pull/12", &["#12"]),
            ("- Depends-On: #12", &["#12"]),
            ("> **Depends-On:** #12", &["#12"]),
            ("**Depends-On**: **#12**!", &["#12"]),
            ("Depends-On: \"#12\" # because", &["#12"]),
            (
                "Depends-On:\n- #12\n* [web](https://git.example/acme/web/pull/3)\n\n- #13\n\n\n- #14",
                &["#12", "acme/web#3", "#13"],
            ),
            ("Handle `<!--`\nDepends-On: #12", &["#12"]),
            ("Depends-On:\n\n1. #12\n2. #13", &["#12", "#13"]),
            ("> Depends-On:\n> - #12", &["#12"]),
            (
                "Depends-On: [#5](https://git.example/acme/web/pull/5), ~~#12~~",
                &["acme/web#5", "#12"],
            ),
            ("Depends-On: [web, PR #5](https://git.example/acme/web/pull/5)", &["acme/web#5"]),
            ("Depends-On: https://git.example/acme/repos/pull/12", &["acme/repos#12"]),
            ("```cargo test```\nDepends-On: #12", &["#12"]),
            ("````\n```\nDepends-On: #12\n````\n~~~\nDepends-On: #13\n```\n~~~", &[]),
            ("> ```\n> Depends-On: #12\n> ```", &[]),
            ("Depends-On:", &[]),
            ("Depends-On:\n\n- [ ] 3 tests", &[]),
            ("Depends-On: none", &[]),
            ("Depends-On: #NUMBER", &[]),
            ("```\nDepends-On: #12\n```\nDepends-On: #13", &["#13"]),
            ("This depends-on: #12", &[]),
            ("Depends on #12", &[]),
            ("<!-- Depends-On: #12 -->", &[]),
            ("<!--\nDepends-On: #12\n--> x\nDepends-On: #13", &["#13"]),
            ("Depends-On: #12\nText\nDepends-On: #13\nDepends-On: #12", &["#12", "#13"]),
        ] {
            assert_eq!(read(line), names, "{line}");
        }
    }

    #[test]
    fn a_reference_that_names_no_pull_request_is_kept_as_text() {
        for (line, text) in [
            ("Depends-On: 12", "12"),
            ("Depends-On: #0", "#0"),
            ("Depends-On: !12", "!12"),
            ("Depends-On: git.example/acme/calc/pull/12", "git.example/acme/calc/pull/12"),
            ("Depends-On: #4294967296", "#4294967296"),
            ("Depends-On: #+1", "#+1"),
            ("Depends-On: calc#12", "calc#12"),
            (
                "Depends-On: ssh://git.example/acme/calc/pull/12",
                "ssh://git.example/acme/calc/pull/12",
            ),
            (
                "Depends-On: https://other.example/acme/calc/pull/12",
                "https://other.example/acme/calc/pull/12",
            ),
            (
                "Depends-On: https://review.example/c/calc/+/12",
                "https://review.example/c/calc/+/12",
            ),
        ] {
            let found = Dependency::read(line, &own(), false);
            assert_eq!(found, [Dependency::Unknown(text.into())], "{line}");
        }
        let long = Dependency::read(&format!("Depends-On: #1{}", "é".repeat(500)), &own(), false);
        assert_eq!(long, [Dependency::Unknown(format!("#1{}", "é".repeat(98)))]);
    }

    #[test]
    fn names_follow_the_case_rule_of_the_host() {
        let line = "Depends-On: ACME/Calc#12";
        assert_eq!(Dependency::read(line, &own(), true), [Dependency::Own(PrNumber(12))]);
        assert_eq!(read(line), ["ACME/Calc#12"]);
    }

    #[test]
    fn each_part_names_a_pull_request_or_is_kept() {
        assert_eq!(read("Depends-On: #12, 13, and others"), ["#12", "13"]);
    }

    #[test]
    fn too_many_dependencies_become_one_unknown_reference() {
        let lines = |count: usize| {
            (1..=count)
                .map(|number| format!("Depends-On: #{number}\n"))
                .collect::<Vec<_>>()
                .concat()
        };
        let all = read(&lines(MAX_DEPENDENCIES));
        assert_eq!(all.len(), MAX_DEPENDENCIES);
        assert_eq!(read(&(lines(MAX_DEPENDENCIES) + "Depends-On: #1")), all);
        assert_eq!(read(&lines(MAX_DEPENDENCIES + 1)), ["more than 10 dependencies"]);
    }
}
