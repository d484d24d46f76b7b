//! Idempotency keys.

use async_trait::async_trait;
use signalbox_domain::ports::{IdempotencyStore, KeptReply, KeyClaim, KeyedRequest, StoreError};
use signalbox_domain::time::Timestamp;

use super::MemoryDatabase;

/// A key with its request and its reply.
#[derive(Debug)]
pub(super) struct KeyRow {
    request: KeyedRequest,
    until: Timestamp,
    reply: Option<KeptReply>,
}

#[async_trait]
impl IdempotencyStore for MemoryDatabase {
    async fn claim(
        &self,
        request: &KeyedRequest,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<KeyClaim, StoreError> {
        let keys = &mut self.tables().keys;
        let place = (request.token, request.key.clone());
        if let Some(known) = keys.get(&place).filter(|known| known.until > now) {
            return Ok(if known.request.fingerprint == request.fingerprint {
                known.reply.clone().map_or(KeyClaim::Running, KeyClaim::Replied)
            } else {
                KeyClaim::OtherRequest
            });
        }
        keys.insert(place, KeyRow { request: request.clone(), until, reply: None });
        Ok(KeyClaim::Claimed)
    }

    async fn keep(
        &self,
        request: &KeyedRequest,
        reply: &KeptReply,
        until: Timestamp,
    ) -> Result<bool, StoreError> {
        let keys = &mut self.tables().keys;
        let known = keys.get_mut(&(request.token, request.key.clone()));
        let Some(known) = known.filter(|known| known.request.claim == request.claim) else {
            return Ok(false);
        };
        (known.until, known.reply) = (until, Some(reply.clone()));
        Ok(true)
    }

    async fn release(&self, request: &KeyedRequest) -> Result<(), StoreError> {
        self.tables()
            .keys
            .retain(|_, known| known.request.claim != request.claim || known.reply.is_some());
        Ok(())
    }

    async fn forget(&self, before: Timestamp, limit: u32) -> Result<u64, StoreError> {
        let keys = &mut self.tables().keys;
        let old = keys.iter().filter(|(_, known)| known.until < before).map(|(place, _)| place);
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let old: Vec<_> = old.take(limit).cloned().collect();
        for place in &old {
            keys.remove(place);
        }
        Ok(u64::try_from(old.len()).unwrap_or(u64::MAX))
    }
}
