//! Effects that have failed for more than a minute and block their queue.

use signalbox_domain::ports::{Failing, Outbox, StoreError};
use signalbox_domain::time::{Span, Timestamp};

/// One minute. Shorter failures usually pass with a retry.
pub const LONG: Span = Span::from_micros(60_000_000);

/// The effects that have failed for longer than [`LONG`]: their number, and up to `limit` of them,
/// longest first.
pub async fn for_long(
    outbox: &dyn Outbox,
    now: Timestamp,
    limit: u32,
) -> Result<Failing, StoreError> {
    outbox.failing(None, now.minus(LONG), limit).await
}
