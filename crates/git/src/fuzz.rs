//! What git prints and stores, on mutations of real inputs: authors of changes choose much of it.

use signalbox_domain::ports::HostError;
use signalbox_domain::time::Timestamp;
use signalbox_testkit::fuzz::{committed, fuzz};

use crate::commit::{RawCommit, written};
use crate::done::Done;
use crate::git::{Author, writable_date, writable_name};
use crate::pull_requests::{clean_body, clean_title};
use crate::remote::failure;

/// The parts of a commit are whole lines of its header. What is written for its author has one header,
/// which is read as the same author.
#[test]
fn commits() {
    let words = ["author ", "parent ", "\n\n", "<", ">", " <", "> ", "\nencoding ", "\0", "-0000"];
    let at = Timestamp::from_unix_seconds(1_767_225_600);
    fuzz("git-commit", &committed("git-commit"), &words, |input| {
        let Some(commit) = RawCommit::parse(input) else { return };
        let lines: Vec<&[u8]> = input.split(|byte| *byte == b'\n').collect();
        let has = |start: &str, rest: &str| {
            let line = format!("{start}{rest}");
            lines.iter().any(|it| it.strip_suffix(b"\r").unwrap_or(it) == line.as_bytes())
        };
        assert!(has("tree ", commit.tree));
        assert!(commit.parents.iter().all(|it| has("parent ", it)));
        let Some((name, email, date)) = commit.author() else { return };
        let author = Author {
            name: writable_name(name),
            email: email.to_owned(),
            date: writable_date(date),
        };
        let Some(text) = written(commit.tree, &commit.parents, "x\n\ny", &author, at) else {
            return;
        };
        let again = RawCommit::parse(&text).expect("a commit");
        assert_eq!((again.tree, &again.parents), (commit.tree, &commit.parents));
        let (found, address, date) = again.author().expect("an author");
        assert_eq!((found, address), (author.name.as_str(), email));
        assert_eq!(author.date.is_some(), author.date == Some(format!("@{date}")));
    });
}

/// Errors of git are one short line; outputs have no line end at their end.
#[test]
fn outputs() {
    let words =
        ["fatal: ", "error: ", "returned error: ", "999", ": File exists\n", "\r", "\n", "é"];
    let now = Timestamp::from_unix_seconds(0);
    fuzz("git-output", &committed("git-output"), &words, |input| {
        let stderr = String::from_utf8_lossy(input).into_owned();
        let done = Done {
            what: "fetch".to_owned(),
            code: Some(128),
            signal: None,
            stdout: input.to_vec(),
            stderr,
        };
        assert!(!done.text().ends_with('\n'));
        let words = done.words();
        assert!(words.chars().count() <= 1_000 && !words.contains('\n'), "{words:?}");
        assert!(!done.cannot_be_checked_out() || done.yes_or_no().is_err());
        let error = HostError::Unavailable { words };
        assert!(format!("{:?}", failure(error, now)).len() < 20_000);
    });
}

/// Titles and bodies of pull requests have no control characters, and are the same when cleaned again.
#[test]
fn titles_and_bodies() {
    fuzz(
        "git-titles",
        &committed("comment"),
        &["\u{1b}[31m", "\u{85}", "\r\n", "\t", "é"],
        |input| {
            let text = String::from_utf8_lossy(input.get(..8_192).unwrap_or(input));
            let (title, body) = (clean_title(&text), clean_body(&text));
            assert!(!title.is_empty() && !title.contains(char::is_control));
            assert!(body.chars().all(|it| !it.is_control() || matches!(it, '\n' | '\t')));
            assert_eq!((clean_title(&title), clean_body(&body)), (title, body));
        },
    );
}
