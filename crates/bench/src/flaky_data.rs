//! Repositories with many tests: the product takes one upload in, and the database copies its rows
//! under the names and ids of as many tests as are wanted.

use std::fmt::Write as _;

use signalbox_domain::flaky::{
    BranchClass, ReportedFailure, ReportedRun, RunOutcome, TestId, TestKey, Trust, Upload,
    UploadId, UploadSource,
};
use signalbox_domain::ids::Sha;
use signalbox_domain::ports::{Clock, IdSource, ResultsSink};
use signalbox_domain::time::Span;

use crate::database::Fresh;
use crate::failure::{During, Failure};
use crate::parts::{RandomIds, SystemClock};
use crate::product::Product;

/// Tests that one statement writes.
const AT_ONCE: usize = 5_000;
/// Of so many tests one is flaky, and so is quarantined.
const FLAKY_EACH: usize = 100;
/// Of so many tests one has failed.
const FAILING_EACH: usize = 20;

/// What is copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mix {
    /// One in 100 is flaky, one in 20 has failed, and everything counted of a test is there.
    Usual,
    /// All are flaky, and nothing is counted.
    AllFlaky,
}

/// The templates, and what of a test is copied from which.
const TEMPLATES: [&str; 3] = ["template healthy", "template flaky", "template failing"];
/// The tables with rows of a test, and their columns but for the test's id.
const COUNTED: [(&str, &str); 4] = [
    ("test_hours", "repo_id, hour, org_id, passed, failed, first_failure_at, last_failure_at"),
    (
        "test_buckets",
        "repo_id, start, branch, org_id, class, passed, failed, last_run_at, last_failure_at",
    ),
    (
        "test_codes",
        "repo_id, code, branch, org_id, class, first_success_at, first_failure_at, last_at",
    ),
    ("test_failures", "repo_id, day, fingerprint, org_id, summary, occurrences, last_at"),
];

/// A test of the repository.
pub(crate) fn key(product: &Product, name: &str) -> TestKey {
    TestKey {
        org: product.org.slug.to_string(),
        repo: product.repository.name.to_string(),
        parent: "bench".into(),
        classname: "Calc".into(),
        file: "tests/calc.rs".into(),
        name: name.into(),
        ..TestKey::default()
    }
}

/// The name of a test by its number.
pub(crate) fn name(number: usize) -> String {
    format!("test number {number:07}")
}

/// One attempt of a test.
pub(crate) fn run(product: &Product, name: &str, outcome: RunOutcome) -> ReportedRun {
    let message = "expected 1, got 2".to_owned();
    ReportedRun {
        key: key(product, name),
        other_files: Vec::new(),
        outcome,
        attempt: 0,
        started_at: None,
        took: Some(Span::seconds(1)),
        failure: (outcome == RunOutcome::Failed)
            .then(|| ReportedFailure { message, text: String::new() }),
        owners: Vec::new(),
        quarantined: false,
    }
}

/// An upload of a commit on the branch `main`.
pub(crate) fn upload(product: &Product, commit: u64) -> Result<Upload, Failure> {
    Ok(Upload {
        id: UploadId(RandomIds.new_id()),
        org: product.org.id,
        repo: product.repository.id,
        source: UploadSource::JUnit,
        trust: Trust::Token,
        received_at: SystemClock.now(),
        sha: Some(Sha::new(format!("{commit:040x}")).during("a commit")?),
        committed_at: None,
        branch: "main".into(),
        class: BranchClass::Stable,
        pr: None,
        job_url: None,
        job_name: Some("bench".into()),
        author: None,
        variant: String::new(),
    })
}

/// Writes that many tests, and about that many results of them. Quarantine of flaky tests is on.
pub(crate) async fn seed(
    fresh: &Fresh,
    product: &Product,
    tests: usize,
    results: usize,
    mix: Mix,
) -> Result<(), Failure> {
    let (caller, repo) = (&product.caller, &product.repository.name);
    let service = &product.api.flaky.service;
    product.stores.flaky.prepare_days(SystemClock.now()).await.during("partitions")?;
    let on = signalbox_domain::flaky::SettingsPatch {
        quarantine_enabled: Some(true),
        auto_quarantine: Some(signalbox_domain::flaky::AutoQuarantine::Flaky),
        ..Default::default()
    };
    service.update_settings(caller, repo, |_| on.clone()).await.during("settings")?;
    let [healthy, flaky, failing] = TEMPLATES;
    let runs = vec![
        run(product, healthy, RunOutcome::Passed),
        run(product, flaky, RunOutcome::Failed),
        ReportedRun { attempt: 1, ..run(product, flaky, RunOutcome::Passed) },
        run(product, failing, RunOutcome::Failed),
    ];
    service.take_in(&upload(product, 1)?, runs).await.during("an upload")?;
    for start in (0..tests).step_by(AT_ONCE) {
        let mut rows = [String::new(), String::new(), String::new()];
        for number in start..(start + AT_ONCE).min(tests) {
            let kind = match mix {
                Mix::AllFlaky => 1,
                Mix::Usual if number % FLAKY_EACH == 0 => 1,
                Mix::Usual if number % FAILING_EACH == 1 => 2,
                Mix::Usual => 0,
            };
            let name = name(number);
            let id = key(product, &name).id();
            let Some(rows) = rows.get_mut(kind) else { continue };
            let separator = if rows.is_empty() { "" } else { ", " };
            // Writing to a string does not fail.
            let _ = write!(rows, "{separator}('{id}', '{name}')");
        }
        let mut sql = String::from("BEGIN;");
        for (template, rows) in TEMPLATES.iter().zip(rows).filter(|(_, rows)| !rows.is_empty()) {
            copy(&mut sql, key(product, template).id(), template, &rows, mix);
        }
        sql.push_str("COMMIT;");
        fresh.floor.run_sql(&sql).await?;
    }
    if mix == Mix::Usual {
        copy_results(fresh, key(product, healthy).id(), results / tests.max(1)).await?;
    }
    fresh.floor.run_sql("ANALYZE").await
}

/// Adds statements that copy a template's rows under other ids and names.
fn copy(sql: &mut String, template: TestId, name: &str, rows: &str, mix: Mix) {
    let values = format!("(VALUES {rows}) AS v");
    let _ = write!(
        sql,
        "INSERT INTO test_cases (repo_id, id, org_id, status, quarantine, quarantine_until, noted, \
         watched, owners, ticket, first_seen_at, last_seen_at, last_failure_at, due_at, format, \
         document) SELECT t.repo_id, v.column1, t.org_id, t.status, t.quarantine, \
         t.quarantine_until, t.noted, t.watched, t.owners, t.ticket, t.first_seen_at, \
         t.last_seen_at, t.last_failure_at, t.due_at, t.format, \
         replace(replace(t.document, '{template}', v.column1), '{name}', v.column2) \
         FROM test_cases t, {values} WHERE t.id = '{template}';"
    );
    if mix == Mix::AllFlaky {
        return;
    }
    for (table, columns) in COUNTED {
        let _ = write!(
            sql,
            "INSERT INTO {table} (test_id, {columns}) SELECT v.column1, {columns} \
             FROM {table} t, {values} WHERE t.test_id = '{template}';"
        );
    }
}

/// Writes results of every test, a second apart.
async fn copy_results(fresh: &Fresh, template: TestId, each: usize) -> Result<(), Failure> {
    for number in 0..each {
        let sql = format!(
            "INSERT INTO test_runs (repo_id, test_id, org_id, day, at, attempt, failed, format, \
             document) SELECT c.repo_id, c.id, c.org_id, r.day, r.at - 1000000 * {number}, \
             r.attempt, r.failed, r.format, replace(r.document, '{template}', c.id) \
             FROM test_cases c, (SELECT * FROM test_runs WHERE test_id = '{template}' LIMIT 1) r \
             WHERE c.id <> '{template}'"
        );
        fresh.floor.run_sql(&sql).await?;
    }
    Ok(())
}
