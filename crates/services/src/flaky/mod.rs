//! Use cases of flaky tests: storing results, judging tests, and lists.

mod commands;
mod finish_import;
mod incidents;
mod judge;
mod known;
mod lookup;
mod measure;
mod presence;
mod preview;
mod reads;
mod run_failures;
mod settings;
mod take_in;
mod trend;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use quick_cache::sync::Cache;
use signalbox_domain::flaky::{Actor, Settings};
use signalbox_domain::ids::RepoName;
use signalbox_domain::ports::{
    CommitError, FlakyCommit, FlakyRepo, RepoRef, Repository, TestStep, Version,
};
use signalbox_domain::time::Timestamp;
use signalbox_domain::token::{Caller, Scope};

use super::{Error, FlakyContext};
use known::QuarantinedTests;

pub use preview::{Preview, PreviewedTest};
pub use reads::{ListKind, ListedTests, TestDetails};
pub use run_failures::RunFailure;

/// How often a step is decided again before it fails.
const ATTEMPTS: u32 = 32;
/// The most repositories whose turns are kept.
const TURNS: usize = 4_096;
/// The most repositories whose quarantined tests are remembered.
const REMEMBERED: usize = 256;

/// The most lists whose number of tests is remembered.
const TOTALS: usize = 4_096;

/// What is done with flaky tests. Methods with a caller check what the caller may do and see.
pub struct FlakyService {
    context: FlakyContext,
    turns: Mutex<BTreeMap<RepoRef, Arc<async_lock::Mutex<()>>>>,
    /// The quarantined tests of repositories, and when they were last found to be up to date.
    quarantined: Cache<RepoRef, (Timestamp, Arc<QuarantinedTests>)>,
    /// The number of tests of lists, each with the commit or change of the repository, and the hour, in
    /// which it was counted.
    totals: Cache<(RepoRef, ListKind), ((i64, Timestamp), u64)>,
    /// Runs of an upload that are counted together.
    part: usize,
}

impl FlakyService {
    /// Runs of an upload that are counted together: memory for their tests is needed only meanwhile.
    pub const RUNS_OF_A_PART: usize = 5_000;

    /// A service on these adapters.
    pub fn new(context: impl Into<FlakyContext>) -> Self {
        Self {
            context: context.into(),
            turns: Mutex::new(BTreeMap::new()),
            quarantined: Cache::new(REMEMBERED),
            totals: Cache::new(TOTALS),
            part: Self::RUNS_OF_A_PART,
        }
    }

    /// Counts uploads in parts of about that many runs instead of [`Self::RUNS_OF_A_PART`]. Smaller parts need less
    /// memory and more reads; the outcome is the same.
    #[must_use]
    pub const fn in_parts_of(mut self, runs: usize) -> Self {
        self.part = runs;
        self
    }

    /// The caller as the one who did something to a test.
    pub fn actor(caller: &Caller) -> Actor {
        Actor { full_name: caller.name.clone(), email: String::new() }
    }

    /// The caller's repository of that name, after checking that the token may do and see it.
    async fn repository(
        &self,
        caller: &Caller,
        scope: Scope,
        name: &RepoName,
    ) -> Result<(Repository, RepoRef), Error> {
        if !caller.may(scope) {
            return Err(Error::MissingScope(scope));
        }
        let unknown = || Error::UnknownRepository(name.clone());
        if !self.context.repositories.may_see(caller, name) {
            return Err(unknown());
        }
        let found = self.context.repositories.named(caller.org, name).await?.ok_or_else(unknown)?;
        let reference = RepoRef { org: found.org, id: found.id };
        Ok((found, reference))
    }

    /// Commits a step. `None`: a concurrent commit came first, and it must be decided again.
    async fn commit(&self, commit: &FlakyCommit<'_>) -> Result<Option<()>, Error> {
        let mut has_steps = HasSteps::default();
        has_steps.note(commit.steps);
        let done = self.context.stores.tests.commit(commit).await;
        self.committed(commit, has_steps, done)
    }

    /// What follows from a commit; `None` when another one came first.
    fn committed(
        &self,
        commit: &FlakyCommit<'_>,
        has_steps: HasSteps,
        done: Result<Version, CommitError>,
    ) -> Result<Option<()>, Error> {
        match done {
            Ok(_) => {
                if commit.settings.is_some() || has_steps.any {
                    self.quarantined.remove(&commit.repo);
                }
                let mut of_incidents = commit.incidents.iter().flat_map(|it| &it.steps);
                if has_steps.with_events
                    || of_incidents.any(|step| step.event.is_some())
                    || commit.progress.is_some_and(|step| step.event.is_some())
                {
                    self.context.notifier.emitted(commit.repo.org);
                }
                Ok(Some(()))
            }
            Err(CommitError::Conflict) => Ok(None),
            Err(CommitError::Store(error)) => Err(error.into()),
        }
    }

    /// Steps of this process on one repository take turns; only those of other servers can meet.
    fn turn(&self, repo: RepoRef) -> Arc<async_lock::Mutex<()>> {
        let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        if turns.len() >= TURNS {
            turns.retain(|_, turn| Arc::strong_count(turn) > 1);
        }
        turns.entry(repo).or_default().clone()
    }
}

/// Whether a commit has steps of tests, and events of them.
#[derive(Clone, Copy, Default)]
struct HasSteps {
    any: bool,
    with_events: bool,
}

impl HasSteps {
    fn note(&mut self, steps: &[TestStep]) {
        self.any |= !steps.is_empty();
        self.with_events |= steps.iter().any(|step| !step.events.is_empty());
    }
}

/// The effective settings: the stored ones, or the defaults.
pub(super) fn settings_of(repo: RepoRef, known: &FlakyRepo) -> Settings {
    known.settings.clone().unwrap_or_else(|| Settings::new(repo.id))
}
