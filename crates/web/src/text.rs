//! Times, durations and addresses as text.

use signalbox_domain::ids::{BranchName, PrNumber, RepoName};
use signalbox_domain::time::{Span, Timestamp};

use crate::model::Cell;

/// A duration in its largest unit: `12 min`.
pub(crate) fn span(span: Span) -> String {
    let seconds = span.millis() / 1_000;
    match seconds {
        ..60 => format!("{seconds} s"),
        60..5_400 => format!("{} min", (seconds + 30) / 60),
        5_400..172_800 => format!("{} h", (seconds + 1_800) / 3_600),
        172_800.. => format!("{} d", (seconds + 43_200) / 86_400),
    }
}

/// A time relative to now: `12 min ago`, with the full time as its tooltip.
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

/// The most combining marks on one letter; more would cover other lines.
const MARKS: u32 = 3;

/// Whether a character reorders or hides other text, or is invisible.
fn is_hidden(c: char) -> bool {
    (c.is_control() && c != '\n' && c != '\t')
        || matches!(
            c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
                | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}'
                | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
                | '\u{e0000}'..='\u{e0fff}'
        )
}

/// Whether a character is a combining mark.
const fn is_mark(c: char) -> bool {
    matches!(
        c,
        '\u{300}'..='\u{36f}' | '\u{483}'..='\u{489}' | '\u{1ab0}'..='\u{1aff}' | '\u{1dc0}'..='\u{1dff}'
            | '\u{20d0}'..='\u{20ff}' | '\u{fe20}'..='\u{fe2f}'
    )
}

/// A text without characters that reorder or hide other text, cut to a length. Joiners are kept
/// within an emoji, and between letters that are not Latin.
pub(crate) fn plain(text: &str, most: usize) -> String {
    let mut out = String::new();
    let (mut before, mut marks) = ('a', 0);
    let mut chars = text.chars().peekable();
    for _ in 0..most {
        let Some(c) = chars.next() else { return out };
        marks = if is_mark(c) { marks + 1 } else { 0 };
        let next = chars.peek().copied().unwrap_or('a');
        let joins = matches!(c, '\u{200c}' | '\u{200d}')
            && [before, next].iter().all(|it| *it > '\u{24f}' && !is_hidden(*it));
        if joins || !is_hidden(c) {
            if marks <= MARKS {
                out.push(c);
            }
        } else {
            out.push('\u{fffd}');
        }
        before = c;
    }
    if chars.peek().is_some() {
        out.push('…');
    }
    out
}

/// A text as a value in an address.
pub(crate) fn quoted(text: &str) -> String {
    url::form_urlencoded::byte_serialize(text.as_bytes()).collect()
}

/// An external address; `None` unless its scheme is http or https.
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
    fn joiners_stay_where_they_join_and_nowhere_else() {
        let family = "\u{1f468}\u{200d}\u{1f469}\u{200d}\u{1f467}";
        let persian = "\u{645}\u{6cc}\u{200c}\u{62e}";
        for text in [family, persian, "\u{2764}\u{fe0f}\u{200d}\u{1f525}", "e\u{301}"] {
            assert_eq!(plain(text, 100), text);
        }
        assert_eq!(plain("ad\u{200d}min", 100), "ad\u{fffd}min");
        assert_eq!(plain("\u{5d0}\u{200d}\u{200d}\u{5d0}", 100), "\u{5d0}\u{fffd}\u{fffd}\u{5d0}");
    }

    #[test]
    fn what_shows_nothing_is_shown_and_towers_of_marks_are_cut() {
        for hidden in ['\u{ad}', '\u{61c}', '\u{2028}', '\u{3164}', '\u{e0041}', '\u{fff9}', '\0'] {
            assert_eq!(plain(&format!("a{hidden}b"), 9), "a\u{fffd}b", "{hidden:?}");
        }
        let tower = format!("a{}b", "\u{336}".repeat(50));
        assert_eq!(plain(&tower, 100), "a\u{336}\u{336}\u{336}b");
    }

    #[test]
    fn hidden_characters_are_shown_and_long_texts_are_cut() {
        assert_eq!(plain("a\u{202e}b\u{1b}c", 10), "a\u{fffd}b\u{fffd}c");
        assert_eq!(plain("abcdef", 3), "abc…");
    }
}
