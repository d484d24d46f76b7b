//! The invariants, by the ids that tests, docs and metrics share.
//!
//! What can be seen in one state is checked here, after every step of a debug build. Q2 (capacity),
//! Q5 (paused is paused), Q8 (liveness) and Q9 (replay) are about steps and histories; the model
//! tests check them.

use crate::ids::PrNumber;

use super::{Entry, EntryState, Place, Queue, RunStatus};

/// An invariant that does not hold: its id and what was seen.
pub type Violation = (&'static str, String);

/// Checks everything that can be seen in one state. Empty when all is well.
pub fn check(queue: &Queue) -> Vec<Violation> {
    let mut violations = Vec::new();
    let line: Vec<&Entry> = queue.entries_in_order().collect();
    green_target(queue, &line, &mut violations);
    no_lost_pull_request(queue, &line, &mut violations);
    order(&line, &mut violations);
    violations
}

/// Q1: every candidate consists of what is ahead of it in the line, in that order; and what is
/// landing was tested and has nothing ahead.
fn green_target(queue: &Queue, line: &[&Entry], violations: &mut Vec<Violation>) {
    let mut before: Vec<PrNumber> = Vec::new();
    let mut must_contain: Vec<PrNumber> = Vec::new();
    for entry in line.iter().filter(|entry| entry.place != Place::Outside) {
        if let Some(run) = entry.state.run().and_then(|run| queue.run(run)) {
            let ahead: Vec<PrNumber> = run
                .ahead
                .iter()
                .map(|(_, pr)| *pr)
                .filter(|pr| queue.entry_of(*pr).is_some())
                .collect();
            let in_order = {
                let mut line = before.iter();
                ahead.iter().all(|pr| line.any(|it| it == pr))
            };
            if !in_order || must_contain.iter().any(|pr| !ahead.contains(pr)) {
                violations.push((
                    "Q1",
                    format!("#{} is tested on {ahead:?}, ahead are {before:?}", entry.pr),
                ));
            }
            must_contain.push(entry.pr);
        }
        before.push(entry.pr);
    }
    let Some(landing) = &queue.header.landing else { return };
    let tested = |run| queue.run(run).is_some_and(|run| run.status == RunStatus::Passed);
    if !landing.runs.iter().all(|run| tested(*run)) {
        violations.push(("Q1", "what is landing has not passed".into()));
    }
}

/// Q3: what is listed is live, stands under its own id, and has the run that its state names.
fn no_lost_pull_request(queue: &Queue, line: &[&Entry], violations: &mut Vec<Violation>) {
    if line.len() != queue.live() {
        violations.push(("Q3", format!("{} in order, {} live", line.len(), queue.live())));
    }
    for entry in line {
        let run_exists = entry.state.run().is_none_or(|run| queue.run(run).is_some());
        let outside = entry.place == Place::Outside;
        if !entry.is_live()
            || entry.id != queue.entry_id(entry.pr)
            || !run_exists
            || outside != (entry.state == EntryState::NotReady)
        {
            violations.push(("Q3", format!("#{} is {:?}", entry.pr, entry.state.name())));
        }
    }
}

/// Q4: what has a run stands ahead of what never had one, but for urgent entries.
fn order(line: &[&Entry], violations: &mut Vec<Violation>) {
    let mut waiting = None;
    for entry in line.iter().filter(|entry| !matches!(entry.place, Place::Front { .. })) {
        match (entry.state.run(), entry.place, waiting) {
            (Some(_), _, Some(overtaken)) => {
                violations.push(("Q4", format!("#{} overtook #{overtaken}", entry.pr)));
            }
            (None, Place::Waiting { .. }, None) => waiting = Some(entry.pr),
            _ => {}
        }
    }
}
