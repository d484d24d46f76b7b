//! Wake-ups.

use crate::ids::OrgId;
use crate::queue::Lane;

use super::QueueRef;

/// Told after a commit. A hint: losing one costs time, never correctness, because background work
/// also looks by itself at short intervals.
pub trait Notifier: Send + Sync {
    /// A queue has changed and has new effects in those lanes.
    fn committed(&self, queue: QueueRef, lanes: &[Lane]);

    /// The log of an organization has new events.
    fn told(&self, org: OrgId) {
        // Nobody has to listen.
        let _ = org;
    }
}
