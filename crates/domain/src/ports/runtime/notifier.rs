//! Wake-ups.

use crate::ids::OrgId;
use crate::ports::QueueRef;
use crate::queue::EffectClass;

/// Told after a commit. A hint: losing one costs time, never correctness, because each
/// server reads about once a second which work is due.
pub trait Notifier: Send + Sync {
    /// A queue has changed and has new effects in those lanes.
    fn committed(&self, queue: QueueRef, lanes: &[EffectClass]);

    /// The log of an organization has new events.
    fn told(&self, org: OrgId) {
        // Nobody has to listen.
        let _ = org;
    }

    /// An upload is to be read.
    fn received(&self) {}
}
