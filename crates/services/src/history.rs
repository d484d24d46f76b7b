//! Reads of a queue's history: lists of pull requests and testing results.

use std::collections::BTreeSet;

use signalbox_domain::ids::{BranchName, EntryId, PrNumber, RepoName};
use signalbox_domain::ports::{EntryFilter, SubmissionPlace};
use signalbox_domain::queue::{TestingResult, testing_results};
use signalbox_domain::time::Window;
use signalbox_domain::token::Caller;

use super::queue_reads::Snapshots;
use super::{EntryDetails, EntrySnapshot, Error, Extras, QueueService};

/// A page of a queue's pull requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryPage {
    /// The most recently submitted first.
    pub entries: Vec<EntrySnapshot>,
    /// The position of the next page; `None` on the last page.
    pub next: Option<SubmissionPlace>,
}

/// Several pull requests of one queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundEntries {
    /// The entries in the requested order, without repeats.
    pub entries: Vec<EntryDetails>,
    /// The pull requests that were never submitted to the queue, in the requested order.
    pub not_found: Vec<PrNumber>,
}

/// A page of testing results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResultsPage {
    /// The results, newest first.
    pub results: Vec<TestingResult>,
    /// The total number of results.
    pub total: u64,
}

impl QueueService {
    /// A queue's pull requests, live and ended, most recently submitted first, at most `take`.
    pub async fn pull_requests(
        &self,
        caller: &Caller,
        repo: &RepoName,
        branch: &BranchName,
        filter: &EntryFilter,
        after: Option<SubmissionPlace>,
        take: u32,
    ) -> Result<EntryPage, Error> {
        let (queue_ref, queue) = self.read(caller, repo, branch).await?;
        let history = &self.context().stores.history;
        // One more than requested shows whether there is a next page.
        let limit = take.saturating_add(1);
        let mut found = history.entries_by_submission(queue_ref, filter, after, limit).await?;
        let size = usize::try_from(take).unwrap_or(usize::MAX);
        let more = found.len() > size;
        found.truncate(size);
        let next = found.last().filter(|_| more).map(SubmissionPlace::of);
        let snapshots = Snapshots::of(&queue, found.iter().map(|entry| entry.pr));
        let shown = found.into_iter().map(|entry| snapshots.stored(entry));
        Ok(EntryPage { entries: shown.collect(), next })
    }

    /// The entries of several pull requests, live or ended, with their optional parts.
    pub async fn entries(
        &self,
        caller: &Caller,
        repo: &RepoName,
        branch: &BranchName,
        prs: &[PrNumber],
        extras: Extras,
    ) -> Result<FoundEntries, Error> {
        let (queue_ref, queue) = self.read(caller, repo, branch).await?;
        let not_live: Vec<PrNumber> =
            prs.iter().copied().filter(|pr| queue.entry_of(*pr).is_none()).collect();
        let mut ended = self.context().stores.history.entries(queue_ref, &not_live).await?;
        let snapshots = Snapshots::of(&queue, prs.iter().copied());
        let (mut entries, mut not_found, mut seen) = (Vec::new(), Vec::new(), BTreeSet::new());
        for pr in prs.iter().copied().filter(|pr| seen.insert(*pr)) {
            let kept = ended.iter().position(|entry| entry.pr == pr);
            let kept = kept.map(|at| snapshots.stored(ended.swap_remove(at)));
            match snapshots.live(pr).or(kept) {
                Some(found) => {
                    entries.push(self.with_extras(queue_ref, &queue, found, extras).await?);
                }
                None => not_found.push(pr),
            }
        }
        Ok(FoundEntries { entries, not_found })
    }

    /// Results of the tests that ended in a window, newest first, skipping `offset`, at most
    /// `take`: one for each pull request and attempt.
    pub async fn testing_results(
        &self,
        caller: &Caller,
        repo: &RepoName,
        branch: &BranchName,
        within: Window,
        offset: u32,
        take: u32,
    ) -> Result<ResultsPage, Error> {
        let (queue, _) = self.read(caller, repo, branch).await?;
        let history = &self.context().stores.history;
        let ends = history.test_ends(queue, within, offset, take).await?;
        let Some(first) = ends.moves.iter().map(|end| end.number).min() else {
            return Ok(ResultsPage { results: Vec::new(), total: ends.total });
        };
        let entries: BTreeSet<EntryId> = ends.moves.iter().map(|end| end.entry).collect();
        let entries: Vec<EntryId> = entries.into_iter().collect();
        let after = history.moves_from(queue, &entries, first).await?;
        Ok(ResultsPage { results: testing_results(&ends.moves, &after), total: ends.total })
    }
}
