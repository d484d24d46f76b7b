//! Authentication: from a token's text to the caller.

use std::net::IpAddr;
use std::sync::Arc;

use quick_cache::sync::Cache;
use sha2::{Digest, Sha256};
use signalbox_domain::ids::{OrgId, OrgSlug, TokenId};
use signalbox_domain::ports::{
    CiIdentities, Clock, IdentityError, Observed, OrgStore, StoreError, TokenStore,
};
use signalbox_domain::time::{Span, Timestamp};
use signalbox_domain::token::{Caller, Compatibility, Scope, TokenHash, TokenText};
use uuid::Uuid;

use super::Error;
use super::refusal_reports::{RefusalReports, Refused};
use super::refusals::{Attempt, Refusals};

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
    /// The slugs of organizations, which never change.
    slugs: Cache<OrgId, OrgSlug>,
    refusals: Refusals,
    reports: Option<RefusalReports>,
    ci: Option<Arc<dyn CiIdentities>>,
}

impl Authenticator {
    /// Creates an authenticator on these stores.
    pub fn new(
        tokens: Arc<dyn TokenStore>,
        orgs: Arc<dyn OrgStore>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let (remembered, refusals) = (Cache::new(REMEMBERED), Refusals::default());
        let slugs = Cache::new(REMEMBERED);
        Self { tokens, orgs, clock, remembered, slugs, refusals, reports: None, ci: None }
    }

    /// Reports refused tokens to an observer, and those of known tokens to the audit log.
    #[must_use]
    pub fn reporting(self, reports: RefusalReports) -> Self {
        Self { reports: Some(reports), ..self }
    }

    /// Accepts identity tokens of CI jobs too. Such a caller may only upload results of its
    /// repository, and ask which of its tests are quarantined.
    #[must_use]
    pub fn trusting(self, ci: Arc<dyn CiIdentities>) -> Self {
        Self { ci: Some(ci), ..self }
    }

    /// The caller of a token's text from a client at that address. A malformed, unknown, expired or
    /// revoked one is refused without a distinction: `None`.
    pub async fn authenticate(
        &self,
        text: &str,
        from: IpAddr,
    ) -> Result<Option<Arc<Caller>>, Error> {
        let (hash, now) = (TokenText::parse(text).map(|text| text.hash()), self.clock.now());
        let looked_up = match (hash, &self.ci) {
            (Some(hash), _) => self.look_up(hash, now).await?,
            (None, Some(ci)) if is_signed(text) => self.identify(&**ci, text, now).await?,
            (None, _) => Err(Refused::Malformed),
        };
        Ok(self.reported(looked_up, hash, from, now).await)
    }

    /// The caller, if the token was accepted; otherwise the refusal is reported.
    async fn reported(
        &self,
        looked_up: Result<Arc<Caller>, Refused>,
        hash: Option<TokenHash>,
        from: IpAddr,
        now: Timestamp,
    ) -> Option<Arc<Caller>> {
        match looked_up {
            Ok(caller) => {
                if let Some(hash) = hash {
                    self.refusals.accepted(hash, now);
                }
                Some(caller)
            }
            Err(refused) => {
                let count = self.refusals.counts.add(from, now);
                if let Some(reports) = &self.reports {
                    reports.refused(refused, from, count, now).await;
                }
                None
            }
        }
    }

    /// The caller of a token's text that is entered to sign in. A client that has entered too many
    /// invalid ones in a minute is throttled; requests with a token never are, because a token
    /// cannot be guessed, and others may have the same address.
    pub async fn sign_in(
        &self,
        text: &str,
        from: IpAddr,
    ) -> Result<Attempt<Arc<Caller>>, StoreError> {
        let (hash, now) = (TokenText::parse(text).map(|text| text.hash()), self.clock.now());
        if !self.refusals.allows(from, hash, now) {
            if let Some(reports) = &self.reports {
                let count = self.refusals.sign_ins.of(from, now);
                reports.observer.observe(&Observed::TokenRefused {
                    reason: "throttled",
                    detail: None,
                    from,
                    count,
                });
            }
            return Ok(Attempt::Throttled);
        }
        let looked_up = match hash {
            Some(hash) => self.look_up(hash, now).await?,
            // A job of CI has no session, so its identity token is none either.
            None => Err(Refused::Malformed),
        };
        let caller = self.reported(looked_up, hash, from, now).await;
        if caller.is_none() {
            self.refusals.sign_ins.add(from, now);
        }
        Ok(caller.map_or(Attempt::Refused, Attempt::Accepted))
    }

    /// Refused tokens of a client at that address in the last minute.
    pub fn refusals(&self, from: IpAddr) -> u32 {
        self.refusals.counts.of(from, self.clock.now())
    }

    /// The caller of the token with this hash; `None` if it is unknown, expired or revoked.
    pub async fn holder(&self, hash: TokenHash) -> Result<Option<Arc<Caller>>, StoreError> {
        Ok(self.look_up(hash, self.clock.now()).await?.ok())
    }

    async fn look_up(
        &self,
        hash: TokenHash,
        now: Timestamp,
    ) -> Result<Result<Arc<Caller>, Refused>, StoreError> {
        if let Some((until, caller)) = self.remembered.get(&hash)
            && now < until
        {
            return Ok(Ok(caller));
        }
        let Some(token) = self.tokens.find_by_hash(hash).await? else {
            return Ok(Err(Refused::Unknown));
        };
        if !token.is_valid(now) {
            return Ok(Err(Refused::Ended(Box::new(token))));
        }
        let Some(org_slug) = self.slug(token.org).await? else { return Ok(Err(Refused::Unknown)) };
        let good_until = [token.expires_at, token.revoked_at]
            .into_iter()
            .flatten()
            .fold(now.plus(Span::seconds(1)), Timestamp::min);
        let caller = Arc::new(Caller {
            org: token.org,
            org_slug,
            token: token.id,
            name: token.name,
            scopes: token.scopes,
            repos: token.repos,
            compatibility: token.compatibility,
            source: None,
        });
        self.remembered.insert(hash, (good_until, caller.clone()));
        Ok(Ok(caller))
    }

    /// The CI job that an identity token was issued to.
    async fn identify(
        &self,
        ci: &dyn CiIdentities,
        text: &str,
        now: Timestamp,
    ) -> Result<Result<Arc<Caller>, Refused>, Error> {
        let hash = TokenHash(Sha256::digest(text.as_bytes()).into());
        if let Some((until, caller)) = self.remembered.get(&hash)
            && now < until
        {
            return Ok(Ok(caller));
        }
        let identity = match ci.verify(text).await {
            Ok(identity) => identity,
            Err(IdentityError::Refused(why)) => return Ok(Err(Refused::Identity(why))),
            // The job may try again: nothing is known about its token.
            Err(IdentityError::Unavailable(why)) => return Err(Error::Issuer(why)),
        };
        let Some(org) = self.orgs.find_by_slug(&identity.org).await? else {
            return Ok(Err(Refused::Unknown));
        };
        let caller = Arc::new(Caller {
            org: org.id,
            org_slug: org.slug,
            token: TokenId(Uuid::new_v5(&org.id.0, identity.job.as_bytes())),
            name: identity.job,
            scopes: vec![Scope::TestsUpload],
            repos: vec![identity.repo],
            compatibility: Compatibility::default(),
            source: Some(identity.source),
        });
        let until = identity.expires_at.min(now.plus(Span::seconds(1)));
        self.remembered.insert(hash, (until, caller.clone()));
        Ok(Ok(caller))
    }

    async fn slug(&self, org: OrgId) -> Result<Option<OrgSlug>, StoreError> {
        if let Some(known) = self.slugs.get(&org) {
            return Ok(Some(known));
        }
        let Some(found) = self.orgs.find(org).await? else { return Ok(None) };
        self.slugs.insert(org, found.slug.clone());
        Ok(Some(found.slug))
    }
}

/// Whether a text has the form of a signed identity token: three parts of base64url.
fn is_signed(text: &str) -> bool {
    let is_base64url = |part: &str| {
        !part.is_empty()
            && part.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'-' || it == b'_')
    };
    text.split('.').count() == 3 && text.split('.').all(is_base64url)
}
