//! From a token's text to the caller.

use std::sync::Arc;

use quick_cache::sync::Cache;
use signalbox_domain::ports::{Clock, OrgStore, StoreError, TokenStore};
use signalbox_domain::time::{Span, Timestamp};
use signalbox_domain::token::{Caller, TokenHash, TokenText};

/// The most callers that are remembered.
const REMEMBERED: usize = 10_000;

/// Recognizes callers. What it knows it remembers for less than a second, so that a revoked token
/// is refused within a second on every server.
pub struct Authenticator {
    tokens: Arc<dyn TokenStore>,
    orgs: Arc<dyn OrgStore>,
    clock: Arc<dyn Clock>,
    /// Callers, and until when each may be taken for granted.
    remembered: Cache<TokenHash, (Timestamp, Arc<Caller>)>,
}

impl Authenticator {
    /// Recognizes callers by these stores.
    pub fn new(
        tokens: Arc<dyn TokenStore>,
        orgs: Arc<dyn OrgStore>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self { tokens, orgs, clock, remembered: Cache::new(REMEMBERED) }
    }

    /// Who calls with that text. `None` for a text that is malformed, unknown, expired or revoked:
    /// the caller cannot tell which.
    pub async fn authenticate(&self, text: &str) -> Result<Option<Arc<Caller>>, StoreError> {
        let Some(text) = TokenText::parse(text) else { return Ok(None) };
        self.holder(text.hash()).await
    }

    /// Who holds the token with that hash. `None` when it is unknown, expired or revoked.
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
