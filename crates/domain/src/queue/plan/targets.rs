//! Impacted targets, as reported or as computed from changed paths by the queue's rules.

use std::sync::Arc;

use crate::ids::{EntryId, PrNumber, Sha};

use super::super::{
    ComputedTargets, Decision, Effect, Entry, Header, IgnoredBecause, LinePosition, Mode, Queue,
    ReportedTargets, Targets, TargetsOrigin, WhyAll,
};
use super::builder::TransitionBuilder;
use super::{advance, leave};

/// Stores reported targets, also for a pull request that is not in the queue. An entry takes them
/// if they are for its head, or if it has none for its head. A late report for an old head changes
/// nothing.
pub(super) fn reported(builder: &mut TransitionBuilder, pr: PrNumber, targets: &ReportedTargets) {
    let id = builder.queue.entry_id(pr);
    let Some(entry) = builder.entry(id) else {
        return builder.put_targets(pr, Arc::new(targets.clone()));
    };
    let is_late = !targets.hold_for(&entry.pull_request.head);
    let is_known = |known: &ReportedTargets| {
        known.targets == targets.targets && known.origin == targets.origin
    };
    if entry.applied_targets().is_some_and(|known| is_late || is_known(known)) {
        return;
    }
    if leave::is_landing(&builder.queue, &entry) {
        return;
    }
    take(builder, &entry, targets.clone());
}

/// Absorbs computed targets. Reported ones take precedence.
pub(super) fn computed(
    builder: &mut TransitionBuilder,
    pr: PrNumber,
    head: &Sha,
    revision: u64,
    computed: &ComputedTargets,
) {
    let id = builder.queue.entry_id(pr);
    let Some(entry) = builder.entry(id) else {
        return builder.ignored(IgnoredBecause::NoSuchEntry);
    };
    if !builder.queue.computes_targets(pr, head)
        || builder.queue.header.rules_revision != revision
        // If the landing is refused, they are requested again.
        || leave::is_landing(&builder.queue, &entry)
    {
        return builder.ignored(IgnoredBecause::Superseded);
    }
    let targets = ReportedTargets::computed(head.clone(), revision, computed.clone());
    if entry.targets.as_deref() == Some(&targets) {
        return builder.ignored(IgnoredBecause::Known);
    }
    let what = match (&computed.targets, &computed.why_all) {
        (Targets::Only(names), _) => format!("impacted targets computed: {}", names.len()),
        (Targets::All, Some(why)) => format!("all targets impacted: {why}"),
        (Targets::All, None) => "all targets impacted".to_owned(),
    };
    builder.decision(Decision::Changed { pr, what });
    take(builder, &entry, targets);
}

/// Gives an entry new targets.
fn take(builder: &mut TransitionBuilder, entry: &Entry, targets: ReportedTargets) {
    let is_same = entry.applied_targets().is_some_and(|known| known.targets == targets.targets);
    let targets = Arc::new(targets);
    builder.put_targets(entry.pr, targets.clone());
    builder.change_entry(entry.id, |entry| entry.targets = Some(targets));
    if entry.place == LinePosition::Outside {
        advance::admit(builder, entry.id);
    } else if !is_same && builder.queue.mode() == Mode::Parallel {
        advance::targets_changed(builder, entry.id);
    }
}

/// Requests the targets of an entry, unless they are reported or the queue has no rules.
pub(super) fn request(builder: &mut TransitionBuilder, id: EntryId) {
    let Some(entry) = builder.entry(id) else { return };
    let head = &entry.pull_request.head;
    if builder.queue.computes_targets(entry.pr, head) {
        let (head, revision) = (head.clone(), builder.queue.header.rules_revision);
        builder.effect(Effect::ComputeTargets { pr: entry.pr, head, revision });
    }
}

/// Requests the targets of the entries that have passed in a run: computed targets were ignored while
/// it was landing.
pub(super) fn request_after_landing(builder: &mut TransitionBuilder, entries: &[EntryId]) {
    for id in entries {
        let queue = &builder.queue;
        let lacks = |entry: &Entry| {
            entry.known_targets(&queue.header).is_none() && !leave::is_landing(queue, entry)
        };
        if builder.entry(*id).as_deref().is_some_and(lacks) {
            request(builder, *id);
        }
    }
}

/// Requests the targets of the entries for which an outage of the host has left all targets.
pub(super) fn request_after_outage(builder: &mut TransitionBuilder) {
    let is_affected = |entry: &&Entry| {
        let origin = entry.applied_targets().map(|it| &it.origin);
        matches!(
            origin,
            Some(TargetsOrigin::Computed { why_all: Some(WhyAll::HostFailed { .. }), .. })
        )
    };
    let entries = builder.queue.entries_in_order().filter(is_affected);
    for id in entries.map(|entry| entry.id).collect::<Vec<_>>() {
        request(builder, id);
    }
}

/// Requests the targets of every entry: a push from outside has removed landings from the target, which
/// are now changes of the pull requests that contain them.
pub(super) fn request_all(builder: &mut TransitionBuilder) {
    let entries: Vec<EntryId> = builder.queue.entries_in_order().map(|entry| entry.id).collect();
    for id in entries {
        request(builder, id);
    }
}

/// Applies other rules. Entries outside the line need targets by these rules; those in the line keep
/// what they have until then.
pub(super) fn apply_rules(builder: &mut TransitionBuilder) {
    builder.queue.header.rules_revision += 1;
    request_all(builder);
}

impl Header {
    /// Whether the queue computes the targets of pull requests for which none are reported.
    pub fn computes_targets(&self) -> bool {
        !self.settings.impacted_target_rules.is_empty()
    }

    /// Whether targets must be known before a pull request enters the line.
    pub(in super::super) fn requires_targets(&self) -> bool {
        let isolates = !self.settings.batching_rules.is_empty();
        self.mode() == Mode::Parallel || (isolates && self.computes_targets())
    }
}

impl Queue {
    /// Whether the queue computes the targets of this head of a pull request: it has rules, and none
    /// were reported.
    pub fn computes_targets(&self, pr: PrNumber, head: &Sha) -> bool {
        let has_report =
            |entry: &Entry| entry.applied_targets().is_some_and(|it| it.origin.is_reported());
        let entry = self.entry_of(pr).filter(|entry| entry.pull_request.head == *head);
        self.header.computes_targets() && entry.is_some_and(|entry| !has_report(entry))
    }
}
