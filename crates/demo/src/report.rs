//! How a scenario ended: a table, the commits in git, and the numbers of all scenarios.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use signalbox_domain::queue::{PrState, Reason};
use signalbox_domain::time::{Span, Timestamp};
use signalbox_terminal::say;
use signalbox_wording::{Named as _, reason};

use crate::DemoError;
use crate::narrator::Run;
use crate::scenario::Scenario;
use crate::story::{Pr, Stage};
use crate::verdict::{Landed, expected_subjects, is_bisected, is_met, is_right_tree, timeline_has};

/// The numbers of a scenario.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    merged: usize,
    failed: usize,
    cancelled: usize,
    runs: usize,
    bisections: usize,
    /// Failures of quarantined tests that counted as passed.
    excused: usize,
    /// The time of all test runs, one after the other.
    tested: Span,
    /// The time in which at least one test run was running.
    busy: Span,
}

/// Prints a table, checks with git what landed, and returns whether everything is as expected, with
/// the numbers of the scenario.
pub(crate) async fn judge(
    stage: &Stage<'_>,
    scenario: &Scenario,
    prs: &[Pr],
    runs: &[Run],
) -> Result<(bool, Totals), DemoError> {
    say(&format!(
        "\n  {:4} {:9} {:37} {:9}  {:9}  reason",
        "PR", "branch", "what it does", "expected", "ended"
    ));
    let mut good = true;
    let mut totals = Totals::default();
    let (mut landed, mut notes) = (Vec::new(), Vec::new());
    for pr in prs {
        let entry = stage.client.entry(scenario.target, pr.number).await;
        let entry = entry.unwrap_or_else(|error| json!({ "reason": error.to_string() }));
        let end = &pr.branch.end;
        let met = is_met(end, &entry, prs);
        good &= met;
        say(&row(pr, &entry, met));
        totals.count(PrState::parse(text(&entry["state"])));
        if let Some(step) = end.step {
            let label = label(None, step);
            notes.push(if timeline_has(&entry, step) {
                format!("  #{}'s timeline has the step \"{label}\"", pr.number)
            } else {
                format!("  #{}'s timeline lacks the step \"{label}\"{}", pr.number, mark(false))
            });
        }
        if let Some(test) = end.excused {
            let summary = excused(stage, scenario, &entry).await?;
            let is_excused = summary.contains(test);
            good &= is_excused;
            totals.excused += usize::from(is_excused);
            notes.push(format!("  #{}'s check: {summary}{}", pr.number, mark(is_excused)));
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
        good &= judge_tree(stage, scenario, pr, it).await?;
    }
    for note in notes {
        say(&note);
    }
    if scenario.bisects {
        let bisected = is_bisected(runs, prs);
        good &= bisected;
        say(&format!(
            "  one run of all {}, then {} runs of parts{}",
            prs.len(),
            runs.iter().filter(|run| run.bisection).count(),
            mark(bisected)
        ));
    }
    let subjects = stage.git.subjects(scenario.target).await?;
    let in_order = subjects == expected_subjects(scenario, prs);
    good &= in_order;
    say(&format!("\n  {} now, the newest last:{}", scenario.target, mark(in_order)));
    for subject in subjects {
        say(&format!("    {subject}"));
    }
    totals.runs = runs.len();
    totals.bisections = runs.iter().filter(|run| run.bisection).count();
    (totals.tested, totals.busy) = times(&spans(stage, scenario, prs).await?);
    Ok((good, totals))
}

impl Totals {
    fn count(&mut self, ended: Option<PrState>) {
        match ended {
            Some(PrState::Merged) => self.merged += 1,
            Some(PrState::Failed) => self.failed += 1,
            Some(PrState::Cancelled) => self.cancelled += 1,
            Some(_) | None => {}
        }
    }

    fn add(&mut self, other: &Self) {
        self.merged += other.merged;
        self.failed += other.failed;
        self.cancelled += other.cancelled;
        self.runs += other.runs;
        self.bisections += other.bisections;
        self.excused += other.excused;
        self.tested = Span::from_micros(self.tested.micros() + other.tested.micros());
        self.busy = Span::from_micros(self.busy.micros() + other.busy.micros());
    }

    /// The summary in lines.
    fn lines(&self) -> Vec<String> {
        let seconds = |span: Span| (span.millis() + 500) / 1_000;
        let saved = Span::from_micros(self.tested.micros() - self.busy.micros());
        vec![
            format!(
                "  pull requests  {} merged, {} failed, {} cancelled",
                self.merged, self.failed, self.cancelled
            ),
            format!(
                "  test runs      {}, {} of them to bisect batches",
                self.runs, self.bisections
            ),
            format!("  flaky tests    {} failure excused by quarantine", self.excused),
            format!(
                "  test time      {} s in {} s: testing in parallel saved {} s",
                seconds(self.tested),
                seconds(self.busy),
                seconds(saved)
            ),
        ]
    }
}

/// When the test runs of a scenario began and ended, as the API reports it.
async fn spans(
    stage: &Stage<'_>,
    scenario: &Scenario,
    prs: &[Pr],
) -> Result<Vec<(Timestamp, Timestamp)>, DemoError> {
    let mut steps = Vec::new();
    for pr in prs {
        let entry = stage.client.entry(scenario.target, pr.number).await?;
        steps.extend(entry["timeline"].as_array().cloned().unwrap_or_default());
    }
    let at = |step: &Value| Timestamp::parse(text(&step["timestamp"]));
    let Some(first) = steps.iter().filter_map(at).min() else { return Ok(Vec::new()) };
    let request = json!({ "since": first.to_string(), "take": 100 });
    let page = stage.client.call(scenario.target, "listMergeQueueTestingResults", request).await?;
    let results = page["testingResults"].as_array().map(Vec::as_slice).unwrap_or_default();
    let ended: BTreeMap<&str, Timestamp> = results
        .iter()
        .filter_map(|it| Some((it["testRunId"].as_str()?, Timestamp::parse(text(&it["endedAt"]))?)))
        .collect();
    let mut spans = BTreeMap::new();
    for step in &steps {
        let Some(run) = step["testing"]["testRun"]["id"].as_str() else { continue };
        if let (Some(began), Some(end)) = (at(step), ended.get(run)) {
            spans.insert(run.to_owned(), (began, *end));
        }
    }
    Ok(spans.into_values().collect())
}

/// The sum of these times, and the time that at least one of them covers.
fn times(spans: &[(Timestamp, Timestamp)]) -> (Span, Span) {
    let mut sorted = spans.to_vec();
    sorted.sort_unstable();
    let (mut sum, mut covered, mut until) = (0, 0, None);
    for (began, ended) in sorted {
        sum += ended.since(began).micros();
        let from = until.map_or(began, |until: Timestamp| until.max(began));
        covered += ended.since(from).micros().max(0);
        until = Some(until.map_or(ended, |until| until.max(ended)));
    }
    (Span::from_micros(sum), Span::from_micros(covered))
}

/// The label of a reason of a state, or of any state if it is `None`; the text itself when the reason
/// is unknown.
fn label(state: Option<PrState>, text: &str) -> &str {
    let of = |state: PrState| Reason::parse(state, text).and_then(reason);
    let known = match state {
        Some(state) => of(state),
        None => PrState::ALL.iter().find_map(|state| of(*state)),
    };
    known.map_or(text, |word| word.label)
}

/// The label of a state; the text itself when it is unknown.
fn state(text: &str) -> &str {
    PrState::parse(text).map_or(text, |state| state.named().label)
}

/// The summary of the check that excused quarantined tests; empty when no check did.
async fn excused(
    stage: &Stage<'_>,
    scenario: &Scenario,
    entry: &Value,
) -> Result<String, DemoError> {
    let run = json!({ "testRunId": entry["verifiedByTestRun"] });
    let details = stage.client.call(scenario.target, "getMergeQueueTestingDetails", run).await?;
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
    let (exit, ended) = (&entry["exit"], PrState::parse(text(&entry["state"])));
    let culprit = exit["culpritPrNumber"].as_u64().map(|pr| format!(" with #{pr}"));
    let details: Vec<&str> =
        exit["details"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let details =
        if details.is_empty() { String::new() } else { format!(": {}", details.join("; ")) };
    format!(
        "  {number:4} {branch:9} {:37} {:9}  {:9}  {}{}{details}{}",
        end.what,
        state(end.state),
        state(text(&entry["state"])),
        exit["reason"].as_str().map_or_else(|| text(&entry["reason"]), |it| label(ended, it)),
        culprit.unwrap_or_default(),
        mark(met)
    )
}

async fn judge_tree(
    stage: &Stage<'_>,
    scenario: &Scenario,
    pr: &Pr,
    landed: &Landed,
) -> Result<bool, DemoError> {
    let tree = stage.git.read(&["rev-parse", &format!("{}^{{tree}}", landed.sha)]).await?;
    let ancestor = ["merge-base", "--is-ancestor", &landed.sha, scenario.target];
    let on_target = stage.git.read(&ancestor).await.is_ok();
    let right = on_target && is_right_tree(&pr.branch.end, &tree, landed);
    let words = match (right, pr.branch.end.joins) {
        (true, false) => "landed tree = tested tree",
        (true, true) => "landed tree = tested changes merged with what another lane has landed",
        (false, _) => "WRONG TREE",
    };
    say(&format!("  #{} {words}: {tree}", pr.number));
    Ok(right)
}

/// Prints whether each scenario ended as expected, and the numbers of all of them. Returns whether
/// all scenarios did.
pub(crate) async fn sum_up(
    stage: &Stage<'_>,
    ended: &[(&Scenario, bool, Totals)],
) -> Result<bool, DemoError> {
    let listed = ["for-each-ref", "--format=%(refname)", "refs/heads/signalbox-merge"];
    let stray = stage.git.read(&listed).await?;
    if !stray.is_empty() {
        say(&format!("\ntest branches that the next sweep removes: {stray}"));
    }
    say("\nScenarios:");
    let mut all = Totals::default();
    for (scenario, good, totals) in ended {
        let words = if *good { "as expected" } else { "NOT AS EXPECTED" };
        say(&format!("  {:8} ended {words:15} {}", scenario.target, scenario.shows));
        all.add(totals);
    }
    say("\nSummary:");
    for line in all.lines() {
        say(&line);
    }
    let good = ended.iter().all(|(_, good, _)| *good);
    say(if good {
        "\nAll scenarios ended as expected."
    } else {
        "\nSome scenarios did not end as expected; see the lines marked \"<-\" above."
    });
    Ok(good)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: u32) -> Timestamp {
        Timestamp::parse(&format!("2026-01-31T12:00:{second:02}Z")).expect("a time")
    }

    #[test]
    fn overlapping_runs_are_counted_once_in_the_time_that_they_cover() {
        let spans = [(at(5), at(9)), (at(0), at(4)), (at(1), at(6)), (at(2), at(3))];
        let (tested, busy) = times(&spans);
        assert_eq!((tested.millis(), busy.millis()), (14_000, 9_000));
        assert_eq!(times(&[]), (Span::default(), Span::default()));
    }

    #[test]
    fn the_summary_adds_the_scenarios() {
        let mut all = Totals::default();
        let tested = Span::from_micros(5_000_000);
        let busy = Span::from_micros(3_600_000);
        let one = Totals { merged: 3, failed: 1, runs: 5, bisections: 2, tested, busy, ..all };
        all.add(&one);
        all.add(&Totals { cancelled: 1, excused: 1, ..Totals::default() });
        let expected = [
            "  pull requests  3 merged, 1 failed, 1 cancelled",
            "  test runs      5, 2 of them to bisect batches",
            "  flaky tests    1 failure excused by quarantine",
            "  test time      5 s in 4 s: testing in parallel saved 1 s",
        ];
        assert_eq!(all.lines(), expected);
    }

    #[test]
    fn reasons_and_states_have_the_labels_of_the_vocabulary() {
        assert_eq!(label(None, "SUCCESSOR_TEST_RUN_PASSED"), "Passed with a later pull request");
        assert_ne!(
            label(Some(PrState::Cancelled), "USER_REQUESTED"),
            label(None, "USER_REQUESTED")
        );
        assert_eq!(state("MERGED"), "Merged");
        assert_eq!((label(None, "UNHEARD_OF"), state("UNHEARD_OF")), ("UNHEARD_OF", "UNHEARD_OF"));
    }
}
