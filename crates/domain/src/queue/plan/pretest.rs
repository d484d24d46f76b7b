//! Pretests: a group whose run in the line would probably be wasted is tested beside the line first,
//! on the target alone.
//!
//! A run of the line is wasted if a pull request of its group or of an unfinished group ahead fails.
//! Beside the line a failure restarts no other run. Who has passed there enters the line behind the
//! started groups, where it will probably pass.

use std::sync::Arc;

use crate::ids::{PrNumber, RunId};

use super::super::{BisectionMode, Decision, Entry, EntryState, LinePosition, Part, Queue, lanes};
use super::builder::TransitionBuilder;

/// The probability, in percent, that a run of this group in the line passes, if it is so low that the
/// group is pretested.
pub(in super::super) fn wanted(queue: &Queue, group: &[&Entry]) -> Option<u32> {
    let settings = &queue.header.settings;
    let is_in_force = settings.pretest_threshold > 0
        && settings.bisection_mode == BisectionMode::Aside
        && lanes::failure_window(queue) == 0;
    let is_at_front = |entry: &&Entry| matches!(entry.place, LinePosition::Front { .. });
    if !is_in_force
        || queue.header.outcomes.failed == 0
        || group.iter().any(|it| it.part.is_some() || is_at_front(it))
    {
        return None;
    }
    let untested = group.iter().filter(|it| !it.has_passed()).count();
    if untested == 0 {
        return None;
    }
    let ahead = lanes::contained(queue, group).entries;
    let is_open = |entry: &Entry| {
        !entry.has_passed() && !matches!(entry.state, EntryState::TestsPassed { .. })
    };
    let open = ahead.iter().filter(|it| is_open(&it.entry)).count();
    let percent = queue.header.outcomes.all_pass(untested + open);
    (percent < settings.pretest_threshold).then_some(percent)
}

/// Puts a group beside the line before its first run.
pub(super) fn put_beside(builder: &mut TransitionBuilder, group: &[Arc<Entry>]) -> Vec<Arc<Entry>> {
    let batch = builder.number();
    for entry in group {
        let number = builder.number();
        builder.change_entry(entry.id, |entry| {
            entry.place = LinePosition::Anchored { number };
            entry.part = Some(Part {
                batch,
                number: batch,
                implied: false,
                aside: true,
                pretest: true,
                behind: None,
            });
        });
    }
    group.iter().filter_map(|entry| builder.entry(entry.id)).collect()
}

/// Records a pretest that has started.
pub(super) fn started(builder: &mut TransitionBuilder, run: RunId, percent: u32) {
    let prs: Vec<PrNumber> =
        builder.run(run).iter().flat_map(|run| run.group.iter()).map(|it| it.pr).collect();
    builder.decision(Decision::Pretested { run, prs, percent });
}
