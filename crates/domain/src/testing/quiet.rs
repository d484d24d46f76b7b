//! Observer and notifier of tests that run background work themselves.

use crate::ports::{Notifier, Observed, Observer, QueueRef};
use crate::queue::EffectClass;

/// Ignores every wake-up and everything that is observed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Quiet;

impl Notifier for Quiet {
    fn committed(&self, _: QueueRef, _: &[EffectClass]) {}
}

impl Observer for Quiet {
    fn observe(&self, _: &Observed<'_>) {}
}
