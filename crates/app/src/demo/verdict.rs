//! How the demo ended, compared with how it should have ended.

use serde_json::{Value, json};

use super::client::Client;
use super::repository::Git;
use super::story::Pr;
use crate::terminal::say;

/// What should become of a branch.
struct Expected {
    /// What it is there to show.
    what: &'static str,
    state: &'static str,
    reason: &'static str,
    culprit: Option<&'static str>,
    /// The branch of the pull request that is named as being in the way.
    because_of: Option<&'static str>,
    /// What the particulars must name.
    names: Option<&'static str>,
}

const LANDS: Expected = Expected {
    what: "good",
    state: "MERGED",
    reason: "MERGE_GRAPH_MERGE",
    culprit: None,
    because_of: None,
    names: None,
};
const RED: Expected = Expected {
    what: "fails its own test",
    state: "FAILED",
    reason: "TEST_RUN_REQUIRED_STATUS_FAILED",
    culprit: Some("itself"),
    because_of: None,
    names: Some("test"),
};

fn expected(branch: &str) -> Expected {
    match branch {
        "multiply" => RED,
        "double" => Expected { what: "fails on top of \"rename\" only", ..RED },
        "comment" => Expected {
            what: "changes the line that \"rename\" does",
            state: "FAILED",
            reason: "START_TEST_RUN_MERGE_CONFLICT",
            culprit: Some("pull_request"),
            because_of: Some("rename"),
            names: Some("calc.sh"),
        },
        "draft" => Expected {
            what: "taken out by its author",
            state: "CANCELLED",
            reason: "USER_REQUESTED",
            ..LANDS
        },
        _ => LANDS,
    }
}

/// Whether an entry ended so.
fn is_met(expected: &Expected, entry: &Value, prs: &[Pr]) -> bool {
    let exit = &entry["exit"];
    let number = |branch| prs.iter().find(|pr| pr.branch == branch).map(|pr| pr.number);
    let details = exit["details"].as_array().cloned().unwrap_or_default();
    let mut details = details.iter().filter_map(Value::as_str);
    entry["state"] == expected.state
        && exit["reason"] == expected.reason
        && exit["culprit"].as_str() == expected.culprit
        && exit["culpritPrNumber"] == json!(expected.because_of.and_then(number))
        && expected.names.is_none_or(|name| details.any(|it| it.contains(name)))
}

/// Prints a table, checks what landed with git, and says whether all is as it should be.
pub(super) async fn judge(client: &Client, git: &Git, prs: &[Pr]) -> Result<bool, String> {
    say(&format!(
        "\n  {:3} {:9} {:36} {:9}  {:9}  because",
        "PR", "branch", "what it is", "expected", "ended"
    ));
    let mut good = true;
    let mut landed = Vec::new();
    for pr in prs {
        let (entry, expected) = (client.entry(pr.number).await?, expected(pr.branch));
        let met = is_met(&expected, &entry, prs);
        good &= met;
        let mark = if met { "" } else { "   <- not what was expected" };
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (state, reason) = (text(&entry["state"]), text(&entry["reason"]));
        let line = format!(
            "  {:3} {:9} {:36} {:9}  {state:9}  {reason}{mark}",
            format!("#{}", pr.number),
            pr.branch,
            expected.what,
            expected.state,
        );
        say(&line);
        if state == "MERGED" {
            let part = |key: &str| text(&entry["exit"][key]);
            landed.push((pr.number, part("sha"), part("testedTree"), part("landedTree")));
        }
    }
    say("");
    for (number, sha, tested, reported) in &landed {
        let tree = git.read(&["rev-parse", &format!("{sha}^{{tree}}")]).await?;
        let on_main = git.read(&["merge-base", "--is-ancestor", sha, "main"]).await.is_ok();
        let same = tree == *tested && tree == *reported && on_main;
        good &= same;
        let words = if same { "landed tree = tested tree" } else { "WRONG TREE" };
        say(&format!("  #{number} {words}: {tree}"));
    }
    let history = git.read(&["log", "--format=%h %s", "main"]).await?;
    say("\n  main now:");
    for line in history.lines() {
        say(&format!("    {line}"));
    }
    let commits = history.lines().count();
    if commits != landed.len() + 1 {
        good = false;
        say(&format!("  main has {commits} commits, but {} pull requests landed", landed.len()));
    }
    let stray = git.read(&["for-each-ref", "--format=%(refname)", "refs/heads/signalbox-merge"]);
    let stray = stray.await?;
    if !stray.is_empty() {
        say(&format!("  test branches that the next sweep removes: {stray}"));
    }
    say(if good {
        "\nEverything ended as it should."
    } else {
        "\nSomething did not end as it should."
    });
    Ok(good)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conflict_is_met_only_when_the_right_pull_request_and_file_are_named() {
        let pr = |number, branch| Pr { number, branch, title: "" };
        let prs = [pr(1, "readme"), pr(2, "rename"), pr(3, "comment")];
        let entry = |culprit: u32, path: &str| {
            json!({ "state": "FAILED", "exit": {
                "reason": "START_TEST_RUN_MERGE_CONFLICT", "culprit": "pull_request",
                "culpritPrNumber": culprit, "details": [path],
            } })
        };
        assert!(is_met(&expected("comment"), &entry(2, "calc.sh"), &prs));
        assert!(!is_met(&expected("comment"), &entry(1, "calc.sh"), &prs));
        assert!(!is_met(&expected("comment"), &entry(2, "other.sh"), &prs));
        assert!(!is_met(&expected("readme"), &entry(2, "calc.sh"), &prs));
    }
}
