//! Policies: decisions of the planner that a team can make in its own way.
//!
//! A policy affects how fast a queue works, in which order and with how many test runs. Only what was tested lands,
//! whatever it answers: the planner consults it only where each answer is allowed, and moves answers that are out
//! of bounds to the nearest bound, so the invariants of the queue hold with every policy.
//!
//! ```
//! use signalbox_domain::queue::{Entry, Policy, PolicyId, PolicyView, SharedPolicy};
//!
//! /// Pull requests with the label `risky` fail three times as often as others of their author.
//! #[derive(Debug)]
//! struct Risky;
//!
//! impl Policy for Risky {
//!     fn id(&self) -> PolicyId {
//!         PolicyId::new("risky", 1)
//!     }
//!
//!     fn failing(&self, view: &PolicyView<'_>, entry: &Entry) -> u32 {
//!         let is_risky = entry.pull_request.labels.iter().any(|label| label == "risky");
//!         view.failing(entry) * if is_risky { 3 } else { 1 }
//!     }
//! }
//!
//! let policy = SharedPolicy::from(Risky);
//! assert_eq!(policy.id().to_string(), "risky 1");
//! ```

use std::borrow::Cow;
use std::cell::OnceCell;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use super::outcomes::{CERTAIN, Rates, together};
use super::{Entry, Header, Queue, ReparentingMode, Settings, TestRun};

/// The name and the version of a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct PolicyId {
    /// The name.
    pub name: Cow<'static, str>,
    /// The version: another number for each change that makes a policy answer differently.
    pub version: u32,
}

impl PolicyId {
    /// The id of the policy of this name and version.
    pub fn new(name: impl Into<Cow<'static, str>>, version: u32) -> Self {
        Self { name: name.into(), version }
    }

    /// Whether it is the id of [`Standard`].
    #[cfg(feature = "serde")]
    pub(super) fn is_standard(&self) -> bool {
        *self == Self::default()
    }
}

/// The id of [`Standard`].
impl Default for PolicyId {
    fn default() -> Self {
        Self { name: Cow::Borrowed("standard"), version: 1 }
    }
}

impl fmt::Display for PolicyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.name, self.version)
    }
}

/// Decisions of the planner that affect how fast a queue works and how many test runs that takes. Each but
/// the id has a default: what [`Standard`] does, by the settings of the queue.
///
/// The answers must depend on the arguments only: the planner asks repeatedly, and a replay of the journal
/// asks again. A policy that would answer differently than before needs another version, and one with
/// parameters names them. Every step of a queue and every view of it asks, so a policy must answer quickly and
/// never panic.
pub trait Policy: fmt::Debug + Send + Sync {
    /// Its name and version. The journal has them whenever they change.
    fn id(&self) -> PolicyId;

    /// Whether enough is known to estimate how many pull requests fail. Otherwise nothing is pretested.
    /// By default: 50 pull requests have ended, and one of them has failed.
    fn can_estimate(&self, view: &PolicyView<'_>) -> bool {
        view.header().outcomes.show_failures()
    }

    /// The probability, in millionths, that a pull request fails its tests on its own; at most 1,000,000. By
    /// default that of its author or of the queue: [`PolicyView::failing`].
    fn failing(&self, view: &PolicyView<'_>, entry: &Entry) -> u32 {
        view.failing(entry)
    }

    /// Whether a group is tested beside the line first. `first` is its first pull request, and `percent` the
    /// probability that its run in the line passes. By default: if that is below the setting `pretestThreshold`.
    /// With the value 0 of that setting nothing is pretested.
    fn pretests(&self, view: &PolicyView<'_>, _first: &Entry, percent: u32) -> bool {
        percent < view.settings().pretest_threshold
    }

    /// Whether a run that has failed while runs ahead of it are unfinished leaves the line, to be tested beside
    /// it. By default as the setting `reparentingMode` says.
    fn reparents(&self, view: &PolicyView<'_>, failed: &TestRun) -> bool {
        match view.settings().reparenting_mode {
            ReparentingMode::Off => false,
            ReparentingMode::Batches => failed.group.len() > 1,
            ReparentingMode::All => true,
        }
    }

    /// How many pull requests that have not passed yet are tested together in the batch that begins with `first`,
    /// if the setting `batch` is on; from 1 to 1,000. By default the setting `batchingMinSize`.
    fn batch_size(&self, view: &PolicyView<'_>, _first: &Entry) -> u32 {
        view.settings().batching_min_size
    }

    /// The adaptive window after a failure that restarts other runs; from the setting `windowFloor` to
    /// `concurrency`. By default half of what it was.
    fn window_after_failure(&self, _view: &PolicyView<'_>, _failed: &TestRun, window: u32) -> u32 {
        window / 2
    }

    /// The adaptive window after a landing of so many pull requests, with the same bounds. By default it grows by
    /// their number.
    fn window_after_landing(&self, _view: &PolicyView<'_>, window: u32, merged: u32) -> u32 {
        window.saturating_add(merged)
    }
}

/// What queues do by default: what their settings say.
#[derive(Clone, Copy, Debug, Default)]
pub struct Standard;

impl Policy for Standard {
    fn id(&self) -> PolicyId {
        PolicyId::default()
    }
}

/// A policy that several queues share. Two are equal if they have the same name and version.
#[derive(Clone, Debug)]
pub struct SharedPolicy(Arc<dyn Policy>);

impl<P: Policy + 'static> From<P> for SharedPolicy {
    fn from(policy: P) -> Self {
        Self(Arc::new(policy))
    }
}

impl Default for SharedPolicy {
    fn default() -> Self {
        Self::from(Standard)
    }
}

impl Deref for SharedPolicy {
    type Target = dyn Policy;

    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}

impl PartialEq for SharedPolicy {
    fn eq(&self, other: &Self) -> bool {
        self.id() == other.id()
    }
}

impl Eq for SharedPolicy {}

/// What a policy sees of a queue.
pub struct PolicyView<'a> {
    queue: &'a Queue,
    rates: OnceCell<Rates<'a>>,
}

impl<'a> PolicyView<'a> {
    /// What a policy sees of this queue.
    pub const fn of(queue: &'a Queue) -> Self {
        Self { queue, rates: OnceCell::new() }
    }

    /// The queue without its pull requests: its settings, how the last pull requests ended, and more.
    pub const fn header(&self) -> &'a Header {
        &self.queue.header
    }

    /// The settings of the queue.
    pub fn settings(&self) -> &'a Settings {
        &self.queue.header.settings
    }

    /// The pull requests in the queue, in its order; those outside the line last. Reading all takes time in
    /// proportion to their number, for each question to a policy.
    pub fn entries(&self) -> impl Iterator<Item = &'a Entry> + use<'a> {
        self.queue.entries_in_order()
    }

    /// How many pull requests of the line wait for a test run.
    pub fn waiting(&self) -> usize {
        self.queue.waiting.count()
    }

    /// The number of occupied slots of the line, and the number that may be occupied now: the adaptive window, if
    /// it is in force. Runs of bisections count if these have no slots of their own.
    pub fn slots(&self) -> (u32, u32) {
        self.queue.slots_of_line()
    }

    /// The probability, in millionths, that a pull request fails, as the setting `successEstimates` says: that of
    /// its author or of the queue.
    pub fn failing(&self, entry: &Entry) -> u32 {
        let rates = self.rates.get_or_init(|| Rates::of(self.header()));
        u32::try_from(rates.failing(entry)).unwrap_or(u32::MAX)
    }

    /// The probability, in percent and rounded down, that all these pass together, by the policy of the queue.
    pub fn all_pass<'b>(&self, entries: impl IntoIterator<Item = &'b Entry>) -> u32 {
        let failing = |entry| u64::from(self.queue.policy().failing(self, entry)).min(CERTAIN);
        together(entries.into_iter().map(failing))
    }
}

/// The most pull requests of a batch, whatever the policy says.
const MOST_OF_BATCH: u32 = 1_000;

impl Queue {
    /// The same queue with another policy.
    #[must_use]
    pub fn with_policy(mut self, policy: SharedPolicy) -> Self {
        self.policy = policy;
        self
    }

    /// The policy that its steps use.
    pub fn policy(&self) -> &dyn Policy {
        &*self.policy
    }

    /// Whether its last step had a different policy, or none was made yet.
    pub fn has_other_policy(&self) -> bool {
        self.header.policy != self.policy().id()
    }

    /// How many pull requests that have not passed yet are tested together, if this one is the first.
    pub(super) fn batch_size(&self, first: &Entry) -> u32 {
        self.policy().batch_size(&PolicyView::of(self), first).clamp(1, MOST_OF_BATCH)
    }
}
