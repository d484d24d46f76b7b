//! How a chapter ended, for people: a table, what git has, and a word on each chapter.

use serde_json::{Value, json};
use signalbox_terminal::say;

use crate::DemoError;
use crate::chapter::Chapter;
use crate::narrator::Run;
use crate::story::{Pr, Stage};
use crate::verdict::{Landed, expected_subjects, is_bisected, is_met, is_right_tree, timeline_has};

/// Prints a table, checks what landed with git, and says whether all is as it should be.
pub(crate) async fn judge(
    stage: &Stage<'_>,
    chapter: &Chapter,
    prs: &[Pr],
    runs: &[Run],
) -> Result<bool, DemoError> {
    say(&format!(
        "\n  {:4} {:9} {:36} {:9}  {:9}  because",
        "PR", "branch", "what it is", "expected", "ended"
    ));
    let mut good = true;
    let (mut landed, mut notes) = (Vec::new(), Vec::new());
    for pr in prs {
        let entry = stage.client.entry(chapter.target, pr.number).await;
        let entry = entry.unwrap_or_else(|error| json!({ "reason": error.to_string() }));
        let end = &pr.branch.end;
        let met = is_met(end, &entry, prs);
        good &= met;
        say(&row(pr, &entry, met));
        if let Some(reason) = end.told {
            let told = timeline_has(&entry, reason);
            let says = if told { "says" } else { "does not say" };
            notes.push(format!("  #{}'s timeline {says} {reason}{}", pr.number, mark(told)));
        }
        if let Some(test) = end.excused {
            let words = excused(stage, chapter, &entry).await?;
            let told = words.contains(test);
            good &= told;
            notes.push(format!("  #{}'s check: {words}{}", pr.number, mark(told)));
        }
        if entry["state"] == "MERGED" {
            let part = |key: &str| text(&entry["exit"][key]).to_owned();
            let it = Landed {
                sha: part("sha"),
                tested_tree: part("testedTree"),
                reported_tree: part("landedTree"),
            };
            landed.push((pr, it));
        }
    }
    say("");
    for (pr, it) in &landed {
        good &= judge_tree(stage, chapter, pr, it).await?;
    }
    for note in notes {
        say(&note);
    }
    if chapter.bisects {
        let bisected = is_bisected(runs, prs);
        good &= bisected;
        say(&format!(
            "  one run of all {}, then {} runs of parts{}",
            prs.len(),
            runs.iter().filter(|run| run.bisection).count(),
            mark(bisected)
        ));
    }
    let subjects = stage.git.subjects(chapter.target).await?;
    let in_order = subjects == expected_subjects(chapter, prs);
    good &= in_order;
    say(&format!("\n  {} now, the newest last:{}", chapter.target, mark(in_order)));
    for subject in subjects {
        say(&format!("    {subject}"));
    }
    Ok(good)
}

/// What the check of an entry's run says when quarantined tests were excused; nothing otherwise.
async fn excused(stage: &Stage<'_>, chapter: &Chapter, entry: &Value) -> Result<String, DemoError> {
    let run = json!({ "testRunId": entry["verifiedByTestRun"] });
    let details = stage.client.call(chapter.target, "getMergeQueueTestingDetails", run).await?;
    let suites = details["checkSuites"].as_array().cloned().unwrap_or_default();
    let checks = suites.iter().filter_map(|suite| suite["checkRuns"].as_array()).flatten();
    let mut words = checks.filter(|check| check["conclusion"] == "SUCCESS").filter_map(|check| {
        let summary = check["summary"].as_str()?;
        summary.contains("only quarantined tests failed").then(|| summary.to_owned())
    });
    Ok(words.next().unwrap_or_default())
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

const fn mark(met: bool) -> &'static str {
    if met { "" } else { "   <- not what was expected" }
}

fn row(pr: &Pr, entry: &Value, met: bool) -> String {
    let (number, branch, end) = (format!("#{}", pr.number), pr.branch.name, &pr.branch.end);
    let (state, reason) = (text(&entry["state"]), text(&entry["reason"]));
    format!(
        "  {number:4} {branch:9} {:36} {:9}  {state:9}  {reason}{}",
        end.what,
        end.state,
        mark(met)
    )
}

async fn judge_tree(
    stage: &Stage<'_>,
    chapter: &Chapter,
    pr: &Pr,
    landed: &Landed,
) -> Result<bool, DemoError> {
    let tree = stage.git.read(&["rev-parse", &format!("{}^{{tree}}", landed.sha)]).await?;
    let ancestor = ["merge-base", "--is-ancestor", &landed.sha, chapter.target];
    let on_target = stage.git.read(&ancestor).await.is_ok();
    let right = on_target && is_right_tree(&pr.branch.end, &tree, landed);
    let words = match (right, pr.branch.end.joins) {
        (true, false) => "landed tree = tested tree",
        (true, true) => "landed tree = tested changes on what another lane has landed",
        (false, _) => "WRONG TREE",
    };
    say(&format!("  #{} {words}: {tree}", pr.number));
    Ok(right)
}

/// Says which chapters ended as they should, and returns whether all did.
pub(crate) async fn sum_up(
    stage: &Stage<'_>,
    ended: &[(&Chapter, bool)],
) -> Result<bool, DemoError> {
    let listed = ["for-each-ref", "--format=%(refname)", "refs/heads/signalbox-merge"];
    let stray = stage.git.read(&listed).await?;
    if !stray.is_empty() {
        say(&format!("\ntest branches that the next sweep removes: {stray}"));
    }
    say("\nThe chapters:");
    for (chapter, good) in ended {
        let words = if *good { "as it should" } else { "NOT AS IT SHOULD" };
        say(&format!("  {:8} ended {words:17} {}", chapter.target, chapter.shows));
    }
    let good = ended.iter().all(|(_, good)| *good);
    say(if good {
        "\nEverything ended as it should."
    } else {
        "\nSomething did not end as it should."
    });
    Ok(good)
}
