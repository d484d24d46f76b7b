//! Messages of the commits that land.

use signalbox_domain::queue::Change;

/// The most authors that a squash names.
const MOST_AUTHORS: usize = 50;
const TRAILER: &str = "Co-authored-by:";

/// A commit of a pull request: its author and its message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authored {
    /// The name of the author.
    pub name: String,
    /// The address of the author.
    pub email: String,
    /// The message.
    pub message: String,
}

/// The title and the body of a change's commit. The body has no end of line.
fn title_and_body(change: &Change) -> (String, String) {
    let title = format!("{} (#{})", change.title, change.pr);
    let lines = change.body.lines().filter(|line| !line.starts_with("merge-commit-title:"));
    let body = lines.collect::<Vec<_>>().join("\n").trim().to_owned();
    (title, body)
}

/// The message of a change's commit.
pub fn message(change: &Change) -> String {
    let (title, body) = title_and_body(change);
    if body.is_empty() { title } else { format!("{title}\n\n{body}") }
}

/// The message of a squash of these commits, whose author is the one with that address: all other
/// authors, and those whom the commits name, keep a trailer.
pub fn squash_message(change: &Change, author: &str, commits: &[Authored]) -> String {
    let message = message(change);
    let same = |one: &str, other: &str| one.eq_ignore_ascii_case(other);
    let mut named: Vec<String> = vec![author.to_owned()];
    named.extend(message.lines().filter_map(|line| Some(co_author(line)?.1.to_owned())));
    let mut trailers = String::new();
    let own = |commit: &Authored| (commit.name.clone(), commit.email.clone());
    let of_commit = |commit: &Authored| {
        let lines = commit.message.lines().filter_map(co_author);
        let given = lines.map(|(name, email)| (name.to_owned(), email.to_owned()));
        std::iter::once(own(commit)).chain(given).collect::<Vec<_>>()
    };
    for (name, email) in commits.iter().flat_map(of_commit) {
        let is_line =
            |text: &str| !text.trim().is_empty() && !text.contains(['\n', '\r', '<', '>']);
        let is_new = !named.iter().any(|known| same(known, &email));
        if is_new && is_line(&name) && is_line(&email) && named.len() <= MOST_AUTHORS {
            trailers.push_str(&["\n", TRAILER, " ", &name, " <", &email, ">"].concat());
            named.push(email);
        }
    }
    if trailers.is_empty() {
        return message;
    }
    // Trailers are the last paragraph, together with others that the body has.
    let last = message.rsplit("\n\n").next().unwrap_or_default();
    let has_body = message.contains("\n\n");
    if has_body && last.lines().all(is_trailer) {
        message + &trailers
    } else {
        format!("{message}\n{trailers}")
    }
}

/// Whether a line is a trailer, such as `Signed-off-by: Ada <ada@example.org>`.
fn is_trailer(line: &str) -> bool {
    let word = |key: &str| {
        !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    line.split_once(": ").is_some_and(|(key, _)| word(key))
}

/// The name and the address of a trailer for an author.
fn co_author(line: &str) -> Option<(&str, &str)> {
    let (key, value) = line.split_at_checked(TRAILER.len())?;
    let (name, rest) = value.trim().split_once(" <")?;
    key.eq_ignore_ascii_case(TRAILER).then_some((name, rest.strip_suffix('>')?))
}

#[cfg(test)]
mod tests {
    use signalbox_domain::ids::{PrNumber, Sha};

    use super::*;

    fn change(body: &str) -> Change {
        Change {
            pr: PrNumber(7),
            head: Sha::new("a".repeat(40)).expect("a commit"),
            title: "Fix it".into(),
            body: body.into(),
            author: "ada".into(),
        }
    }

    fn by(name: &str, message: &str) -> Authored {
        let email = format!("{}@example.org", name.to_lowercase());
        Authored { name: name.into(), email, message: message.into() }
    }

    #[test]
    fn a_squash_names_every_other_author_once() {
        let commits = [
            by("Bob", "one\n\nCo-Authored-By: Cid <cid@example.org>"),
            by("Ada", "two"),
            by("Bob", "three\n\nco-authored-by: Ada <ADA@example.org>"),
        ];
        let trailers =
            "Co-authored-by: Bob <bob@example.org>\nCo-authored-by: Cid <cid@example.org>";
        let of = |body: &str| squash_message(&change(body), "ada@example.org", &commits);
        assert_eq!(of(""), format!("Fix it (#7)\n\n{trailers}"));
        assert_eq!(of("Why.\n"), format!("Fix it (#7)\n\nWhy.\n\n{trailers}"));
        let signed = "Signed-off-by: Ada <ada@example.org>";
        assert_eq!(of(signed), format!("Fix it (#7)\n\n{signed}\n{trailers}"));
        let known = of("Co-authored-by: Bob <Bob@example.org>");
        assert_eq!(known.matches("ob@example.org").count(), 1, "{known}");
    }

    #[test]
    fn one_author_and_odd_names_add_nothing() {
        let alone = [by("Ada", "one"), by("Ada", "two")];
        let of = |commits: &[Authored]| squash_message(&change("Why."), "ada@example.org", commits);
        assert_eq!(of(&alone), "Fix it (#7)\n\nWhy.");
        let odd = [
            by("", "one"),
            by("Eve\nSigned-off-by: Ada", "two"),
            by("Dot", "Co-authored-by: no one at all"),
        ];
        assert_eq!(of(&odd), "Fix it (#7)\n\nWhy.\n\nCo-authored-by: Dot <dot@example.org>");
        let many: Vec<Authored> = (0..200).map(|number| by(&format!("n{number}"), "")).collect();
        assert_eq!(of(&many).matches(TRAILER).count(), MOST_AUTHORS);
    }

    #[test]
    fn the_line_with_the_title_is_not_part_of_the_body() {
        let body = "merge-commit-title: Other\n\nWhy.\n";
        assert_eq!(title_and_body(&change(body)), ("Fix it (#7)".into(), "Why.".into()));
    }
}
