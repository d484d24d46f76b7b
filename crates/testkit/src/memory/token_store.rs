//! API tokens.

use std::cmp::Reverse;

use async_trait::async_trait;
use signalbox_domain::ids::{OrgId, TokenId};
use signalbox_domain::ports::{StoreError, TokenStore};
use signalbox_domain::time::Timestamp;
use signalbox_domain::token::{Token, TokenHash};
use uuid::Uuid;

use super::MemoryDatabase;
use super::database::refused;

#[async_trait]
impl TokenStore for MemoryDatabase {
    async fn insert(&self, token: &Token) -> Result<(), StoreError> {
        let mut tables = self.tables();
        if tables.tokens.values().any(|it| it.id == token.id || it.hash == token.hash) {
            return Err(refused(format!("duplicate token {}", token.id)));
        }
        tables.tokens.insert(token.id, token.clone());
        Ok(())
    }

    async fn find_by_hash(&self, hash: TokenHash) -> Result<Option<Token>, StoreError> {
        Ok(self.tables().tokens.values().find(|token| token.hash == hash).cloned())
    }

    async fn list(&self, org: Option<OrgId>) -> Result<Vec<Token>, StoreError> {
        let tables = self.tables();
        let mut tokens: Vec<Token> = tables
            .tokens
            .values()
            .filter(|token| org.is_none_or(|org| token.org == org))
            .cloned()
            .collect();
        tokens.sort_by_key(|token| Reverse((token.created_at, token.id)));
        Ok(tokens)
    }

    async fn revoke(
        &self,
        id: TokenId,
        at: Timestamp,
        revocation: Uuid,
    ) -> Result<bool, StoreError> {
        let mut tables = self.tables();
        let Some(token) = tables.tokens.get_mut(&id) else { return Ok(false) };
        if token.is_valid(at) {
            token.revoked_at = Some(at);
        }
        tables.last_revocation = revocation;
        Ok(true)
    }

    async fn last_revocation(&self) -> Result<Uuid, StoreError> {
        Ok(self.tables().last_revocation)
    }
}
