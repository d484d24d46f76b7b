//! Requests with an idempotency key, and the replies to them.

use async_trait::async_trait;
use uuid::Uuid;

use crate::ids::{OrgId, TokenId};
use crate::ports::StoreError;
use crate::time::Timestamp;

/// A request with an idempotency key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyedRequest {
    /// The organization of the token.
    pub org: OrgId,
    /// The token; keys of different tokens are different keys.
    pub token: TokenId,
    /// The key, as the client chose it.
    pub key: String,
    /// A hash of what is requested.
    pub fingerprint: String,
    /// The id of this attempt.
    pub claim: Uuid,
}

/// The reply to a request that was carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptReply {
    /// Its status.
    pub status: u16,
    /// The type of its content.
    pub content_type: String,
    /// Its content; `None` if that must not be kept.
    pub body: Option<String>,
}

/// What a claim of a key finds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyClaim {
    /// The key is new, or its claim has expired: the request may be carried out.
    Claimed,
    /// Another attempt of the same request is being carried out.
    Running,
    /// The key belongs to another request.
    OtherRequest,
    /// The request was carried out; its reply.
    Replied(KeptReply),
}

/// Stores idempotency keys.
#[async_trait]
pub trait IdempotencyStore: Send + Sync {
    /// Claims a key until a time. Of concurrent claims of a key at most one is
    /// [`KeyClaim::Claimed`]. What has expired by `now` counts as absent.
    async fn claim(
        &self,
        request: &KeyedRequest,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<KeyClaim, StoreError>;

    /// Keeps the reply of a claimed request until a time. `false`: the claim has been lost, and
    /// nothing is kept.
    async fn keep(
        &self,
        request: &KeyedRequest,
        reply: &KeptReply,
        until: Timestamp,
    ) -> Result<bool, StoreError>;

    /// Gives a claimed key back, because nothing was carried out. A lost claim changes nothing.
    async fn release(&self, request: &KeyedRequest) -> Result<(), StoreError>;

    /// Deletes keys that have expired before a time, at most `limit`; returns their number.
    async fn forget(&self, before: Timestamp, limit: u32) -> Result<u64, StoreError>;
}
