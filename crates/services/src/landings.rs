//! Which landings a target contains after a push from outside.

use signalbox_domain::ids::{BranchName, PrNumber, Sha};
use signalbox_domain::ports::{
    EntryFilter, GitHost, HistoryStore, HostError, Landed, QueueRef, Repository, StoreError,
    SubmissionPlace,
};
use signalbox_domain::queue::{Entry, EntryState, Exit, Fact, PrState};

/// The most merged entries that are checked, newest first, and the size of one read.
const LOOK_BACK: (usize, u32) = (1_000, 200);

/// The most landings in one call to the host.
const AT_ONCE: usize = 20;

/// A check of landings.
pub(super) struct LandingsCheck<'a> {
    pub(super) branch: &'a BranchName,
    pub(super) was: &'a Sha,
    pub(super) head: &'a Sha,
    pub(super) off_target: &'a [PrNumber],
}

/// Why a check failed.
pub(super) enum LookError {
    Host(HostError),
    Store(StoreError),
}

impl From<HostError> for LookError {
    fn from(error: HostError) -> Self {
        Self::Host(error)
    }
}

impl From<StoreError> for LookError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// Asks the host which merged entries the target contains. If the target only moved forward, one
/// call suffices.
pub(super) async fn check(
    history: &dyn HistoryStore,
    host: &dyn GitHost,
    repository: &Repository,
    queue: QueueRef,
    check: &LandingsCheck<'_>,
) -> Result<Fact, LookError> {
    let before = Landed { head: check.was.clone(), commit: check.was.clone() };
    let forwards = host.contained(repository, check.branch, check.head, &[before]).await?;
    let forwards = forwards.first().copied().unwrap_or_default();
    let contained = async |entries: Vec<Entry>| -> Result<Vec<(Entry, bool)>, HostError> {
        let known = |entry: Entry| landed(&entry).map(|landed| (entry, landed));
        let (entries, landings): (Vec<_>, Vec<_>) = entries.into_iter().filter_map(known).unzip();
        let there = host.contained(repository, check.branch, check.head, &landings).await?;
        Ok(entries.into_iter().zip(there).collect())
    };
    let off_target = history.entries(queue, check.off_target).await?;
    let off_target = off_target.into_iter().filter(|entry| entry.off_target_since.is_some());
    let off_target = contained(off_target.collect()).await?;
    let back = off_target.into_iter().filter(|(_, there)| *there).map(|(entry, _)| entry).collect();
    let mut lost = Vec::new();
    if !forwards {
        let mut merged = newest_merged(history, queue).await?;
        merged.retain(|entry| entry.off_target_since.is_none());
        merged.sort_by_key(|entry| std::cmp::Reverse((entry.state_changed_at, entry.pr)));
        // Landings before one that the target contains are contained, too.
        for some in merged.chunks(AT_ONCE) {
            let some = contained(some.to_vec()).await?;
            if some.iter().all(|(_, there)| *there) {
                break;
            }
            lost.extend(some.into_iter().filter(|(_, there)| !there).map(|(entry, _)| entry));
        }
    }
    let (was, head) = (check.was.clone(), check.head.clone());
    Ok(Fact::LandingsChecked { was, head, lost, back })
}

async fn newest_merged(
    history: &dyn HistoryStore,
    queue: QueueRef,
) -> Result<Vec<Entry>, StoreError> {
    let (most, at_once) = LOOK_BACK;
    let filter = EntryFilter { state: Some(PrState::Merged), ..EntryFilter::default() };
    let (mut found, mut before) = (Vec::new(), None);
    while found.len() < most {
        let page = history.entries_by_submission(queue, &filter, before, at_once).await?;
        let Some(last) = page.last() else { break };
        before = Some(SubmissionPlace::of(last));
        found.extend(page);
    }
    Ok(found)
}

/// The landing of an entry; `None` if the queue did not land it.
fn landed(entry: &Entry) -> Option<Landed> {
    match &entry.state {
        EntryState::Ended(Exit::Merged { sha: Some(sha), .. }) => {
            Some(Landed { head: entry.pull_request.head.clone(), commit: sha.clone() })
        }
        EntryState::Ended(
            Exit::Merged { sha: None, .. } | Exit::Failed { .. } | Exit::Cancelled { .. },
        )
        | EntryState::NotReady
        | EntryState::Pending { .. }
        | EntryState::Testing { .. }
        | EntryState::TestsPassed { .. }
        | EntryState::PendingFailure { .. } => None,
    }
}
