//! Authentication: from a token's text to the caller.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

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
const REMEMBERED: usize = 131_072;
/// How long a token is not read again, also when none is revoked: a change by hand counts after that.
const LONGEST_MINUTES: u32 = 5;

/// A caller, and how long what was read is true.
#[derive(Clone)]
struct Remembered {
    caller: Arc<Caller>,
    /// Until when it is used.
    until: Timestamp,
    /// When the token is no longer valid.
    ends_at: Option<Timestamp>,
    /// The last revocation before the token was read. `None`: it is not a stored one.
    revocation: Option<Uuid>,
}

/// The last revocation, and until when it counts as current.
#[derive(Default)]
struct LastRevocation {
    known: Option<(Uuid, Timestamp)>,
    /// Reads that have begun.
    begun: u64,
    /// The read that the known one is from.
    read: u64,
}

/// Authenticates callers. They are cached while no token has been revoked, which is looked up once in a
/// second, so that a revoked token is rejected within a second on every server.
pub struct Authenticator {
    tokens: Arc<dyn TokenStore>,
    orgs: Arc<dyn OrgStore>,
    clock: Arc<dyn Clock>,
    remembered: Cache<TokenHash, Remembered>,
    revocation: Mutex<LastRevocation>,
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
        let (slugs, revocation) = (Cache::new(REMEMBERED), Mutex::default());
        Self {
            tokens,
            orgs,
            clock,
            remembered,
            revocation,
            slugs,
            refusals,
            reports: None,
            ci: None,
        }
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

    /// The caller of a token's text that this server has accepted and not refused since, without looking
    /// up whether it still would: only for deciding whose share a request is taken from.
    pub fn accepted_before(&self, text: &str) -> Option<Arc<Caller>> {
        let known = self.remembered.get(&TokenHash(Sha256::digest(text.as_bytes()).into()))?;
        known.ends_at.is_none_or(|at| self.clock.now() < at).then_some(known.caller)
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
                // Its requests no longer count as those of its organization.
                let _known = hash.map(|hash| self.remembered.remove(&hash));
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

    /// Reports that a user who came back from the identity provider could not sign in.
    pub fn identity_denied(&self, why: &str, from: IpAddr) {
        let count = self.refusals.counts.add(from, self.clock.now());
        if let Some(reports) = &self.reports {
            let (reason, detail) = ("sign_in", Some(why));
            reports.observer.observe(&Observed::TokenRefused { reason, detail, from, count });
        }
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
        let revocation = self.last_revocation(now).await?;
        if let Some(known) = self.remembered.get(&hash)
            && now < known.until
            && known.revocation == Some(revocation)
        {
            return Ok(Ok(known.caller));
        }
        let Some(token) = self.tokens.find_by_hash(hash).await? else {
            return Ok(Err(Refused::Unknown));
        };
        if !token.is_valid(now) {
            return Ok(Err(Refused::Ended(Box::new(token))));
        }
        let Some(org_slug) = self.slug(token.org).await? else { return Ok(Err(Refused::Unknown)) };
        let ends_at = token.expires_at.into_iter().chain(token.revoked_at).min();
        let longest = now.plus(Span::minutes(LONGEST_MINUTES));
        let until = ends_at.map_or(longest, |at| at.min(longest));
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
        let revocation = Some(revocation);
        let known = Remembered { caller: caller.clone(), until, ends_at, revocation };
        self.remembered.insert(hash, known);
        Ok(Ok(caller))
    }

    /// The last revocation of a token, as of less than a second ago.
    async fn last_revocation(&self, now: Timestamp) -> Result<Uuid, StoreError> {
        let lock = || self.revocation.lock().unwrap_or_else(PoisonError::into_inner);
        let number = {
            let mut last = lock();
            if let Some((id, until)) = last.known
                && now < until
            {
                return Ok(id);
            }
            last.begun += 1;
            last.begun
        };
        let id = self.tokens.last_revocation().await?;
        let mut last = lock();
        // A read that began later, and has ended already, is newer.
        if number > last.read {
            last.read = number;
            last.known = Some((id, now.plus(Span::seconds(1))));
        }
        Ok(last.known.map_or(id, |(id, _)| id))
    }

    /// The CI job that an identity token was issued to.
    async fn identify(
        &self,
        ci: &dyn CiIdentities,
        text: &str,
        now: Timestamp,
    ) -> Result<Result<Arc<Caller>, Refused>, Error> {
        let hash = TokenHash(Sha256::digest(text.as_bytes()).into());
        if let Some(known) = self.remembered.get(&hash)
            && now < known.until
        {
            return Ok(Ok(known.caller));
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
        let (ends_at, longest) = (identity.expires_at, now.plus(Span::seconds(1)));
        let (until, ends_at) = (ends_at.min(longest), Some(ends_at));
        let known = Remembered { caller: caller.clone(), until, ends_at, revocation: None };
        self.remembered.insert(hash, known);
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

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::sync::atomic::{AtomicU32, Ordering};

    use async_trait::async_trait;
    use signalbox_domain::ports::Org;
    use signalbox_domain::testing::ManualClock;
    use signalbox_domain::token::Token;
    use signalbox_testkit::memory::MemoryDatabase;

    use super::*;

    /// Counts what is read, and can revoke a token after it was read.
    struct Observed {
        inner: Arc<MemoryDatabase>,
        tokens: AtomicU32,
        checks: AtomicU32,
        revokes: bool,
        /// What is read as the last revocation instead.
        replaced: Mutex<Option<Uuid>>,
    }

    #[async_trait]
    impl TokenStore for Observed {
        async fn insert(&self, token: &Token) -> Result<(), StoreError> {
            TokenStore::insert(&*self.inner, token).await
        }

        async fn find_by_hash(&self, hash: TokenHash) -> Result<Option<Token>, StoreError> {
            self.tokens.fetch_add(1, Ordering::Relaxed);
            let found = self.inner.find_by_hash(hash).await?;
            if let Some(token) = found.as_ref().filter(|_| self.revokes) {
                self.inner.revoke(token.id, Timestamp::from_unix_seconds(0), token.id.0).await?;
            }
            Ok(found)
        }

        async fn list(&self, org: Option<OrgId>) -> Result<Vec<Token>, StoreError> {
            TokenStore::list(&*self.inner, org).await
        }

        async fn revoke(&self, id: TokenId, at: Timestamp, new: Uuid) -> Result<bool, StoreError> {
            self.inner.revoke(id, at, new).await
        }

        async fn last_revocation(&self) -> Result<Uuid, StoreError> {
            self.checks.fetch_add(1, Ordering::Relaxed);
            let replaced = *self.replaced.lock().expect("not poisoned");
            Ok(replaced.unwrap_or(self.inner.last_revocation().await?))
        }
    }

    struct World {
        store: Arc<Observed>,
        clock: Arc<ManualClock>,
        texts: Vec<String>,
    }

    /// A database with tokens, of which the last expires after a minute.
    async fn world(tokens: u8, revokes: bool) -> World {
        let inner = Arc::new(MemoryDatabase::new());
        let (id, slug) = (OrgId(Uuid::from_u128(1)), OrgSlug::new("acme").expect("a slug"));
        let created_at = Timestamp::from_unix_seconds(0);
        let org = Org { id, slug, created_at };
        OrgStore::create(&*inner, &org).await.expect("an organization");
        let mut texts = Vec::new();
        for number in 1..=tokens {
            let text = TokenText::from_random([number; 20]);
            let token = Token {
                id: TokenId(Uuid::from_u128(number.into())),
                org: id,
                name: "ci".to_owned(),
                hash: text.hash(),
                scopes: vec![Scope::QueueRead],
                repos: Vec::new(),
                compatibility: Compatibility::default(),
                created_at,
                expires_at: (number == tokens).then(|| created_at.plus(Span::minutes(1))),
                revoked_at: None,
            };
            TokenStore::insert(&*inner, &token).await.expect("a token");
            texts.push(text.reveal().to_owned());
        }
        let (tokens, checks, replaced) = (AtomicU32::new(0), AtomicU32::new(0), Mutex::default());
        let store = Arc::new(Observed { inner, tokens, checks, revokes, replaced });
        World { store, clock: Arc::new(ManualClock::at(created_at)), texts }
    }

    impl World {
        fn server(&self) -> Authenticator {
            Authenticator::new(self.store.clone(), self.store.inner.clone(), self.clock.clone())
        }

        async fn accepts(&self, server: &Authenticator, token: usize) -> bool {
            let from = IpAddr::V4(Ipv4Addr::LOCALHOST);
            server.authenticate(&self.texts[token], from).await.expect("an answer").is_some()
        }
    }

    #[tokio::test]
    async fn tokens_are_read_once_and_the_last_revocation_once_in_a_second() {
        let world = world(50, false).await;
        let server = world.server();
        for second in 0..60 {
            for token in 0..50 {
                assert!(world.accepts(&server, token).await, "{token} at {second} s");
            }
            world.clock.advance(Span::seconds(1));
        }
        assert!(!world.accepts(&server, 49).await, "it has expired");
        assert!(world.accepts(&server, 48).await);
        assert_eq!(world.store.tokens.load(Ordering::Relaxed), 51);
        assert_eq!(world.store.checks.load(Ordering::Relaxed), 61);
    }

    #[tokio::test]
    async fn every_server_refuses_a_revoked_token_within_a_second_and_no_other_one() {
        let world = world(3, false).await;
        let servers = [world.server(), world.server()];
        for server in &servers {
            assert!(world.accepts(server, 0).await && world.accepts(server, 1).await);
        }
        let (id, now) = (TokenId(Uuid::from_u128(1)), world.clock.now());
        assert!(world.store.revoke(id, now, id.0).await.expect("revoked"));
        world.clock.advance(Span::seconds(1));
        for server in &servers {
            assert!(server.accepted_before(&world.texts[0]).is_some(), "it was not used since");
            assert!(!world.accepts(server, 0).await);
            assert!(world.accepts(server, 1).await);
            assert!(server.accepted_before(&world.texts[0]).is_none(), "it is refused now");
            assert!(server.accepted_before(&world.texts[1]).is_some());
        }
        assert!(world.accepts(&servers[0], 2).await, "the last one expires");
        world.clock.advance(Span::hours(24));
        assert!(servers[0].accepted_before(&world.texts[1]).is_some());
        assert!(servers[0].accepted_before(&world.texts[2]).is_none());
    }

    #[tokio::test]
    async fn a_token_that_is_revoked_while_it_is_read_is_refused_within_a_second() {
        let world = world(2, true).await;
        let server = world.server();
        assert!(world.accepts(&server, 0).await, "it was valid when it was read");
        world.clock.advance(Span::seconds(1));
        assert!(!world.accepts(&server, 0).await);
    }

    #[tokio::test]
    async fn a_database_that_was_restored_to_an_earlier_state_revokes_tokens_too() {
        let world = world(2, false).await;
        let server = world.server();
        for id in [9, 7, 9, 8] {
            *world.store.replaced.lock().expect("not poisoned") = Some(Uuid::from_u128(id));
            assert!(world.accepts(&server, 0).await);
            world.clock.advance(Span::seconds(1));
        }
        let (id, now) = (TokenId(Uuid::from_u128(1)), world.clock.now());
        assert!(world.store.revoke(id, now, id.0).await.expect("revoked"));
        *world.store.replaced.lock().expect("not poisoned") = Some(Uuid::from_u128(5));
        assert!(!world.accepts(&server, 0).await);
    }

    #[tokio::test]
    async fn a_token_that_was_deleted_by_hand_is_refused_after_five_minutes() {
        let world = world(2, false).await;
        let server = world.server();
        assert!(world.accepts(&server, 0).await);
        let (id, now) = (TokenId(Uuid::from_u128(1)), world.clock.now());
        *world.store.replaced.lock().expect("not poisoned") =
            Some(world.store.inner.last_revocation().await.expect("an id"));
        assert!(world.store.revoke(id, now, id.0).await.expect("revoked"));
        world.clock.advance(Span::seconds(299));
        assert!(world.accepts(&server, 0).await, "nothing tells the server");
        world.clock.advance(Span::seconds(1));
        assert!(!world.accepts(&server, 0).await);
    }
}
