//! API tokens.

use async_trait::async_trait;
use uuid::Uuid;

use crate::ids::{OrgId, TokenId};
use crate::ports::StoreError;
use crate::time::Timestamp;
use crate::token::{Token, TokenHash};

/// Stores tokens by the hash of their text.
#[async_trait]
pub trait TokenStore: Send + Sync {
    /// Writes a new token.
    async fn insert(&self, token: &Token) -> Result<(), StoreError>;

    /// The token with this hash, including an expired or revoked one.
    async fn find_by_hash(&self, hash: TokenHash) -> Result<Option<Token>, StoreError>;

    /// Tokens, newest first; of one organization if given.
    async fn list(&self, org: Option<OrgId>) -> Result<Vec<Token>, StoreError>;

    /// Sets when a token stops being valid, unless it stops earlier; `false` if there is no such
    /// token.
    async fn revoke(
        &self,
        id: TokenId,
        at: Timestamp,
        revocation: Uuid,
    ) -> Result<bool, StoreError>;

    /// The random id of the last revocation, written in the same commit: what was read of a token is true
    /// while it is the same.
    async fn last_revocation(&self) -> Result<Uuid, StoreError>;
}
