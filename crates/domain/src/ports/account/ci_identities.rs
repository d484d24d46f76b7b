//! CI systems that prove which job calls, with identity tokens that they issue to their jobs.

use async_trait::async_trait;

use super::IdentityError;
use crate::ids::{OrgSlug, RepoName};
use crate::time::Timestamp;
use crate::upload::ProvenSource;

/// A CI job, as its CI system has proven it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CiIdentity {
    /// The organization that accepts jobs of the CI system.
    pub org: OrgSlug,
    /// The repository of the job.
    pub repo: RepoName,
    /// What it tests.
    pub source: ProvenSource,
    /// A name for the job in logs, on one line.
    pub job: String,
    /// When the token expires.
    pub expires_at: Timestamp,
}

/// CI systems whose jobs may upload results with an identity token instead of an API token.
#[async_trait]
pub trait CiIdentities: Send + Sync {
    /// The job that a token was issued to. The signature, the issuer, the audience, the times and the
    /// repository were checked.
    async fn verify(&self, token: &str) -> Result<CiIdentity, IdentityError>;
}
