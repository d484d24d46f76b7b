//! How the demo ended, compared with how it should have ended.

use serde_json::Value;

use super::client::Client;
use super::repository::Git;
use super::story::Pr;
use crate::terminal::say;

/// What should become of a branch: the state, the reason, and whose fault it is.
fn expected(branch: &str) -> (&'static str, &'static str, Option<&'static str>) {
    match branch {
        "multiply" | "double" => ("FAILED", "TEST_RUN_REQUIRED_STATUS_FAILED", Some("itself")),
        "comment" => ("FAILED", "START_TEST_RUN_MERGE_CONFLICT", Some("pull_request")),
        "draft" => ("CANCELLED", "USER_REQUESTED", None),
        _ => ("MERGED", "MERGE_GRAPH_MERGE", None),
    }
}

/// Prints a table, checks what landed with git, and says whether all is as it should be.
pub(super) async fn judge(client: &Client, git: &Git, prs: &[Pr]) -> Result<bool, String> {
    say("\n  PR  ended      because");
    let mut good = true;
    let mut landed = Vec::new();
    for pr in prs {
        let entry = client.entry(pr.number).await?;
        let exit = &entry["exit"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (state, reason) = (text(&entry["state"]), text(&exit["reason"]));
        let (want_state, want_reason, want_culprit) = expected(pr.branch);
        let as_expected = state == want_state
            && reason == want_reason
            && exit["culprit"].as_str() == want_culprit;
        good &= as_expected;
        let mark = if as_expected { "" } else { "   <- not what was expected" };
        say(&format!("  #{:<2} {state:10} {}{mark}", pr.number, text(&entry["reason"])));
        if state == "MERGED" {
            let part = |key: &str| text(&exit[key]);
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
