//! How a failed batch was bisected, for display.

use std::collections::BTreeSet;

use signalbox_domain::ids::EntryId;
use signalbox_domain::ports::{HistoryStore, QueueRef};
use signalbox_domain::queue::{Move, TestRun, bisected_run, runs_of_parts};

use super::Error;

/// The largest batch whose bisection is read.
const MAX_MEMBERS: usize = 100;
/// The most runs of parts that are read, the last ones; a batch of 100 has at most 198 unless some are
/// started again.
const MAX_PARTS: usize = 200;

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
    let start = moves.iter().find_map(|it| Some((it.number, bisected_run(it)?)));
    let Some((number, run)) = start else { return Ok(None) };
    let found = history.runs(queue, &[run]).await?.into_iter().next();
    let Some(batch) = found.filter(|it| (2..=MAX_MEMBERS).contains(&it.group.len())) else {
        return Ok(None);
    };
    let members: BTreeSet<EntryId> = batch.group.iter().map(|it| it.entry).collect();
    let entries: Vec<EntryId> = members.iter().copied().collect();
    let moves = history.moves_from(queue, &entries, number).await?;
    let runs = runs_of_parts(run, members.clone(), &moves);
    let runs = runs.get(runs.len().saturating_sub(MAX_PARTS)..).unwrap_or_default();
    let mut parts = history.runs(queue, runs).await?;
    parts.retain(|it| it.group.iter().all(|member| members.contains(&member.entry)));
    Ok(Some(Bisection { batch, parts }))
}
