//! Rows of a repository's steps.

use std::collections::BTreeMap;

use signalbox_domain::flaky::{
    MonitorStatus, Presence, Progress, QuarantineOverride, TestCase, TestId, TestStatus,
};
use signalbox_domain::ids::{OrgId, RepoId};
use signalbox_domain::ports::{FlakyCommit, RepoRef, TestStep};
use signalbox_domain::time::Timestamp;

use super::super::audit_log::AuditRow;
use super::super::bulk::{Target, bulk_rows};
use super::super::event_log::EventRow;
use super::draft::DraftRows;
use super::incidents::IncidentRows;
use super::intake_rows::WindowsRow;
use crate::documents::{Json, SettingsChange, TestDocument, column, encode};
use crate::error::DbError;

bulk_rows! {
    /// A test's state.
    STATES = StateRow in "test_cases" {
        repo_id: RepoId, id: TestId, org_id: OrgId, status: &'static str,
        quarantine: &'static str, quarantine_until: Option<Timestamp>, noted: bool, watched: bool,
        due_at: Option<Timestamp>, document: Json, retired: bool,
        ticket: Option<String>,
    } "";
    /// When a test must be examined again.
    DUE = DueRow in "test_cases" {
        repo_id: RepoId, id: TestId, org_id: OrgId, due_at: Option<Timestamp>,
    } "";
    /// Where stable branches report a test.
    PRESENCES = PresenceRow in "test_presences" {
        repo_id: RepoId, test_id: TestId, org_id: OrgId, place: String, document: Json,
    } "ON CONFLICT (repo_id, test_id) DO UPDATE SET \
        place = excluded.place, document = excluded.document";
    /// A record of a test's journal.
    JOURNAL = JournalRow in "test_journal" {
        repo_id: RepoId, test_id: TestId, number: i64, org_id: OrgId, at: Timestamp,
        document: Json,
    } "";
}

pub(super) const STATE_SET: &str = "status = new.status, quarantine = new.quarantine, \
    quarantine_until = new.quarantine_until, noted = new.noted, watched = new.watched, \
    due_at = new.due_at, document = new.document, retired = new.retired, \
    ticket = COALESCE(new.ticket, test_cases.ticket)";

pub(super) const DUE_SET: &str = "due_at = new.due_at";

/// Whether a test may be in the list of quarantined ones, whatever the settings are.
pub(super) fn is_noted(test: &TestCase) -> bool {
    test.retired.is_none()
        && (test.standing.value != TestStatus::Healthy
            || test.quarantining().setting == QuarantineOverride::Always)
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
            repo_id: repo.id,
            id: test.id,
            org_id: repo.org,
            status: test.standing.value.as_str(),
            quarantine: quarantining.setting.as_str(),
            quarantine_until: quarantining.expires_at,
            noted: is_noted(test),
            watched: is_watched(test),
            due_at: step.due_at,
            document: encode(&TestDocument::from(test))?,
            retired: test.retired.is_some(),
            ticket: step.ticket.clone(),
        })
    }
}

/// New settings.
pub(super) struct SettingsRow {
    pub(super) at: Timestamp,
    pub(super) document: Json,
    pub(super) change: Json,
}

/// Rows of steps of tests, and of what stable branches show of tests after them.
pub(super) struct TestRows {
    pub(super) states: Vec<StateRow>,
    pub(super) journal: Vec<JournalRow>,
    pub(super) events: Vec<EventRow>,
    pub(super) presences: Vec<PresenceRow>,
    pub(super) forgotten_presences: Vec<TestId>,
}

impl TestRows {
    pub(super) fn of(
        repo: RepoRef,
        steps: &[TestStep],
        presences: &BTreeMap<TestId, Option<Presence>>,
    ) -> Result<Self, DbError> {
        let kept = presences.iter().filter_map(|(id, it)| Some((*id, it.as_ref()?)));
        let kept = kept.map(|(test_id, presence)| {
            Ok::<_, DbError>(PresenceRow {
                repo_id: repo.id,
                test_id,
                org_id: repo.org,
                place: presence.place.clone(),
                document: encode(presence)?,
            })
        });
        let forgotten = presences.iter().filter(|(_, it)| it.is_none());
        let mut rows = Self {
            states: Vec::new(),
            journal: Vec::with_capacity(steps.len()),
            events: Vec::new(),
            presences: kept.collect::<Result<_, _>>()?,
            forgotten_presences: forgotten.map(|(id, _)| *id).collect(),
        };
        let mut states = BTreeMap::new();
        for step in steps {
            // Of several steps of one test the last one stays.
            let mut state = StateRow::of(repo, step)?;
            let before: Option<StateRow> = states.remove(&step.test.id);
            state.ticket = state.ticket.or_else(|| before?.ticket);
            states.insert(step.test.id, state);
            rows.journal.push(JournalRow {
                repo_id: repo.id,
                test_id: step.test.id,
                number: column(step.journal.number),
                org_id: repo.org,
                at: step.journal.at,
                document: encode(&step.journal)?,
            });
            let told = step.events.iter().map(|told| EventRow::of(repo.org, repo.id, told));
            rows.events.extend(told);
        }
        rows.states = states.into_values().collect();
        Ok(rows)
    }
}

/// Everything that a commit writes.
pub(super) struct CommitRows {
    pub(super) repo: RepoRef,
    pub(super) expected: i64,
    pub(super) marks: i64,
    pub(super) settings: Option<SettingsRow>,
    pub(super) incidents: IncidentRows,
    pub(super) progress: Option<Progress>,
    /// The results of an upload.
    pub(super) intake: Option<DraftRows>,
    pub(super) windows: Vec<WindowsRow>,
    pub(super) tests: TestRows,
    /// Events that are of no test.
    pub(super) events: Vec<EventRow>,
    pub(super) audit: Option<AuditRow>,
}

impl CommitRows {
    pub(super) fn of(commit: &FlakyCommit<'_>, intake: Option<DraftRows>) -> Result<Self, DbError> {
        let repo = commit.repo;
        let settings = commit.settings.map(|step| {
            Ok::<_, DbError>(SettingsRow {
                at: step.at,
                document: encode(&step.settings)?,
                change: encode(&SettingsChange {
                    settings: step.settings.clone(),
                    by: step.by.clone(),
                })?,
            })
        });
        let windows = commit.windows.iter().map(|(id, windows)| {
            Ok::<_, DbError>(WindowsRow { repo_id: repo.id, id: *id, windows: encode(windows)? })
        });
        let incidents = commit.incidents.map(|changes| IncidentRows::of(repo, changes));
        let has_steps = !commit.steps.is_empty() || intake.as_ref().is_some_and(|it| it.has_steps);
        let of_incidents = commit.incidents.iter().flat_map(|it| &it.steps);
        let of_incidents = of_incidents.filter_map(|step| step.event.as_ref());
        let of_import = commit.progress.and_then(|step| step.event.as_ref());
        let of_repo = of_incidents.chain(of_import);
        Ok(Self {
            repo,
            expected: commit.expected.0,
            marks: i64::from(commit.settings.is_some() || has_steps),
            settings: settings.transpose()?,
            incidents: incidents.transpose()?.unwrap_or_default(),
            progress: commit.progress.map(|step| step.progress),
            intake,
            windows: windows.collect::<Result<_, _>>()?,
            tests: TestRows::of(repo, commit.steps, commit.presences)?,
            events: of_repo.map(|told| EventRow::of(repo.org, repo.id, told)).collect(),
            audit: commit.audit.map(AuditRow::of).transpose()?,
        })
    }
}
