//! Idempotency keys: a repeated request gets the reply of the first one.

use std::sync::Arc;

use signalbox_domain::ports::{
    Clock, IdSource, IdempotencyStore, KeptReply, KeyClaim, KeyedRequest,
};
use signalbox_domain::time::Span;
use signalbox_domain::token::Caller;

use super::{AccountContext, Error};

/// How long a reply is kept, in hours.
pub const KEPT_HOURS: u32 = 24;
/// How long a request may be carried out, in minutes: afterwards its server counts as dead, and a
/// repeat is carried out.
const CLAIM_MINUTES: u32 = 2;
/// Keys that are deleted together.
const AT_ONCE: u32 = 500;

/// Use cases of idempotency keys.
pub struct IdempotencyService {
    store: Arc<dyn IdempotencyStore>,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn IdSource>,
}

impl IdempotencyService {
    /// Creates the service.
    pub fn new(context: impl Into<AccountContext>) -> Self {
        let AccountContext { stores, clock, ids, .. } = context.into();
        Self { store: stores.idempotency, clock, ids }
    }

    /// Claims a key of a caller for a request.
    pub async fn claim(
        &self,
        caller: &Caller,
        key: &str,
        fingerprint: String,
    ) -> Result<(KeyedRequest, KeyClaim), Error> {
        let request = KeyedRequest {
            org: caller.org,
            token: caller.token,
            key: key.to_owned(),
            fingerprint,
            claim: self.ids.new_id(),
        };
        let now = self.clock.now();
        let until = now.plus(Span::minutes(CLAIM_MINUTES));
        let found = self.store.claim(&request, now, until).await?;
        Ok((request, found))
    }

    /// Keeps the reply of a request that was carried out.
    pub async fn keep(&self, request: &KeyedRequest, reply: &KeptReply) -> Result<(), Error> {
        let until = self.clock.now().plus(Span::hours(KEPT_HOURS));
        self.store.keep(request, reply, until).await?;
        Ok(())
    }

    /// Gives the key of a request back that changed nothing.
    pub async fn release(&self, request: &KeyedRequest) -> Result<(), Error> {
        Ok(self.store.release(request).await?)
    }

    /// Deletes expired keys.
    pub async fn forget(&self) -> Result<(), Error> {
        while self.store.forget(self.clock.now(), AT_ONCE).await? > 0 {}
        Ok(())
    }
}
