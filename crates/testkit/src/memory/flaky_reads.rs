//! Reads of flaky tests.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use signalbox_domain::flaky::{
    CodeSummary, Incident, IncidentId, JournalRecord, RunOutcome, RunRecord, TestId,
};
use signalbox_domain::ids::{PrNumber, Sha};
use signalbox_domain::ports::{
    FlakyReads, RepoRef, Seek, SettingsStep, StoreError, TestList, TestNumbers, TestRecord,
};
use signalbox_domain::time::{Span, Timestamp};

use super::MemoryDatabase;
use super::flaky_tables::{FlakyTables, merge};

#[async_trait]
impl FlakyReads for MemoryDatabase {
    async fn list(
        &self,
        repo: RepoRef,
        list: TestList,
        seek: Seek,
        limit: u32,
    ) -> Result<Vec<TestRecord>, StoreError> {
        let tables = self.tables();
        let listed = tables.flaky.listed(repo, list);
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let page: Vec<&TestRecord> = match seek {
            Seek::After(after) => listed
                .into_iter()
                .filter(|it| after.is_none_or(|after| it.test.id > after))
                .take(limit)
                .collect(),
            Seek::Before(before) => {
                let listed: Vec<_> = listed
                    .into_iter()
                    .filter(|it| before.is_none_or(|before| it.test.id < before))
                    .collect();
                listed[listed.len().saturating_sub(limit)..].to_vec()
            }
        };
        Ok(page.into_iter().cloned().collect())
    }

    async fn count(&self, repo: RepoRef, list: TestList) -> Result<u64, StoreError> {
        let count = self.tables().flaky.listed(repo, list).len();
        Ok(u64::try_from(count).unwrap_or(u64::MAX))
    }

    async fn ids(&self, repo: RepoRef, list: TestList) -> Result<Vec<TestId>, StoreError> {
        let tables = self.tables();
        Ok(tables.flaky.listed(repo, list).into_iter().map(|it| it.test.id).collect())
    }

    async fn numbers(
        &self,
        repo: RepoRef,
        ids: &[TestId],
        at: Timestamp,
    ) -> Result<BTreeMap<TestId, TestNumbers>, StoreError> {
        let tables = self.tables();
        let mut found = BTreeMap::new();
        for id in ids {
            let numbers = numbers(&tables.flaky, (repo, *id), at);
            if numbers != TestNumbers::default() {
                found.insert(*id, numbers);
            }
        }
        Ok(found)
    }

    async fn pull_requests(
        &self,
        repo: RepoRef,
        ids: &[TestId],
        at: Timestamp,
    ) -> Result<BTreeMap<TestId, BTreeSet<PrNumber>>, StoreError> {
        let numbers = self.numbers(repo, ids, at).await?.into_iter();
        let impacted = numbers.map(|(test, numbers)| (test, numbers.pull_requests_7d));
        Ok(impacted.filter(|(_, impacted)| !impacted.is_empty()).collect())
    }

    async fn failed_codes(
        &self,
        repo: RepoRef,
        ids: &[TestId],
        since: Timestamp,
    ) -> Result<BTreeMap<TestId, Vec<CodeSummary>>, StoreError> {
        let tables = self.tables();
        let mut found = BTreeMap::new();
        for id in ids {
            let Some(known) = tables.flaky.summaries.get(&(repo, *id)) else { continue };
            let failed = known.codes.iter().filter(|it| it.first_failure_at >= Some(since));
            let failed: BTreeSet<_> = failed.map(|it| &it.code).collect();
            let codes = known.codes.iter().filter(|it| failed.contains(&it.code)).cloned();
            let codes: Vec<CodeSummary> = codes.collect();
            if !codes.is_empty() {
                found.insert(*id, codes);
            }
        }
        Ok(found)
    }

    async fn test_journal(
        &self,
        repo: RepoRef,
        test: TestId,
        before: Option<u64>,
        limit: u32,
    ) -> Result<Vec<JournalRecord>, StoreError> {
        let tables = self.tables();
        let records = tables.flaky.journal.iter().rev();
        let records = records.filter(|((place, number), _)| {
            *place == (repo, test) && before.is_none_or(|before| *number < before)
        });
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        Ok(records.take(limit).map(|(_, record)| record.clone()).collect())
    }

    async fn incidents_of(
        &self,
        repo: RepoRef,
        test: TestId,
        limit: u32,
    ) -> Result<Vec<Incident>, StoreError> {
        let tables = self.tables();
        let failures = tables.flaky.incident_failures.iter();
        let of_test = failures.filter(|(of, _, failed, _)| *of == repo && *failed == test);
        let ids: BTreeSet<IncidentId> = of_test.map(|(_, id, _, _)| *id).collect();
        let found = ids.into_iter().filter_map(|id| tables.flaky.incidents.get(&(repo, id)));
        let mut found: Vec<Incident> = found.cloned().collect();
        found.sort_by_key(|it| (std::cmp::Reverse(it.last_at), it.id));
        found.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        Ok(found)
    }

    async fn recent_runs(
        &self,
        repo: RepoRef,
        test: TestId,
        limit: u32,
    ) -> Result<Vec<RunRecord>, StoreError> {
        let tables = self.tables();
        let runs = tables.flaky.runs.iter();
        let mut runs: Vec<RunRecord> = runs
            .filter(|(of, _, run)| *of == repo && run.test == test)
            .map(|(_, _, run)| run.clone())
            .collect();
        runs.sort_by_key(|run| std::cmp::Reverse((run.at, run.attempt, run.upload)));
        runs.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        Ok(runs)
    }

    async fn failed_runs(
        &self,
        repo: RepoRef,
        sha: &Sha,
        (from, until): (Timestamp, Timestamp),
        limit: u32,
    ) -> Result<Vec<RunRecord>, StoreError> {
        let tables = self.tables();
        let of_commit = |run: &RunRecord| run.sha.as_deref() == Some(sha.as_str());
        let mut runs: Vec<RunRecord> = tables
            .flaky
            .runs
            .iter()
            .filter(|(of, _, run)| *of == repo && run.outcome == RunOutcome::Failed)
            .filter(|(_, _, run)| run.at >= from && run.at < until && of_commit(run))
            .map(|(_, _, run)| run.clone())
            .collect();
        runs.sort_by_key(|run| (Reverse((run.at, run.attempt)), run.test.to_string()));
        runs.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        Ok(runs)
    }

    async fn settings_history(
        &self,
        repo: RepoRef,
        limit: u32,
    ) -> Result<Vec<SettingsStep>, StoreError> {
        let tables = self.tables();
        let log = tables.flaky.repos.get(&repo).into_iter().flat_map(|row| row.log.iter().rev());
        Ok(log.take(usize::try_from(limit).unwrap_or(usize::MAX)).cloned().collect())
    }
}

fn numbers(tables: &FlakyTables, place: super::flaky_tables::Place, at: Timestamp) -> TestNumbers {
    let mut numbers = TestNumbers::default();
    let (day, week) = (at.minus(Span::hours(24)), at.minus(Span::hours(7 * 24)));
    let hours = tables.hours.range((place, week)..).take_while(|((of, _), _)| *of == place);
    for ((_, hour), count) in hours.filter(|((_, hour), _)| *hour > week) {
        let runs = count.passed + count.failed;
        numbers.runs_7d += runs;
        numbers.failures_7d += count.failed;
        if *hour > day {
            numbers.runs_24h += runs;
            numbers.failures_24h += count.failed;
        }
    }
    let impacted = tables.impacted.iter().filter(|((of, _), last)| *of == place && **last > week);
    numbers.pull_requests_7d = impacted.map(|((_, pr), _)| *pr).collect();
    for ((of, _), clusters) in &tables.failures {
        if *of == place {
            for cluster in clusters {
                merge(&mut numbers.failures, cluster);
            }
        }
    }
    TestNumbers::rank(&mut numbers.failures);
    numbers
}
