//! Why pull requests failed.

use serde::Deserialize;

/// Why a pull request failed, or what has failed so far.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Failure {
    /// Its number.
    pub pr_number: u64,
    /// Its state.
    pub state: String,
    /// Why it has its state.
    pub reason: String,
    /// The commit that its last test run tested.
    pub test_branch_sha: Option<String>,
    /// The pull requests that were tested together, this one included.
    #[serde(default)]
    pub tested_together: Vec<u64>,
    /// The checks that failed or did not end in time.
    pub failed_checks: Vec<FailedCheck>,
    /// Tests that failed, first the tests that are not known to be flaky; `None`: the token may not read
    /// tests.
    pub failed_tests: Option<Vec<FailedTest>>,
    /// How many tests failed.
    pub failed_tests_count: Option<u64>,
    /// What to do next, if it left because of a failure.
    pub next_step: Option<NextStep>,
}

/// A check that failed, or that did not end in time.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FailedCheck {
    /// Its name.
    pub name: String,
    /// Its conclusion; `None` if it did not end in time.
    pub conclusion: Option<String>,
    /// The URL of its details.
    pub url: Option<String>,
    /// One line of detail.
    pub summary: Option<String>,
    /// The last lines of its output.
    pub output: Option<String>,
}

/// A test that failed.
#[derive(Clone, Debug, Deserialize)]
pub struct FailedTest {
    /// Its name.
    pub name: String,
    /// Whether it is known to be flaky.
    pub known_flaky: bool,
    /// Whether its failure counted as passed.
    pub excused: bool,
    /// The message of its last failure.
    pub message: Option<String>,
    /// Its page.
    pub html_url: String,
}

/// What to do next.
#[derive(Clone, Debug, Deserialize)]
pub struct NextStep {
    /// Its kind, such as `fix_tests`.
    pub kind: String,
    /// The same in a sentence.
    pub text: String,
}
