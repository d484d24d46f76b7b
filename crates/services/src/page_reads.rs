//! Reads for pages beyond those of the API: overviews, and versions that change with what they
//! show.

use std::collections::BTreeMap;
use std::sync::Arc;

use quick_cache::sync::Cache;
use signalbox_domain::ids::{BranchName, OrgId, QueueId, RepoId, RepoName, RunId};
use signalbox_domain::ports::{
    EntryFilter, FlakyStore, MetricsScope, QueueRef, RepoRef, Repository,
};
use signalbox_domain::queue::{Move, PrState, Queue, durations};
use signalbox_domain::time::{Span, Timestamp, Window};
use signalbox_domain::token::{Caller, Scope};

use super::entry_reads::MAX_PASSES;
use super::queue_reads::Snapshots;
use super::{EntrySnapshot, Error, QueueContext, QueueService};

/// How long the merge counts of an organization are cached, and the recent past of a queue without a
/// step. Until then, they may include what has just become too old.
const KEPT_MINUTES: u32 = 1;
/// The most organizations whose merges are remembered.
const REMEMBERED: usize = 1_000;
/// The most queues whose recent past is remembered: each has up to [`MAX_LEFT`] entries.
const REMEMBERED_QUEUES: usize = 100;
/// For how many days a pull request that left a queue is part of its recent past.
const RECENT_DAYS: u32 = 1;
/// The most pull requests of that past: those submitted last.
const MAX_LEFT: u32 = 50;

/// The number of merges in each of the last 24 hours, the oldest first, by queue.
pub type HourlyMerges = BTreeMap<QueueId, [u32; 24]>;

/// The recent past of a queue.
#[derive(Debug)]
pub struct RecentPast {
    /// The durations of the last passed runs.
    pub durations: Vec<Span>,
    /// Pull requests that left within a day of the read, newest first.
    pub left: Vec<EntrySnapshot>,
}

/// The recent past of a queue as it was read.
#[derive(Clone)]
struct KnownPast {
    /// The number of steps that the queue had then.
    sequence: u64,
    at: Timestamp,
    past: Arc<RecentPast>,
}

/// A topic whose changes a page can watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Topic {
    /// All queues of an organization.
    Org,
    /// One queue.
    Queue(QueueId),
    /// The tests of a repository.
    Tests(RepoId),
    /// The output of the checks of a run of a queue.
    Output(QueueId, RunId),
}

/// Reads for pages beyond those of the API.
pub struct PageReads {
    context: QueueContext,
    tests: Arc<dyn FlakyStore>,
    queues: Arc<QueueService>,
    merges: Cache<OrgId, (Timestamp, Arc<HourlyMerges>)>,
    pasts: Cache<QueueId, KnownPast>,
    /// Held while merges are read again. Others use the previous ones until then, and never wait: behind
    /// a database that hangs, each would wait for all before it.
    reading: async_lock::Mutex<()>,
}

impl PageReads {
    /// Creates the service.
    pub fn new(
        context: impl Into<QueueContext>,
        tests: Arc<dyn FlakyStore>,
        queues: Arc<QueueService>,
    ) -> Self {
        Self {
            context: context.into(),
            tests,
            queues,
            merges: Cache::new(REMEMBERED),
            pasts: Cache::new(REMEMBERED_QUEUES),
            reading: async_lock::Mutex::default(),
        }
    }

    /// The present time.
    pub fn now(&self) -> Timestamp {
        self.context.clock.now()
    }

    /// The repositories that the caller may see, ordered by name.
    pub async fn repositories(&self, caller: &Caller) -> Result<Vec<Repository>, Error> {
        let mut found = self.context.repositories.list(Some(caller.org)).await?;
        found.retain(|repository| self.context.repositories.may_see(caller, &repository.name));
        Ok(found)
    }

    /// The repository of this name, if the caller may see it.
    pub async fn repository(
        &self,
        caller: &Caller,
        name: &RepoName,
    ) -> Result<Option<Repository>, Error> {
        let found = self.context.repositories.named(caller.org, name).await?;
        Ok(found.filter(|found| self.context.repositories.may_see(caller, &found.name)))
    }

    /// Changes of state in a queue at or after a time, oldest first.
    pub async fn moves_since(
        &self,
        caller: &Caller,
        repo: &RepoName,
        branch: &BranchName,
        since: Timestamp,
    ) -> Result<Vec<Move>, Error> {
        let (queue, _) = self.queues.read(caller, repo, branch).await?;
        let seen = self.context.stores.reads.moves_since(queue, since).await?;
        Ok(seen.iter().filter_map(|it| Move::of(0, 0, it.at, &it.decision)).collect())
    }

    /// The merges of the last 24 hours in all queues of the organization, read again after a minute; none
    /// for a caller who may not read queues.
    pub async fn hourly_merges(&self, caller: &Caller) -> Result<Arc<HourlyMerges>, Error> {
        let org = caller.org;
        if !caller.may(Scope::QueueRead) {
            return Ok(Arc::default());
        }
        let now = self.now();
        let reading = self.reading.try_lock();
        if let Some((at, known)) = self.merges.get(&org) {
            let is_fresh = at <= now && now < at.plus(Span::minutes(KEPT_MINUTES));
            if is_fresh || reading.is_none() {
                return Ok(known);
            }
        }
        let (scope, since) = (MetricsScope { org, repo: None }, now.minus(Span::hours(24)));
        let mut merges = HourlyMerges::new();
        for (queue, stay) in self.context.stores.reads.stays_since(scope, since).await? {
            let hour = stay.at.since(since).micros() / Span::hours(1).micros();
            let hour = usize::try_from(hour).unwrap_or_default().min(23);
            if stay.next == PrState::Merged
                && let Some(count) = merges.entry(queue.id).or_default().get_mut(hour)
            {
                *count += 1;
            }
        }
        let merges = Arc::new(merges);
        self.merges.insert(org, (now, merges.clone()));
        Ok(merges)
    }

    /// A queue with its recent past, which is read again after each step of the queue and after a minute.
    pub async fn queue_with_past(
        &self,
        caller: &Caller,
        repo: &RepoName,
        branch: &BranchName,
    ) -> Result<(Arc<Queue>, Arc<RecentPast>), Error> {
        let (queue_ref, queue) = self.queues.read(caller, repo, branch).await?;
        let (now, sequence) = (self.now(), queue.header.sequence);
        let is_fresh = |known: &KnownPast| {
            let until = known.at.plus(Span::minutes(KEPT_MINUTES));
            known.sequence == sequence && known.at <= now && now < until
        };
        if let Some(known) = self.pasts.get(&queue_ref.id).filter(is_fresh) {
            return Ok((queue, known.past));
        }
        let history = &self.context.stores.history;
        let durations = durations(&history.passes(queue_ref, MAX_PASSES).await?);
        let window = Window { since: Some(now.minus(Span::days(RECENT_DAYS))), until: None };
        let filter = EntryFilter { state: None, concluded: Some(window) };
        let found = history.entries_by_submission(queue_ref, &filter, None, MAX_LEFT).await?;
        let ended = Snapshots::of(&queue, []);
        let left = found.into_iter().filter(|entry| !entry.is_live());
        let mut left: Vec<EntrySnapshot> = left.map(|entry| ended.stored(entry)).collect();
        left.sort_by_key(|it| std::cmp::Reverse(it.entry.state_changed_at));
        let past = Arc::new(RecentPast { durations, left });
        self.pasts.insert(queue_ref.id, KnownPast { sequence, at: now, past: past.clone() });
        Ok((queue, past))
    }

    /// Whether the caller may watch a topic.
    pub async fn may_watch(&self, caller: &Caller, topic: Topic) -> Result<bool, Error> {
        let repo = match topic {
            Topic::Org => return Ok(caller.may(Scope::QueueRead)),
            Topic::Queue(id) | Topic::Output(id, _) => {
                let queue = QueueRef { org: caller.org, id };
                let state = self.queues.state(queue).await?;
                let state = state.filter(|_| caller.may(Scope::QueueRead));
                if let (Some(state), Topic::Output(_, run)) = (&state, topic)
                    && state.run(run).is_none()
                    && self.context.stores.reads.run(queue, run).await?.is_none()
                {
                    return Ok(false);
                }
                state.map(|queue| queue.header.repo)
            }
            Topic::Tests(id) => Some(id).filter(|_| caller.may(Scope::TestsRead)),
        };
        let Some(repo) = repo else { return Ok(false) };
        let found = self.context.repositories.find(caller.org, repo).await?;
        Ok(found.is_some_and(|found| self.context.repositories.may_see(caller, &found.name)))
    }

    /// A number that changes with every change of a topic; read from the database, so that it is
    /// the same on every server.
    pub async fn version(&self, org: OrgId, topic: Topic) -> Result<u64, Error> {
        match topic {
            Topic::Queue(id) => {
                let state = self.queues.state(QueueRef { org, id }).await?;
                Ok(state.map_or(0, |queue| queue.header.sequence))
            }
            Topic::Tests(id) => {
                let known = self.tests.repo(RepoRef { org, id }).await?;
                Ok(known.version.0.unsigned_abs())
            }
            Topic::Output(id, run) => {
                let written = self.context.stores.check_log.written(org, run).await?;
                let written = written.map_or(0, |at| at.unix_micros().unsigned_abs());
                // The result of a check is a step of its queue.
                let state = self.queues.state(QueueRef { org, id }).await?;
                Ok(written.wrapping_add(state.map_or(0, |queue| queue.header.sequence)))
            }
            Topic::Org => {
                let mut sum = 0_u64;
                for key in self.context.stores.queues.list(Some(org), None).await? {
                    let state = self.queues.state(key.queue).await?;
                    // One more for each queue, so that a new queue without a step changes the
                    // version, too.
                    let own = state.map_or(0, |queue| queue.header.sequence).saturating_add(1);
                    sum = sum.wrapping_add(own);
                }
                Ok(sum)
            }
        }
    }
}
