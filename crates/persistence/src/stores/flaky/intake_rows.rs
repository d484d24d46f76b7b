//! Rows of an upload's results.

use serde::Serialize;
use signalbox_domain::flaky::{
    Addition, Intake, RunOutcome, RunRecord, SameCode, Sighting, TestCase, TestId,
};
use signalbox_domain::ports::RepoRef;
use signalbox_domain::time::{Span, Timestamp};

use super::super::bulk::Target;
use crate::documents::{FORMAT, encode};
use crate::error::DbError;

/// Structs whose fields are columns, and where they go.
macro_rules! targets {
    ($($(#[$doc:meta])* $target:ident = $row:ident in $table:literal {
        $($column:ident: $kind:ty = $sql:literal),+ $(,)?
    } $conflict:literal;)+) => {
        $(
            $(#[$doc])*
            #[derive(Serialize)]
            pub(super) struct $row { $(pub(super) $column: $kind),+ }

            pub(super) const $target: Target = Target {
                table: $table,
                columns: &[$((stringify!($column), $sql)),+],
                conflict: $conflict,
            };
        )+
    };
}

targets! {
    /// A test that is seen for the first time.
    TESTS = TestRow in "test_cases" {
        repo_id: String = "TEXT", id: String = "TEXT", org_id: String = "TEXT",
        status: &'static str = "TEXT", quarantine: &'static str = "TEXT",
        noted: bool = "BOOLEAN", watched: bool = "BOOLEAN", owners: String = "TEXT",
        first_seen_at: i64 = "BIGINT", last_seen_at: i64 = "BIGINT",
        last_failure_at: Option<i64> = "BIGINT", format: i32 = "INTEGER",
        document: String = "TEXT",
    } "";
    /// A test that is seen again.
    SEEN = SeenRow in "test_cases" {
        repo_id: String = "TEXT", id: String = "TEXT", owners: String = "TEXT",
        last_seen_at: i64 = "BIGINT", last_failure_at: Option<i64> = "BIGINT",
    } "";
    /// An id that clients send.
    ALIASES = AliasRow in "test_aliases" {
        repo_id: String = "TEXT", alias: String = "TEXT", test_id: String = "TEXT",
        org_id: String = "TEXT",
    } "ON CONFLICT DO NOTHING";
    /// A run.
    RUNS = RunRow in "test_runs" {
        repo_id: String = "TEXT", test_id: String = "TEXT", org_id: String = "TEXT",
        day: i64 = "BIGINT", at: i64 = "BIGINT", attempt: i64 = "BIGINT",
        failed: bool = "BOOLEAN", format: i32 = "INTEGER", document: String = "TEXT",
    } "";
    /// Runs of an hour.
    HOURS = HourRow in "test_hours" {
        repo_id: String = "TEXT", test_id: String = "TEXT", hour: i64 = "BIGINT",
        org_id: String = "TEXT", passed: i64 = "BIGINT", failed: i64 = "BIGINT",
        first_failure_at: Option<i64> = "BIGINT", last_failure_at: Option<i64> = "BIGINT",
    } "ON CONFLICT (repo_id, test_id, hour) DO UPDATE SET \
        passed = test_hours.passed + excluded.passed, \
        failed = test_hours.failed + excluded.failed, \
        first_failure_at = CASE WHEN excluded.first_failure_at IS NULL \
            THEN test_hours.first_failure_at WHEN test_hours.first_failure_at \
            <= excluded.first_failure_at THEN test_hours.first_failure_at \
            ELSE excluded.first_failure_at END, \
        last_failure_at = CASE WHEN excluded.last_failure_at IS NULL \
            THEN test_hours.last_failure_at WHEN test_hours.last_failure_at \
            >= excluded.last_failure_at THEN test_hours.last_failure_at \
            ELSE excluded.last_failure_at END";
    /// Runs of five minutes on a branch.
    BUCKETS = BucketRow in "test_buckets" {
        repo_id: String = "TEXT", test_id: String = "TEXT", start: i64 = "BIGINT",
        branch: String = "TEXT", org_id: String = "TEXT", class: &'static str = "TEXT",
        passed: i64 = "BIGINT", failed: i64 = "BIGINT", last_run_at: i64 = "BIGINT",
        last_failure_at: Option<i64> = "BIGINT",
    } "ON CONFLICT (repo_id, test_id, start, branch) DO UPDATE SET \
        passed = test_buckets.passed + excluded.passed, \
        failed = test_buckets.failed + excluded.failed, \
        last_run_at = CASE WHEN test_buckets.last_run_at >= excluded.last_run_at \
            THEN test_buckets.last_run_at ELSE excluded.last_run_at END, \
        last_failure_at = CASE WHEN excluded.last_failure_at IS NULL \
            THEN test_buckets.last_failure_at WHEN test_buckets.last_failure_at \
            >= excluded.last_failure_at THEN test_buckets.last_failure_at \
            ELSE excluded.last_failure_at END";
    /// Runs of one code on a branch.
    CODES = CodeRow in "test_codes" {
        repo_id: String = "TEXT", test_id: String = "TEXT", code: String = "TEXT",
        branch: String = "TEXT", org_id: String = "TEXT", class: &'static str = "TEXT",
        first_success_at: Option<i64> = "BIGINT", first_failure_at: Option<i64> = "BIGINT",
        last_at: i64 = "BIGINT",
    } "ON CONFLICT (repo_id, test_id, code, branch) DO UPDATE SET \
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
        repo_id: String = "TEXT", test_id: String = "TEXT", day: i64 = "BIGINT",
        fingerprint: String = "TEXT", org_id: String = "TEXT", summary: String = "TEXT",
        occurrences: i64 = "BIGINT", last_at: i64 = "BIGINT",
    } "ON CONFLICT (repo_id, test_id, day, fingerprint) DO UPDATE SET \
        occurrences = test_failures.occurrences + excluded.occurrences, \
        last_at = CASE WHEN test_failures.last_at >= excluded.last_at \
            THEN test_failures.last_at ELSE excluded.last_at END";
    /// A pull request in which a test failed.
    PULL_REQUESTS = PullRequestRow in "test_pull_requests" {
        repo_id: String = "TEXT", test_id: String = "TEXT", pr_number: i64 = "BIGINT",
        org_id: String = "TEXT", last_failure_at: i64 = "BIGINT",
    } "ON CONFLICT (repo_id, test_id, pr_number) DO UPDATE SET \
        last_failure_at = CASE WHEN test_pull_requests.last_failure_at \
            >= excluded.last_failure_at THEN test_pull_requests.last_failure_at \
            ELSE excluded.last_failure_at END";
}

pub(super) const SEEN_SET: &str = "owners = CASE WHEN new.owners = '[]' \
    THEN test_cases.owners ELSE new.owners END, \
    last_seen_at = CASE WHEN test_cases.last_seen_at >= new.last_seen_at \
        THEN test_cases.last_seen_at ELSE new.last_seen_at END, \
    last_failure_at = CASE WHEN new.last_failure_at IS NULL THEN test_cases.last_failure_at \
        WHEN test_cases.last_failure_at >= new.last_failure_at \
        THEN test_cases.last_failure_at ELSE new.last_failure_at END";

/// Makes the rows of an upload, some at a time: rows need more memory than what they are made of.
pub(super) struct IntakeRows {
    repo: RepoRef,
    at: Timestamp,
    pub(super) received_at: i64,
    pub(super) day: i64,
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

fn micros(at: Option<Timestamp>) -> Option<i64> {
    at.map(Timestamp::unix_micros)
}

/// A text without NUL bytes, which PostgreSQL does not keep.
fn storable(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

pub(super) fn code_text(code: &SameCode) -> String {
    match code {
        SameCode::Commit(sha) => format!("commit:{sha}"),
        SameCode::Tree(tree) => format!("tree:{tree}"),
        SameCode::Upload(id) => format!("upload:{id}"),
    }
}

impl IntakeRows {
    pub(super) fn of(repo: RepoRef, intake: &Intake, at: Timestamp) -> Self {
        let received_at = intake.upload.received_at;
        let day = received_at.floor(Span::hours(24)).unix_micros();
        Self { repo, at, received_at: received_at.unix_micros(), day }
    }

    /// The repository, a test and the organization, as columns.
    fn own(&self, test: TestId) -> (String, String, String) {
        (self.repo.id.to_string(), test.to_string(), self.repo.org.to_string())
    }

    /// Reported tests, as if they were new.
    pub(super) fn tests(&self, sightings: &[&Sighting]) -> Result<Vec<TestRow>, DbError> {
        let row = |sighting: &&Sighting| {
            let (repo, key) = (self.repo, sighting.key.clone());
            let test = TestCase::new(repo.org, repo.id, key, self.at);
            let (repo_id, id, org_id) = self.own(sighting.id);
            Ok(TestRow {
                repo_id,
                id,
                org_id,
                status: test.standing.value.word(),
                quarantine: test.quarantining().setting.word(),
                noted: false,
                watched: false,
                owners: storable(&encode("owners", &sighting.owners)?),
                first_seen_at: self.received_at,
                last_seen_at: self.received_at,
                last_failure_at: micros(sighting.last_failure_at),
                format: FORMAT,
                document: encode("test", &test)?,
            })
        };
        sightings.iter().map(row).collect()
    }

    pub(super) fn aliases(&self, sightings: &[&Sighting]) -> Vec<AliasRow> {
        let aliases = sightings.iter().flat_map(|it| it.aliases.iter().map(|alias| (it.id, alias)));
        let row = |(test, alias): (TestId, &String)| {
            let (repo_id, test_id, org_id) = self.own(test);
            AliasRow { repo_id, alias: storable(alias), test_id, org_id }
        };
        aliases.map(row).collect()
    }

    pub(super) fn runs(&self, runs: &[RunRecord]) -> Result<Vec<RunRow>, DbError> {
        let row = |run: &RunRecord| {
            let (repo_id, test_id, org_id) = self.own(run.test);
            Ok(RunRow {
                repo_id,
                test_id,
                org_id,
                day: self.day,
                at: run.at.unix_micros(),
                attempt: i64::from(run.attempt),
                failed: run.outcome == RunOutcome::Failed,
                format: FORMAT,
                document: encode("run", run)?,
            })
        };
        runs.iter().map(row).collect()
    }

    pub(super) fn counted(&self, additions: &[(&TestId, &Addition)]) -> CountedRows {
        let mut rows = CountedRows::default();
        for (id, addition) in additions {
            self.count(**id, addition, &mut rows);
        }
        rows
    }

    fn count(&self, id: TestId, addition: &Addition, rows: &mut CountedRows) {
        let own = || self.own(id);
        rows.hours.extend(addition.hours.iter().map(|hour| {
            let (repo_id, test_id, org_id) = own();
            HourRow {
                repo_id,
                test_id,
                hour: hour.hour.unix_micros(),
                org_id,
                passed: i64::from(hour.passed),
                failed: i64::from(hour.failed),
                first_failure_at: micros(hour.first_failure_at),
                last_failure_at: micros(hour.last_failure_at),
            }
        }));
        rows.buckets.extend(addition.summary.buckets.iter().map(|bucket| {
            let (repo_id, test_id, org_id) = own();
            BucketRow {
                repo_id,
                test_id,
                start: bucket.start.unix_micros(),
                branch: storable(&bucket.branch),
                org_id,
                class: bucket.class.word(),
                passed: i64::from(bucket.passed),
                failed: i64::from(bucket.failed),
                last_run_at: bucket.last_run_at.unix_micros(),
                last_failure_at: micros(bucket.last_failure_at),
            }
        }));
        rows.codes.extend(addition.summary.codes.iter().map(|code| {
            let (repo_id, test_id, org_id) = own();
            let last = code.first_success_at.max(code.first_failure_at);
            CodeRow {
                repo_id,
                test_id,
                code: code_text(&code.code),
                branch: storable(&code.branch),
                org_id,
                class: code.class.word(),
                first_success_at: micros(code.first_success_at),
                first_failure_at: micros(code.first_failure_at),
                last_at: micros(last).unwrap_or(self.received_at),
            }
        }));
        rows.failures.extend(addition.failures.iter().map(|failure| {
            let (repo_id, test_id, org_id) = own();
            FailureRow {
                repo_id,
                test_id,
                day: failure.last_occurrence.floor(Span::hours(24)).unix_micros(),
                fingerprint: failure.fingerprint.to_string(),
                org_id,
                summary: storable(&failure.summary),
                occurrences: i64::from(failure.occurrence_count),
                last_at: failure.last_occurrence.unix_micros(),
            }
        }));
        rows.pull_requests.extend(addition.impacted.map(|(pr, at)| {
            let (repo_id, test_id, org_id) = own();
            let pr_number = i64::from(pr.0);
            let last_failure_at = at.unix_micros();
            PullRequestRow { repo_id, test_id, pr_number, org_id, last_failure_at }
        }));
    }
}
