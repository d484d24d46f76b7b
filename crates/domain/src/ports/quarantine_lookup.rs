//! Which tests are quarantined, asked by clients whose tests have failed.

use async_trait::async_trait;

use crate::flaky::AskedTest;
use crate::ids::{OrgId, RepoId};
use crate::service::Error;

/// What is quarantined of the tests that were asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuarantineAnswer {
    /// Whether quarantine is switched off for the repository.
    pub disabled: bool,
    /// The ids of quarantined tests, as they were asked for.
    pub ids: Vec<String>,
}

/// Says which tests are quarantined. In any doubt a test is not.
#[async_trait]
pub trait QuarantineLookup: Send + Sync {
    /// The quarantined ones of some tests of a repository.
    async fn quarantined(
        &self,
        org: OrgId,
        repo: RepoId,
        asked: &[AskedTest],
    ) -> Result<QuarantineAnswer, Error>;
}
