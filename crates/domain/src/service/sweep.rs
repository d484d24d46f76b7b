//! What is looked at again and again: deadlines, hosts that do not tell, and stray branches.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::ids::{PrNumber, RepoId};
use crate::ports::{
    GitHost, HostError, PullRequestQuery, QueueKey, QueueRef, Repository, Snapshot,
};
use crate::queue::{Entry, EntryState, Fact, Mergeability, Queue};
use crate::time::{Span, Timestamp};

use super::effect_runner::is_kept_waiting;
use super::{Context, Error, QueueService};

/// The most pull requests of a queue that are read in one go; of a longer queue the next ones
/// follow in the next round.
const READ_AT_ONCE: usize = 50;
/// The most queues whose deadlines are looked at in one go.
const DUE_AT_ONCE: u32 = 100;

/// Looks at everything again, so that a hint that was lost costs time and nothing else.
pub struct Sweeper {
    context: Context,
    queues: Arc<QueueService>,
    round: AtomicUsize,
    read_at: Mutex<BTreeMap<QueueRef, Timestamp>>,
    confirmed: Mutex<BTreeMap<QueueRef, BTreeMap<PrNumber, Confirmed>>>,
}

/// What a pull request's mark was when the host last showed it as the queue knows it, and since
/// when the queue knows it so.
type Confirmed = (Option<String>, Timestamp);

/// The snapshots of a round, one for each repository.
type Snapshots = BTreeMap<RepoId, Arc<Snapshot>>;

impl Sweeper {
    /// A sweeper on these adapters.
    pub const fn new(context: Context, queues: Arc<QueueService>) -> Self {
        Self {
            context,
            queues,
            round: AtomicUsize::new(0),
            read_at: Mutex::new(BTreeMap::new()),
            confirmed: Mutex::new(BTreeMap::new()),
        }
    }

    /// Lets time pass for every queue that has a deadline behind it. Returns how many there were.
    pub async fn deadlines(&self) -> Result<usize, Error> {
        let due = self.context.stores.queues.due(self.context.clock.now(), DUE_AT_ONCE).await?;
        for queue in &due {
            self.queues.absorb(*queue, Fact::TimePassed).await?;
        }
        Ok(due.len())
    }

    /// Reads the targets and the live pull requests of all queues on hosts that must be polled
    /// (`only_polled`), or on all hosts, and takes in what has changed.
    pub async fn reconcile(&self, only_polled: bool) -> Result<(), Error> {
        self.round.fetch_add(1, Ordering::Relaxed);
        let mut snapshots = Snapshots::new();
        for key in self.context.stores.queues.list(None, None).await? {
            if let Some((repository, host)) = self.host_of(&key).await?
                && (!only_polled || host.abilities().needs_polling)
                && self.is_due(key.queue, host.abilities().reread_after).await?
            {
                self.reconcile_queue(&key, &repository, host.as_ref(), &mut snapshots).await?;
            }
        }
        Ok(())
    }

    /// Whether it is time to read a queue again: the time is over, or its host was away.
    async fn is_due(&self, queue: QueueRef, after: Span) -> Result<bool, Error> {
        let state = self.queues.state(queue).await?;
        let was_away = state.is_some_and(|it| it.header.host.unreachable_since.is_some());
        let now = self.context.clock.now();
        let mut read_at = self.read_at.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh = read_at.get(&queue).is_some_and(|at| now < at.plus(after));
        if fresh && !was_away {
            return Ok(false);
        }
        read_at.insert(queue, now);
        Ok(true)
    }

    /// Reads the pull requests again whose host had not made up its mind. Returns how many there
    /// were.
    pub async fn undecided(&self) -> Result<usize, Error> {
        let mut asked = 0;
        for key in self.context.stores.queues.list(None, None).await? {
            let Some((repository, host)) = self.host_of(&key).await? else { continue };
            if host.abilities().needs_polling {
                continue;
            }
            let Some(queue) = self.queues.state(key.queue).await? else { continue };
            let undecided = |entry: &&Entry| {
                entry.state == EntryState::NotReady
                    && entry.pull_request.mergeability == Mergeability::InProgress
            };
            let prs = queue.entries_in_order().filter(undecided).map(|entry| entry.pr);
            for pr in prs.take(READ_AT_ONCE).collect::<Vec<_>>() {
                asked += 1;
                let read_at = self.context.clock.now();
                let query = PullRequestQuery::Number(pr);
                // What cannot be read now is read in the next round.
                let Ok(Some(seen)) = host.pull_request(&repository, &query).await else { break };
                let fact = Fact::PullRequestSeen { pull_request: Box::new(seen), read_at };
                self.queues.absorb(key.queue, fact).await?;
            }
        }
        Ok(asked)
    }

    async fn reconcile_queue(
        &self,
        key: &QueueKey,
        repository: &Repository,
        host: &dyn GitHost,
        snapshots: &mut Snapshots,
    ) -> Result<(), Error> {
        let Some(queue) = self.queues.state(key.queue).await? else { return Ok(()) };
        match self.news(key.queue, &queue, repository, host, snapshots).await {
            Ok(facts) => {
                // That the host can be read does not say that it does what is asked of it.
                if queue.header.host.unreachable_since.is_some()
                    && !is_kept_waiting(&self.context, key.queue).await?
                {
                    self.queues.absorb(key.queue, Fact::HostReachable).await?;
                }
                for fact in facts {
                    self.queues.absorb(key.queue, fact).await?;
                }
            }
            // A limit passes by itself, and a refusal to read says nothing about the queue.
            Err(error) => {
                if let Some(trouble) = error.trouble() {
                    self.queues.absorb(key.queue, Fact::HostUnreachable { trouble }).await?;
                }
            }
        }
        Ok(())
    }

    /// What the host shows and the queue does not know yet.
    async fn news(
        &self,
        key: QueueRef,
        queue: &Queue,
        repository: &Repository,
        host: &dyn GitHost,
        snapshots: &mut Snapshots,
    ) -> Result<Vec<Fact>, HostError> {
        let snapshot = match snapshots.get(&repository.id) {
            Some(known) => Some(known.clone()),
            None => host.snapshot(repository).await?.map(Arc::new),
        };
        if let Some(snapshot) = &snapshot {
            snapshots.insert(repository.id, snapshot.clone());
        }
        let snapshot = snapshot.as_deref();
        let mut facts = Vec::new();
        let read_at = self.context.clock.now();
        let (target, branch) = (&queue.header.target, &queue.header.branch);
        let known = if target.missing { None } else { target.head.as_ref() };
        let is_asked = known.is_some() || target.missing;
        if !is_asked || snapshot.is_none_or(|it| it.heads.get(branch) != known) {
            match host.head(repository, branch).await? {
                Some(head) if known != Some(&head.sha) => {
                    facts.push(Fact::TargetSeen { head: head.sha, tree: head.tree, read_at });
                }
                None if !target.missing => facts.push(Fact::TargetMissing),
                Some(_) | None => {}
            }
        }
        for entry in self.share_of(self.unconfirmed(key, queue, snapshot)) {
            let query = PullRequestQuery::Number(entry.pr);
            let read_at = self.context.clock.now();
            match host.pull_request(repository, &query).await? {
                Some(seen) if seen == entry.pull_request => {
                    self.confirm(key, &entry, snapshot);
                }
                Some(seen) => {
                    facts.push(Fact::PullRequestSeen { pull_request: Box::new(seen), read_at });
                }
                None => facts.push(Fact::PullRequestGone { pr: entry.pr }),
            }
        }
        Ok(facts)
    }

    /// The live entries that may not be what the host shows: all of them on hosts without a
    /// snapshot, else those whose mark has changed since they were last read.
    fn unconfirmed(&self, key: QueueRef, queue: &Queue, snapshot: Option<&Snapshot>) -> Vec<Entry> {
        let live = queue.entries_in_order();
        let Some(snapshot) = snapshot else { return live.cloned().collect() };
        let mut confirmed = self.confirmed.lock().unwrap_or_else(PoisonError::into_inner);
        let confirmed = confirmed.entry(key).or_default();
        confirmed.retain(|pr, _| queue.entry_of(*pr).is_some());
        let is_changed = |entry: &&Entry| {
            confirmed.get(&entry.pr).is_none_or(|(mark, known_since)| {
                mark.as_ref() != snapshot.marks.get(&entry.pr) || *known_since != entry.seen_at
            })
        };
        live.filter(is_changed).cloned().collect()
    }

    /// Notes that the host shows an entry's pull request as the queue knows it. The mark is older
    /// than the read: what has changed in between shows in the next mark.
    fn confirm(&self, key: QueueRef, entry: &Entry, snapshot: Option<&Snapshot>) {
        let Some(snapshot) = snapshot else { return };
        let mark = snapshot.marks.get(&entry.pr).cloned();
        let mut confirmed = self.confirmed.lock().unwrap_or_else(PoisonError::into_inner);
        confirmed.entry(key).or_default().insert(entry.pr, (mark, entry.seen_at));
    }

    /// The pull requests whose turn it is in this round: all of a short list, a part of a long one.
    fn share_of(&self, entries: Vec<Entry>) -> Vec<Entry> {
        let rounds = entries.len().div_ceil(READ_AT_ONCE).max(1);
        let round = self.round.load(Ordering::Relaxed) % rounds;
        entries.into_iter().skip(round * READ_AT_ONCE).take(READ_AT_ONCE).collect()
    }

    /// Deletes test branches that no run knows. Returns how many.
    pub async fn stray_branches(&self) -> Result<usize, Error> {
        let mut swept = 0;
        // Several organizations may share one repository: its branches are all of theirs.
        let mut by_repo = BTreeMap::<_, Vec<QueueKey>>::new();
        for key in self.context.stores.queues.list(None, None).await? {
            if let Some((repository, _)) = self.host_of(&key).await? {
                let place = (repository.name.host, repository.path, repository.name.owner);
                by_repo.entry((place, repository.name.name)).or_default().push(key);
            }
        }
        for keys in by_repo.values() {
            swept += self.stray_branches_of(keys).await?;
        }
        Ok(swept)
    }

    async fn stray_branches_of(&self, keys: &[QueueKey]) -> Result<usize, Error> {
        let Some(first) = keys.first() else { return Ok(0) };
        let Some((repository, host)) = self.host_of(first).await? else { return Ok(0) };
        // The branches first, then the runs: a branch made in between belongs to a run that is
        // not looked at yet, and is not in the list.
        let Ok(branches) = host.test_branches(&repository).await else { return Ok(0) };
        let mut known = BTreeSet::new();
        for key in keys {
            if let Some(queue) = self.queues.state(key.queue).await? {
                known.extend(queue.runs().map(|run| run.branch.clone()));
            }
        }
        let mut swept = 0;
        for stray in branches.iter().filter(|it| !known.contains(&it.branch)) {
            if host.delete_branch(&repository, &stray.branch, Some(&stray.sha)).await.is_ok() {
                swept += 1;
            }
        }
        Ok(swept)
    }

    async fn host_of(
        &self,
        key: &QueueKey,
    ) -> Result<Option<(Repository, Arc<dyn GitHost>)>, Error> {
        let found = self.context.stores.repos.find(key.queue.org, key.repo).await?;
        Ok(found.and_then(|repository| {
            let host = self.context.hosts.git_host(repository.org, &repository.name.host)?;
            Some((repository, host))
        }))
    }
}
