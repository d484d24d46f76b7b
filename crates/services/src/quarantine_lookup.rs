//! Quarantine lookups, which CI jobs wait for.

use std::collections::BTreeMap;

use async_trait::async_trait;

use crate::Error;
use signalbox_domain::flaky::{AskedTest, Excuse, FailedCheck, QuarantineCause, excuse};
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

    /// The quarantined ones of these tests, by the ids of the request, each with who or what
    /// quarantined it. Empty while quarantine is off.
    async fn causes(
        &self,
        org: OrgId,
        repo: RepoId,
        asked: &[AskedTest],
    ) -> Result<BTreeMap<String, QuarantineCause>, Error>;

    /// Whether a failing check of the plain git host counts as passed. It does not if the lookup
    /// fails.
    async fn excuse(&self, org: OrgId, repo: RepoId, check: FailedCheck<'_>) -> Excuse {
        let quarantined = self.causes(org, repo, check.failing).await;
        excuse(check, &quarantined.unwrap_or_default())
    }
}
