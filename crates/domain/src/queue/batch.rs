//! Which entries are tested together.

use crate::time::{Span, Timestamp};

use super::lane_index::Lane;
use super::lanes::{meet, obstacle};
use super::order::OrderKey;
use super::{Entry, LinePosition, Mode, Queue, Targets, pretest};

/// Returns the batch that starts with this entry, and until when it waits to fill; `None` when it
/// starts now.
///
/// Neighbors in the line are batched, in PARALLEL mode those of one lane. An entry that must be
/// tested alone never joins a batch, and no later entry is put past it, so the batch ahead of it
/// gets no larger. Entries that were tested before do not wait again, except for entries that
/// have passed beside the line and return, and no batch waits while the queue admits nothing.
pub(super) fn gather<'a>(
    queue: &'a Queue,
    first: &'a Entry,
    at: Timestamp,
) -> (Vec<&'a Entry>, Option<Timestamp>) {
    let mut group = vec![first];
    if alone(queue, first) {
        return (group, None);
    }
    let limits = Limits::of(queue, first);
    let closed = match queue.mode() {
        Mode::Single => neighbors(queue, &limits, &mut group),
        Mode::Parallel => of_one_lane(queue, &limits, &mut group),
    };
    let due = group.iter().map(|entry| batch_due(queue, entry)).min().flatten();
    let waits = !limits.is_full(&group) && !closed;
    (group, due.filter(|due| waits && *due > at))
}

/// A batch that waits to fill.
pub(super) struct Filling {
    pub(super) have: u32,
    /// The most entries that it can have.
    pub(super) most: u32,
    pub(super) until: Timestamp,
}

/// The filling batch that this entry waits in; `None` when the entry does not wait for a batch.
pub(super) fn filling(queue: &Queue, entry: &Entry) -> Option<Filling> {
    let due = queue.header.batch_due?;
    let firsts = super::lanes::may_start(queue).filter_map(|key| queue.entry_of(key.pr()));
    for first in firsts {
        if first.part.is_none() && obstacle(queue, first, &[]).is_none() {
            let (group, until) = gather(queue, first, queue.header.created_at);
            // What has waited longer than that waits for something else.
            if let Some(until) = until.filter(|until| *until >= due)
                && group.iter().any(|member| member.id == entry.id)
            {
                let have = u32::try_from(group.len()).unwrap_or(u32::MAX);
                let has_passed = group.iter().any(|it| it.has_passed());
                let most = Limits::of(queue, first).most(has_passed);
                return Some(Filling { have, most, until });
            }
        }
    }
    None
}

/// Whether an entry must be tested alone.
fn alone(queue: &Queue, entry: &Entry) -> bool {
    let settings = &queue.header.settings;
    !settings.batch || entry.no_batch || entry.priority.is_urgent() || is_isolated(queue, entry)
}

/// Whether a rule of the queue keeps one of the entry's targets out of shared batches.
fn is_isolated(queue: &Queue, entry: &Entry) -> bool {
    let rules = &queue.header.settings.batching_rules;
    let Some(Targets::Only(targets)) = entry.applied_targets().map(|it| &it.targets) else {
        return false;
    };
    rules.iter().any(|rule| targets.iter().any(|name| matches(&rule.target_pattern, name)))
}

/// Whether a name matches a pattern in which `*` matches any text.
pub(super) fn matches(pattern: &str, name: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut name) = name.strip_prefix(head) else { return false };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let tail = parts.pop().unwrap_or_default();
    for part in parts {
        let Some(at) = name.find(part) else { return false };
        name = name.get(at + part.len()..).unwrap_or_default();
    }
    name.ends_with(tail)
}

/// How many entries a batch may have.
struct Limits {
    /// Of entries that have not passed yet.
    untested: u32,
    /// Of all. With pretests, it may have up to twice the size with entries that have passed: these hardly ever
    /// make it fail.
    with_passed: u32,
}

impl Limits {
    /// The limits of a batch that begins with this entry.
    fn of(queue: &Queue, first: &Entry) -> Self {
        let untested = queue.batch_size(first);
        let times = if pretest::is_in_force(queue) { 2 } else { 1 };
        Self { untested, with_passed: untested.saturating_mul(times) }
    }

    const fn most(&self, has_passed: bool) -> u32 {
        if has_passed { self.with_passed } else { self.untested }
    }

    /// Whether no other entry joins a batch.
    fn is_full(&self, group: &[&Entry]) -> bool {
        let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let untested = group.iter().filter(|entry| !entry.has_passed()).count();
        let has_passed = untested < group.len();
        count(untested) >= self.untested || count(group.len()) >= self.most(has_passed)
    }
}

fn may_join(queue: &Queue, entry: &Entry) -> bool {
    entry.waits_in_line() && entry.part.is_none() && !alone(queue, entry)
}

/// Adds the next entries of the line. Returns whether the entry behind them must not be overtaken.
fn neighbors<'a>(queue: &'a Queue, limits: &Limits, group: &mut Vec<&'a Entry>) -> bool {
    let Some(first) = group.first().copied() else { return false };
    for entry in queue.behind(OrderKey::of(first)) {
        if limits.is_full(group) {
            return false;
        }
        if !meet(Mode::Single, first, entry) {
            continue;
        }
        if may_join(queue, entry) {
            group.push(entry);
        } else if !entry.is_held() {
            return true;
        }
    }
    false
}

/// Adds the next entries that share a target with every member of the group and depend only on
/// entries that stand ahead of the whole group and have a candidate. The first member cannot be
/// built on an entry that stands between members. Returns whether the lane has an entry there that
/// must not be overtaken.
fn of_one_lane<'a>(queue: &'a Queue, limits: &Limits, group: &mut Vec<&'a Entry>) -> bool {
    let Some(first) = group.first().copied() else { return false };
    let start = OrderKey::of(first);
    let depends_on_ahead_only = |entry: &Entry, group: &[&Entry]| {
        let lane = Lane::of(queue, entry);
        let between = queue.lane_before(&lane, OrderKey::of(entry));
        let mut between = between.take_while(|other| OrderKey::of(other) >= start);
        between.all(|other| {
            !meet(Mode::Parallel, other, entry) || group.iter().any(|it| it.id == other.id)
        })
    };
    let mut lane = Lane::of(queue, first);
    let mut last = start;
    while !limits.is_full(group) {
        let meets = |member: &&Entry, entry: &Entry| meet(Mode::Parallel, member, entry);
        let of_lane = |entry: &&Entry| group.iter().any(|member| meets(member, entry));
        let Some(entry) = queue.lane_behind(&lane, last).find(of_lane) else { return false };
        last = OrderKey::of(entry);
        // An entry that shares a target with only some members must not wait for the others.
        if group.iter().all(|member| meets(member, entry))
            && may_join(queue, entry)
            && depends_on_ahead_only(entry, group)
            && obstacle(queue, entry, group).is_none()
        {
            lane.join(entry);
            group.push(entry);
        } else if !entry.is_held() && !matches!(entry.place, LinePosition::Waiting { .. }) {
            return true;
        }
    }
    false
}

/// When an entry has waited long enough for its batch to fill. With pretests, one that has passed and
/// returns to the line from beside it waits, too: others may join it beyond the size of batches.
fn batch_due(queue: &Queue, entry: &Entry) -> Option<Timestamp> {
    let minutes = queue.header.settings.batching_max_wait_time_minutes;
    let since = match entry.place {
        LinePosition::Waiting { since, .. } => Some(since),
        LinePosition::Anchored { .. } => {
            entry.returned_at.filter(|_| entry.has_passed() && pretest::is_in_force(queue))
        }
        LinePosition::Front { .. } | LinePosition::Outside => None,
    };
    let since = since.filter(|_| queue.header.state.lets_in());
    since.map(|since| since.plus(Span::minutes(minutes)))
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn a_star_matches_any_text() {
        for (pattern, name, fits) in [
            ("a", "a", true),
            ("a", "ab", false),
            ("*", "", true),
            ("a*", "abc", true),
            ("*c", "abc", true),
            ("*c", "abcd", false),
            ("a*b*c", "axxbyyc", true),
            ("a*b*c", "axxcyyb", false),
            ("a*a", "a", false),
            ("a*b*b", "axb", false),
            ("//infra/*:deploy", "//infra/dns:deploy", true),
        ] {
            assert_eq!(matches(pattern, name), fits, "{pattern} {name}");
        }
    }
}
