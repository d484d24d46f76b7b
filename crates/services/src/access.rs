//! Authentication: from a token's text to the caller.

use std::sync::Arc;

use quick_cache::sync::Cache;
use signalbox_domain::ports::{Clock, OrgStore, StoreError, TokenStore};
use signalbox_domain::time::{Span, Timestamp};
use signalbox_domain::token::{Caller, TokenHash, TokenText};

/// The most callers in the cache.
const REMEMBERED: usize = 10_000;

/// Authenticates callers. Results are cached for less than a second, so that a revoked token is
/// rejected within a second on every server.
pub struct Authenticator {
    tokens: Arc<dyn TokenStore>,
    orgs: Arc<dyn OrgStore>,
    clock: Arc<dyn Clock>,
    /// Callers, and until when each entry is valid.
    remembered: Cache<TokenHash, (Timestamp, Arc<Caller>)>,
}

impl Authenticator {
    /// Creates an authenticator on these stores.
    pub fn new(
        tokens: Arc<dyn TokenStore>,
        orgs: Arc<dyn OrgStore>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self { tokens, orgs, clock, remembered: Cache::new(REMEMBERED) }
    }

    /// The caller of a token's text; `None` for a malformed, unknown, expired or revoked one,
    /// without a distinction.
    pub async fn authenticate(&self, text: &str) -> Result<Option<Arc<Caller>>, StoreError> {
        let Some(text) = TokenText::parse(text) else { return Ok(None) };
        self.holder(text.hash()).await
    }

    /// The caller of the token with this hash; `None` if it is unknown, expired or revoked.
    pub async fn holder(&self, hash: TokenHash) -> Result<Option<Arc<Caller>>, StoreError> {
        let now = self.clock.now();
        if let Some((until, caller)) = self.remembered.get(&hash)
            && now < until
        {
            return Ok(Some(caller));
        }
        let Some(token) = self.tokens.find_by_hash(hash).await? else { return Ok(None) };
        if !token.is_valid(now) {
            return Ok(None);
        }
        let Some(org) = self.orgs.find(token.org).await? else { return Ok(None) };
        let good_until = [token.expires_at, token.revoked_at]
            .into_iter()
            .flatten()
            .fold(now.plus(Span::seconds(1)), Timestamp::min);
        let caller = Arc::new(Caller {
            org: org.id,
            org_slug: org.slug,
            token: token.id,
            name: token.name,
            scopes: token.scopes,
            repos: token.repos,
            compatibility: token.compatibility,
        });
        self.remembered.insert(hash, (good_until, caller.clone()));
        Ok(Some(caller))
    }
}
