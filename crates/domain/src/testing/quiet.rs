//! An observer and notifier for tests that run background work themselves.

use crate::ports::{Notifier, Observed, Observer, QueueRef};
use crate::queue::EffectClass;

/// Ignores every notification and observation.
#[derive(Clone, Copy, Debug, Default)]
pub struct Quiet;

impl Notifier for Quiet {
    fn committed(&self, _: QueueRef, _: &[EffectClass]) {}
}

impl Observer for Quiet {
    fn observe(&self, _: &Observed<'_>) {}
}
