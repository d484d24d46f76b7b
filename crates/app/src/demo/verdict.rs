//! How a chapter ended, compared with how it should have ended.

use serde_json::{Value, json};

use super::chapter::{Chapter, End};
use super::story::{Pr, Stage, pr_of};
use super::telling::Run;
use crate::terminal::say;

/// What landed, as the API reports it.
struct Landed {
    sha: String,
    tested_tree: String,
    landed_tree: String,
}

/// Whether an entry ended so, and its timeline says why.
fn is_met(end: &End, entry: &Value, prs: &[Pr]) -> bool {
    let exit = &entry["exit"];
    let number = |branch| pr_of(prs, branch).map(|pr| pr.number);
    let details = exit["details"].as_array().cloned().unwrap_or_default();
    let mut details = details.iter().filter_map(Value::as_str);
    entry["state"] == end.state
        && exit["reason"] == end.reason
        && exit["culprit"].as_str() == end.culprit
        && exit["culpritPrNumber"] == json!(end.because_of.and_then(number))
        && end.names.is_none_or(|name| details.any(|it| it.contains(name)))
        && end.told.is_none_or(|reason| timeline_has(entry, reason))
}

/// Whether a step of an entry's timeline has that reason.
fn timeline_has(entry: &Value, reason: &str) -> bool {
    let steps = entry["timeline"].as_array().map(Vec::as_slice).unwrap_or_default();
    let parts = steps.iter().filter_map(Value::as_object).flat_map(|step| step.values());
    parts.into_iter().any(|part| part["reason"] == reason)
}

/// Whether git's tree of a landed commit is the one that it should be: always the one that was
/// reported, and the one that was tested unless another lane landed meanwhile.
fn is_right_tree(end: &End, tree: &str, landed: &Landed) -> bool {
    tree == landed.landed_tree && (tree == landed.tested_tree) != end.joins
}

/// The subjects that the target branch should have behind its first commit.
fn expected_subjects(chapter: &Chapter, prs: &[Pr]) -> Vec<String> {
    let landing = chapter.lands.iter().filter_map(|branch| pr_of(prs, branch));
    landing.map(|pr| format!("{} (#{})", pr.branch.title, pr.number)).collect()
}

/// Whether all were tested in one run first, then in smaller groups, and then some alone.
fn is_bisected(runs: &[Run], prs: &[Pr]) -> bool {
    let all: Vec<u32> = prs.iter().map(|pr| pr.number).collect();
    let Some((first, later)) = runs.split_first() else { return false };
    let parts = || later.iter().filter(|run| run.bisection);
    !first.bisection
        && first.prs == all
        && parts().any(|run| run.prs.len() > 1 && run.prs.len() < all.len())
        && parts().any(|run| run.prs.len() == 1)
}

/// Prints a table, checks what landed with git, and says whether all is as it should be.
pub(super) async fn judge(
    stage: &Stage<'_>,
    chapter: &Chapter,
    prs: &[Pr],
    runs: &[Run],
) -> Result<bool, String> {
    say(&format!(
        "\n  {:4} {:9} {:36} {:9}  {:9}  because",
        "PR", "branch", "what it is", "expected", "ended"
    ));
    let mut good = true;
    let mut landed = Vec::new();
    for pr in prs {
        let entry = stage.client.entry(chapter.target, pr.number).await?;
        let end = &pr.branch.end;
        let met = is_met(end, &entry, prs);
        good &= met;
        say(&row(pr, &entry, met));
        if entry["state"] == "MERGED" {
            let part = |key: &str| text(&entry["exit"][key]).to_owned();
            let it = Landed {
                sha: part("sha"),
                tested_tree: part("testedTree"),
                landed_tree: part("landedTree"),
            };
            landed.push((pr, it));
        }
    }
    say("");
    for (pr, it) in &landed {
        good &= judge_tree(stage, chapter, pr, it).await?;
    }
    for pr in prs {
        if let Some(reason) = pr.branch.end.told {
            say(&format!("  #{} should have been told on its way: {reason}", pr.number));
        }
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
) -> Result<bool, String> {
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
pub(super) async fn sum_up(stage: &Stage<'_>, ended: &[(&Chapter, bool)]) -> Result<bool, String> {
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

#[cfg(test)]
mod tests {
    use super::super::chapters::CHAPTERS;
    use super::*;

    fn chapter(target: &str) -> (&'static Chapter, Vec<Pr>) {
        let chapter = CHAPTERS.iter().find(|it| it.target == target).expect("a chapter");
        let prs = (1..).zip(chapter.branches).map(|(number, branch)| Pr { number, branch });
        (chapter, prs.collect())
    }

    fn end_of<'a>(prs: &'a [Pr], branch: &str) -> &'a End {
        &pr_of(prs, branch).expect("a branch").branch.end
    }

    fn run(prs: &[u32], bisection: bool) -> Run {
        Run { prs: prs.to_vec(), bisection }
    }

    #[test]
    fn a_conflict_is_met_only_when_the_right_pull_request_and_file_are_named() {
        let (_, prs) = chapter("main");
        let entry = |culprit: u32, path: &str| {
            json!({ "state": "FAILED", "exit": {
                "reason": "START_TEST_RUN_MERGE_CONFLICT", "culprit": "pull_request",
                "culpritPrNumber": culprit, "details": [path],
            } })
        };
        let comment = end_of(&prs, "comment");
        assert!(is_met(comment, &entry(2, "calc.sh"), &prs));
        assert!(!is_met(comment, &entry(1, "calc.sh"), &prs));
        assert!(!is_met(comment, &entry(2, "other.sh"), &prs));
        assert!(!is_met(end_of(&prs, "readme"), &entry(2, "calc.sh"), &prs));
    }

    #[test]
    fn a_rescue_is_met_only_when_the_timeline_says_so() {
        let (_, prs) = chapter("rescue");
        let entry = |reason: &str| {
            json!({
                "state": "MERGED",
                "exit": { "reason": "MERGE_GRAPH_MERGE", "details": [] },
                "timeline": [
                    { "state": "MERGED", "merged": { "reason": "MERGE_GRAPH_MERGE" } },
                    { "state": "TESTS_PASSED", "testsPassed": { "reason": reason } },
                ],
            })
        };
        let end = end_of(&prs, "cube");
        assert!(is_met(end, &entry("SUCCESSOR_TEST_RUN_PASSED"), &prs));
        assert!(!is_met(end, &entry("TEST_RUN_PASSED"), &prs));
    }

    #[test]
    fn only_behind_another_lane_may_a_landed_tree_differ_from_the_tested_one() {
        let (_, prs) = chapter("lanes");
        let landed = |tested: &str, reported: &str| Landed {
            sha: "c".to_owned(),
            tested_tree: tested.to_owned(),
            landed_tree: reported.to_owned(),
        };
        let (joins, alone) = (end_of(&prs, "frontend"), end_of(&prs, "backend"));
        assert!(is_right_tree(alone, "t", &landed("t", "t")));
        assert!(!is_right_tree(alone, "t", &landed("other", "t")));
        assert!(is_right_tree(joins, "t", &landed("other", "t")));
        assert!(!is_right_tree(joins, "t", &landed("t", "t")), "nothing landed meanwhile");
        for end in [joins, alone] {
            assert!(!is_right_tree(end, "t", &landed("t", "other")), "git has another tree");
        }
    }

    #[test]
    fn the_order_of_landing_is_that_of_the_chapter() {
        let (urgent, prs) = chapter("urgent");
        let expected = [
            "Add nothing when a number is missing (#3)",
            "Teach it to halve (#1)",
            "Teach it to triple (#2)",
        ];
        assert_eq!(expected_subjects(urgent, &prs), expected);
    }

    #[test]
    fn a_bisection_is_a_run_of_all_and_then_runs_of_halves_and_of_one() {
        let (_, prs) = chapter("batches");
        let all = || run(&[1, 2, 3, 4], false);
        let halves = || [run(&[1, 2], true), run(&[3, 4], true)];
        let [left, right] = halves();
        assert!(is_bisected(&[all(), left, right, run(&[3], true)], &prs));
        let [left, right] = halves();
        assert!(!is_bisected(&[left, right, run(&[3], true)], &prs), "no run of all");
        let [left, right] = halves();
        assert!(!is_bisected(&[all(), left, right], &prs), "nobody alone");
        assert!(!is_bisected(&[all(), run(&[3], true)], &prs), "no halves");
        assert!(!is_bisected(&[], &prs));
    }

    #[test]
    fn what_lands_and_who_is_named_are_branches_of_the_chapter() {
        let mut names = Vec::new();
        for chapter in &CHAPTERS {
            names.push(chapter.target);
            names.extend(chapter.branches.iter().map(|branch| branch.name));
            let merged = chapter.branches.iter().filter(|it| it.end.state == "MERGED");
            assert_eq!(merged.count(), chapter.lands.len(), "{}", chapter.target);
            for name in chapter.lands {
                assert!(
                    chapter.branches.iter().any(|it| it.name == *name && it.end.state == "MERGED")
                );
            }
        }
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all, "branches of one repository have different names");
    }
}
