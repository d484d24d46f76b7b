//! Which failures are excused, asked while a CI job waits for the answer.

use async_trait::async_trait;

use crate::Error;
use signalbox_domain::flaky::{AskedTest, Excuse, FailedCheck, excuse};
use signalbox_domain::ids::{OrgId, RepoId};

/// Which of the tests asked for are quarantined.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QuarantineAnswer {
    /// Whether the repository is known and has quarantine switched off. Clients then let every
    /// failure pass, so it is never said in doubt.
    pub disabled: bool,
    /// The ids of quarantined tests, as they were sent.
    pub ids: Vec<String>,
}

/// Answers which tests are quarantined.
#[async_trait]
pub trait QuarantineLookup: Send + Sync {
    /// Which of these tests of a repository are quarantined. None asked for means all that are;
    /// their ids are then those that clients compute. A repository without results has none.
    async fn quarantined(
        &self,
        org: OrgId,
        repo: RepoId,
        asked: &[AskedTest],
    ) -> Result<QuarantineAnswer, Error>;

    /// Whether a failing check of the plain git host counts as passed. When that cannot be found
    /// out it does not.
    async fn excuse(&self, org: OrgId, repo: RepoId, check: FailedCheck<'_>) -> Excuse {
        let answer = self.quarantined(org, repo, check.failing).await;
        let answer = answer.unwrap_or_default();
        // Switched off is no reason to let anything pass.
        let ids = if answer.disabled { Vec::new() } else { answer.ids };
        excuse(check, &ids.into_iter().collect())
    }
}
