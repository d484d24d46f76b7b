//! Which tests failed in a test run, and which of them are known to be flaky.

use std::collections::{BTreeMap, BTreeSet};

use signalbox_domain::flaky::{BranchClass, RunRecord, TestId, Trust, UploadId};
use signalbox_domain::ids::RepoName;
use signalbox_domain::ports::{RepoRef, TestSnapshot};
use signalbox_domain::queue::TestRun;
use signalbox_domain::time::Span;
use signalbox_domain::token::{Caller, Scope};
use signalbox_domain::upload::UploadRecord;

use super::super::Error;
use super::{FlakyService, settings_of};

/// Results may come this long after the run has ended, in hours.
const LATE_HOURS: u32 = 1;
/// The most failing attempts that are read.
const MOST_ATTEMPTS: u32 = 1_000;
/// The most uploads that they may come from.
const MOST_UPLOADS: usize = 50;

/// A test that failed in a test run.
#[derive(Clone, Debug, PartialEq)]
pub struct RunFailure {
    /// The test, as it is judged now.
    pub test: TestSnapshot,
    /// Its last attempt in the run.
    pub last: RunRecord,
    /// How many of its attempts failed.
    pub failures: u32,
}

impl FlakyService {
    /// The tests that failed in a test run of a queue, from the reports on its candidate, in the
    /// order of their ids. At most 1,000 failing attempts are read, the newest first. None
    /// while the candidate is being built.
    pub async fn failures_of(
        &self,
        caller: &Caller,
        name: &RepoName,
        run: &TestRun,
    ) -> Result<Vec<RunFailure>, Error> {
        let (repository, repo) = self.repository(caller, Scope::TestsRead, name).await?;
        let Some(candidate) = &run.candidate else { return Ok(Vec::new()) };
        let stores = &self.context.stores;
        let at = self.context.clock.now();
        let until = run.ended_at.unwrap_or(at).plus(Span::hours(LATE_HOURS));
        let range = (run.started_at, until);
        let runs = stores.reads.failed_runs(repo, &candidate.sha, range, MOST_ATTEMPTS).await?;
        let mut failed: BTreeMap<TestId, (RunRecord, u32)> = BTreeMap::new();
        for run in self.believed(repo, runs).await? {
            let (_, count) = failed.entry(run.test).or_insert((run, 0));
            *count += 1;
        }
        let ids: Vec<TestId> = failed.keys().copied().collect();
        let settings = settings_of(repo, &stores.tests.repo(repo).await?);
        let records = stores.tests.tests(repo, &ids).await?;
        let tests = self.snapshots(&repository, &settings, records, at).await?;
        let mut found: Vec<RunFailure> = tests
            .into_iter()
            .filter_map(|test| {
                let (last, failures) = failed.remove(&test.record.test.id)?;
                Some(RunFailure { test, last, failures })
            })
            .collect();
        found.sort_by_key(|failure| failure.test.record.test.id);
        Ok(found)
    }

    /// The attempts of uploads that may speak for a candidate: not of those by public id, nor of jobs
    /// that are known to be those of a pull request.
    async fn believed(&self, repo: RepoRef, runs: Vec<RunRecord>) -> Result<Vec<RunRecord>, Error> {
        let ids: BTreeSet<UploadId> = runs.iter().map(|run| run.upload).collect();
        let mut believed = BTreeSet::new();
        for id in ids.into_iter().take(MOST_UPLOADS) {
            let upload = self.context.stores.uploads.find(repo.org, id).await?;
            let speaks = |upload: &UploadRecord| {
                upload.trust == Trust::Token
                    && upload.claims.class != Some(BranchClass::PullRequest)
            };
            if upload.as_ref().is_none_or(speaks) {
                believed.insert(id);
            }
        }
        Ok(runs.into_iter().filter(|run| believed.contains(&run.upload)).collect())
    }
}
