//! Reads of a pull request in a queue: the entry, its timeline and an estimate of its merge.

use std::collections::BTreeSet;

use signalbox_domain::ids::{BranchName, PrNumber, RepoName, RunId};
use signalbox_domain::ports::{PullRequestQuery, QueueRef, Repository, SubmissionPlace};
use signalbox_domain::queue::{
    Entry, EntryState, Estimate, Exit, Move, PullRequestState, Queue, Step, TestRun, durations,
    estimate, timeline,
};
use signalbox_domain::token::{Caller, Scope};

use super::bisections::{self, Bisection};
use super::queue_reads::Snapshots;
use super::{EntrySnapshot, Error, QueueService};

/// The most steps of a timeline; the newest are kept.
const MAX_STEPS: u32 = 200;
/// The most earlier runs that an estimate is based on.
pub(super) const MAX_PASSES: u32 = 100;
/// The most pull requests of one branch that are considered, by last submission.
const MAX_OF_BRANCH: u32 = 20;

/// The optional parts of a read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extras {
    /// Whether to include the timeline.
    pub timeline: bool,
    /// Whether to include the estimate.
    pub estimate: bool,
    /// Whether to include its last bisection.
    pub bisection: bool,
}

/// An entry with its optional parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryDetails {
    /// The entry.
    pub snapshot: EntrySnapshot,
    /// Its timeline, newest step first, at most 200 steps.
    pub timeline: Option<Vec<Step>>,
    /// An estimate of the time until its merge.
    pub estimate: Option<Estimate>,
    /// The last bisection of a batch with it, among the last 200 changes of its state.
    pub bisection: Option<Bisection>,
}

impl EntryDetails {
    /// Its last test run, if the timeline was read and has one.
    pub fn last_run(&self) -> Option<&TestRun> {
        self.timeline.as_deref().unwrap_or_default().iter().find_map(|step| step.run.as_ref())
    }
}

impl QueueService {
    /// A pull request's entry, live or ended.
    pub async fn entry(
        &self,
        caller: &Caller,
        repo: &RepoName,
        branch: &BranchName,
        query: &PullRequestQuery,
    ) -> Result<EntrySnapshot, Error> {
        let details = self.entry_details(caller, repo, branch, query, Extras::default()).await?;
        Ok(details.snapshot)
    }

    /// A pull request's entry, live or ended, with its optional parts. A query by branch finds the
    /// pull request from that branch that was submitted to this queue: an open one first, otherwise
    /// the one that was closed last.
    pub async fn entry_details(
        &self,
        caller: &Caller,
        repo: &RepoName,
        branch: &BranchName,
        query: &PullRequestQuery,
        extras: Extras,
    ) -> Result<EntryDetails, Error> {
        let (queue_ref, queue) = self.read(caller, repo, branch).await?;
        let never = || Error::NeverSubmitted {
            repo: repo.clone(),
            branch: branch.clone(),
            what: match query {
                PullRequestQuery::Number(pr) => format!("pull request {pr}"),
                PullRequestQuery::Branch(name) => format!("a pull request from branch `{name}`"),
            },
        };
        let pr = match query {
            PullRequestQuery::Number(pr) => *pr,
            PullRequestQuery::Branch(name) => {
                let repository = self.repository(caller, Scope::QueueRead, repo).await?;
                let found = self.submitted_from(&repository, queue_ref, name).await?;
                found.ok_or_else(never)?
            }
        };
        let snapshots = Snapshots::of(&queue, [pr]);
        let snapshot = if let Some(live) = snapshots.live(pr) {
            live
        } else {
            let kept = self.context().stores.reads.entry(queue_ref, pr).await?;
            snapshots.stored(kept.ok_or_else(never)?)
        };
        self.with_extras(queue_ref, &queue, snapshot, extras).await
    }

    pub(super) async fn with_extras(
        &self,
        queue_ref: QueueRef,
        queue: &Queue,
        snapshot: EntrySnapshot,
        extras: Extras,
    ) -> Result<EntryDetails, Error> {
        let history = &self.context().stores.history;
        let (mut steps, mut bisection) = (None, None);
        if extras.timeline || extras.bisection {
            let moves = history.moves_of(queue_ref, snapshot.entry.id, MAX_STEPS).await?;
            if extras.timeline {
                steps = Some(self.timeline(queue_ref, &snapshot, &moves).await?);
            }
            if extras.bisection {
                bisection = bisections::last(history.as_ref(), queue_ref, &moves).await?;
            }
        }
        let estimate = if extras.estimate {
            let passes = history.passes(queue_ref, MAX_PASSES).await?;
            let now = self.context().clock.now();
            Some(estimate(queue, snapshot.entry.pr, &durations(&passes), now))
        } else {
            None
        };
        Ok(EntryDetails { snapshot, timeline: steps, estimate, bisection })
    }

    async fn timeline(
        &self,
        queue: QueueRef,
        snapshot: &EntrySnapshot,
        moves: &[Move],
    ) -> Result<Vec<Step>, Error> {
        let history = &self.context().stores.history;
        let runs: BTreeSet<RunId> = moves.iter().filter_map(|it| it.run).collect();
        let runs: Vec<RunId> = runs.into_iter().collect();
        let runs = history.runs(queue, &runs).await?;
        Ok(timeline(&snapshot.entry, snapshot.waits.as_ref(), moves, &runs))
    }

    /// The pull request that a query by branch means, out of those submitted to this queue.
    async fn submitted_from(
        &self,
        repository: &Repository,
        queue: QueueRef,
        branch: &str,
    ) -> Result<Option<PrNumber>, Error> {
        let history = &self.context().stores.history;
        let found = history.entries_of_branch(queue, branch, MAX_OF_BRANCH).await?;
        if let [only] = found.as_slice() {
            return Ok(Some(only.pr));
        }
        // A live entry is open; the host is read for the others.
        if let Some(live) = found.iter().find(|entry| entry.is_live()) {
            return Ok(Some(live.pr));
        }
        let host = self.git_host(repository)?;
        for entry in found.iter().filter(|entry| may_be_open(entry)) {
            let query = PullRequestQuery::Number(entry.pr);
            let seen = host.pull_request(repository, &query).await.map_err(Error::Host)?;
            if seen.is_some_and(|seen| seen.state == PullRequestState::Open) {
                return Ok(Some(entry.pr));
            }
        }
        let left = |entry: &&Entry| (entry.state_changed_at, SubmissionPlace::of(entry));
        Ok(found.iter().max_by_key(left).map(|entry| entry.pr))
    }
}

/// Whether the pull request of an entry that has ended may still be open on its host.
const fn may_be_open(entry: &Entry) -> bool {
    !matches!(entry.state, EntryState::Ended(Exit::Merged { .. }))
}
