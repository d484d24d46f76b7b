//! The time of this machine.

use std::time::{SystemTime, UNIX_EPOCH};

use signalbox_domain::time::Timestamp;

#[expect(clippy::disallowed_methods, reason = "a client has no clock port")]
pub(crate) fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_unix_micros(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
}
