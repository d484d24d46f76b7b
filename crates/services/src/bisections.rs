//! How a failed batch was bisected, for display.

use std::collections::{BTreeMap, BTreeSet};

use signalbox_domain::ids::{EntryId, RunId};
use signalbox_domain::ports::{HistoryStore, QueueRef};
use signalbox_domain::queue::{Move, QueuedReason, TestRun};

use super::Error;

/// The largest batch whose bisection is read.
const MAX_MEMBERS: usize = 100;

/// A failed batch and the parts of it that were tested.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bisection {
    /// The run that failed.
    pub batch: TestRun,
    /// The runs of its parts, in the order in which they were started.
    pub parts: Vec<TestRun>,
}

/// The last bisection among the moves of an entry, which are ordered newest first. `None` if there was none,
/// or if its batch had more than 100 pull requests.
pub(super) async fn last(
    history: &dyn HistoryStore,
    queue: QueueRef,
    moves: &[Move],
) -> Result<Option<Bisection>, Error> {
    let starts = |it: &&Move| it.reason == QueuedReason::BisectionRequired.into() && !it.bisection;
    let Some((number, run)) = moves.iter().find(starts).and_then(|it| Some((it.number, it.run?)))
    else {
        return Ok(None);
    };
    let found = history.runs(queue, &[run]).await?.into_iter().next();
    let Some(batch) = found.filter(|it| (2..=MAX_MEMBERS).contains(&it.group.len())) else {
        return Ok(None);
    };
    let members: Vec<EntryId> = batch.group.iter().map(|it| it.entry).collect();
    let moves = history.moves_from(queue, &members, number).await?;
    let runs: BTreeSet<RunId> = moves.iter().filter_map(|it| it.run).collect();
    let runs: Vec<RunId> = runs.into_iter().collect();
    let parts = parts(&batch, history.runs(queue, &runs).await?);
    Ok(Some(Bisection { batch, parts }))
}

/// The runs of a batch's parts among later runs of its members, which are ordered by number. A member that
/// was tested in another batch since then is no longer part of this one.
fn parts(batch: &TestRun, runs: Vec<TestRun>) -> Vec<TestRun> {
    let mut last: BTreeMap<EntryId, u64> =
        batch.group.iter().map(|it| (it.entry, batch.number)).collect();
    let mut parts = Vec::new();
    for run in runs.into_iter().filter(|it| it.number > batch.number) {
        if run.bisection {
            let is_part = |entry| last.get(entry) == Some(&batch.number);
            if run.group.iter().all(|it| is_part(&it.entry)) {
                parts.push(run);
            }
        } else {
            last.extend(run.group.iter().map(|it| (it.entry, run.number)));
        }
    }
    parts
}
