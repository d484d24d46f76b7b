//! Flaky tests: settings, tests and summaries.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use signalbox_domain::flaky::{
    CodeSummary, Incident, IncidentId, IngestOutcome, Intake, MonitorStatus, Presence, RunOutcome,
    RunRecord, SameCode, Summary, TestId, UploadId, Windows,
};
use signalbox_domain::ports::{
    CiRun, CommitError, EventRecord, FlakyCommit, FlakyDraft, FlakyRepo, FlakyStore, IntakePart,
    KnownIncidents, KnownTest, NewIntake, RepoRef, StoreError, TestRecord, TestStep, Version,
};
use signalbox_domain::time::Timestamp;

use super::MemoryDatabase;
use super::database::refused;

#[async_trait]
impl FlakyStore for MemoryDatabase {
    async fn repo(&self, repo: RepoRef) -> Result<FlakyRepo, StoreError> {
        let tables = self.tables();
        let row = tables.flaky.repos.get(&repo);
        Ok(FlakyRepo {
            version: Version(row.map_or(0, |row| row.version)),
            revision: row.map_or(0, |row| row.revision),
            settings: row.and_then(|row| row.settings.clone()),
            progress: row.map(|row| row.progress).unwrap_or_default(),
        })
    }

    async fn tests(&self, repo: RepoRef, ids: &[TestId]) -> Result<Vec<TestRecord>, StoreError> {
        let tables = self.tables();
        let ids: BTreeSet<TestId> = ids.iter().copied().collect();
        let rows = ids.into_iter().filter_map(|id| tables.flaky.tests.get(&(repo, id)));
        Ok(rows.map(|row| row.record.clone()).collect())
    }

    async fn known_tests(
        &self,
        repo: RepoRef,
        ids: &[TestId],
    ) -> Result<Vec<KnownTest>, StoreError> {
        let known = |record: TestRecord| KnownTest {
            test: record.test,
            stable_since: record.stable_since,
            last_failure_at: record.last_failure_at,
        };
        Ok(self.tests(repo, ids).await?.into_iter().map(known).collect())
    }

    async fn watched(&self, repo: RepoRef) -> Result<Vec<TestRecord>, StoreError> {
        let tables = self.tables();
        let records = tables.flaky.tests.iter().filter(|((of, _), _)| *of == repo);
        let watched = records.map(|(_, row)| &row.record).filter(|record| {
            record.test.monitors.values().any(|it| it.status == MonitorStatus::Active)
        });
        Ok(watched.cloned().collect())
    }

    async fn presences(
        &self,
        repo: RepoRef,
        places: &[String],
    ) -> Result<BTreeMap<TestId, Presence>, StoreError> {
        let tables = self.tables();
        let kept = tables.flaky.presences.iter();
        let found = kept.filter(|((of, _), it)| *of == repo && places.contains(&it.place));
        Ok(found.map(|((_, test), presence)| (*test, presence.clone())).collect())
    }

    async fn ids_by_alias(
        &self,
        repo: RepoRef,
        aliases: &[String],
    ) -> Result<Vec<(String, TestId)>, StoreError> {
        let tables = self.tables();
        let aliases: BTreeSet<&String> = aliases.iter().collect();
        let mut ids_by_alias = Vec::new();
        for ((of, id), row) in &tables.flaky.tests {
            if *of == repo {
                let known = row.aliases.iter().filter(|alias| aliases.contains(alias));
                ids_by_alias.extend(known.map(|alias| (alias.clone(), *id)));
            }
        }
        ids_by_alias.sort();
        Ok(ids_by_alias)
    }

    async fn aliases(&self, repo: RepoRef, tests: &[TestId]) -> Result<Vec<String>, StoreError> {
        let tables = self.tables();
        let rows = tests.iter().filter_map(|id| tables.flaky.tests.get(&(repo, *id)));
        let aliases: BTreeSet<String> = rows.flat_map(|row| row.aliases.iter().cloned()).collect();
        Ok(aliases.into_iter().collect())
    }

    async fn summaries(
        &self,
        repo: RepoRef,
        ids: &[TestId],
        since: Timestamp,
    ) -> Result<BTreeMap<TestId, Summary>, StoreError> {
        let tables = self.tables();
        let mut found = BTreeMap::new();
        for id in ids {
            let Some(known) = tables.flaky.summaries.get(&(repo, *id)) else { continue };
            let mut summary = known.clone();
            summary.buckets.retain(|bucket| bucket.start >= since);
            summary.codes.retain(|code| {
                code.first_success_at.max(code.first_failure_at).is_some_and(|at| at >= since)
            });
            if !summary.buckets.is_empty() || !summary.codes.is_empty() {
                found.insert(*id, summary);
            }
        }
        Ok(found)
    }

    async fn codes(
        &self,
        repo: RepoRef,
        ids: &[TestId],
        code: &SameCode,
    ) -> Result<BTreeMap<TestId, Vec<CodeSummary>>, StoreError> {
        let tables = self.tables();
        let mut found = BTreeMap::new();
        for id in ids {
            let Some(known) = tables.flaky.summaries.get(&(repo, *id)) else { continue };
            let codes = known.codes.iter().filter(|it| it.code == *code).cloned();
            let codes: Vec<CodeSummary> = codes.collect();
            if !codes.is_empty() {
                found.insert(*id, codes);
            }
        }
        Ok(found)
    }

    async fn incidents(
        &self,
        repo: RepoRef,
        since: Timestamp,
        limit: u32,
    ) -> Result<KnownIncidents, StoreError> {
        let tables = self.tables();
        let known = tables.flaky.incidents.iter().filter(|((of, _), _)| *of == repo);
        let known = known.map(|(_, incident)| incident).filter(|it| it.last_at >= since);
        let mut incidents: Vec<Incident> = known.cloned().collect();
        incidents.sort_by_key(|it| (std::cmp::Reverse(it.last_at), it.id));
        incidents.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        let history = tables.flaky.history.get(&repo).cloned().unwrap_or_default();
        Ok(KnownIncidents { history, incidents })
    }

    async fn incident(
        &self,
        repo: RepoRef,
        id: IncidentId,
    ) -> Result<Option<Incident>, StoreError> {
        Ok(self.tables().flaky.incidents.get(&(repo, id)).cloned())
    }

    async fn incident_failures(
        &self,
        repo: RepoRef,
        id: IncidentId,
    ) -> Result<BTreeSet<(TestId, UploadId)>, StoreError> {
        let tables = self.tables();
        let failures = tables.flaky.incident_failures.iter();
        let failures = failures.filter(|(of, incident, _, _)| *of == repo && *incident == id);
        Ok(failures.map(|(_, _, test, upload)| (*test, *upload)).collect())
    }

    async fn failing_runs(
        &self,
        repo: RepoRef,
        failures: &BTreeSet<(TestId, UploadId)>,
        from: Timestamp,
    ) -> Result<Vec<RunRecord>, StoreError> {
        let tables = self.tables();
        let runs = tables.flaky.runs.iter().filter(|(of, _, run)| {
            *of == repo
                && run.outcome == RunOutcome::Failed
                && run.at >= from
                && failures.contains(&(run.test, run.upload))
        });
        Ok(runs.map(|(_, _, run)| run.clone()).collect())
    }

    async fn ingest_outcome(
        &self,
        repo: RepoRef,
        id: UploadId,
    ) -> Result<Option<IngestOutcome>, StoreError> {
        Ok(self.tables().flaky.uploads.get(&(repo, id)).map(|(_, taken_in)| *taken_in))
    }

    async fn draft(&self, new: &NewIntake<'_>) -> Result<Box<dyn FlakyDraft>, StoreError> {
        Ok(Box::new(MemoryDraft {
            database: self.clone(),
            upload: (new.upload.id, new.upload.received_at, new.taken_in),
            at: new.at,
            parts: Vec::new(),
        }))
    }

    async fn commit(&self, commit: &FlakyCommit<'_>) -> Result<Version, CommitError> {
        self.commit_all(commit, None)
    }

    async fn due(&self, at: Timestamp, limit: u32) -> Result<Vec<(RepoRef, TestId)>, StoreError> {
        let tables = self.tables();
        let rows = tables.flaky.tests.iter();
        let mut due: Vec<_> = rows
            .filter_map(|(place, row)| Some((row.due_at.filter(|due| *due <= at)?, *place)))
            .collect();
        due.sort_by_key(|(due, (_, test))| (*due, *test));
        due.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        Ok(due.into_iter().map(|(_, place)| place).collect())
    }

    async fn postpone(
        &self,
        repo: RepoRef,
        tests: &[(TestId, Option<Timestamp>)],
    ) -> Result<(), StoreError> {
        let mut tables = self.tables();
        for (id, due_at) in tests {
            if let Some(row) = tables.flaky.tests.get_mut(&(repo, *id)) {
                row.due_at = *due_at;
            }
        }
        Ok(())
    }

    async fn link_ticket(
        &self,
        repo: RepoRef,
        test: TestId,
        ticket: &str,
    ) -> Result<bool, StoreError> {
        let mut tables = self.tables();
        let row = tables.flaky.tests.get_mut(&(repo, test));
        Ok(row.map(|row| row.record.ticket = Some(ticket.to_owned())).is_some())
    }

    async fn page_key(&self, new: [u8; 32]) -> Result<[u8; 32], StoreError> {
        Ok(*self.tables().flaky.page_key.get_or_insert(new))
    }

    async fn add_ci_run(&self, repo: RepoRef, run: &CiRun) -> Result<(), StoreError> {
        self.tables().flaky.ci_runs.push((repo, run.clone()));
        Ok(())
    }

    async fn prepare_days(&self, _: Timestamp) -> Result<(), StoreError> {
        Ok(())
    }

    async fn prune(&self, before: Timestamp, _: u32) -> Result<u64, StoreError> {
        let mut tables = self.tables();
        let flaky = &mut tables.flaky;
        let mut gone = 0;
        let mut count = |kept: bool| {
            gone += u64::from(!kept);
            kept
        };
        flaky.runs.retain(|(_, received, _)| count(*received >= before));
        flaky.hours.retain(|(_, hour), _| count(*hour >= before));
        flaky.failures.retain(|(_, day), _| count(*day >= before));
        flaky.impacted.retain(|_, at| count(*at >= before));
        flaky.uploads.retain(|_, (received, _)| count(*received >= before));
        flaky.days.retain(|(_, day), _| count(*day >= before));
        flaky.ci_runs.retain(|(_, run)| count(run.at >= before));
        flaky.incidents.retain(|_, incident| count(incident.last_at >= before));
        let known: BTreeSet<_> = flaky.incidents.keys().copied().collect();
        flaky.incident_failures.retain(|(repo, id, _, _)| known.contains(&(*repo, *id)));
        for summary in flaky.summaries.values_mut() {
            summary.buckets.retain(|bucket| count(bucket.start >= before));
            summary.codes.retain(|code| {
                let last = code.first_success_at.max(code.first_failure_at);
                count(last.is_some_and(|at| at >= before))
            });
        }
        flaky.tests.retain(|_, row| count(row.record.last_seen_at >= before));
        let kept: BTreeSet<_> = flaky.tests.keys().copied().collect();
        flaky.journal.retain(|(place, _), _| count(kept.contains(place)));
        flaky.summaries.retain(|place, _| kept.contains(place));
        flaky.presences.retain(|place, _| kept.contains(place));
        Ok(gone)
    }
}

/// A part of an upload's results.
struct Part {
    intake: Intake,
    steps: Vec<TestStep>,
    windows: BTreeMap<TestId, Windows>,
    presences: BTreeMap<TestId, Option<Presence>>,
}

struct MemoryDraft {
    database: MemoryDatabase,
    upload: (UploadId, Timestamp, IngestOutcome),
    at: Timestamp,
    parts: Vec<Part>,
}

#[async_trait]
impl FlakyDraft for MemoryDraft {
    async fn add(&mut self, part: &IntakePart<'_>) -> Result<(), StoreError> {
        self.parts.push(Part {
            intake: part.intake.clone(),
            steps: part.steps.to_vec(),
            windows: part.windows.clone(),
            presences: part.presences.clone(),
        });
        Ok(())
    }

    async fn commit(self: Box<Self>, commit: &FlakyCommit<'_>) -> Result<Version, CommitError> {
        self.database.commit_all(commit, Some(&self))
    }
}

impl MemoryDatabase {
    fn commit_all(
        &self,
        commit: &FlakyCommit<'_>,
        draft: Option<&MemoryDraft>,
    ) -> Result<Version, CommitError> {
        let mut tables = self.tables();
        let repo = commit.repo;
        if !tables.repos.contains_key(&(repo.org, repo.id)) {
            return Err(CommitError::Store(refused(format!("no repository {}", repo.id))));
        }
        let flaky = &mut tables.flaky;
        let row = flaky.repos.entry(repo).or_default();
        if row.version != commit.expected.0 {
            return Err(CommitError::Conflict);
        }
        row.version += 1;
        let parts = draft.map_or(&[][..], |draft| &draft.parts);
        let has_steps = !commit.steps.is_empty() || parts.iter().any(|it| !it.steps.is_empty());
        if commit.settings.is_some() || has_steps {
            row.revision += 1;
        }
        if let Some(step) = commit.settings {
            row.settings = Some(step.settings.clone());
            row.log.push(step.clone());
        }
        if let Some(step) = commit.progress {
            row.progress = step.progress;
        }
        let version = Version(row.version);
        if let Some(changes) = commit.incidents {
            flaky.change_incidents(repo, changes);
        }
        if let Some(draft) = draft {
            let (id, received_at, taken_in) = draft.upload;
            flaky.uploads.insert((repo, id), (received_at, taken_in));
            for part in parts {
                flaky.take_in(repo, &part.intake, draft.at);
                flaky.change_tests(repo, &part.steps, &part.windows, &part.presences);
            }
        }
        flaky.change_tests(repo, commit.steps, commit.windows, commit.presences);
        let of_incidents = commit.incidents.iter().flat_map(|it| &it.steps);
        let of_incidents: Vec<EventRecord> =
            of_incidents.filter_map(|step| step.event.clone()).collect();
        tables.log(repo.org, repo.id, &of_incidents);
        let of_import: Option<EventRecord> = commit.progress.and_then(|step| step.event.clone());
        tables.log(repo.org, repo.id, of_import.as_slice());
        for step in parts.iter().flat_map(|part| &part.steps).chain(commit.steps) {
            tables.log(repo.org, repo.id, &step.events);
        }
        tables.audit(commit.audit);
        Ok(version)
    }
}
