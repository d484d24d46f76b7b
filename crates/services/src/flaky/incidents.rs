//! Incidents: recognized when an upload comes in, decided by users, and what they change of tests.

use std::collections::{BTreeMap, BTreeSet};

use signalbox_domain::audit::{AuditAction, AuditFields};
use signalbox_domain::flaky::{
    Admission, CodeSummary, Fact, INCIDENT_CHANGED, Incident, IncidentId, IncidentState, MonitorId,
    Outline, Reading, Recount, SameCode, Settings, Summary, TestId, UploadId, UploadSource,
    WindowRules, Windows, assess, failures_of,
};
use signalbox_domain::ids::RepoName;
use signalbox_domain::ports::{
    EventRecord, FlakyCommit, IncidentChanges, IncidentStep, RepoRef, Repository,
};
use signalbox_domain::time::{Span, Timestamp};
use signalbox_domain::token::{Caller, Scope};

use super::super::Error;
use super::super::audit::AuditEntryBuilder;
use super::judge::Judged;
use super::take_in::by_id;
use super::{ATTEMPTS, FlakyService, settings_of};

/// Days after its last failure during which uploads may change the status of an incident.
const WATCHED_DAYS: u32 = 7;
/// The most incidents of a repository that an upload is compared with.
const WATCHED: u32 = 20;
/// The most incidents of a list.
const LISTED: u32 = 100;
/// Tests whose failing runs are read together.
const READ_AT_ONCE: usize = 1_000;

impl FlakyService {
    /// The incidents of a repository, the newest first, at most 100.
    pub async fn incidents(
        &self,
        caller: &Caller,
        name: &RepoName,
    ) -> Result<Vec<Incident>, Error> {
        let (_, repo) = self.repository(caller, Scope::TestsRead, name).await?;
        let long_ago = Timestamp::from_unix_seconds(0);
        Ok(self.context.stores.tests.incidents(repo, long_ago, LISTED).await?.incidents)
    }

    /// Confirms or dismisses an incident. The failures of a dismissed one count again.
    pub async fn decide_incident(
        &self,
        caller: &Caller,
        name: &RepoName,
        id: IncidentId,
        confirm: bool,
        reason: Option<String>,
    ) -> Result<Incident, Error> {
        let (repository, repo) = self.repository(caller, Scope::TestsAdmin, name).await?;
        let stores = &self.context.stores;
        let turn = self.turn(repo);
        let _turn = turn.lock().await;
        for _ in 0..ATTEMPTS {
            let at = self.context.clock.now();
            let known = stores.tests.repo(repo).await?;
            let settings = settings_of(repo, &known);
            let Some(before) = stores.tests.incident(repo, id).await? else {
                return Err(Error::UnknownIncident { repo: name.clone(), incident: id });
            };
            let after = before.decided(confirm, reason.clone(), Self::actor(caller), at)?;
            let mut changes = IncidentChanges::default();
            self.flip(repo, &before, &after, &mut changes).await?;
            changes.steps.push(self.step(
                &repository,
                Some(before.state),
                &after,
                BTreeSet::new(),
                at,
            ));
            let (judged, windows) = self.recounted(repo, &settings, &mut changes, at).await?;
            let steps = self.steps(&repository, &settings, None, None, judged, at).await?;
            let mut audit_entry = AuditEntryBuilder::of(
                caller,
                AuditAction::IncidentDecided,
                format!("incident {id} of {name}"),
                name,
            );
            audit_entry.reason.clone_from(&reason);
            let fields = |state: IncidentState| {
                AuditFields::from([("state".to_owned(), state.as_str().to_owned())])
            };
            let (from, to) = (fields(before.state), fields(after.state));
            let audit = audit_entry.record(&*self.context.ids, at, &from, &to);
            let commit = FlakyCommit {
                repo,
                expected: known.version,
                settings: None,
                steps: &steps,
                windows: &windows,
                presences: &BTreeMap::new(),
                incidents: Some(&changes),
                progress: None,
                at,
                audit: Some(&audit),
            };
            if self.commit(&commit).await?.is_some() {
                return Ok(after);
            }
        }
        Err(Error::Busy)
    }

    /// What an upload means for incidents, and the tests whose failures it excludes. `last` has the
    /// last counted failure of each of its tests that was reported before.
    pub(super) async fn assess(
        &self,
        repository: &Repository,
        settings: &Settings,
        outline: &Outline,
        last: &BTreeMap<TestId, Option<Timestamp>>,
        at: Timestamp,
    ) -> Result<Option<(IncidentChanges, BTreeSet<TestId>)>, Error> {
        if outline.outcome().admission != Admission::Counts || !settings.guard.enabled {
            return Ok(None);
        }
        let repo = RepoRef { org: repository.org, id: repository.id };
        let upload = outline.upload();
        let since = upload.received_at.minus(Span::days(WATCHED_DAYS));
        let known = self.context.stores.tests.incidents(repo, since, WATCHED).await?;
        let assessment = assess(&outline.look(last), &known.history, &known.incidents);
        let mut changes = IncidentChanges::default();
        for (before, incident) in assessment.changed {
            let mut failures = BTreeSet::new();
            if let Some(old) = known.incidents.iter().find(|it| it.id == incident.id) {
                self.flip(repo, old, &incident, &mut changes).await?;
            }
            if assessment.incident == Some(incident.id) {
                failures.extend(assessment.excluded.iter().map(|test| (*test, upload.id)));
                let late = &assessment.late;
                failures.extend(late.iter().copied());
                self.recount(repo, &incident, late, false, &mut changes).await?;
            }
            let mut step = self.step(repository, before, &incident, failures, at);
            if upload.source == UploadSource::Import {
                step.event = None;
            }
            changes.steps.push(step);
        }
        changes.history = Some(assessment.history);
        Ok(Some((changes, assessment.excluded)))
    }

    /// Recounts the failures of an incident whose state says something else of them now.
    async fn flip(
        &self,
        repo: RepoRef,
        before: &Incident,
        after: &Incident,
        changes: &mut IncidentChanges,
    ) -> Result<(), Error> {
        if before.state.excludes() == after.state.excludes() {
            return Ok(());
        }
        let failures = self.context.stores.tests.incident_failures(repo, after.id).await?;
        self.recount(repo, after, &failures, !after.state.excludes(), changes).await
    }

    async fn recount(
        &self,
        repo: RepoRef,
        incident: &Incident,
        failures: &BTreeSet<(TestId, UploadId)>,
        counts: bool,
        changes: &mut IncidentChanges,
    ) -> Result<(), Error> {
        let failures: Vec<(TestId, UploadId)> = failures.iter().copied().collect();
        // Runs may have started long before they were reported.
        let from = incident.started_at.minus(Span::days(2));
        for piece in failures.chunks(READ_AT_ONCE) {
            let piece: BTreeSet<(TestId, UploadId)> = piece.iter().copied().collect();
            let runs = self.context.stores.tests.failing_runs(repo, &piece, from).await?;
            for (test, failures) in failures_of(&runs) {
                let (incident, since) = (incident.id, incident.started_at);
                let last_failure_at = None;
                let recount = Recount { test, incident, since, counts, failures, last_failure_at };
                changes.recounts.push(recount);
            }
        }
        Ok(())
    }

    fn step(
        &self,
        repository: &Repository,
        before: Option<IncidentState>,
        incident: &Incident,
        failures: BTreeSet<(TestId, UploadId)>,
        at: Timestamp,
    ) -> IncidentStep {
        let told = before != Some(incident.state);
        let event = told.then(|| EventRecord {
            id: self.context.ids.new_id(),
            kind: INCIDENT_CHANGED,
            at,
            payload: self.context.events.incident_event(&repository.name, before, incident),
            request: self.context.ids.request_id(),
        });
        IncidentStep { incident: incident.clone(), failures, event }
    }

    /// Judges the tests of recounts that no upload reports.
    pub(super) async fn recounted(
        &self,
        repo: RepoRef,
        settings: &Settings,
        changes: &mut IncidentChanges,
        at: Timestamp,
    ) -> Result<(Vec<Judged>, BTreeMap<TestId, Windows>), Error> {
        let codes = self.codes_of(repo, &changes.recounts).await?;
        let mut by_test = by_test(std::mem::take(&mut changes.recounts));
        let ids: Vec<TestId> = by_test.keys().copied().collect();
        let records = by_id(self.context.stores.tests.tests(repo, &ids).await?);
        let rules = WindowRules::of(&settings.monitors);
        let mut rebuilt = self.rebuilt(repo, &rules, records.values(), at).await?;
        let (mut judged, mut windows) = (Vec::new(), BTreeMap::new());
        for (id, mut record) in records {
            let Some(recounts) = by_test.get_mut(&id) else { continue };
            let known = std::mem::take(&mut record.windows);
            let mut after = rebuilt.remove(&id).unwrap_or(known);
            let on_codes = codes.get(&id).cloned().unwrap_or_default();
            let last = record.last_failure_at;
            record.last_failure_at = apply(&mut after, &rules, recounts, &on_codes, last, at);
            judged.push(Judged::recounted(record, (settings, &rules), &after, recounts, at));
            windows.insert(id, after);
        }
        changes.recounts = by_test.into_values().flatten().collect();
        Ok((judged, windows))
    }

    /// The summaries of the codes of failures that count again.
    pub(super) async fn codes_of(
        &self,
        repo: RepoRef,
        recounts: &[Recount],
    ) -> Result<BTreeMap<TestId, Summary>, Error> {
        let mut tests: BTreeMap<&SameCode, Vec<TestId>> = BTreeMap::new();
        for recount in recounts.iter().filter(|it| it.counts) {
            for code in &recount.failures.codes {
                tests.entry(&code.code).or_default().push(recount.test);
            }
        }
        let mut found: BTreeMap<TestId, Summary> = BTreeMap::new();
        for (code, tests) in tests {
            for (test, codes) in self.context.stores.tests.codes(repo, &tests, code).await? {
                found.entry(test).or_default().codes.extend(codes);
            }
        }
        Ok(found)
    }
}

/// Recounts by their tests.
pub(super) fn by_test(recounts: Vec<Recount>) -> BTreeMap<TestId, Vec<Recount>> {
    let mut by_test: BTreeMap<TestId, Vec<Recount>> = BTreeMap::new();
    for recount in recounts {
        by_test.entry(recount.test).or_default().push(recount);
    }
    by_test
}

/// Recounts failures of a test in its windows; returns the last failure that counts then. `codes`
/// has the summaries of the codes of failures that count again.
pub(super) fn apply(
    windows: &mut Windows,
    rules: &WindowRules<'_>,
    recounts: &mut [Recount],
    codes: &Summary,
    last_failure_at: Option<Timestamp>,
    at: Timestamp,
) -> Option<Timestamp> {
    let mut last = last_failure_at;
    for recount in recounts {
        if recount.counts {
            let mut known = codes.clone();
            let failures = &recount.failures;
            known.add(&Summary { buckets: Vec::new(), codes: failures.codes.clone() });
            windows.count(rules, failures, &known.codes, at);
            let failed = failures.buckets.iter().filter_map(|it| it.last_failure_at);
            last = last.max(failed.max());
        } else {
            windows.forget(rules, &recount.failures);
            last = windows.last_failure_at();
        }
        recount.last_failure_at = last;
    }
    last
}

/// Removes failures that no longer count from the summaries of codes.
pub(super) fn without_excluded(codes: &mut [CodeSummary], recounts: &[Recount]) {
    for recount in recounts.iter().filter(|it| !it.counts) {
        for gone in &recount.failures.codes {
            for row in codes.iter_mut() {
                if row.is_of(gone) {
                    row.first_failure_at = None;
                }
            }
        }
    }
}

/// What monitors see of a test, after its recounts if it has some.
pub(super) fn fact_of(
    recounts: &[Recount],
    as_of: Timestamp,
    readings: Vec<(MonitorId, Reading)>,
) -> Fact {
    let excluded = recounts.iter().find(|it| !it.counts);
    match excluded.or_else(|| recounts.first()) {
        Some(Recount { incident, since, counts, .. }) => {
            let (incident, since, counts) = (*incident, *since, *counts);
            Fact::Recounted { as_of, readings, incident, since, counts }
        }
        None => Fact::Measured { as_of, readings },
    }
}
