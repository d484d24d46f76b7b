//! Parts of bisected batches that need no run of their own, or none yet.

use crate::ids::PrNumber;

use super::{Entry, EntryState, Part, Queue, bisect};

/// Whether the queue skips the run of this part because its result follows from other runs.
pub(super) fn follows(queue: &Queue, part: &Part) -> bool {
    part.implied && bisect::skips(queue)
}

/// The same, or whether its result may follow from runs that are under test.
pub(super) fn may_follow(queue: &Queue, entry: &Entry, part: &Part) -> bool {
    follows(queue, part) || !left_under_test(queue, entry, part).is_empty()
}

/// The members of the same batch ahead of a part that are under test, if the part is a single entry and the
/// queue skips runs whose result follows: if one of them is at fault, the entry returns to the line, and its own
/// run would be wasted.
pub(super) fn left_under_test(queue: &Queue, entry: &Entry, part: &Part) -> Vec<PrNumber> {
    let number = |it: &Entry| it.part.as_ref().map(|part| (part.batch, part.number));
    let placed = || queue.started.before(None).map(|(_, placed)| &*placed.entry);
    let own = Some((part.batch, part.number));
    if !bisect::skips(queue) || placed().filter(|it| number(it) == own).count() != 1 {
        return Vec::new();
    }
    let ahead = placed().take_while(|it| it.id != entry.id);
    let of_batch = ahead.filter(|it| number(it).is_some_and(|(batch, _)| batch == part.batch));
    let under_test = of_batch.filter(|it| matches!(it.state, EntryState::Testing { .. }));
    under_test.map(|it| it.pr).collect()
}
