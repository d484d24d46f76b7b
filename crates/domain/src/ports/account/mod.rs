//! Ports of accounts: organizations, repositories, tokens, sessions and the audit log.

mod audit_log;
mod ci_identities;
mod idempotency_store;
mod identity_provider;
mod org_store;
mod repo_store;
mod session_store;
mod token_store;

use std::sync::Arc;

pub use audit_log::{AuditFilter, AuditLog, AuditPlace};
pub use ci_identities::{CiIdentities, CiIdentity};
pub use idempotency_store::{IdempotencyStore, KeptReply, KeyClaim, KeyedRequest};
pub use identity_provider::{IdentityError, IdentityProvider, Leaving};
pub use org_store::{Org, OrgStore};
pub use repo_store::{RepoStore, Repository};
pub use session_store::SessionStore;
pub use token_store::TokenStore;

/// The stores of accounts in one database.
#[derive(Clone)]
pub struct AccountStores {
    /// Organizations.
    pub orgs: Arc<dyn OrgStore>,
    /// Repositories.
    pub repos: Arc<dyn RepoStore>,
    /// API tokens.
    pub tokens: Arc<dyn TokenStore>,
    /// Sessions of the pages.
    pub sessions: Arc<dyn SessionStore>,
    /// Idempotency keys of requests.
    pub idempotency: Arc<dyn IdempotencyStore>,
    /// The audit log.
    pub audit: Arc<dyn AuditLog>,
}
