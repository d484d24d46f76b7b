//! Times, spans and addresses as text.

use signalbox_domain::ids::{BranchName, PrNumber, RepoName};
use signalbox_domain::time::{Span, Timestamp};

use crate::model::Cell;

/// A span in at most two words: `12 min`.
pub(crate) fn span(span: Span) -> String {
    let seconds = span.millis() / 1_000;
    match seconds {
        ..60 => format!("{seconds} s"),
        60..5_400 => format!("{} min", (seconds + 30) / 60),
        5_400..172_800 => format!("{} h", (seconds + 1_800) / 3_600),
        172_800.. => format!("{} d", (seconds + 43_200) / 86_400),
    }
}

/// A time as seen from now: `12 min ago`, with the whole time beside it.
pub(crate) fn ago(at: Timestamp, now: Timestamp) -> Cell {
    let text = if at > now {
        format!("in {}", span(at.since(now)))
    } else {
        format!("{} ago", span(now.since(at)))
    };
    Cell { text, time: Some(at.to_string()), ..Cell::default() }
}

/// How long something has lasted.
pub(crate) fn lasting(since: Timestamp, now: Timestamp) -> Cell {
    Cell { text: span(now.since(since)), time: Some(since.to_string()), ..Cell::default() }
}

/// A text with its first letter as a capital and a full stop at its end.
pub(crate) fn sentence(text: &str) -> String {
    let mut chars = text.chars();
    let Some(first) = chars.next() else { return String::new() };
    let end = if text.ends_with(['.', '?', '!']) { "" } else { "." };
    format!("{}{}{end}", first.to_uppercase(), chars.as_str())
}

/// A text without characters that turn or hide other text, and no longer than that.
pub(crate) fn plain(text: &str, most: usize) -> String {
    let hidden = |c: char| {
        (c.is_control() && c != '\n' && c != '\t')
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
    };
    let mut out: String =
        text.chars().take(most).map(|c| if hidden(c) { '\u{fffd}' } else { c }).collect();
    if text.chars().nth(most).is_some() {
        out.push('…');
    }
    out
}

/// A text as a value in an address.
pub(crate) fn quoted(text: &str) -> String {
    url::form_urlencoded::byte_serialize(text.as_bytes()).collect()
}

/// An address of somebody else's, if a browser may follow it.
pub(crate) fn elsewhere(address: &str) -> Option<String> {
    let parsed = url::Url::parse(address).ok()?;
    matches!(parsed.scheme(), "http" | "https").then(|| parsed.to_string())
}

/// The address of a page about a queue.
pub(crate) fn queue_path(org: &str, page: &str, repo: &RepoName, branch: &BranchName) -> String {
    let (repo, branch) = (quoted(&repo.to_string()), quoted(branch.as_str()));
    format!("/{org}/{page}?repo={repo}&branch={branch}")
}

/// The address of the page of a pull request in a queue.
pub(crate) fn pr_path(org: &str, repo: &RepoName, branch: &BranchName, pr: PrNumber) -> String {
    format!("{}&pr={pr}", queue_path(org, "queue/pr", repo, branch))
}

/// The address of a page about the tests of a repository.
pub(crate) fn tests_path(org: &str, page: &str, repo: &RepoName) -> String {
    format!("/{org}/{page}?repo={}", quoted(&repo.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_lead_to_the_web_or_nowhere() {
        assert_eq!(elsewhere("javascript:alert(1)"), None);
        assert_eq!(elsewhere("data:text/html,x"), None);
        assert_eq!(elsewhere("/relative"), None);
        assert_eq!(elsewhere("https://ci.example/1").as_deref(), Some("https://ci.example/1"));
    }

    #[test]
    fn spans_are_short() {
        for (seconds, text) in [(5, "5 s"), (90, "2 min"), (7_200, "2 h"), (864_000, "10 d")] {
            assert_eq!(span(Span::seconds(seconds)), text);
        }
    }

    #[test]
    fn hidden_characters_are_shown_and_long_texts_are_cut() {
        assert_eq!(plain("a\u{202e}b\u{1b}c", 10), "a\u{fffd}b\u{fffd}c");
        assert_eq!(plain("abcdef", 3), "abc…");
    }
}
