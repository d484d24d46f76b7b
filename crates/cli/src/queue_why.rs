//! `signalbox queue why`: why a pull request failed.

use std::fmt::Write as _;

use signalbox_client::{FailedCheck, FailedTest, Failure};
use signalbox_domain::queue::PrState;
use signalbox_terminal::one_line;
use signalbox_wording::Named;

use crate::CliError;
use crate::queue::QueueArgs;
use crate::server::show;

/// The most failed tests that are printed.
const MAX_TESTS: usize = 20;

pub(crate) async fn why(place: &QueueArgs, number: u32) -> Result<(), CliError> {
    let failure = place.server.client()?.explain_failure(&place.queue(), number).await?;
    show(&failure, place.format, described);
    Ok(())
}

fn described(failure: &Failure) -> String {
    let state = PrState::parse(&failure.state.to_uppercase());
    let state = state.map_or_else(|| failure.state.clone(), |it| it.named().label.to_owned());
    let mut text = format!("#{} {state} ({})", failure.pr_number, one_line(&failure.reason));
    // Writing to a string never fails.
    if let Some(sha) = &failure.test_branch_sha {
        let _ = write!(text, "\ntested commit {sha}");
        let others = failure.tested_together.iter().filter(|it| **it != failure.pr_number);
        let others: Vec<String> = others.map(|number| format!("#{number}")).collect();
        if !others.is_empty() {
            let _ = write!(text, ", together with {}", others.join(", "));
        }
    }
    for check in &failure.failed_checks {
        add_check(&mut text, check);
    }
    let tests = failure.failed_tests.as_deref().unwrap_or_default();
    let is_known = |test: &&FailedTest| test.known_flaky || test.excused;
    let (known, others): (Vec<&FailedTest>, Vec<&FailedTest>) = tests.iter().partition(is_known);
    add_tests(&mut text, "failed tests", &others);
    add_tests(&mut text, "failed tests that are known to be flaky", &known);
    let more = failure.failed_tests_count.unwrap_or_default();
    if let Some(more) = more.checked_sub(tests.len().try_into().unwrap_or(u64::MAX))
        && more > 0
    {
        let _ = write!(text, "\n  and {more} more on its page");
    }
    if let Some(step) = &failure.next_step {
        let _ = write!(text, "\n{}", step.text);
    }
    text
}

fn add_check(text: &mut String, check: &FailedCheck) {
    let conclusion = check.conclusion.as_deref().unwrap_or("did not end in time");
    let _ = write!(text, "\ncheck {}: {conclusion}", one_line(&check.name));
    if let Some(summary) = &check.summary {
        let _ = write!(text, ", {}", one_line(summary));
    }
    if let Some(url) = &check.url {
        let _ = write!(text, "\n  {url}");
    }
    for line in check.output.as_deref().unwrap_or_default().lines() {
        let _ = write!(text, "\n  | {line}");
    }
}

fn add_tests(text: &mut String, heading: &str, tests: &[&FailedTest]) {
    if tests.is_empty() {
        return;
    }
    let _ = write!(text, "\n{heading}:");
    for test in tests.iter().take(MAX_TESTS) {
        let message = test.message.as_deref().and_then(|it| it.lines().next()).unwrap_or_default();
        let _ = write!(text, "\n  {}  {message}", one_line(&test.name));
    }
    if let Some(more) = tests.len().checked_sub(MAX_TESTS)
        && more > 0
    {
        let _ = write!(text, "\n  and {more} more");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_shown_with_what_to_do() {
        let failure = serde_json::from_value(serde_json::json!({
            "prNumber": 12, "state": "failed", "reason": "failed: TEST_RUN_REQUIRED_STATUS_FAILED",
            "testBranchSha": "1f0c1b9d", "testedTogether": [12, 13],
            "failedChecks": [
                {"name": "test", "conclusion": "FAILURE", "url": "https://ci.example/1",
                    "summary": "exit status: 1", "output": "expected 5\ngot 4"},
                {"name": "lint"}
            ],
            "failedTests": [
                {"name": "adds", "known_flaky": false, "excused": false, "html_url": "",
                    "message": "expected 5\ngot 4"},
                {"name": "waits", "known_flaky": true, "excused": false, "html_url": ""}
            ],
            "failedTestsCount": 3,
            "nextStep": {"kind": "fix_tests", "text": "Fix the tests."}
        }));
        let expected = "#12 Failed (failed: TEST_RUN_REQUIRED_STATUS_FAILED)\n\
            tested commit 1f0c1b9d, together with #13\n\
            check test: FAILURE, exit status: 1\n  https://ci.example/1\n  | expected 5\n  | got 4\n\
            check lint: did not end in time\n\
            failed tests:\n  adds  expected 5\n\
            failed tests that are known to be flaky:\n  waits  \n  \
            and 1 more on its page\nFix the tests.";
        assert_eq!(described(&failure.expect("a failure")), expected);
    }
}
