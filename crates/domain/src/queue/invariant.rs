//! The invariants of a queue, by the ids that tests and documentation use.
//!
//! Invariants of a single state are checked here, after every step of a debug build. Q2 (capacity),
//! Q5 (paused is paused), Q8 (liveness) and Q9 (replay) are about steps and histories; the model
//! tests check them.

use crate::ids::{PrNumber, RunId};

use super::justified::{tested_by_a_run_that_ended, unjustified};
use super::lanes::meet;
use super::order::OrderKey;
use super::{DependencyState, Entry, EntryState, LinePosition, Mode, Queue, RunStatus, TestRun};

/// A violated invariant: its id and a description.
pub type Violation = (&'static str, String);

/// Checks the invariants of a single state; returns the violations.
pub fn check(queue: &Queue) -> Vec<Violation> {
    let mut violations = Vec::new();
    let line: Vec<&Entry> = queue.entries_in_order().collect();
    green_target(queue, &line, &mut violations);
    no_lost_pull_request(queue, &line, &mut violations);
    runs_are_needed(queue, &mut violations);
    order(&line, &mut violations);
    dependencies_have_merged(queue, &line, &mut violations);
    violations.extend(unjustified(queue).into_iter().map(|(_, why)| ("Q10", why)));
    if let Some(pr) = tested_by_a_run_that_ended(queue) {
        violations.push(("Q10", format!("#{pr} is under test by a run that has ended")));
    }
    violations
}

/// Q1: every candidate contains what its group depends on, in the order of the line; a landing
/// candidate was tested and has nothing unsettled ahead. Q6: it contains nothing else.
fn green_target(queue: &Queue, line: &[&Entry], violations: &mut Vec<Violation>) {
    let mut before: Vec<&Entry> = Vec::new();
    for entry in line.iter().filter(|entry| entry.place != LinePosition::Outside) {
        if let Some(run) = entry.state.run().and_then(|run| queue.run(run)) {
            let own = run.group.iter().any(|member| member.entry == entry.id);
            if own {
                built_in_order(queue, run, entry, &before, violations);
            } else if !run.contains(entry.pr) {
                violations.push(("Q1", format!("#{} is in no run of its own", entry.pr)));
            }
        }
        before.push(entry);
    }
    let Some(landing) = &queue.header.landing else { return };
    let tested = |run| queue.run(run).is_some_and(|run| run.status == RunStatus::Passed);
    if !landing.runs.iter().all(|run| tested(*run)) {
        violations.push(("Q1", "what is landing has not passed".into()));
    }
}

fn built_in_order(
    queue: &Queue,
    run: &TestRun,
    entry: &Entry,
    before: &[&Entry],
    violations: &mut Vec<Violation>,
) {
    // An urgent entry that arrives during a landing stands ahead of it but does not stop it.
    let landing = queue.header.landing.as_ref();
    let lands = |run: RunId| landing.is_some_and(|landing| landing.runs.contains(&run));
    if lands(run.id) {
        return;
    }
    let mode = queue.mode();
    let in_group = |other: &Entry| run.group.iter().any(|member| member.entry == other.id);
    let held = |other: &Entry| matches!(other.state, EntryState::Pending { held_by: Some(_), .. });
    for other in before.iter().filter(|other| !held(other) && !in_group(other)) {
        if meet(mode, other, entry) && !run.contains(other.pr) {
            let text = format!("#{} is tested without #{} ahead of it", entry.pr, other.pr);
            violations.push(("Q1", text));
        }
    }
    let mut line = before.iter().filter(|other| !in_group(other));
    let waits = |pr| queue.entry_of(pr).is_some_and(|it| !it.state.run().is_some_and(lands));
    for (_, pr) in run.ahead.iter().filter(|(_, pr)| waits(*pr)) {
        if !line.any(|other| other.pr == *pr) {
            violations.push(("Q1", format!("#{} is tested on #{pr} out of order", entry.pr)));
        }
    }
    if mode == Mode::Parallel {
        only_its_lane(queue, run, violations);
    }
}

/// Q6: every pull request that a candidate contains shares targets with its group, directly or
/// through others.
fn only_its_lane(queue: &Queue, run: &TestRun, violations: &mut Vec<Violation>) {
    let live = |pr: PrNumber| queue.entry_of(pr);
    let mut linked: Vec<&Entry> = run.group.iter().filter_map(|it| live(it.pr)).collect();
    for (at, one) in linked.iter().enumerate() {
        if let Some(two) = linked.iter().take(at).find(|two| !meet(Mode::Parallel, one, two)) {
            let text = format!("#{} and #{} share a batch but no target", two.pr, one.pr);
            violations.push(("Q6", text));
        }
    }
    let mut open: Vec<&Entry> = run.ahead.iter().filter_map(|(_, pr)| live(*pr)).collect();
    // A pull request that has left may have been the link.
    let links_gone = run.ahead.len() > open.len() || linked.len() < run.group.len();
    let needs = |later: &Entry, earlier: &Entry| {
        OrderKey::of(earlier) < OrderKey::of(later) && meet(Mode::Parallel, later, earlier)
    };
    while let Some(at) =
        open.iter().position(|other| linked.iter().any(|entry| needs(entry, other)))
    {
        linked.push(open.swap_remove(at));
    }
    if let Some(other) = open.first().filter(|_| !links_gone) {
        violations.push(("Q6", format!("run {} contains #{} for nothing", run.id, other.pr)));
    }
}

/// Q3: every listed entry is live, is stored under its own id, and has the run that its state
/// names.
fn no_lost_pull_request(queue: &Queue, line: &[&Entry], violations: &mut Vec<Violation>) {
    if line.len() != queue.live() {
        violations.push(("Q3", format!("{} in order, {} live", line.len(), queue.live())));
    }
    for entry in line {
        let run_exists = entry.state.run().is_none_or(|run| queue.run(run).is_some());
        let outside = entry.place == LinePosition::Outside;
        if !entry.is_live()
            || entry.id != queue.entry_id(entry.pr)
            || !run_exists
            || outside != (entry.state == EntryState::NotReady)
        {
            violations.push(("Q3", format!("#{} is {:?}", entry.pr, entry.state.name())));
        }
    }
}

/// Q3: no run is kept that nothing needs.
fn runs_are_needed(queue: &Queue, violations: &mut Vec<Violation>) {
    for run in queue.runs().filter(|run| !queue.needs(run)) {
        violations.push(("Q3", format!("run {} is kept for nothing", run.id)));
    }
}

/// Q4: entries with a run stand ahead of entries that never had one, except for urgent entries.
fn order(line: &[&Entry], violations: &mut Vec<Violation>) {
    let mut waiting = None;
    for entry in line.iter().filter(|entry| !matches!(entry.place, LinePosition::Front { .. })) {
        match (entry.state.run(), entry.place, waiting) {
            (Some(_), _, Some(overtaken)) => {
                violations.push(("Q4", format!("#{} overtook #{overtaken}", entry.pr)));
            }
            (None, LinePosition::Waiting { .. }, None) => waiting = Some(entry.pr),
            _ => {}
        }
    }
}

/// Q11: no entry in the line has a dependency that is known not to have merged, unless the entry is
/// landing.
fn dependencies_have_merged(queue: &Queue, line: &[&Entry], violations: &mut Vec<Violation>) {
    let landing = queue.header.landing.as_ref();
    let lands = |entry: &Entry| {
        landing.zip(entry.state.run()).is_some_and(|(landing, run)| landing.runs.contains(&run))
    };
    for entry in line.iter().filter(|it| it.place != LinePosition::Outside && !lands(it)) {
        let mut known = entry.unmerged_dependencies();
        if let Some(it) = known.find(|it| it.state != DependencyState::Unread) {
            violations.push(("Q11", format!("#{} is in the line before {}", entry.pr, it.on)));
        }
    }
}

#[cfg(test)]
#[path = "invariant_tests.rs"]
mod tests;
