//! Statuses of commits that others have tested, kept as notes: a line `name: conclusion` each, in
//! `refs/notes/signalbox-statuses`. A user who may push notes may mark a commit as tested,
//! just as a user who may push to the target may move it.

use std::collections::BTreeSet;

use signalbox_domain::ports::HostError;
use signalbox_domain::queue::{Check, CheckConclusion, CheckReport, CheckStatus};
use signalbox_domain::time::Timestamp;

use crate::git::Git;

const NOTES: &str = "refs/notes/signalbox-statuses";
/// The most bytes of a note that are read, and the most statuses.
const MAX: (usize, usize) = (65_536, 1_000);

/// The statuses of a commit; none when there is no note.
pub(crate) async fn read(
    git: &Git,
    commit: &str,
    at: Timestamp,
) -> Result<Vec<CheckReport>, HostError> {
    let shown = git.call(&["notes", "--ref", NOTES, "show", commit]).await?;
    if shown.code != Some(0) {
        let none = shown.complaints().any(|line| line.contains("no note found"));
        return if none { Ok(Vec::new()) } else { Err(shown.trouble()) };
    }
    let (bytes, most) = MAX;
    let text = String::from_utf8_lossy(shown.stdout.get(..bytes).unwrap_or(&shown.stdout));
    Ok(parse(&text, at).take(most).collect())
}

/// The lines that are statuses; a later line of the same name replaces an earlier one.
fn parse(text: &str, at: Timestamp) -> impl Iterator<Item = CheckReport> {
    let (mut found, mut names): (Vec<CheckReport>, _) = (Vec::new(), BTreeSet::new());
    for line in text.lines().rev() {
        let Some((name, word)) = line.rsplit_once(':') else { continue };
        let Some(conclusion) = CheckConclusion::parse(word.trim()) else { continue };
        if !names.insert(name.trim()) {
            continue;
        }
        found.push(Check {
            name: name.trim().to_owned(),
            status: CheckStatus::Completed,
            conclusion: Some(conclusion),
            url: String::new(),
            summary: Some("reported on the pull request's own head".to_owned()),
            at,
            excused: Vec::new(),
        });
    }
    found.into_iter().rev()
}

#[cfg(test)]
mod tests {
    use signalbox_testkit::fuzz::{committed, fuzz};

    use super::*;

    /// Each name has one status, which a line has; what is printed again is read the same.
    #[test]
    fn fuzz_notes() {
        let at = Timestamp::from_unix_seconds(0);
        fuzz(
            "status-notes",
            &committed("status-notes"),
            &["test: success\n", ":", "\r", "\u{85}"],
            |input| {
                let text = String::from_utf8_lossy(input);
                let found: Vec<CheckReport> = parse(&text, at).collect();
                let names: BTreeSet<&str> = found.iter().map(|it| it.name.as_str()).collect();
                assert!(names.len() == found.len() && found.len() <= text.lines().count());
                let line = |it: &CheckReport| {
                    let conclusion = it.conclusion.expect("a conclusion").as_str();
                    format!("{}: {conclusion}\n", it.name)
                };
                let printed: String = found.iter().map(line).collect();
                assert!(parse(&printed, at).eq(found), "{printed:?}");
            },
        );
    }

    #[test]
    fn lines_are_names_and_conclusions() {
        let at = Timestamp::from_unix_seconds(0);
        let text = "test: failure\n\nlint / fast: SUCCESS\nodd line\ntest: success\nx: what\n";
        let found: Vec<_> = parse(text, at).map(|it| (it.name, it.conclusion)).collect();
        let success = Some(CheckConclusion::Success);
        assert_eq!(found, [("lint / fast".to_owned(), success), ("test".to_owned(), success)]);
    }
}
