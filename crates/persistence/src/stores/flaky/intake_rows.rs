//! Rows of an upload's results.

use std::collections::{BTreeMap, BTreeSet};

use signalbox_domain::flaky::{
    Addition, CodeSummary, ReportedTest, RunOutcome, RunRecord, SameCode, TestCase, TestId, Upload,
    Windows,
};
use signalbox_domain::ids::{OrgId, RepoId};
use signalbox_domain::ports::RepoRef;
use signalbox_domain::time::{Span, Timestamp};

use super::super::bulk::{Target, bulk_rows};
use crate::documents::{Json, Owners, TestDocument, encode};
use crate::error::DbError;
use crate::packed_runs::{PackedRun, period};

bulk_rows! {
    /// A test that is seen for the first time.
    TESTS = TestRow in "test_cases" {
        repo_id: RepoId, id: TestId, org_id: OrgId, status: &'static str, quarantine: &'static str,
        noted: bool, watched: bool, owners: Option<Json>, first_seen_at: Timestamp,
        stable_since: Option<Timestamp>, last_seen_at: Timestamp,
        last_failure_at: Option<Timestamp>, windows: Option<Json>, document: Json, retired: bool,
    } "";
    /// A test that is seen again.
    SEEN = SeenRow in "test_cases" {
        repo_id: RepoId, id: TestId, owners: Option<Json>, stable_since: Option<Timestamp>,
        last_seen_at: Timestamp,
        last_failure_at: Option<Timestamp>, windows: Option<Json>,
    } "";
    /// The windows of a test that is not seen.
    WINDOWS = WindowsRow in "test_cases" {
        repo_id: RepoId, id: TestId, windows: Json,
    } "";
    /// An id that clients send.
    ALIASES = AliasRow in "test_aliases" {
        repo_id: RepoId, alias: String, test_id: TestId, org_id: OrgId,
    } "ON CONFLICT DO NOTHING";
    /// The runs of a test that did not fail.
    PACKED = PackedRow in "packed_runs" {
        repo_id: RepoId, test_id: TestId, start: Timestamp, org_id: OrgId, runs: String,
    } "ON CONFLICT (repo_id, test_id, start) DO UPDATE SET \
        runs = packed_runs.runs || excluded.runs";
    /// A run that failed.
    RUNS = RunRow in "test_runs" {
        repo_id: RepoId, test_id: TestId, org_id: OrgId, day: Timestamp, at: Timestamp,
        attempt: i64, document: Json,
    } "";
    /// Failures of an hour.
    HOURS = HourRow in "test_hours" {
        repo_id: RepoId, test_id: TestId, hour: Timestamp, org_id: OrgId, failed: i64,
        first_failure_at: Option<Timestamp>, last_failure_at: Option<Timestamp>,
    } "ON CONFLICT (repo_id, test_id, hour) DO UPDATE SET \
        failed = test_hours.failed + excluded.failed, \
        first_failure_at = CASE WHEN excluded.first_failure_at IS NULL \
            THEN test_hours.first_failure_at WHEN test_hours.first_failure_at \
            <= excluded.first_failure_at THEN test_hours.first_failure_at \
            ELSE excluded.first_failure_at END, \
        last_failure_at = CASE WHEN excluded.last_failure_at IS NULL \
            THEN test_hours.last_failure_at WHEN test_hours.last_failure_at \
            >= excluded.last_failure_at THEN test_hours.last_failure_at \
            ELSE excluded.last_failure_at END";
    /// Failures of five minutes on a branch.
    BUCKETS = BucketRow in "test_buckets" {
        repo_id: RepoId, test_id: TestId, start: Timestamp, branch: String, org_id: OrgId,
        class: &'static str, failed: i64, last_run_at: Timestamp,
        last_failure_at: Option<Timestamp>,
    } "ON CONFLICT (repo_id, test_id, start, branch) DO UPDATE SET \
        failed = test_buckets.failed + excluded.failed, \
        last_run_at = CASE WHEN test_buckets.last_run_at >= excluded.last_run_at \
            THEN test_buckets.last_run_at ELSE excluded.last_run_at END, \
        last_failure_at = CASE WHEN excluded.last_failure_at IS NULL \
            THEN test_buckets.last_failure_at WHEN test_buckets.last_failure_at \
            >= excluded.last_failure_at THEN test_buckets.last_failure_at \
            ELSE excluded.last_failure_at END";
    /// Runs of one code on a branch and of one origin, where one failed or was retried.
    CODES = CodeRow in "test_codes" {
        repo_id: RepoId, test_id: TestId, code: String, branch: String, origin: String,
        org_id: OrgId, class: &'static str, first_success_at: Option<Timestamp>,
        first_failure_at: Option<Timestamp>, last_at: Timestamp,
    } "ON CONFLICT (repo_id, test_id, code, branch, origin) DO UPDATE SET \
        first_success_at = CASE WHEN excluded.first_success_at IS NULL \
            THEN test_codes.first_success_at WHEN test_codes.first_success_at \
            <= excluded.first_success_at THEN test_codes.first_success_at \
            ELSE excluded.first_success_at END, \
        first_failure_at = CASE WHEN excluded.first_failure_at IS NULL \
            THEN test_codes.first_failure_at WHEN test_codes.first_failure_at \
            <= excluded.first_failure_at THEN test_codes.first_failure_at \
            ELSE excluded.first_failure_at END, \
        last_at = CASE WHEN test_codes.last_at >= excluded.last_at \
            THEN test_codes.last_at ELSE excluded.last_at END";
    /// Equal failures of a day.
    FAILURES = FailureRow in "test_failures" {
        repo_id: RepoId, test_id: TestId, day: Timestamp, fingerprint: String, org_id: OrgId,
        summary: String, occurrences: i64, last_at: Timestamp,
    } "ON CONFLICT (repo_id, test_id, day, fingerprint) DO UPDATE SET \
        occurrences = test_failures.occurrences + excluded.occurrences, \
        last_at = CASE WHEN test_failures.last_at >= excluded.last_at \
            THEN test_failures.last_at ELSE excluded.last_at END";
    /// A pull request in which a test failed.
    PULL_REQUESTS = PullRequestRow in "test_pull_requests" {
        repo_id: RepoId, test_id: TestId, pr_number: i64, org_id: OrgId, last_failure_at: Timestamp,
    } "ON CONFLICT (repo_id, test_id, pr_number) DO UPDATE SET \
        last_failure_at = CASE WHEN test_pull_requests.last_failure_at \
            >= excluded.last_failure_at THEN test_pull_requests.last_failure_at \
            ELSE excluded.last_failure_at END";
}

pub(super) const WINDOWS_SET: &str = "windows = new.windows";

pub(super) const SEEN_SET: &str = "windows = COALESCE(new.windows, test_cases.windows), owners = COALESCE(new.owners, test_cases.owners), \
    stable_since = CASE WHEN new.stable_since IS NULL THEN test_cases.stable_since \
        WHEN test_cases.stable_since <= new.stable_since THEN test_cases.stable_since \
        ELSE new.stable_since END, \
    last_seen_at = CASE WHEN test_cases.last_seen_at >= new.last_seen_at \
        THEN test_cases.last_seen_at ELSE new.last_seen_at END, \
    last_failure_at = CASE WHEN new.last_failure_at IS NULL THEN test_cases.last_failure_at \
        WHEN test_cases.last_failure_at >= new.last_failure_at \
        THEN test_cases.last_failure_at ELSE new.last_failure_at END";

/// Makes the rows of an upload, some at a time: rows need more memory than what they are made of.
pub(super) struct IntakeRows {
    repo: RepoRef,
    at: Timestamp,
    stable_at: Option<Timestamp>,
    seen_at: Timestamp,
    /// The upload's number and code.
    pub(super) number: i64,
    pub(super) code: SameCode,
    pub(super) received_at: Timestamp,
    pub(super) day: Timestamp,
}

/// Rows of what is counted of some tests.
#[derive(Default)]
pub(super) struct CountedRows {
    pub(super) hours: Vec<HourRow>,
    pub(super) buckets: Vec<BucketRow>,
    pub(super) codes: Vec<CodeRow>,
    pub(super) failures: Vec<FailureRow>,
    pub(super) pull_requests: Vec<PullRequestRow>,
}

/// A text without NUL bytes, which PostgreSQL does not keep.
pub(super) fn storable(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

fn owners(reported: &ReportedTest) -> Result<Option<Json>, DbError> {
    let owners = Some(reported.owners.clone()).filter(|owners| !owners.is_empty());
    owners.map(|owners| encode(&Owners { owners })).transpose()
}

pub(super) fn code_text(code: &SameCode) -> String {
    match code {
        SameCode::Commit(sha) => format!("commit:{sha}"),
        SameCode::Tree(tree) => format!("tree:{tree}"),
        SameCode::Upload(id) => format!("upload:{id}"),
    }
}

impl IntakeRows {
    pub(super) fn of(repo: RepoRef, upload: &Upload, number: i64, at: Timestamp) -> Self {
        let received_at = upload.received_at;
        let day = received_at.floor(Span::hours(24));
        let (stable_at, seen_at) = (upload.stable_at(), upload.seen_at());
        let code = upload.code();
        Self { repo, at, stable_at, seen_at, number, code, received_at, day }
    }

    /// The repository, a test and the organization, as columns.
    fn own(&self, test: TestId) -> (RepoId, TestId, OrgId) {
        (self.repo.id, test, self.repo.org)
    }

    /// Tests that are reported again.
    pub(super) fn seen_tests(
        &self,
        reported_tests: &[&ReportedTest],
        windows: &BTreeMap<TestId, Windows>,
    ) -> Result<Vec<SeenRow>, DbError> {
        let row = |reported: &&ReportedTest| {
            Ok(SeenRow {
                repo_id: self.repo.id,
                id: reported.id,
                owners: owners(reported)?,
                stable_since: self.stable_at,
                last_seen_at: self.seen_at,
                last_failure_at: reported.last_failure_at,
                windows: windows.get(&reported.id).map(encode).transpose()?,
            })
        };
        reported_tests.iter().map(row).collect()
    }

    /// Tests that were never reported before.
    pub(super) fn new_tests(
        &self,
        reported_tests: &[&ReportedTest],
        windows: &BTreeMap<TestId, Windows>,
    ) -> Result<Vec<TestRow>, DbError> {
        let row = |reported: &&ReportedTest| {
            let (repo, key) = (self.repo, reported.key.clone());
            let test = TestCase::new(repo.org, repo.id, key, self.at);
            let (repo_id, id, org_id) = self.own(reported.id);
            let row = TestRow {
                repo_id,
                id,
                org_id,
                status: test.standing.value.as_str(),
                quarantine: test.quarantining().setting.as_str(),
                noted: false,
                watched: false,
                owners: owners(reported)?,
                first_seen_at: self.received_at,
                stable_since: self.stable_at,
                last_seen_at: self.seen_at,
                last_failure_at: reported.last_failure_at,
                windows: windows.get(&id).map(encode).transpose()?,
                document: encode(&TestDocument::from(&test))?,
                retired: false,
            };
            Ok(row)
        };
        reported_tests.iter().map(row).collect()
    }

    pub(super) fn aliases(&self, reported_tests: &[&ReportedTest]) -> Vec<AliasRow> {
        let aliases =
            reported_tests.iter().flat_map(|it| it.aliases.iter().map(|alias| (it.id, alias)));
        let row = |(test, alias): (TestId, &String)| {
            let (repo_id, test_id, org_id) = self.own(test);
            AliasRow { repo_id, alias: storable(alias), test_id, org_id }
        };
        aliases.map(row).collect()
    }

    pub(super) fn packed(&self, runs: &[&RunRecord]) -> Vec<PackedRow> {
        let start = period(self.received_at);
        let mut rows: BTreeMap<TestId, PackedRow> = BTreeMap::new();
        for run in runs {
            let Some(packed) = PackedRun::of(self.number, run) else { continue };
            let row = rows.entry(run.test).or_insert_with(|| {
                let (repo_id, test_id, org_id) = self.own(run.test);
                PackedRow { repo_id, test_id, start, org_id, runs: String::new() }
            });
            packed.write(start, &mut row.runs);
        }
        rows.into_values().collect()
    }

    pub(super) fn failed(&self, runs: &[&RunRecord]) -> Result<Vec<RunRow>, DbError> {
        let failed = runs.iter().filter(|run| run.outcome == RunOutcome::Failed);
        let row = |run: &&RunRecord| {
            let (repo_id, test_id, org_id) = self.own(run.test);
            Ok(RunRow {
                repo_id,
                test_id,
                org_id,
                day: self.day,
                at: run.at,
                attempt: i64::from(run.attempt),
                document: encode(*run)?,
            })
        };
        failed.map(row).collect()
    }

    /// `known` are the tests with a row on the upload's code: their passes on it are added.
    pub(super) fn counted(
        &self,
        additions: &[(&TestId, &Addition)],
        known: &BTreeSet<TestId>,
    ) -> CountedRows {
        let mut rows = CountedRows::default();
        for (id, addition) in additions {
            self.count(**id, addition, known.contains(id), &mut rows);
        }
        rows
    }

    pub(super) fn code_row(&self, test: TestId, code: &CodeSummary) -> CodeRow {
        let (repo_id, test_id, org_id) = self.own(test);
        let last = code.first_success_at.max(code.first_failure_at);
        CodeRow {
            repo_id,
            test_id,
            code: code_text(&code.code),
            branch: storable(&code.branch),
            origin: code.origin.to_string(),
            org_id,
            class: code.class.as_str(),
            first_success_at: code.first_success_at,
            first_failure_at: code.first_failure_at,
            last_at: last.unwrap_or(self.received_at),
        }
    }

    fn count(&self, id: TestId, addition: &Addition, is_known: bool, rows: &mut CountedRows) {
        let own = || self.own(id);
        let failing = addition.hours.iter().filter(|it| it.first_failure_at.is_some());
        rows.hours.extend(failing.map(|hour| {
            let (repo_id, test_id, org_id) = own();
            HourRow {
                repo_id,
                test_id,
                hour: hour.hour,
                org_id,
                failed: i64::from(hour.failed),
                first_failure_at: hour.first_failure_at,
                last_failure_at: hour.last_failure_at,
            }
        }));
        let failing = addition.summary.buckets.iter().filter(|it| it.failed > 0);
        rows.buckets.extend(failing.map(|bucket| {
            let (repo_id, test_id, org_id) = own();
            BucketRow {
                repo_id,
                test_id,
                start: bucket.start,
                branch: storable(&bucket.branch),
                org_id,
                class: bucket.class.as_str(),
                failed: i64::from(bucket.failed),
                last_run_at: bucket.last_run_at,
                last_failure_at: bucket.last_failure_at,
            }
        }));
        // Other passes on the upload's own code follow from its packed runs.
        let kept = addition
            .summary
            .codes
            .iter()
            .filter(|it| is_known || it.first_failure_at.is_some() || it.code != self.code);
        rows.codes.extend(kept.map(|code| self.code_row(id, code)));
        rows.failures.extend(addition.failures.iter().map(|failure| {
            let (repo_id, test_id, org_id) = own();
            FailureRow {
                repo_id,
                test_id,
                day: failure.last_occurrence.floor(Span::hours(24)),
                fingerprint: failure.fingerprint.to_string(),
                org_id,
                summary: storable(&failure.summary),
                occurrences: i64::from(failure.occurrence_count),
                last_at: failure.last_occurrence,
            }
        }));
        rows.pull_requests.extend(addition.impacted.map(|(pr, at)| {
            let (repo_id, test_id, org_id) = own();
            let pr_number = i64::from(pr.0);
            let last_failure_at = at;
            PullRequestRow { repo_id, test_id, pr_number, org_id, last_failure_at }
        }));
    }
}
