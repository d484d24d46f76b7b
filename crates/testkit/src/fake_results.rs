//! A fake sink of test results, and a fake lookup of quarantined tests.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use signalbox_domain::flaky::{
    Actor, Admission, AskedTest, IngestOutcome, QuarantineCause, ReportedRun, RunOutcome, TestId,
    Upload,
};
use signalbox_domain::ids::{OrgId, RepoId};
use signalbox_domain::ports::StoreError;
use signalbox_services::Error;
use signalbox_services::{QuarantineAnswer, QuarantineLookup, ResultsSink};

/// Records received results, and answers lookups from a set of quarantined tests.
#[derive(Debug, Default)]
pub struct FakeResults {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    taken: Vec<(Upload, Vec<ReportedRun>)>,
    failures: u32,
    quarantined: Vec<((OrgId, RepoId), TestId)>,
    disabled: BTreeSet<(OrgId, RepoId)>,
}

impl FakeResults {
    /// The received uploads, in order; repeated uploads count once.
    pub fn taken(&self) -> Vec<(Upload, Vec<ReportedRun>)> {
        self.state().taken.clone()
    }

    /// Makes the next calls of the sink fail, as if the database were unavailable.
    pub fn fail(&self, times: u32) {
        self.state().failures = times;
    }

    /// Quarantines a test of a repository.
    pub fn quarantine(&self, org: OrgId, repo: RepoId, test: TestId) {
        self.state().quarantined.push(((org, repo), test));
    }

    /// Disables quarantine in a repository.
    pub fn disable(&self, org: OrgId, repo: RepoId) {
        self.state().disabled.insert((org, repo));
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl ResultsSink for FakeResults {
    async fn take_in(
        &self,
        upload: &Upload,
        runs: Vec<ReportedRun>,
    ) -> Result<IngestOutcome, Error> {
        let mut state = self.state();
        if state.failures > 0 {
            state.failures -= 1;
            return Err(StoreError::Unavailable("the database is unavailable".into()).into());
        }
        let repeated = state.taken.iter().any(|(it, _)| it.id == upload.id);
        let tests: BTreeSet<_> = runs.iter().map(|run| &run.key).collect();
        let failed = |key: &&_| {
            let last = runs.iter().rfind(|run| run.key == **key);
            last.is_some_and(|run| run.outcome == RunOutcome::Failed)
        };
        let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let taken = IngestOutcome {
            tests: count(tests.len()),
            failed: count(tests.iter().filter(|key| failed(key)).count()),
            runs: count(runs.len()),
            ignored: 0,
            admission: Admission::Counts,
            repeated,
        };
        if !repeated {
            state.taken.push((upload.clone(), runs));
        }
        Ok(taken)
    }
}

#[async_trait]
impl QuarantineLookup for FakeResults {
    async fn quarantined(
        &self,
        org: OrgId,
        repo: RepoId,
        asked: &[AskedTest],
    ) -> Result<QuarantineAnswer, Error> {
        let state = self.state();
        let own = state.quarantined.iter().filter(|(place, _)| *place == (org, repo));
        let own: BTreeSet<TestId> = own.map(|(_, test)| *test).collect();
        let ids = if asked.is_empty() {
            own.iter().map(ToString::to_string).collect()
        } else {
            let is_quarantined = |it: &&AskedTest| own.contains(&it.key.id());
            asked.iter().filter(is_quarantined).map(|it| it.id.clone()).collect()
        };
        Ok(QuarantineAnswer { disabled: state.disabled.contains(&(org, repo)), ids })
    }

    async fn causes(
        &self,
        org: OrgId,
        repo: RepoId,
        asked: &[AskedTest],
    ) -> Result<BTreeMap<String, QuarantineCause>, Error> {
        if asked.is_empty() {
            return Ok(BTreeMap::new());
        }
        let answer = self.quarantined(org, repo, asked).await?;
        let ids = if answer.disabled { Vec::new() } else { answer.ids };
        let cause = QuarantineCause::Override { by: Actor::system() };
        Ok(ids.into_iter().map(|id| (id, cause.clone())).collect())
    }
}
