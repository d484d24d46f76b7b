//! Reads about failures: the failed checks of a pull request's last test run with the end of their
//! output, the tests that failed in it, and what to do next.

use anstream::adapter::strip_str;
use signalbox_domain::flaky::TestStatus;
use signalbox_domain::ids::{RepoName, RunId};
use signalbox_domain::ports::CheckOutput;
use signalbox_domain::queue::{
    Check, CheckConclusion, EntryState, Exit, FailedTests, NextStep, RunStatus, TestFailure,
    TestRun,
};
use signalbox_domain::token::{Caller, Scope};

use super::{EntryDetails, Error, FlakyService, QueueService, RunFailure};

/// The most lines of a check's output that an explanation has.
const MAX_LINES: usize = 40;
/// The most bytes of them.
const MAX_BYTES: usize = 4 * 1024;
/// The most checks whose output an explanation has.
const MAX_OUTPUTS: usize = 20;

/// The end of a check's output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputTail {
    /// The last lines, at most 40 and at most 4 KiB, without colors and other terminal sequences.
    pub text: String,
    /// Whether there is more before them.
    pub is_cut: bool,
}

impl OutputTail {
    fn of(output: &str) -> Self {
        let output = without_sequences(output);
        let all = output.trim_end();
        let mut start = all.len().saturating_sub(MAX_BYTES);
        while !all.is_char_boundary(start) {
            start += 1;
        }
        let (before, end) = all.split_at(start);
        // Only a whole line begins it, unless one line is longer than all of it may be.
        let end = match end.split_once('\n') {
            Some((_, rest)) if start > 0 && !before.ends_with('\n') => rest,
            _ => end,
        };
        let from = end.rmatch_indices('\n').nth(MAX_LINES - 1).map_or(0, |(at, _)| at + 1);
        let text = end.get(from..).unwrap_or_default();
        Self { text: text.to_owned(), is_cut: text.len() < all.len() }
    }
}

/// The output of a check without colors and other terminal sequences. None extends over a line, so that
/// one without an end hides nothing.
pub fn without_sequences(output: &str) -> String {
    let lines: Vec<String> = output.split('\n').map(|line| strip_str(line).to_string()).collect();
    lines.join("\n")
}

/// A check that failed in a test run, or that did not end in time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedCheck {
    /// Its name.
    pub name: String,
    /// Whether the run needs it to pass.
    pub required: bool,
    /// Its conclusion; `None` if it did not end in time.
    pub conclusion: Option<CheckConclusion>,
    /// The URL of its details, if it ever reported.
    pub url: Option<String>,
    /// One line of detail.
    pub summary: Option<String>,
    /// The end of its output, if the server has it: of checks that it runs, and of jobs whose log the
    /// host shows.
    pub output: Option<OutputTail>,
}

/// Why a pull request failed, or what has failed so far.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Explanation {
    /// The failed checks of its last test run, in the order in which they are required, then the
    /// others.
    pub checks: Vec<FailedCheck>,
    /// The tests that failed in that run, the ones that are not known to be flaky first. `None`: the
    /// caller may not read tests.
    pub tests: Option<Vec<RunFailure>>,
    /// What to do next, if the pull request has left the queue because of a failure.
    pub next_step: Option<NextStep>,
}

impl Explanation {
    /// How many tests made checks of the run fail. Failures that counted as passed did not; and with
    /// several failed checks, known flaky tests need not be the cause of all.
    pub fn failed_tests(&self) -> FailedTests {
        let tests = self.tests.as_deref().unwrap_or_default().iter();
        let tests = tests.filter(|test| !test.last.quarantined);
        let (known, others): (Vec<_>, Vec<_>) = tests.partition(|test| test.is_known());
        let count = |tests: &[&RunFailure]| u32::try_from(tests.len()).unwrap_or(u32::MAX);
        let known = if self.checks.len() > 1 { 0 } else { count(&known) };
        FailedTests { known, others: count(&others) }
    }
}

impl RunFailure {
    /// Whether the change may not be the cause: the test is known to be flaky, or its failure counted
    /// as passed.
    pub fn is_known(&self) -> bool {
        self.test.record.test.standing.value == TestStatus::Flaky || self.last.quarantined
    }
}

/// Reads about failures, from queues and from tests.
#[derive(Clone, Copy)]
pub struct FailureReads<'a> {
    /// The queues.
    pub queues: &'a QueueService,
    /// The tests.
    pub tests: &'a FlakyService,
}

impl FailureReads<'_> {
    /// What failed in the last test run of a pull request. The details must have a timeline.
    pub async fn explain(
        &self,
        caller: &Caller,
        repo: &RepoName,
        details: &EntryDetails,
    ) -> Result<Explanation, Error> {
        let mut explanation = Explanation::default();
        let may_read_tests = caller.may(Scope::TestsRead);
        if let Some(run) = details.last_run() {
            explanation.checks = self.failed_checks(caller, run).await?;
            if may_read_tests {
                let mut tests = self.tests.failures_of(caller, repo, run).await?;
                tests.sort_by_key(|test| (test.is_known(), test.last.quarantined));
                explanation.tests = Some(tests);
            }
        } else if may_read_tests {
            explanation.tests = Some(Vec::new());
        }
        if let EntryState::Ended(Exit::Failed { reason, culprit, .. }) =
            &details.snapshot.entry.state
        {
            let tests = explanation.failed_tests();
            explanation.next_step = Some(NextStep::after(*reason, culprit, tests));
        }
        Ok(explanation)
    }

    /// The output of a check of a run of the caller's organization.
    pub async fn output(
        &self,
        caller: &Caller,
        run: RunId,
        check: &str,
    ) -> Result<Option<CheckOutput>, Error> {
        if !caller.may(Scope::QueueRead) {
            return Err(Error::MissingScope(Scope::QueueRead));
        }
        Ok(self.queues.context().stores.check_log.read(caller.org, run, check).await?)
    }

    async fn failed_checks(
        &self,
        caller: &Caller,
        run: &TestRun,
    ) -> Result<Vec<FailedCheck>, Error> {
        let mut failed = failed_checks(run);
        for check in failed.iter_mut().take(MAX_OUTPUTS) {
            let output = self.output(caller, run.id, &check.name).await?;
            check.output = output.map(|output| OutputTail::of(&output.text));
        }
        Ok(failed)
    }
}

/// The failed checks of a run, without their output.
fn failed_checks(run: &TestRun) -> Vec<FailedCheck> {
    let required = run.required.as_ref().map(|it| it.names.as_slice()).unwrap_or_default();
    let timed_out = matches!(run.status, RunStatus::Failed { failure: TestFailure::Timeout, .. });
    let of = |name: &String, is_required, check: Option<&Check>| FailedCheck {
        name: name.clone(),
        required: is_required,
        conclusion: check.and_then(|check| check.conclusion),
        url: check.map(|check| check.url.clone()).filter(|url| !url.is_empty()),
        summary: check.and_then(|check| check.summary.clone()),
        output: None,
    };
    let has_failed = |check: &Check| check.conclusion.is_some_and(|it| !it.is_success());
    let mut failed = Vec::new();
    for name in required {
        let check = run.checks.iter().find(|check| check.name == *name);
        let is_silent = timed_out && check.is_none_or(|check| check.conclusion.is_none());
        if is_silent || check.is_some_and(has_failed) {
            failed.push(of(name, true, check));
        }
    }
    let others = run.checks.iter().filter(|check| !required.contains(&check.name));
    failed.extend(others.filter(|it| has_failed(it)).map(|it| of(&it.name, false, Some(it))));
    failed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_an_output_begins_with_a_whole_line() {
        let tail = |text: &str| {
            let OutputTail { text, is_cut } = OutputTail::of(text);
            (text, is_cut)
        };
        assert_eq!(tail(""), (String::new(), false));
        assert_eq!(tail("\u{1b}[31mred\u{1b}[0m\n"), ("red".to_owned(), false));
        assert_eq!(tail("one\ntwo\n\n"), ("one\ntwo".to_owned(), false));
        let lines: Vec<String> = (1..=41).map(|it| format!("line {it}")).collect();
        assert_eq!(tail(&lines[1..].join("\n")), (lines[1..].join("\n"), false));
        assert_eq!(tail(&lines.join("\n")), (lines[1..].join("\n"), true));
        let long = format!("{}\nlast", "ä".repeat(MAX_BYTES));
        assert_eq!(tail(&long), ("last".to_owned(), true));
        let exact = format!("first\n{}", "x\n".repeat(MAX_BYTES / 2));
        assert!(tail(&exact).1);
        let hidden = "\u{1b}]0;a title that does not end\nthe failure";
        assert_eq!(tail(hidden), ("\nthe failure".to_owned(), false));
        let (text, is_cut) = tail(&"ä".repeat(MAX_BYTES));
        assert_eq!((text.len(), is_cut), (MAX_BYTES, true));
    }
}
