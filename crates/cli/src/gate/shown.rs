//! What the gate prints: lines, and annotations in the form of the CI system.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use signalbox_terminal::{note, plain, say};

use super::verdict::{FailedTest, Verdict};

/// The most failed tests that are listed.
const MOST_LISTED: usize = 200;
/// The most annotations of a step that GitHub shows.
const MOST_ANNOTATIONS: usize = 10;
/// The most characters of a message.
const MOST_CHARACTERS: usize = 300;

/// A failed test with the answer of the server.
pub(super) struct Shown<'a> {
    pub(super) test: &'a FailedTest,
    pub(super) is_quarantined: bool,
    pub(super) url: Option<String>,
}

/// Where the CI system wants its annotations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Annotations {
    /// Workflow commands on the standard output, and a file for the summary of the step.
    GitHub { summary: Option<PathBuf> },
    /// A report of annotations in the working folder.
    GitLab,
    /// The agent's command.
    Buildkite,
    /// Only lines.
    None,
}

impl Annotations {
    pub(super) fn of(provider: Option<&str>, variable: impl Fn(&str) -> Option<String>) -> Self {
        match provider {
            Some("github") => {
                Self::GitHub { summary: variable("GITHUB_STEP_SUMMARY").map(PathBuf::from) }
            }
            Some("gitlab") => Self::GitLab,
            Some("buildkite") => Self::Buildkite,
            Some(_) | None => Self::None,
        }
    }
}

/// The file that a GitLab job names under `artifacts:reports:annotations`.
const GITLAB_FILE: &str = "signalbox-annotations.json";

/// Prints the failed tests and the verdict.
pub(super) fn show(annotations: &Annotations, verdict: &Verdict, tests: u64, failed: &[Shown<'_>]) {
    for shown in failed.iter().take(MOST_LISTED) {
        let word = if shown.is_quarantined { "quarantined" } else { "FAILED" };
        let message = match short(&shown.test.message) {
            message if message.is_empty() => String::new(),
            message => format!(": {message}"),
        };
        say(&format!("{word:<11} {}{message}", name(shown.test)));
        if let Some(url) = &shown.url {
            say(&format!("            {url}"));
        }
    }
    if failed.len() > MOST_LISTED {
        say(&format!("… and {} more failed tests", failed.len() - MOST_LISTED));
    }
    let words = words(verdict, tests, failed);
    say(&format!("signalbox: {words}"));
    let written = match annotations {
        Annotations::GitHub { summary } => github(summary.as_ref(), &words, failed),
        Annotations::GitLab => gitlab(failed),
        Annotations::Buildkite => buildkite(verdict, &words, failed),
        Annotations::None => Ok(()),
    };
    if let Err(error) = written {
        note(&format!("could not write annotations: {error}"));
    }
}

/// The verdict as a sentence.
fn words(verdict: &Verdict, tests: u64, failed: &[Shown<'_>]) -> String {
    let of_tests = |count: u64| if count == 1 { "1 test".into() } else { format!("{count} tests") };
    let count = u64::try_from(failed.len()).unwrap_or(u64::MAX);
    match verdict {
        Verdict::Passed => format!("passed ({})", of_tests(tests)),
        Verdict::Excused => {
            let all = of_tests(tests);
            format!("passed: {} of {all} failed, all of them quarantined", of_tests(count))
        }
        Verdict::Failed(why) => format!("failed: {why}"),
    }
}

/// The name of a test on one line.
fn name(test: &FailedTest) -> String {
    let parts = [test.suite.as_str(), test.class.as_str(), test.name.as_str()];
    let mut shown: Vec<&str> = Vec::new();
    for part in parts.into_iter().filter(|part| !part.is_empty()) {
        if shown.last() != Some(&part) {
            shown.push(part);
        }
    }
    short(&shown.join(" › "))
}

/// One line of text, cut.
fn short(text: &str) -> String {
    // `##[…]` and `##vso[…]` are commands of CI systems, anywhere in a line.
    let line = plain(text).replace(['\n', '\t'], " ").replace("##", "# #");
    match line.char_indices().nth(MOST_CHARACTERS) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
        None => line,
    }
}

/// Commands of a workflow are lines: what would end one is written as a code.
fn command_value(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

fn command_property(text: &str) -> String {
    command_value(text).replace(':', "%3A").replace(',', "%2C")
}

fn github(summary: Option<&PathBuf>, words: &str, failed: &[Shown<'_>]) -> std::io::Result<()> {
    let mut order: Vec<&Shown<'_>> = failed.iter().collect();
    order.sort_by_key(|shown| shown.is_quarantined);
    for shown in order.into_iter().take(MOST_ANNOTATIONS) {
        let Shown { test, is_quarantined, .. } = shown;
        let (kind, word) =
            if *is_quarantined { ("warning", "Quarantined") } else { ("error", "Failed") };
        let title = command_property(&format!("{word}: {}", name(test)));
        let mut place = String::new();
        if !test.file.is_empty() {
            let _ = write!(place, "file={},", command_property(&short(&test.file)));
            if let Some(line) = test.line {
                let _ = write!(place, "line={line},");
            }
        }
        let message = match short(&test.message) {
            message if message.is_empty() => name(test),
            message => message,
        };
        say(&format!("::{kind} {place}title={title}::{}", command_value(&message)));
    }
    let Some(summary) = summary else { return Ok(()) };
    let mut file = std::fs::OpenOptions::new().append(true).create(true).open(summary)?;
    file.write_all(markdown(words, failed).as_bytes())
}

fn gitlab(failed: &[Shown<'_>]) -> std::io::Result<()> {
    let links = failed.iter().filter_map(|shown| {
        let word = if shown.is_quarantined { "Quarantined" } else { "Failed" };
        let label = format!("{word}: {}", name(shown.test));
        let url = shown.url.as_ref()?;
        Some(serde_json::json!({ "external_link": { "label": label, "url": url } }))
    });
    let links: Vec<_> = links.take(MOST_LISTED).collect();
    std::fs::write(GITLAB_FILE, serde_json::json!({ "Failed tests": links }).to_string())
}

fn buildkite(verdict: &Verdict, words: &str, failed: &[Shown<'_>]) -> std::io::Result<()> {
    if failed.is_empty() {
        return Ok(());
    }
    let style = if matches!(verdict, Verdict::Failed(_)) { "error" } else { "warning" };
    let mut agent = Command::new("buildkite-agent")
        .args(["annotate", "--style", style, "--context", "signalbox"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()?;
    if let Some(mut input) = agent.stdin.take() {
        input.write_all(markdown(words, failed).as_bytes())?;
    }
    agent.wait().map(drop)
}

/// Text that Markdown and HTML show as it is.
fn inert(text: &str) -> String {
    let mut shown = String::new();
    for c in text.chars() {
        match c {
            '<' => shown.push_str("&lt;"),
            '>' => shown.push_str("&gt;"),
            '&' => shown.push_str("&amp;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '(' | ')' | '#' | '|' | '!' | '~' | '@' => {
                let _ = write!(shown, "&#{};", u32::from(c));
            }
            other => shown.push(other),
        }
    }
    shown
}

fn markdown(words: &str, failed: &[Shown<'_>]) -> String {
    let mut text = format!("**Signalbox**: {}\n\n", inert(words));
    if !failed.is_empty() {
        text.push_str("| test | result | message |\n|---|---|---|\n");
    }
    for shown in failed.iter().take(MOST_LISTED) {
        let name = inert(&name(shown.test));
        let name = match &shown.url {
            Some(url) => format!("[{name}]({url})"),
            None => name,
        };
        let word = if shown.is_quarantined { "quarantined" } else { "**failed**" };
        let _ = writeln!(text, "| {name} | {word} | {} |", inert(&short(&shown.test.message)));
    }
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn test(name: &str, message: &str) -> FailedTest {
        FailedTest {
            id: "1".into(),
            suite: "suite".into(),
            class: "suite".into(),
            file: "a,b:c.rs".into(),
            line: Some(3),
            name: name.into(),
            message: message.into(),
        }
    }

    #[test]
    fn names_and_messages_cannot_become_commands_or_markup() {
        let hostile = test("x\n::set-output name=a::b\u{1b}[2J", "100%\n::error::");
        assert!(!name(&hostile).contains('\n') && !name(&hostile).contains('\u{1b}'));
        assert_eq!(name(&test("adds", "")), "suite › adds");
        assert!(!name(&test("x ##[error]y ##vso[task]", "")).contains("##"));
        assert_eq!(command_property("a,b:c%\n"), "a%2Cb%3Ac%25%0A");
        let failed = [Shown { test: &hostile, is_quarantined: false, url: None }];
        let text = markdown("failed: <b>", &failed);
        assert_eq!(text.lines().count(), 6, "{text}");
        let link = test("](https://evil.test) <img src=x> | `", "@team");
        let url = Some("https://signalbox.test/t".to_owned());
        let text = markdown("", &[Shown { test: &link, is_quarantined: true, url }]);
        let row = text.lines().nth(4).expect("a row");
        assert!(!row.contains("<img") && !row.contains("](https://evil"), "{row}");
        assert_eq!(row.matches('|').count(), 4, "{row}");
    }

    #[test]
    fn the_ci_system_decides_about_annotations() {
        let variable = |name: &str| (name == "GITHUB_STEP_SUMMARY").then(|| "/s".to_owned());
        let of = |provider| Annotations::of(provider, variable);
        assert_eq!(of(Some("github")), Annotations::GitHub { summary: Some("/s".into()) });
        assert_eq!(of(Some("gitlab")), Annotations::GitLab);
        assert_eq!(of(Some("buildkite")), Annotations::Buildkite);
        assert_eq!((of(Some("drone")), of(None)), (Annotations::None, Annotations::None));
    }

    #[test]
    fn the_verdict_is_a_sentence() {
        let own = test("adds", "");
        let shown = [Shown { test: &own, is_quarantined: true, url: None }];
        let excused = "passed: 1 test of 9 tests failed, all of them quarantined";
        assert_eq!(words(&Verdict::Excused, 9, &shown), excused);
        assert_eq!(words(&Verdict::Passed, 1, &[]), "passed (1 test)");
        assert_eq!(words(&Verdict::Failed("x".into()), 1, &[]), "failed: x");
    }
}
