//! Steps that are decided and not yet committed.

use std::sync::Arc;

use signalbox_domain::audit::AuditRecord;
use signalbox_domain::ids::PrNumber;
use signalbox_domain::ports::{Commit, EventRecord, QueueRef, Version};
use signalbox_domain::queue::{Changes, JournalRecord, NumberedEffect, Queue};
use signalbox_domain::time::{Span, Timestamp};

/// How long a queue stays watched after its last entry has left, in minutes.
const WATCHED_MINUTES: u32 = 10;

/// A decided step.
pub(super) struct Decided {
    pub(super) at: Timestamp,
    pub(super) input: &'static str,
    pub(super) after: Arc<Queue>,
    pub(super) next_deadline: Option<Timestamp>,
    pub(super) watched_until: Option<Timestamp>,
    pub(super) changes: Changes,
    pub(super) journal: JournalRecord,
    pub(super) effects: Vec<NumberedEffect>,
    pub(super) events: Vec<EventRecord>,
    pub(super) audit: Option<AuditRecord>,
    pub(super) request: Option<String>,
    pub(super) shown: Vec<PrNumber>,
}

impl Decided {
    /// What the store writes of it.
    pub(super) fn commit(&self, queue: QueueRef, expected: Version) -> Commit<'_> {
        Commit {
            queue,
            expected,
            header: &self.after.header,
            next_deadline: self.next_deadline,
            changes: &self.changes,
            journal: &self.journal,
            effects: &self.effects,
            events: &self.events,
            at: self.at,
            audit: self.audit.as_ref(),
            request: self.request.as_deref(),
            shown: &self.shown,
            watched_until: self.watched_until,
        }
    }
}

/// Until when a queue is watched after a step: while entries wait or the host is unavailable, and
/// for a while after that, because users push to targets around landings.
pub(super) fn watched_until(before: &Queue, after: &Queue, at: Timestamp) -> Option<Timestamp> {
    let watched = |queue: &Queue| {
        queue.entries_in_order().next().is_some() || queue.header.host.unreachable_since.is_some()
    };
    if watched(after) {
        return Some(Timestamp::from_unix_micros(i64::MAX));
    }
    watched(before).then(|| at.plus(Span::minutes(WATCHED_MINUTES)))
}
