//! Wake-ups of background work.

use crate::ids::OrgId;
use crate::ports::QueueRef;
use crate::queue::EffectClass;

/// Wakes background work after a commit. A lost notification costs time, never correctness, because
/// each server reads the agenda about once a second.
pub trait Notifier: Send + Sync {
    /// A queue was committed with new effects of these classes.
    fn committed(&self, queue: QueueRef, classes: &[EffectClass]);

    /// The event log of an organization has new events.
    fn emitted(&self, org: OrgId) {
        // Optional: ignored by default.
        let _ = org;
    }

    /// An upload was received.
    fn received(&self) {}
}
