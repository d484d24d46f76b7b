//! Replies of GitHub and texts of its users, on mutations of real ones.

use serde::de::DeserializeOwned;
use serde_json::Value;
use signalbox_domain::ids::RepoName;
use signalbox_domain::queue::MAX_DEPENDENCIES;
use signalbox_testkit::fuzz::{committed, fuzz};

use crate::markdown::neutral;
use crate::prose::plain_lines;
use crate::{pull_requests, wire};

fn read<T: DeserializeOwned>(input: &Value) -> Option<T> {
    serde_json::from_value(input.clone()).ok()
}

fn items<T: DeserializeOwned>(input: &Value) -> Vec<T> {
    let items = input.as_array().into_iter().flatten();
    items.filter_map(|item| read(item)).collect()
}

/// What is listed is bounded by the reply and by our own limits.
#[test]
fn replies() {
    let words =
        ["null", "-1", "1e400", "\"\\ud800\"", "[", "{", "\"refs/heads/\"", "4294967296", "\"\""];
    let repo = RepoName::parse("github.com/acme/calc").expect("a name");
    fuzz("github-reply", &committed("github-reply"), &words, |input| {
        let Ok(reply) = serde_json::from_slice::<Value>(input) else { return };
        for pull in items::<wire::Pull>(&reply) {
            let Ok(shown) = pull_requests::shown(&repo, &pull) else { continue };
            assert!(shown.title.chars().count() <= 1_024 && shown.number.0 == pull.number);
            assert!(shown.depends_on.len() <= MAX_DEPENDENCIES);
        }
        if let Some(tree) = read::<wire::Tree>(&reply) {
            let listed = reply["tree"].as_array().map_or(0, Vec::len);
            assert!(tree.objects().is_none_or(|objects| objects.count() <= listed));
        }
        if let Some(found) = read::<wire::Comparison>(&reply) {
            assert!(!found.is_linear() || found.commits.iter().all(|it| it.parents.len() < 2));
        }
        drop((read::<wire::WorkflowRun>(&reply), read::<Vec<wire::Rule>>(&reply)));
        drop((read::<wire::ProtectedChecks>(&reply), read::<wire::Contents>(&reply)));
        drop((items::<wire::IssueComment>(&reply), items::<wire::ListedRun>(&reply)));
    });
}

/// The lines of a comment that may be commands are no longer than it is; a neutral text is one line
/// without hidden characters.
#[test]
fn comments() {
    let words = [
        "`",
        "```",
        "<!--",
        "-->",
        "> ",
        "- ",
        "\n\n",
        "    ",
        "[a]: b",
        "*",
        "&#0;",
        "\u{202e}",
        "/signalbox merge",
    ];
    fuzz("comment", &committed("comment"), &words, |input| {
        let text = String::from_utf8_lossy(input.get(..8_192).unwrap_or(input));
        let lines = plain_lines(&text);
        assert!(lines.iter().map(String::len).sum::<usize>() <= text.len());
        let neutral = neutral(&text);
        assert!(!neutral.contains(char::is_control) && !neutral.contains('\u{202e}'));
        assert!(neutral.len() <= text.len() * 8);
    });
}
