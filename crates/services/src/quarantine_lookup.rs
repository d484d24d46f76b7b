//! Quarantine lookups, which CI jobs wait for.

use async_trait::async_trait;

use crate::Error;
use signalbox_domain::flaky::{AskedTest, Excuse, FailedCheck, excuse};
use signalbox_domain::ids::{OrgId, RepoId};

/// The answer to a lookup.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QuarantineAnswer {
    /// Whether quarantine is off in the repository. Clients then ignore every failure, so it is
    /// never true when in doubt, for example for an unknown repository.
    pub disabled: bool,
    /// The ids of the quarantined tests, as they were sent.
    pub ids: Vec<String>,
}

/// Looks up quarantined tests.
#[async_trait]
pub trait QuarantineLookup: Send + Sync {
    /// The quarantined tests among these tests of a repository. An empty list returns all
    /// quarantined tests, by the ids that clients compute. A repository without results has none.
    async fn quarantined(
        &self,
        org: OrgId,
        repo: RepoId,
        asked: &[AskedTest],
    ) -> Result<QuarantineAnswer, Error>;

    /// Whether a failing check of the plain git host counts as passed. It does not if the lookup
    /// fails.
    async fn excuse(&self, org: OrgId, repo: RepoId, check: FailedCheck<'_>) -> Excuse {
        let answer = self.quarantined(org, repo, check.failing).await;
        let answer = answer.unwrap_or_default();
        // With quarantine off, no failure is excused.
        let ids = if answer.disabled { Vec::new() } else { answer.ids };
        excuse(check, &ids.into_iter().collect())
    }
}
