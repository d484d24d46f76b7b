//! Whether a scenario ended as expected.

use serde_json::{Value, json};

use crate::narrator::Run;
use crate::scenario::{End, Scenario};
use crate::story::{Pr, pr_of};

/// What landed, as the API reports it.
pub(crate) struct Landed {
    pub(crate) sha: String,
    pub(crate) tested_tree: String,
    pub(crate) reported_tree: String,
}

/// Whether an entry ended like this, with the expected step in its timeline.
pub(crate) fn is_met(end: &End, entry: &Value, prs: &[Pr]) -> bool {
    let exit = &entry["exit"];
    let number = |branch| pr_of(prs, branch).map(|pr| pr.number);
    let details = exit["details"].as_array().cloned().unwrap_or_default();
    let mut details = details.iter().filter_map(Value::as_str);
    entry["state"] == end.state
        && exit["reason"] == end.reason
        && exit["culprit"].as_str() == end.culprit
        && exit["culpritPrNumber"] == json!(end.because_of.and_then(number))
        && end.names.is_none_or(|name| details.any(|it| it.contains(name)))
        && end.step.is_none_or(|reason| timeline_has(entry, reason))
}

/// Whether a step of an entry's timeline has that reason.
pub(crate) fn timeline_has(entry: &Value, reason: &str) -> bool {
    let steps = entry["timeline"].as_array().map(Vec::as_slice).unwrap_or_default();
    let parts = steps.iter().filter_map(Value::as_object).flat_map(|step| step.values());
    parts.into_iter().any(|part| part["reason"] == reason)
}

/// Whether git's tree of a landed commit is right: the reported one, and also the tested one unless
/// another lane landed during the test run.
pub(crate) fn is_right_tree(end: &End, tree: &str, landed: &Landed) -> bool {
    tree == landed.reported_tree && (tree == landed.tested_tree) != end.joins
}

/// The subjects that the target branch should have after its first commit.
pub(crate) fn expected_subjects(scenario: &Scenario, prs: &[Pr]) -> Vec<String> {
    let landing = scenario.lands.iter().filter_map(|branch| pr_of(prs, branch));
    landing.map(|pr| format!("{} (#{})", pr.branch.title, pr.number)).collect()
}

/// Whether all were tested in one run first, then in smaller groups, and then some alone.
pub(crate) fn is_bisected(runs: &[Run], prs: &[Pr]) -> bool {
    let all: Vec<u32> = prs.iter().map(|pr| pr.number).collect();
    let Some((first, later)) = runs.split_first() else { return false };
    let parts = || later.iter().filter(|run| run.bisection);
    !first.bisection
        && first.prs == all
        && parts().any(|run| run.prs.len() > 1 && run.prs.len() < all.len())
        && parts().any(|run| run.prs.len() == 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenarios::SCENARIOS;

    fn scenario(target: &str) -> (&'static Scenario, Vec<Pr>) {
        let scenario = SCENARIOS.iter().find(|it| it.target == target).expect("a scenario");
        let prs = (1..).zip(scenario.branches).map(|(number, branch)| Pr { number, branch });
        (scenario, prs.collect())
    }

    fn end_of<'a>(prs: &'a [Pr], branch: &str) -> &'a End {
        &pr_of(prs, branch).expect("a branch").branch.end
    }

    fn run(prs: &[u32], bisection: bool) -> Run {
        Run { prs: prs.to_vec(), bisection }
    }

    #[test]
    fn a_conflict_is_met_only_when_the_right_pull_request_and_file_are_named() {
        let (_, prs) = scenario("main");
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
    fn a_rescue_needs_its_step_in_the_timeline() {
        let (_, prs) = scenario("rescue");
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
        let (_, prs) = scenario("lanes");
        let landed = |tested: &str, reported: &str| Landed {
            sha: "c".to_owned(),
            tested_tree: tested.to_owned(),
            reported_tree: reported.to_owned(),
        };
        let (joins, alone) = (end_of(&prs, "frontend"), end_of(&prs, "backend"));
        assert!(is_right_tree(alone, "t", &landed("t", "t")));
        assert!(!is_right_tree(alone, "t", &landed("other", "t")));
        assert!(is_right_tree(joins, "t", &landed("other", "t")));
        assert!(!is_right_tree(joins, "t", &landed("t", "t")), "no other lane landed");
        for end in [joins, alone] {
            assert!(!is_right_tree(end, "t", &landed("t", "other")), "git has another tree");
        }
    }

    #[test]
    fn the_order_of_landing_is_that_of_the_scenario() {
        let (urgent, prs) = scenario("urgent");
        let expected = [
            "Take a missing number for 0 (#3)",
            "Teach it to halve (#1)",
            "Teach it to triple (#2)",
        ];
        assert_eq!(expected_subjects(urgent, &prs), expected);
    }

    #[test]
    fn a_bisection_is_a_run_of_all_and_then_runs_of_halves_and_of_one() {
        let (_, prs) = scenario("batches");
        let all = || run(&[1, 2, 3, 4], false);
        let halves = || [run(&[1, 2], true), run(&[3, 4], true)];
        let [left, right] = halves();
        assert!(is_bisected(&[all(), left, right, run(&[3], true)], &prs));
        let [left, right] = halves();
        assert!(!is_bisected(&[left, right, run(&[3], true)], &prs), "no run of all");
        let [left, right] = halves();
        assert!(!is_bisected(&[all(), left, right], &prs), "none alone");
        assert!(!is_bisected(&[all(), run(&[3], true)], &prs), "no halves");
        assert!(!is_bisected(&[], &prs));
    }

    #[test]
    fn a_scenario_names_only_its_own_branches() {
        let mut names = Vec::new();
        for scenario in &SCENARIOS {
            names.push(scenario.target);
            names.extend(scenario.branches.iter().map(|branch| branch.name));
            let merged = scenario.branches.iter().filter(|it| it.end.state == "MERGED");
            assert_eq!(merged.count(), scenario.lands.len(), "{}", scenario.target);
            let of_scenario = |name: &str| scenario.branches.iter().find(|it| it.name == name);
            for name in scenario.lands {
                assert!(of_scenario(name).is_some_and(|it| it.end.state == "MERGED"), "{name}");
            }
            for (name, _) in scenario.cues.iter().flat_map(|cue| cue.when) {
                assert!(of_scenario(name).is_some(), "{name}");
            }
        }
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all, "branches of one repository have different names");
    }
}
