//! Rows of a repository's steps.

use std::sync::Arc;

use serde::Serialize;
use signalbox_domain::flaky::{Intake, MonitorStatus, QuarantineOverride, TestCase, TestStatus};
use signalbox_domain::ports::{FlakyCommit, RepoRef, TestStep};
use signalbox_domain::time::Timestamp;

use super::super::audit_log::AuditRow;
use super::super::bulk::Target;
use super::super::event_log::EventRow;
use super::intake_rows::IntakeRows;
use crate::documents::{FORMAT, column, encode};
use crate::error::DbError;

/// A test's state.
#[derive(Serialize)]
pub(super) struct StateRow {
    repo_id: String,
    id: String,
    org_id: String,
    status: &'static str,
    quarantine: &'static str,
    quarantine_until: Option<i64>,
    noted: bool,
    watched: bool,
    due_at: Option<i64>,
    format: i32,
    document: String,
}

pub(super) const STATES: Target = Target {
    table: "test_cases",
    columns: &[
        ("repo_id", "TEXT"),
        ("id", "TEXT"),
        ("org_id", "TEXT"),
        ("status", "TEXT"),
        ("quarantine", "TEXT"),
        ("quarantine_until", "BIGINT"),
        ("noted", "BOOLEAN"),
        ("watched", "BOOLEAN"),
        ("due_at", "BIGINT"),
        ("format", "INTEGER"),
        ("document", "TEXT"),
    ],
    conflict: "",
};
pub(super) const STATE_SET: &str = "status = new.status, quarantine = new.quarantine, \
    quarantine_until = new.quarantine_until, noted = new.noted, watched = new.watched, \
    due_at = new.due_at, format = new.format, document = new.document";

/// Whether a test may be in the list of quarantined ones, whatever the settings are.
pub(super) fn is_noted(test: &TestCase) -> bool {
    test.standing.value != TestStatus::Healthy
        || test.quarantining().setting == QuarantineOverride::Always
}

/// Whether a monitor is active for a test.
pub(super) fn is_watched(test: &TestCase) -> bool {
    test.monitors.values().any(|record| record.status == MonitorStatus::Active)
}

impl StateRow {
    fn of(repo: RepoRef, step: &TestStep) -> Result<Self, DbError> {
        let test = &step.test;
        let quarantining = test.quarantining();
        Ok(Self {
            repo_id: repo.id.to_string(),
            id: test.id.to_string(),
            org_id: repo.org.to_string(),
            status: test.standing.value.word(),
            quarantine: quarantining.setting.word(),
            quarantine_until: quarantining.expires_at.map(Timestamp::unix_micros),
            noted: is_noted(test),
            watched: is_watched(test),
            due_at: step.due_at.map(Timestamp::unix_micros),
            format: FORMAT,
            document: encode("test", test)?,
        })
    }
}

/// A record of a test's journal.
#[derive(Serialize)]
pub(super) struct JournalRow {
    repo_id: String,
    test_id: String,
    number: i64,
    org_id: String,
    at: i64,
    format: i32,
    document: String,
}

pub(super) const JOURNAL: Target = Target {
    table: "test_journal",
    columns: &[
        ("repo_id", "TEXT"),
        ("test_id", "TEXT"),
        ("number", "BIGINT"),
        ("org_id", "TEXT"),
        ("at", "BIGINT"),
        ("format", "INTEGER"),
        ("document", "TEXT"),
    ],
    conflict: "",
};

/// New settings.
pub(super) struct SettingsRow {
    pub(super) at: i64,
    pub(super) actor: String,
    pub(super) document: String,
}

/// Everything that a commit writes.
pub(super) struct CommitRows {
    pub(super) repo: RepoRef,
    pub(super) expected: i64,
    pub(super) marks: i64,
    pub(super) settings: Option<SettingsRow>,
    pub(super) intake: Option<(Arc<Intake>, IntakeRows)>,
    pub(super) states: Vec<StateRow>,
    pub(super) journal: Vec<JournalRow>,
    pub(super) events: Vec<EventRow>,
    pub(super) audit: Option<AuditRow>,
}

impl CommitRows {
    pub(super) fn of(commit: &FlakyCommit<'_>) -> Result<Self, DbError> {
        let repo = commit.repo;
        let settings = commit.settings.map(|step| {
            Ok::<_, DbError>(SettingsRow {
                at: step.at.unix_micros(),
                actor: encode("actor", &step.by)?,
                document: encode("settings", &step.settings)?,
            })
        });
        let mut rows = Self {
            repo,
            expected: commit.expected.0,
            marks: i64::from(commit.settings.is_some() || !commit.steps.is_empty()),
            settings: settings.transpose()?,
            intake: commit.intake.map(|it| (it.clone(), IntakeRows::of(repo, it, commit.at))),
            states: Vec::with_capacity(commit.steps.len()),
            journal: Vec::with_capacity(commit.steps.len()),
            events: Vec::new(),
            audit: commit.audit.map(AuditRow::of).transpose()?,
        };
        for step in commit.steps {
            rows.states.push(StateRow::of(repo, step)?);
            rows.journal.push(JournalRow {
                repo_id: repo.id.to_string(),
                test_id: step.test.id.to_string(),
                number: column(step.journal.number),
                org_id: repo.org.to_string(),
                at: step.journal.at.unix_micros(),
                format: FORMAT,
                document: encode("journal record", &step.journal)?,
            });
            let told = step.events.iter().map(|told| EventRow::of(repo.org, repo.id, told));
            rows.events.extend(told);
        }
        Ok(rows)
    }
}
