//! What an import did.

use std::collections::{BTreeMap, HashSet};
use std::fmt::Write as _;

use serde_json::{Value, json};
use signalbox_domain::time::Timestamp;

use super::files::PastResults;

/// The rule of uploads that the server could not process.
const FAILED: &str = "failed";
/// The most reasons that are printed for each rule.
const EXAMPLES: usize = 3;

/// Runs that are not imported because of a rule.
#[derive(Debug, Default)]
struct Refused {
    count: u64,
    examples: Vec<String>,
}

/// What an import did.
#[derive(Debug, Default)]
pub(super) struct Summary {
    pub(super) files: u64,
    runs: u64,
    results: u64,
    tests: usize,
    span: Option<(Timestamp, Timestamp)>,
    pub(super) imported: u64,
    pub(super) known: u64,
    /// Flaky and broken tests of the repository afterwards.
    pub(super) judged: Option<(u64, u64)>,
    refused: BTreeMap<String, Refused>,
}

impl Summary {
    /// Counts the runs that can be imported, which are in the order of their times.
    pub(super) fn take_runs(&mut self, runs: &[PastResults]) {
        self.runs = u64::try_from(runs.len()).unwrap_or(u64::MAX);
        self.results = runs.iter().map(|run| run.results).sum();
        let tests: HashSet<u64> = runs.iter().flat_map(|run| run.tests.iter().copied()).collect();
        self.tests = tests.len();
        self.span = runs.first().zip(runs.last()).map(|(first, last)| (first.at, last.at));
    }

    /// Counts a run that is not imported.
    pub(super) fn refuse(&mut self, rule: &str, reason: impl FnOnce() -> String) {
        let refused = self.refused.entry(rule.to_owned()).or_default();
        refused.count += 1;
        if refused.examples.len() < EXAMPLES {
            refused.examples.push(reason());
        }
    }

    /// Counts a run that the server could not process.
    pub(super) fn fail(&mut self, reason: impl FnOnce() -> String) {
        self.refuse(FAILED, reason);
    }

    /// Runs that the server could not process.
    pub(super) fn failed(&self) -> u64 {
        self.refused.get(FAILED).map_or(0, |refused| refused.count)
    }

    /// The summary as text.
    pub(super) fn text(&self) -> String {
        let Self { files, runs, results, tests, .. } = self;
        let mut text = format!("{files} files, {runs} runs, {results} results of {tests} tests");
        // Writing to a string never fails.
        if let Some((from, until)) = self.span {
            let _ = write!(text, "\nfrom {from} to {until}");
        }
        if self.imported + self.known > 0 {
            let _ = write!(text, "\n{} imported, {} known before", self.imported, self.known);
        }
        for (rule, refused) in &self.refused {
            let _ = write!(text, "\n{} not imported: {rule}", refused.count);
            for example in &refused.examples {
                let _ = write!(text, "\n  {example}");
            }
        }
        if let Some((flaky, broken)) = self.judged {
            let _ = write!(text, "\njudged: {flaky} flaky, {broken} broken");
        }
        text
    }

    /// The summary as JSON.
    pub(super) fn json(&self) -> Value {
        let refused = self.refused.iter().map(|(rule, refused)| {
            let reasons = &refused.examples;
            (rule.clone(), json!({"count": refused.count, "examples": reasons}))
        });
        let refused: serde_json::Map<String, Value> = refused.collect();
        json!({
            "files": self.files, "runs": self.runs, "results": self.results, "tests": self.tests,
            "from": self.span.map(|(from, _)| from.to_string()),
            "until": self.span.map(|(_, until)| until.to_string()),
            "imported": self.imported, "known": self.known, "refused": refused,
            "flaky": self.judged.map(|(flaky, _)| flaky),
            "broken": self.judged.map(|(_, broken)| broken),
        })
    }
}
