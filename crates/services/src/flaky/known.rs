//! What is remembered of quarantine: enough to say quickly that a test is not quarantined.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use signalbox_domain::flaky::{AskedTest, TestId};
use signalbox_domain::ports::RepoRef;
use signalbox_domain::time::Timestamp;

/// The most repositories that are remembered.
const REMEMBERED: usize = 256;

/// The quarantined tests of a repository, and the ids that clients send for them.
#[derive(Debug)]
pub(super) struct QuarantinedTests {
    pub(super) marks: i64,
    pub(super) enabled: bool,
    /// Somebody has switched it off.
    pub(super) switched_off: bool,
    pub(super) tests: BTreeSet<TestId>,
    pub(super) aliases: BTreeSet<String>,
}

impl QuarantinedTests {
    /// Whether a test may be one of them. It says no only when it is none.
    pub(super) fn may_be(&self, asked: &AskedTest) -> bool {
        self.aliases.contains(&asked.id) || asked.computed().any(|id| self.tests.contains(&id))
    }
}

/// What is remembered of all repositories.
#[derive(Debug, Default)]
pub(super) struct KnownQuarantine(Mutex<BTreeMap<RepoRef, (Timestamp, Arc<QuarantinedTests>)>>);

impl KnownQuarantine {
    /// What is remembered, and when it was last found to be up to date.
    pub(super) fn recall(&self, repo: RepoRef) -> Option<(Timestamp, Arc<QuarantinedTests>)> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(&repo).cloned()
    }

    /// Remembers what was up to date at a time.
    pub(super) fn remember(&self, repo: RepoRef, at: Timestamp, tests: Arc<QuarantinedTests>) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= REMEMBERED && !known.contains_key(&repo) {
            known.pop_first();
        }
        known.insert(repo, (at, tests));
    }

    /// Forgets a repository: something was committed.
    pub(super) fn forget(&self, repo: RepoRef) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&repo);
    }
}
