//! A test run as clients see it.

use std::collections::BTreeSet;

use serde::Serialize;
use signalbox_domain::queue::{Check, Member, Targets};
use signalbox_services::RunSnapshot;
use utoipa::ToSchema;

use super::Words;
use super::words::{RunStatusWord, StatusSourceWord};

/// A check.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CheckRun {
    name: String,
    url: String,
    /// `QUEUED`, `IN_PROGRESS` or `COMPLETED`, always in upper case.
    status: String,
    /// `SUCCESS`, `FAILURE`, `TIMED_OUT` …, always in upper case; only once completed.
    #[serde(skip_serializing_if = "Option::is_none")]
    conclusion: Option<String>,
    /// A one-line summary.
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<String>,
}

impl CheckRun {
    fn of(check: &Check) -> Self {
        Self {
            name: check.name.clone(),
            url: check.url.clone(),
            status: check.status.as_str().to_owned(),
            conclusion: check.conclusion.map(|it| it.as_str().to_owned()),
            summary: check.summary.clone(),
        }
    }
}

/// Checks of one source.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CheckSuite {
    check_runs: Vec<CheckRun>,
}

/// A commit status.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct StatusCheck {
    context: String,
    url: String,
    /// ERROR, FAILURE, PENDING or SUCCESS, always in upper case.
    state: String,
}

/// A tested pull request.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TestedPullRequest {
    pr_number: u32,
    pr_url: String,
    title: String,
}

impl TestedPullRequest {
    pub(super) fn of(member: &Member) -> Self {
        Self { pr_number: member.pr.0, pr_url: member.url.clone(), title: member.title.clone() }
    }
}

/// A test run.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TestRunReply {
    test_run_id: String,
    required_statuses: Vec<String>,
    /// Where the required statuses come from; omitted before it is known.
    #[schema(value_type = Option<StatusSourceWord>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    required_statuses_source: Option<String>,
    test_branch: String,
    /// Empty while the candidate is being built.
    test_branch_sha: String,
    created_at: String,
    #[schema(value_type = RunStatusWord)]
    status: String,
    check_suites: Vec<CheckSuite>,
    status_checks: Vec<StatusCheck>,
    tested_pull_requests: Vec<TestedPullRequest>,
    /// The impacted targets of the tested pull requests, if they are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    impacted_targets: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    impacted_targets_for_tested_prs: Option<Vec<String>>,
    /// The pull requests ahead that the candidate contains.
    dependent_prs: Vec<u32>,
}

impl TestRunReply {
    pub(crate) fn of(snapshot: &RunSnapshot, words: Words) -> Self {
        let run = &snapshot.run;
        let mut targets = BTreeSet::new();
        for reported in snapshot.targets.iter().flatten() {
            match &reported.targets {
                Targets::All => drop(targets.insert("ALL".to_owned())),
                Targets::Only(names) => targets.extend(names.iter().map(ToOwned::to_owned)),
            }
        }
        let reported = snapshot.targets.iter().any(Option::is_some);
        let targets = reported.then(|| targets.into_iter().collect::<Vec<_>>());
        let required = run.required.as_ref();
        let checks = run.checks.iter().map(CheckRun::of).collect::<Vec<_>>();
        Self {
            test_run_id: run.id.to_string(),
            required_statuses: required.map(|it| it.names.clone()).unwrap_or_default(),
            required_statuses_source: required.map(|it| words.word(it.source.as_str())),
            test_branch: run.branch.to_string(),
            test_branch_sha: run
                .candidate
                .as_ref()
                .map(|candidate| candidate.sha.to_string())
                .unwrap_or_default(),
            created_at: run.started_at.to_string(),
            status: words.word(run.status.as_str()),
            check_suites: vec![CheckSuite { check_runs: checks }],
            status_checks: Vec::new(),
            tested_pull_requests: run.group.iter().map(TestedPullRequest::of).collect(),
            impacted_targets: targets.clone(),
            impacted_targets_for_tested_prs: targets,
            dependent_prs: snapshot.dependent_prs.iter().map(|pr| pr.0).collect(),
        }
    }
}

/// The test runs in progress.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TestRunsReply {
    pub(crate) test_runs: Vec<TestRunReply>,
}
