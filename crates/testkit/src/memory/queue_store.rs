//! Queues.

use std::collections::BTreeMap;

use async_trait::async_trait;
use signalbox_domain::ids::{BranchName, OrgId, PrNumber, RepoId, RepoName};
use signalbox_domain::ports::{
    Commit, CommitError, CreateError, Loaded, Located, QueueKey, QueueRef, QueueStore, StoreError,
    Version,
};
use signalbox_domain::queue::{Entry, Queue, ReportedTargets, TestRun};
use signalbox_domain::time::Timestamp;

use super::MemoryDatabase;
use super::database::refused;
use super::repo_store::named;
use super::tables::{OutboxRow, QueueRow, Tables};

#[async_trait]
impl QueueStore for MemoryDatabase {
    async fn create(&self, queue: &Queue) -> Result<(), CreateError> {
        let mut tables = self.tables();
        let header = &queue.header;
        if living(&tables).any(|row| {
            (row.header.org, row.header.repo, &row.header.branch)
                == (header.org, header.repo, &header.branch)
        }) {
            return Err(CreateError::Exists);
        }
        if tables.queues.contains_key(&header.id) {
            return Err(refused(format!("duplicate queue id {}", header.id)).into());
        }
        tables.queues.insert(
            header.id,
            QueueRow {
                header: header.clone(),
                version: Version(0),
                next_deadline: None,
                watched_until: None,
                entries: BTreeMap::new(),
                runs: BTreeMap::new(),
                targets: BTreeMap::new(),
                journal: BTreeMap::new(),
            },
        );
        Ok(())
    }

    async fn find(
        &self,
        org: OrgId,
        repo: RepoId,
        branch: &BranchName,
    ) -> Result<Option<QueueRef>, StoreError> {
        let tables = self.tables();
        let found = living(&tables).find(|row| {
            (row.header.org, row.header.repo, &row.header.branch) == (org, repo, branch)
        });
        Ok(found.map(QueueRow::reference))
    }

    async fn locate(
        &self,
        org: OrgId,
        name: &RepoName,
        any_case: bool,
        branch: &BranchName,
        pr: Option<PrNumber>,
    ) -> Result<Option<Located>, StoreError> {
        let tables = self.tables();
        let own = tables.repos.values().filter(|it| it.org == org);
        let Some(repository) = named(own, name, any_case).cloned() else { return Ok(None) };
        let of_branch = |row: &&QueueRow| {
            (row.header.org, row.header.repo, &row.header.branch) == (org, repository.id, branch)
        };
        let row = living(&tables).find(of_branch);
        let targets = row.zip(pr).and_then(|(row, pr)| row.targets.get(&pr));
        let targets = targets.map(|targets| targets.as_ref().clone());
        let queue = row.map(|row| (row.reference(), row.version));
        Ok(Some(Located { repository, queue, targets }))
    }

    async fn load(
        &self,
        queue: QueueRef,
        known: Option<Version>,
    ) -> Result<Option<Loaded>, StoreError> {
        let tables = self.tables();
        let Some(row) = tables.queue(queue).filter(|row| !row.header.deleted) else {
            return Ok(None);
        };
        if known == Some(row.version) {
            return Ok(Some(Loaded::Current));
        }
        let entries: Vec<Entry> = row.live().map(|entry| row.with_targets(entry)).collect();
        let runs: Vec<TestRun> =
            row.runs.values().filter(|run| row.matters(run)).cloned().collect();
        let fresh = Queue::restore(row.header.clone(), entries, runs);
        Ok(Some(Loaded::Fresh(Box::new(fresh), row.version)))
    }

    async fn commit(&self, steps: &[Commit<'_>]) -> Result<Version, CommitError> {
        let mut tables = self.tables();
        let Some(first) = steps.first() else { return Err(refused("no step".to_owned()).into()) };
        let expected = tables.queue(first.queue).map(|row| row.version);
        if expected != Some(first.expected) {
            return Err(CommitError::Conflict);
        }
        // All constraints are checked before the first change.
        for step in steps {
            check_numbers(&tables, step)?;
        }
        let mut version = first.expected;
        for step in steps {
            version = tables.write(step)?;
        }
        Ok(version)
    }

    async fn list(
        &self,
        org: Option<OrgId>,
        repo: Option<RepoId>,
    ) -> Result<Vec<QueueKey>, StoreError> {
        let tables = self.tables();
        Ok(living(&tables)
            .filter(|row| org.is_none_or(|org| row.header.org == org))
            .filter(|row| repo.is_none_or(|repo| row.header.repo == repo))
            .map(QueueRow::key)
            .collect())
    }

    async fn versions(
        &self,
        watched_at: Option<Timestamp>,
    ) -> Result<Vec<(QueueKey, Version)>, StoreError> {
        let tables = self.tables();
        let watched = |row: &&QueueRow| {
            watched_at.is_none_or(|at| row.watched_until.is_some_and(|until| until > at))
        };
        Ok(living(&tables).filter(watched).map(|row| (row.key(), row.version)).collect())
    }

    async fn due(&self, at: Timestamp, limit: u32) -> Result<Vec<QueueRef>, StoreError> {
        let tables = self.tables();
        let mut due: Vec<(Timestamp, QueueRef)> = living(&tables)
            .filter_map(|row| Some((row.next_deadline?, row.reference())))
            .filter(|(deadline, _)| *deadline <= at)
            .collect();
        due.sort_unstable();
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        Ok(due.into_iter().take(limit).map(|(_, queue)| queue).collect())
    }

    async fn targets(
        &self,
        queue: QueueRef,
        pr: PrNumber,
    ) -> Result<Option<ReportedTargets>, StoreError> {
        let tables = self.tables();
        let targets = tables.queue(queue).and_then(|row| row.targets.get(&pr));
        Ok(targets.map(|targets| targets.as_ref().clone()))
    }
}

impl Tables {
    /// Writes a step.
    fn write(&mut self, step: &Commit<'_>) -> Result<Version, CommitError> {
        for numbered in step.effects {
            self.last_outbox_row += 1;
            let id = self.last_outbox_row;
            let row = OutboxRow {
                queue: step.queue,
                number: numbered.number,
                effect: numbered.effect.clone(),
                due_at: step.at,
                attempts: 0,
                failing_since: None,
                last_error: None,
                lease: None,
                request: step.request.map(ToOwned::to_owned),
            };
            self.outbox.insert(id, row);
        }
        self.log(step.queue.org, step.header.repo, step.events);
        self.make_due(step.queue, step.shown, step.at);
        self.audit(step.audit);
        let Some(row) = self.queues.get_mut(&step.queue.id) else {
            return Err(CommitError::Conflict);
        };
        row.version = Version(step.expected.0 + 1);
        row.header = step.header.clone();
        row.next_deadline = step.next_deadline;
        row.watched_until = step.watched_until.or(row.watched_until);
        for entry in &step.changes.entries {
            row.entries.insert(entry.id, Entry { targets: None, ..entry.as_ref().clone() });
        }
        for run in &step.changes.runs {
            row.runs.insert(run.id, run.as_ref().clone());
        }
        for (pr, targets) in &step.changes.targets {
            row.targets.insert(*pr, targets.clone());
        }
        row.journal.insert(step.journal.number, step.journal.clone());
        Ok(row.version)
    }
}

fn living(tables: &Tables) -> impl Iterator<Item = &QueueRow> {
    tables.queues.values().filter(|row| !row.header.deleted)
}

/// Checks that numbers within a queue are unique, as the keys of a database do.
fn check_numbers(tables: &Tables, commit: &Commit<'_>) -> Result<(), StoreError> {
    let number = commit.journal.number;
    if tables.queue(commit.queue).is_some_and(|row| row.journal.contains_key(&number)) {
        return Err(refused(format!("duplicate journal record {number}")));
    }
    let taken = |number| {
        tables.outbox.values().any(|row| row.queue == commit.queue && row.number == number)
    };
    match commit.effects.iter().find(|effect| taken(effect.number)) {
        Some(effect) => Err(refused(format!("duplicate effect {}", effect.number))),
        None => Ok(()),
    }
}
