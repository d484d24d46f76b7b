//! A policy that answers anything.

use std::hash::{DefaultHasher, Hash, Hasher};

use crate::queue::{Entry, Policy, PolicyId, PolicyView, TestRun};

/// A policy that gives any answer, also ones out of bounds, and always the same to the same question.
#[derive(Clone, Copy, Debug)]
pub struct AnyPolicy(pub u32);

impl AnyPolicy {
    fn answer(self, question: impl Hash, below: u32) -> u32 {
        let mut hasher = DefaultHasher::new();
        (self.0, question).hash(&mut hasher);
        u32::try_from(hasher.finish() % u64::from(below)).unwrap_or_default()
    }
}

impl Policy for AnyPolicy {
    fn id(&self) -> PolicyId {
        PolicyId::new("any", self.0)
    }

    fn can_estimate(&self, _view: &PolicyView<'_>) -> bool {
        self.answer("estimate", 4) > 0
    }

    fn failing(&self, _view: &PolicyView<'_>, entry: &Entry) -> u32 {
        self.answer(("fails", entry.pr), 1_500_000)
    }

    fn pretests(&self, _view: &PolicyView<'_>, first: &Entry, percent: u32) -> bool {
        self.answer(("pretests", first.pr, percent / 10), 2) == 0
    }

    fn reparents(&self, _view: &PolicyView<'_>, failed: &TestRun) -> bool {
        let prs: Vec<u32> = failed.group.iter().map(|member| member.pr.0).collect();
        self.answer(("reparents", prs), 2) == 0
    }

    fn batch_size(&self, view: &PolicyView<'_>, first: &Entry) -> u32 {
        self.answer(("size", first.pr, view.entries().count(), view.waiting()), 6)
    }

    fn window_after_failure(&self, _view: &PolicyView<'_>, failed: &TestRun, window: u32) -> u32 {
        self.answer(("failure", failed.group.len(), window), 9)
    }

    fn window_after_landing(&self, _view: &PolicyView<'_>, window: u32, merged: u32) -> u32 {
        self.answer(("landing", window, merged), 9)
    }
}
