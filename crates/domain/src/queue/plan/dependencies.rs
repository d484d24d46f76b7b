//! Dependencies: a pull request enters the line when its dependencies have merged.

use std::collections::BTreeSet;

use crate::ids::{EntryId, PrNumber};

use super::super::order::OrderKey;
use super::super::{
    Actor, CancelReason, Decision, Dependency, DependencyState, DependsOn, Effect, Exit,
    IgnoredBecause, Queue,
};
use super::builder::TransitionBuilder;
use super::{advance, leave};

/// Takes the dependencies of an entry from its pull request, and requests the states that are not known.
pub(super) fn update(builder: &mut TransitionBuilder, id: EntryId) {
    let Some(entry) = builder.entry(id) else { return };
    let queue = &builder.queue;
    let known = |on: &Dependency| {
        let own = entry.dependencies.iter().find(|it| it.on == *on).map(|it| it.state);
        own.or_else(|| queue.dependency_state(on))
    };
    let state_of = |on: &Dependency| match on {
        Dependency::Own(pr) if queue.entry_of(*pr).is_some() => DependencyState::Open,
        Dependency::Unknown(_) => DependencyState::Missing,
        Dependency::Own(_) | Dependency::Other(..) => DependencyState::Unread,
    };
    let named = entry.pull_request.depends_on.iter();
    let named = named.filter(|_| queue.header.settings.dependencies_enabled);
    let dependencies: Vec<DependsOn> = named
        .map(|on| DependsOn { on: on.clone(), state: known(on).unwrap_or_else(|| state_of(on)) })
        .collect();
    if dependencies == entry.dependencies {
        return;
    }
    let is_new = |it: &&DependsOn| it.state == DependencyState::Unread && known(&it.on).is_none();
    let unread: Vec<Dependency> =
        dependencies.iter().filter(is_new).map(|it| it.on.clone()).collect();
    show_cycle(builder, id);
    builder.change_entry(id, |entry| entry.dependencies = dependencies);
    show_cycle(builder, id);
    for on in unread {
        builder.effect(Effect::InspectDependency { on });
    }
}

/// Takes the dependencies of every entry again, after a change of the setting.
pub(super) fn apply_setting(builder: &mut TransitionBuilder) {
    let entries: Vec<EntryId> = builder.queue.entries_in_order().map(|entry| entry.id).collect();
    for id in entries {
        update(builder, id);
    }
}

/// Notes that the public states of the entries in a cycle have changed.
fn show_cycle(builder: &mut TransitionBuilder, id: EntryId) {
    let Some(entry) = builder.entry(id) else { return };
    builder
        .also_shown
        .extend(cycle(&builder.queue, entry.pr, entry.waits_for()).into_iter().flatten());
}

/// Records the state of a dependency for the entries that wait for it. They enter the line if they are
/// ready, longest wait first. Returns whether an entry waited for it.
pub(super) fn seen(
    builder: &mut TransitionBuilder,
    on: &Dependency,
    state: DependencyState,
) -> bool {
    let queue = &builder.queue;
    let mut waiting: Vec<_> =
        queue.waiting.dependents(on).filter_map(|pr| queue.entry_of(pr)).collect();
    waiting.sort_by_key(|entry| OrderKey::of(entry));
    let waiting: Vec<(EntryId, PrNumber)> =
        waiting.into_iter().map(|entry| (entry.id, entry.pr)).collect();
    for (id, pr) in &waiting {
        let Some(entry) = builder.entry(*id) else { continue };
        if entry.dependencies.iter().all(|it| it.on != *on || it.state == state) {
            continue;
        }
        show_cycle(builder, *id);
        builder.change_entry(*id, |entry| {
            for it in entry.dependencies.iter_mut().filter(|it| it.on == *on) {
                it.state = state;
            }
        });
        let what = format!("dependency {on} {}", state.as_str());
        builder.decision(Decision::Changed { pr: *pr, what });
        advance::admit(builder, *id);
    }
    !waiting.is_empty()
}

/// Absorbs a read of a dependency. The queue knows more about a live entry than the host.
pub(super) fn read(builder: &mut TransitionBuilder, on: &Dependency, state: DependencyState) {
    let is_live = |pr: PrNumber| builder.queue.entry_of(pr).is_some();
    match on {
        Dependency::Own(pr) if is_live(*pr) && state != DependencyState::Merged => {
            builder.ignored(IgnoredBecause::Superseded);
        }
        Dependency::Own(_) | Dependency::Other(..) | Dependency::Unknown(_) => {
            if !seen(builder, on, state) {
                builder.ignored(IgnoredBecause::NoSuchEntry);
            }
        }
    }
}

/// Reads a dependency again if the host shows it in another state: it may show a landed pull request as
/// closed. Returns whether an entry waits for it.
pub(super) fn hinted(
    builder: &mut TransitionBuilder,
    pr: PrNumber,
    state: DependencyState,
) -> bool {
    let on = Dependency::Own(pr);
    let Some(known) = builder.queue.dependency_state(&on) else { return false };
    // One that has not been read is about to be.
    if known != state && known != DependencyState::Unread {
        builder.effect(Effect::InspectDependency { on });
    }
    true
}

/// Handles the end of an entry for its dependents. Returns whether an entry had ended.
pub(super) fn follow_next(builder: &mut TransitionBuilder) -> bool {
    let Some((pr, has_merged)) = builder.ended.pop_first() else { return false };
    let on = Dependency::Own(pr);
    if has_merged {
        seen(builder, &on, DependencyState::Merged);
    } else if builder.queue.waits_for(&on) && builder.queue.entry_of(pr).is_none() {
        builder.effect(Effect::InspectDependency { on });
    }
    true
}

/// Cancels an entry in the line that depends on one that has not merged: its description or the setting
/// has changed. A landing entry stays until the host has answered. Returns whether one left.
pub(super) fn cancel_next(builder: &mut TransitionBuilder) -> bool {
    let queue = &builder.queue;
    let gated = queue.waiting.gated().filter_map(|pr| queue.entry_of(pr));
    let mut free = gated.filter(|entry| !leave::is_landing(queue, entry));
    let next = free.next().map(|entry| {
        let names: Vec<String> =
            entry.unmerged_dependencies().map(|it| it.on.to_string()).collect();
        (entry.id, entry.pr, names.join(", "))
    });
    drop(free);
    let Some((id, pr, names)) = next else { return false };
    builder.decision(Decision::Changed { pr, what: format!("depends on {names}") });
    let exit = Exit::Cancelled { reason: CancelReason::DependencyNotMerged, by: Actor::Queue };
    leave::leave(builder, id, exit, &Actor::Queue);
    true
}

/// The pull requests of the queue that form a cycle with this one, starting with it, if it depends on
/// itself through others.
pub(in super::super) fn cycle(
    queue: &Queue,
    pr: PrNumber,
    depends_on: impl Iterator<Item = PrNumber>,
) -> Option<Vec<PrNumber>> {
    let mut path = vec![(pr, depends_on.collect::<Vec<_>>())];
    let mut known = BTreeSet::new();
    while let Some((_, next)) = path.last_mut() {
        let Some(other) = next.pop() else {
            path.pop();
            continue;
        };
        if other == pr {
            return Some(path.iter().map(|(pr, _)| *pr).collect());
        }
        if let Some(entry) = queue.entry_of(other).filter(|_| known.insert(other)) {
            path.push((other, entry.waits_for().collect()));
        }
    }
    None
}
