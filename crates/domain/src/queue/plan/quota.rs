//! Limits for authors and agents: how many of their pull requests may be in the line and enter it within an hour,
//! and how long their tests may run in a day.

use std::collections::BTreeMap;

use crate::ids::EntryId;
use crate::time::{Span, Timestamp};

use super::super::order::OrderKey;
use super::super::usage::{Quota, UsedUp};
use super::super::{
    Entry, EntryState, Header, Queue, QueuedReason, RunCancelReason, RunStatus, Settings, TestRun,
    lanes, share,
};
use super::builder::TransitionBuilder;
use super::{advance, frozen};

/// How many more pull requests of each author may enter the line.
pub(super) struct Room {
    /// `None` without a limit.
    limit: Option<usize>,
    used: BTreeMap<String, usize>,
}

impl Room {
    pub(super) fn of(queue: &Queue) -> Self {
        let limit = limit(queue);
        let mut used = BTreeMap::new();
        if limit.is_some() {
            for entry in lanes::in_line(queue) {
                let of = share::of(&queue.header.settings, &entry.pull_request);
                *used.entry(of.to_owned()).or_default() += 1;
            }
        }
        Self { limit, used }
    }

    /// Whether an entry may enter the line; it is then counted.
    pub(super) fn admits(&mut self, settings: &Settings, entry: &Entry) -> bool {
        let limited = self.limit.and_then(|limit| Some((limit, limited(settings, entry)?)));
        let Some((limit, of)) = limited else { return true };
        let used = self.used.entry(of.to_owned()).or_default();
        *used += 1;
        *used <= limit
    }
}

fn limit(queue: &Queue) -> Option<usize> {
    let limit = queue.header.settings.author_limit;
    (limit > 0).then(|| usize::try_from(limit).unwrap_or(usize::MAX))
}

/// Whose limits apply to an entry; `None` if it is urgent, or its author is not known.
pub(in super::super) fn limited<'a>(settings: &Settings, entry: &'a Entry) -> Option<&'a str> {
    let of = share::of(settings, &entry.pull_request);
    (!entry.priority.is_urgent() && !of.is_empty()).then_some(of)
}

/// The quota that keeps an entry outside the line, because its author has used it up.
pub(in super::super) fn used_up(queue: &Queue, entry: &Entry) -> Option<UsedUp> {
    let Header { usage, settings, .. } = &queue.header;
    usage.used_up(settings, limited(settings, entry)?)
}

/// When a quota that keeps an entry outside the line is restored next.
pub(super) fn deadline(queue: &Queue) -> Option<Timestamp> {
    if queue.header.usage.is_empty() || !queue.header.state.lets_in() {
        return None;
    }
    let restored = |entry: &Entry| {
        let until = used_up(queue, entry)?.until;
        may_wait(queue, entry).then_some(until)
    };
    outside(queue).filter_map(restored).min()
}

/// Forgets what no longer counts, and puts the entries into the line that may enter it now.
pub(super) fn update(builder: &mut TransitionBuilder) {
    let at = builder.at;
    let Header { usage, settings, state, .. } = &mut builder.queue.header;
    if usage.forget(settings, at) && state.lets_in() {
        admit_outside(builder, |_| true);
    }
}

/// Counts an entry that enters the line.
pub(super) fn entered(builder: &mut TransitionBuilder, entry: &Entry) {
    let at = builder.at;
    let Header { usage, settings, .. } = &mut builder.queue.header;
    let of = share::of(settings, &entry.pull_request);
    usage.count(Quota::HourlyPullRequests, settings, of, (at, 1));
}

/// Counts a test run that ends now, divided among its members. What returns to the line because of others
/// is tested again, and its author did not cause that.
pub(super) fn tested(builder: &mut TransitionBuilder, run: &TestRun, ended: &RunStatus) {
    let at = builder.at;
    let Some(built_at) = run.built_at else { return };
    let members = i64::try_from(run.group.len()).unwrap_or(i64::MAX).max(1);
    let seconds = at.since(built_at).micros() / Span::seconds(1).micros() / members;
    let seconds = u32::try_from(seconds).unwrap_or_default();
    let own = [QueuedReason::RestartedByUser, QueuedReason::RestartedByApi];
    let by_others = matches!(
        ended,
        RunStatus::Cancelled { reason: RunCancelReason::Requeued(reason) } if !own.contains(reason)
    );
    for member in run.group.iter() {
        let Some(entry) = builder.last_version(member.entry) else { continue };
        if by_others && entry.is_live() {
            continue;
        }
        let Header { usage, settings, .. } = &mut builder.queue.header;
        let of = share::of(settings, &entry.pull_request);
        usage.count(Quota::DailyMinutes, settings, of, (at, seconds));
    }
}

/// Whether a limit for its author keeps an entry outside the line.
pub(super) fn excludes(queue: &Queue, entry: &Entry) -> bool {
    used_up(queue, entry).is_some() || has_too_many(queue, entry)
}

/// Whether as many pull requests of its author are in the line as may.
fn has_too_many(queue: &Queue, entry: &Entry) -> bool {
    let settings = &queue.header.settings;
    let limit = limit(queue);
    limit.and_then(|limit| Some((limit, limited(settings, entry)?))).is_some_and(|(limit, of)| {
        let own = lanes::in_line(queue).filter(|it| share::of(settings, &it.pull_request) == of);
        own.take(limit).count() == limit
    })
}

/// Puts entries into the line whose authors have had others leave it. Returns whether there was such an
/// author.
pub(super) fn admit_next(builder: &mut TransitionBuilder) -> bool {
    let Some(of) = builder.left_line.pop_first() else { return false };
    if limit(&builder.queue).is_some() && builder.queue.header.state.lets_in() {
        let settings = builder.queue.header.settings.clone();
        admit_outside(builder, |entry| share::of(&settings, &entry.pull_request) == of);
    }
    true
}

/// Puts the entries into the line that may enter it, the one that has waited longest first.
pub(super) fn admit_outside(builder: &mut TransitionBuilder, which: impl Fn(&Entry) -> bool) {
    let queue = &builder.queue;
    let mut room = Room::of(queue);
    let may_enter = |entry: &&Entry| {
        which(entry)
            && used_up(queue, entry).is_none()
            && frozen::excluding(queue, entry).is_none()
            && may_wait(queue, entry)
    };
    let outside = outside(queue).filter(may_enter);
    let admitted: Vec<EntryId> = outside
        .filter(|it| room.admits(&queue.header.settings, it))
        .map(|entry| entry.id)
        .collect();
    for id in admitted {
        advance::admit(builder, id);
    }
}

/// The entries outside the line, the one that has been there longest first.
fn outside(queue: &Queue) -> impl Iterator<Item = &Entry> {
    let outside = queue.line.range(OrderKey::first_outside()..);
    outside.filter_map(|key| queue.entry_of(key.pr()))
}

/// Whether only the queue keeps an entry outside the line.
fn may_wait(queue: &Queue, entry: &Entry) -> bool {
    entry.state == EntryState::NotReady && super::is_ready(queue, entry)
}
