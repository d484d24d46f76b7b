//! Effects that have failed for longer than a minute: their queue stands still.

use signalbox_domain::ports::{Failing, Outbox, StoreError};
use signalbox_domain::time::{Span, Timestamp};

/// One minute: effects that fail for no longer usually succeed on a later try.
pub const LONG: Span = Span::from_micros(60_000_000);

/// How many effects have failed for longer than `LONG`, and up to `limit` of them, the longest first.
pub async fn for_long(
    outbox: &dyn Outbox,
    now: Timestamp,
    limit: u32,
) -> Result<Failing, StoreError> {
    outbox.failing(None, now.minus(LONG), limit).await
}
