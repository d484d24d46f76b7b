//! Pretests: a group whose run in the line would probably be wasted is tested beside the line first,
//! on the target alone.
//!
//! A run of the line is wasted if a pull request of its group or of an unfinished group ahead fails.
//! Beside the line a failure restarts no other run. A group that has passed there enters the line
//! behind the started groups, where it will probably pass.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::ids::{PrNumber, RunId};

use super::super::{
    Actor, Behind, Decision, Entry, EntryState, LinePosition, Part, PolicyView, Queue,
    QueuedReason, lanes,
};
use super::builder::{Because, TransitionBuilder};
use super::{bisect, leave};

/// Whether the queue pretests: the settings allow it, and enough outcomes are known, with failures.
pub(in super::super) fn is_in_force(queue: &Queue) -> bool {
    queue.header.settings.pretest_threshold > 0
        && bisect::leaves_the_line(queue)
        && lanes::failure_window(queue) == 0
        && queue.policy().can_estimate(&PolicyView::of(queue))
}

/// The probability, in percent, that a run of this group in the line passes, if it is so low that the
/// group is pretested.
///
/// An entry that others are built on keeps its place, and one that has returned from there without a
/// result, because it conflicts with the target, is tested in the line.
pub(in super::super) fn wanted(queue: &Queue, group: &[&Entry]) -> Option<u32> {
    let untested = || group.iter().copied().filter(|it| !it.has_passed());
    if !is_in_force(queue)
        || untested().next().is_none()
        || group.iter().any(|it| is_tested_in_line(queue, it))
    {
        return None;
    }
    let ahead = lanes::contained(queue, group).entries;
    let is_open = |entry: &Entry| {
        !entry.has_passed() && !matches!(entry.state, EntryState::TestsPassed { .. })
    };
    let open = ahead.iter().map(|it| &*it.entry).filter(|it| is_open(it));
    let view = PolicyView::of(queue);
    let percent = view.all_pass(untested().chain(open));
    group
        .first()
        .is_some_and(|first| queue.policy().pretests(&view, first, percent))
        .then_some(percent)
}

/// Whether an entry that waits would be pretested with these others in its run, if the queue pretests.
pub(in super::super) fn expected<'a>(
    queue: &Queue,
    view: &PolicyView<'_>,
    entry: &'a Entry,
    others: impl Iterator<Item = &'a Entry>,
) -> bool {
    !entry.has_passed() && !is_tested_in_line(queue, entry) && {
        let percent = view.all_pass(std::iter::once(entry).chain(others));
        queue.policy().pretests(view, entry, percent)
    }
}

/// Whether an entry is never pretested: it is a part of a batch, urgent, or restarted in its place.
fn is_tested_in_line(queue: &Queue, entry: &Entry) -> bool {
    entry.part.is_some()
        || matches!(entry.place, LinePosition::Front { .. })
        || entry.reparented
        || is_built_on(queue, entry)
}

/// Whether a run contains an entry that waits for a run of its own.
fn is_built_on(queue: &Queue, entry: &Entry) -> bool {
    let has_started = matches!(entry.place, LinePosition::Anchored { .. });
    has_started && queue.runs().any(|run| run.contains(entry.pr))
}

/// Removes from the end of a group that would be pretested what is not like its first member: entries that
/// have passed a run before are tested in the line, without the others. Returns whether there was such an
/// entry.
pub(in super::super) fn separate(queue: &Queue, group: &mut Vec<&Entry>) -> bool {
    let Some(first) = group.first().map(|first| first.has_passed()) else { return false };
    let like_the_first = group.iter().take_while(|it| it.has_passed() == first).count();
    let differs = like_the_first < group.len() && wanted(queue, group).is_some();
    if differs {
        group.truncate(like_the_first);
    }
    differs
}

/// Puts a group beside the line before its first run. A failure there is no evidence while its members
/// may need what is ahead of them. What conflicts with a member still waits for it: otherwise two that
/// conflict with the same one would form a batch with it in turn, without end.
pub(super) fn put_beside(builder: &mut TransitionBuilder, group: &[Arc<Entry>]) -> Vec<Arc<Entry>> {
    let batch = builder.number();
    let prs = lacked(&builder.queue, group);
    let behind = Behind { prs, since: builder.at, pretest: true, failed: false };
    let behind = Some(behind).filter(|behind| !behind.prs.is_empty());
    for entry in group {
        let number = builder.number();
        builder.change_entry(entry.id, |entry| {
            entry.place = LinePosition::Anchored { number };
            entry.part = Some(Part::beside(batch, true, behind.clone()));
        });
    }
    group.iter().filter_map(|entry| builder.entry(entry.id)).collect()
}

/// What the candidate of a pretest lacks: what the group would be built on in the line, and what is
/// pretested already, except for entries that wait for the group itself, directly or through others.
fn lacked(queue: &Queue, group: &[Arc<Entry>]) -> Vec<PrNumber> {
    let members: Vec<&Entry> = group.iter().map(AsRef::as_ref).collect();
    let in_line = lanes::contained(queue, &members).entries.into_iter().map(|it| &it.entry);
    let beside = || {
        let started = queue.started.before(None).map(|(_, placed)| &placed.entry);
        started.filter(|entry| entry.is_pretested() && !bisect::is_suspected(entry))
    };
    let waits_for = |entry: &Entry, prs: &BTreeSet<PrNumber>| {
        let behind = entry.part.as_ref().and_then(|part| part.behind.as_ref());
        behind.is_some_and(|behind| behind.prs.iter().any(|pr| prs.contains(pr)))
    };
    let mut waiting: BTreeSet<PrNumber> = group.iter().map(|entry| entry.pr).collect();
    loop {
        let known = waiting.len();
        let more: Vec<PrNumber> =
            beside().filter(|it| waits_for(it, &waiting)).map(|it| it.pr).collect();
        waiting.extend(more);
        if waiting.len() == known {
            break;
        }
    }
    let shares = |entry: &Entry| {
        group.iter().any(|member| lanes::share_targets(queue.mode(), entry, member))
    };
    let beside = beside().filter(|it| !waiting.contains(&it.pr) && shares(it));
    in_line.chain(beside).map(|entry| entry.pr).collect()
}

/// With pretests, returns the members of a failed batch that have passed before to the line, if others
/// have not. The others, which remain, are the suspects; they may need what has returned.
pub(super) fn return_passed(
    builder: &mut TransitionBuilder,
    members: &mut Vec<&Entry>,
) -> Option<Behind> {
    let passed = members.iter().filter(|it| it.has_passed()).count();
    if !is_in_force(&builder.queue)
        || members.iter().any(|it| it.part.is_some())
        || passed == 0
        || passed == members.len()
    {
        return None;
    }
    let mut prs = Vec::with_capacity(passed);
    for entry in members.extract_if(.., |it| it.has_passed()) {
        prs.push(entry.pr);
        let reason = QueuedReason::BisectionRequired;
        leave::requeue_all_on(builder, entry.pr, reason);
        let to = EntryState::Pending { reason, held_by: None, was_held_by: None };
        builder.move_entry(entry.id, to, Because::new(reason, &Actor::Queue));
        let at = builder.at;
        builder.change_entry(entry.id, |entry| entry.returned_at = Some(at));
    }
    Some(Behind { prs, since: builder.at, pretest: false, failed: false })
}

/// Records a pretest that has started.
pub(super) fn started(builder: &mut TransitionBuilder, run: RunId, percent: u32) {
    let Some(started) = builder.run(run) else { return };
    let prs = started.group.iter().map(|member| member.pr).collect();
    builder.decision(Decision::Pretested { run, prs, percent });
}
