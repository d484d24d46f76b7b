//! The tables of flaky tests.

use std::collections::{BTreeMap, BTreeSet};

use signalbox_domain::flaky::{
    Addition, Bucket, CodeSummary, FailureCluster, FailureHistory, HourCount, Incident, IncidentId,
    IngestOutcome, Intake, JournalRecord, Presence, Progress, Recount, RunOutcome, RunRecord,
    Settings, Summary, TestCase, TestId, UploadId, Windows,
};
use signalbox_domain::ids::PrNumber;
use signalbox_domain::ports::{
    CiRun, DayCounts, IncidentChanges, IncidentStep, RepoRef, SettingsStep, TestList, TestRecord,
    TestStep, Version,
};
use signalbox_domain::time::{Span, Timestamp};

/// A test of a repository.
pub(super) type Place = (RepoRef, TestId);

/// A repository as a whole.
#[derive(Debug, Default)]
pub(super) struct RepoRow {
    pub(super) version: i64,
    pub(super) revision: i64,
    pub(super) settings: Option<Settings>,
    pub(super) progress: Progress,
    pub(super) log: Vec<SettingsStep>,
}

/// A test.
#[derive(Debug)]
pub(super) struct TestRow {
    pub(super) record: TestRecord,
    pub(super) aliases: BTreeSet<String>,
    pub(super) due_at: Option<Timestamp>,
}

/// All tables of flaky tests.
#[derive(Debug, Default)]
pub(super) struct FlakyTables {
    pub(super) repos: BTreeMap<RepoRef, RepoRow>,
    pub(super) tests: BTreeMap<Place, TestRow>,
    pub(super) runs: Vec<(RepoRef, Timestamp, RunRecord)>,
    pub(super) hours: BTreeMap<(Place, Timestamp), HourCount>,
    pub(super) summaries: BTreeMap<Place, Summary>,
    pub(super) failures: BTreeMap<(Place, Timestamp), Vec<FailureCluster>>,
    pub(super) impacted: BTreeMap<(Place, PrNumber), Timestamp>,
    pub(super) uploads: BTreeMap<(RepoRef, UploadId), (Timestamp, IngestOutcome)>,
    pub(super) presences: BTreeMap<Place, Presence>,
    pub(super) journal: BTreeMap<(Place, u64), JournalRecord>,
    pub(super) history: BTreeMap<RepoRef, FailureHistory>,
    pub(super) incidents: BTreeMap<(RepoRef, IncidentId), Incident>,
    pub(super) incident_failures: BTreeSet<(RepoRef, IncidentId, TestId, UploadId)>,
    pub(super) days: BTreeMap<(RepoRef, Timestamp), (Version, DayCounts)>,
    pub(super) page_key: Option<[u8; 32]>,
    pub(super) ci_runs: Vec<(RepoRef, CiRun)>,
}

impl FlakyTables {
    /// Writes a part of an upload's results.
    pub(super) fn take_in(&mut self, repo: RepoRef, intake: &Intake, at: Timestamp) {
        let received = intake.upload.received_at;
        let seen_at = intake.upload.seen_at();
        for (id, reported) in &intake.reported_tests {
            let row = self.tests.entry((repo, *id)).or_insert_with(|| TestRow {
                record: TestRecord {
                    test: TestCase::new(repo.org, repo.id, reported.key.clone(), at),
                    owners: Vec::new(),
                    ticket: None,
                    first_seen_at: received,
                    stable_since: None,
                    last_seen_at: seen_at,
                    last_failure_at: None,
                    windows: Windows::default(),
                },
                aliases: BTreeSet::new(),
                due_at: None,
            });
            let record = &mut row.record;
            record.last_seen_at = record.last_seen_at.max(seen_at);
            let stable_at = intake.upload.stable_at();
            record.stable_since = record.stable_since.into_iter().chain(stable_at).min();
            record.last_failure_at = record.last_failure_at.max(reported.last_failure_at);
            if !reported.owners.is_empty() {
                record.owners.clone_from(&reported.owners);
            }
            row.aliases.extend(reported.aliases.iter().cloned());
        }
        self.runs.extend(intake.runs.iter().map(|run| (repo, received, run.clone())));
        for (id, addition) in &intake.additions {
            self.add((repo, *id), addition);
        }
    }

    /// Writes what a step changes of incidents.
    pub(super) fn change_incidents(&mut self, repo: RepoRef, changes: &IncidentChanges) {
        if let Some(history) = &changes.history {
            self.history.insert(repo, history.clone());
        }
        for IncidentStep { incident, failures, .. } in &changes.steps {
            self.incidents.insert((repo, incident.id), incident.clone());
            let failures =
                failures.iter().map(|(test, upload)| (repo, incident.id, *test, *upload));
            self.incident_failures.extend(failures);
        }
        for recount in &changes.recounts {
            self.recount((repo, recount.test), recount);
        }
    }

    fn recount(&mut self, place: Place, recount: &Recount) {
        let Some(row) = self.tests.get_mut(&place) else { return };
        row.record.last_failure_at = recount.last_failure_at;
        for bucket in &recount.failures.buckets {
            let hour = (place, bucket.start.floor(Span::hours(1)));
            if let Some(count) = self.hours.get_mut(&hour) {
                count.failed = if recount.counts {
                    count.failed + bucket.failed
                } else {
                    count.failed.saturating_sub(bucket.failed)
                };
            }
        }
        let summary = self.summaries.entry(place).or_default();
        if recount.counts {
            return summary.add(&recount.failures);
        }
        for gone in &recount.failures.buckets {
            let same = |it: &&mut Bucket| it.start == gone.start && it.branch == gone.branch;
            if let Some(bucket) = summary.buckets.iter_mut().find(same) {
                bucket.failed = bucket.failed.saturating_sub(gone.failed);
                bucket.last_failure_at = bucket.last_failure_at.filter(|_| bucket.failed > 0);
            }
        }
        for gone in &recount.failures.codes {
            let same = |it: &&mut CodeSummary| it.is_of(gone);
            if let Some(code) = summary.codes.iter_mut().find(same) {
                code.first_failure_at = None;
            }
        }
    }

    fn add(&mut self, place: Place, addition: &Addition) {
        self.summaries.entry(place).or_default().add(&addition.summary);
        for new in &addition.hours {
            let hour = self.hours.entry((place, new.hour)).or_insert_with(|| HourCount {
                passed: 0,
                failed: 0,
                ..new.clone()
            });
            hour.passed += new.passed;
            hour.failed += new.failed;
            hour.first_failure_at =
                [hour.first_failure_at, new.first_failure_at].into_iter().flatten().min();
            hour.last_failure_at = hour.last_failure_at.max(new.last_failure_at);
        }
        for new in &addition.failures {
            let day = new.last_occurrence.floor(Span::hours(24));
            let clusters = self.failures.entry((place, day)).or_default();
            merge(clusters, new);
        }
        if let Some((pr, at)) = addition.impacted {
            let last = self.impacted.entry((place, pr)).or_insert(at);
            *last = (*last).max(at);
        }
    }

    /// Writes steps of tests, and the windows and presences of tests after them.
    pub(super) fn change_tests(
        &mut self,
        repo: RepoRef,
        steps: &[TestStep],
        windows: &BTreeMap<TestId, Windows>,
        presences: &BTreeMap<TestId, Option<Presence>>,
    ) {
        for step in steps {
            self.step(repo, step);
        }
        for (id, windows) in windows {
            if let Some(row) = self.tests.get_mut(&(repo, *id)) {
                row.record.windows = windows.clone();
            }
        }
        for (id, presence) in presences {
            match presence {
                Some(presence) => self.presences.insert((repo, *id), presence.clone()),
                None => self.presences.remove(&(repo, *id)),
            };
        }
    }

    /// Writes a step of a test.
    fn step(&mut self, repo: RepoRef, step: &TestStep) {
        let place = (repo, step.test.id);
        let Some(row) = self.tests.get_mut(&place) else { return };
        row.record.test = step.test.clone();
        row.due_at = step.due_at;
        if step.ticket.is_some() {
            row.record.ticket.clone_from(&step.ticket);
        }
        self.journal.insert((place, step.journal.number), step.journal.clone());
    }

    /// The tests of a list, by id.
    pub(super) fn listed(&self, repo: RepoRef, list: TestList) -> Vec<&TestRecord> {
        let failing: BTreeSet<TestId> = match list {
            TestList::Failing { from, until } => self
                .runs
                .iter()
                .filter(|(of, _, run)| {
                    *of == repo
                        && run.outcome == RunOutcome::Failed
                        && run.at >= from
                        && run.at < until
                })
                .map(|(_, _, run)| run.test)
                .collect(),
            TestList::Unhealthy(_) | TestList::Quarantined { .. } | TestList::Retired => {
                BTreeSet::new()
            }
        };
        let records = self.tests.iter().filter(|((of, _), _)| *of == repo);
        records
            .map(|(_, row)| &row.record)
            .filter(|record| match list {
                TestList::Failing { .. } => failing.contains(&record.test.id),
                TestList::Unhealthy(status) => record.test.standing.value == status,
                TestList::Quarantined { settings, at } => {
                    let quarantined = signalbox_domain::flaky::is_quarantined(
                        settings,
                        record.test.quarantining(),
                        record.test.standing.value,
                        at,
                    );
                    quarantined && record.test.retired.is_none()
                }
                TestList::Retired => record.test.retired.is_some(),
            })
            .collect()
    }
}

/// Counts a failure with its equals.
pub(super) fn merge(clusters: &mut Vec<FailureCluster>, new: &FailureCluster) {
    match clusters.iter_mut().find(|it| it.fingerprint == new.fingerprint) {
        Some(known) => {
            known.occurrence_count += new.occurrence_count;
            known.last_occurrence = known.last_occurrence.max(new.last_occurrence);
        }
        None => clusters.push(new.clone()),
    }
}
