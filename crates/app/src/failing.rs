//! Effects that have failed for long: a queue stands still, and somebody should look.

use signalbox_domain::ports::{Failing, StoreError, Stores};
use signalbox_domain::time::{Span, Timestamp};

/// What fails for no longer than this usually mends itself.
pub(crate) const LONG: Span = Span::from_micros(60_000_000);

/// The effects that have failed for longer, and up to `limit` of them one by one.
pub(crate) async fn for_long(
    stores: &Stores,
    now: Timestamp,
    limit: u32,
) -> Result<Failing, StoreError> {
    stores.outbox.failing(None, now.minus(LONG), limit).await
}
