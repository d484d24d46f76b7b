//! Periodic work: deadlines, polling of hosts, and orphaned test branches.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use signalbox_domain::ids::{BranchName, HostId, PrNumber, RepoId, Sha};
use signalbox_domain::ports::{
    GitHost, HostError, PullRequestQuery, QueueKey, QueueRef, Repository, Snapshot, TestBranch,
};
use signalbox_domain::queue::{Dependency, Entry, EntryState, Fact, Mergeability, Queue};
use signalbox_domain::time::{Span, Timestamp};

use super::dependencies;
use super::effect_runner::is_kept_waiting;
use super::undecided::Undecided;
use super::{Error, QueueContext, QueueService};

/// The most pull requests of a queue that one round reads; the next round continues with the
/// others.
const READ_AT_ONCE: usize = 50;
/// The most pull requests of a queue that one round reads because the host was still computing their
/// mergeability: the first ones of the line. Every landing makes the host compute again, so that the
/// cost of a landing would grow with the line.
const UNDECIDED_AT_ONCE: usize = 10;
/// The most failed reads of dependencies of a queue in one round.
const FAILED_READS: u32 = 3;
/// How long, in minutes, an orphaned branch must not move before it is deleted. Other servers use
/// branches that this one does not know, each for a few minutes at most.
const STRAY_MINUTES: u32 = 15;

/// Repeats all reads periodically, so that a lost hint costs only time.
pub struct Sweeper {
    context: QueueContext,
    queues: Arc<QueueService>,
    round: AtomicUsize,
    read_at: Mutex<BTreeMap<QueueRef, Timestamp>>,
    confirmed: Mutex<BTreeMap<QueueRef, BTreeMap<PrNumber, Confirmed>>>,
    followed: Mutex<BTreeMap<QueueRef, Followed>>,
    strays: Mutex<BTreeMap<RepoPlace, BTreeMap<BranchName, Seen>>>,
    undecided: Undecided,
}

/// A pull request's fingerprint when the host last agreed with the queue, and when the queue read
/// that state.
type Confirmed = (Option<String>, Timestamp);

/// The reads of a queue's dependencies.
#[derive(Default)]
struct Followed {
    /// Their fingerprints before their last read.
    fingerprints: BTreeMap<PrNumber, Option<String>>,
    /// The last read with a snapshot (`true`) and without; the next round continues after it.
    last: BTreeMap<bool, Dependency>,
}

/// The snapshots of a round, one per repository.
type Snapshots = BTreeMap<RepoId, Arc<Snapshot>>;

/// The location of a repository: host, folder (on hosts with repositories in the file system),
/// owner and name.
type RepoPlace = (HostId, Option<String>, String, String);

/// A repository with all organizations that registered it.
struct Shared {
    repository: Repository,
    host: Arc<dyn GitHost>,
    repos: BTreeSet<RepoId>,
}

/// The head of an orphaned branch, and since when it has not moved.
type Seen = (Sha, Timestamp);

impl Sweeper {
    /// Creates the sweeper.
    pub fn new(context: impl Into<QueueContext>, queues: Arc<QueueService>) -> Self {
        Self {
            context: context.into(),
            queues,
            round: AtomicUsize::new(0),
            read_at: Mutex::new(BTreeMap::new()),
            confirmed: Mutex::new(BTreeMap::new()),
            followed: Mutex::new(BTreeMap::new()),
            strays: Mutex::new(BTreeMap::new()),
            undecided: Undecided::default(),
        }
    }

    /// The most queues that one call of [`Self::deadlines`] processes.
    pub const DUE_AT_ONCE: usize = 100;

    /// Absorbs [`Fact::TimePassed`] in queues with a passed deadline; returns their number.
    pub async fn deadlines(&self) -> Result<usize, Error> {
        let limit = u32::try_from(Self::DUE_AT_ONCE).unwrap_or(u32::MAX);
        let due = self.context.stores.queues.due(self.context.clock.now(), limit).await?;
        for queue in &due {
            self.queues.absorb(*queue, Fact::TimePassed).await?;
        }
        Ok(due.len())
    }

    /// Polls the watched queues: with entries, now or recently, or with an unavailable host. Reads
    /// targets and pull requests on hosts that must be polled, and in every second round, on other
    /// hosts, the pull requests whose mergeability was not computed yet. Changes are absorbed.
    /// Queues that are not watched cost nothing.
    pub async fn look_often(&self) -> Result<(), Error> {
        let round = self.next_round();
        let watched = self.queues.states(true).await?;
        let repositories = self.repositories(&watched).await?;
        let mut snapshots = Snapshots::new();
        for (key, queue) in &watched {
            let Some((repository, host)) = repositories.get(&key.repo) else { continue };
            if host.abilities().needs_polling {
                let host = host.as_ref();
                let is_answering =
                    self.reconcile(key, queue, repository, host, &mut snapshots).await?;
                // Without a snapshot they are read with all queues.
                if let Some(snapshot) = snapshots.get(&repository.id).filter(|_| is_answering) {
                    self.follow(key, queue, repository, host, Some(snapshot)).await?;
                }
            } else if round.is_multiple_of(2) {
                self.undecided(key, queue, repository, host.as_ref()).await?;
            }
        }
        self.undecided.keep_only(&watched.iter().map(|(key, _)| key.queue).collect());
        Ok(())
    }

    /// Reads the targets, the live pull requests and the dependencies of all queues whose read is due,
    /// and absorbs changes.
    pub async fn look_at_all(&self) -> Result<(), Error> {
        self.next_round();
        let all = self.queues.states(false).await?;
        let repositories = self.repositories(&all).await?;
        let mut snapshots = Snapshots::new();
        for (key, queue) in &all {
            if let Some((repository, host)) = repositories.get(&key.repo)
                && self.is_due(key.queue, queue, host.abilities().reread_after)
            {
                let host = host.as_ref();
                if self.reconcile(key, queue, repository, host, &mut snapshots).await? {
                    self.follow(key, queue, repository, host, None).await?;
                }
            }
        }
        let queues: BTreeSet<QueueRef> = all.iter().map(|(key, _)| key.queue).collect();
        self.read_at().retain(|queue, _| queues.contains(queue));
        self.followed().retain(|queue, _| queues.contains(queue));
        Ok(())
    }

    fn next_round(&self) -> usize {
        self.round.fetch_add(1, Ordering::Relaxed)
    }

    /// The repositories of queues with their hosts, by one read, without repositories whose host is
    /// no longer configured.
    async fn repositories(
        &self,
        queues: &[(QueueKey, Arc<Queue>)],
    ) -> Result<BTreeMap<RepoId, (Repository, Arc<dyn GitHost>)>, Error> {
        if queues.is_empty() {
            return Ok(BTreeMap::new());
        }
        let listed = self.context.repositories.list(None).await?;
        let with_host = |repository: Repository| {
            let host = self.context.hosts.git_host(repository.org, &repository.name.host)?;
            Some((repository.id, (repository, host)))
        };
        Ok(listed.into_iter().filter_map(with_host).collect())
    }

    fn read_at(&self) -> MutexGuard<'_, BTreeMap<QueueRef, Timestamp>> {
        self.read_at.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a queue must be read again: its interval has passed, or its host was unavailable.
    fn is_due(&self, key: QueueRef, queue: &Queue, after: Span) -> bool {
        let was_away = queue.header.host.unreachable_since.is_some();
        let now = self.context.clock.now();
        let mut read_at = self.read_at();
        let fresh = read_at.get(&key).is_some_and(|at| now < at.plus(after));
        if fresh && !was_away {
            return false;
        }
        read_at.insert(key, now);
        true
    }

    /// Reads the pull requests again whose mergeability the host was still computing, after growing
    /// pauses.
    async fn undecided(
        &self,
        key: &QueueKey,
        queue: &Queue,
        repository: &Repository,
        host: &dyn GitHost,
    ) -> Result<(), Error> {
        let undecided = |entry: &&Entry| {
            entry.state == EntryState::NotReady
                && entry.pull_request.mergeability == Mergeability::InProgress
        };
        let target = queue.header.target.head.as_ref();
        let undecided = queue.entries_in_order().filter(undecided).map(|entry| entry.pr).collect();
        let due = self.undecided.due(key.queue, target, undecided, self.context.clock.now());
        for pr in due.into_iter().take(UNDECIDED_AT_ONCE) {
            let read_at = self.context.clock.now();
            self.undecided.was_read(key.queue, target, pr, read_at);
            let query = PullRequestQuery::Number(pr);
            // A pull request that cannot be read now is read after its pause.
            let Ok(Some(seen)) = host.pull_request(repository, &query).await else { break };
            let fact = Fact::PullRequestSeen { pull_request: Box::new(seen), read_at };
            self.queues.absorb(key.queue, fact).await?;
        }
        Ok(())
    }

    /// Reads a queue's target and pull requests again. Returns whether the host has answered.
    async fn reconcile(
        &self,
        key: &QueueKey,
        queue: &Queue,
        repository: &Repository,
        host: &dyn GitHost,
        snapshots: &mut Snapshots,
    ) -> Result<bool, Error> {
        match self.news(key.queue, queue, repository, host, snapshots).await {
            Ok(facts) => {
                // A successful read does not imply that the host accepts writes.
                if queue.header.host.unreachable_since.is_some()
                    && !is_kept_waiting(&self.context, key.queue).await?
                {
                    self.queues.absorb(key.queue, Fact::HostReachable).await?;
                }
                for fact in facts {
                    self.queues.absorb(key.queue, fact).await?;
                }
                Ok(true)
            }
            // A rate limit is temporary, and a refused read says nothing about the queue.
            Err(error) => {
                if let Some(trouble) = error.trouble() {
                    self.queues.absorb(key.queue, Fact::HostUnreachable { trouble }).await?;
                }
                Ok(false)
            }
        }
    }

    /// The facts of everything that the host shows differently from the queue.
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
                Some(seen) if seen == *entry.pull_request => {
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

    /// The live entries that may differ from the host: all of them on hosts without a snapshot,
    /// otherwise the entries whose fingerprint has changed since their last read.
    fn unconfirmed(&self, key: QueueRef, queue: &Queue, snapshot: Option<&Snapshot>) -> Vec<Entry> {
        let live = queue.entries_in_order();
        let Some(snapshot) = snapshot else { return live.cloned().collect() };
        let mut confirmed = self.confirmed.lock().unwrap_or_else(PoisonError::into_inner);
        let confirmed = confirmed.entry(key).or_default();
        confirmed.retain(|pr, _| queue.entry_of(*pr).is_some());
        let is_changed = |entry: &&Entry| {
            confirmed.get(&entry.pr).is_none_or(|(fingerprint, known_since)| {
                fingerprint.as_ref() != snapshot.fingerprints.get(&entry.pr)
                    || *known_since != entry.seen_at
            })
        };
        live.filter(is_changed).cloned().collect()
    }

    /// Records that the host agrees with the queue about a pull request. The fingerprint is older
    /// than the read, so a change in between appears in the next fingerprint.
    fn confirm(&self, key: QueueRef, entry: &Entry, snapshot: Option<&Snapshot>) {
        let Some(snapshot) = snapshot else { return };
        let fingerprint = snapshot.fingerprints.get(&entry.pr).cloned();
        let mut confirmed = self.confirmed.lock().unwrap_or_else(PoisonError::into_inner);
        confirmed.entry(key).or_default().insert(entry.pr, (fingerprint, entry.seen_at));
    }

    /// Reads the dependencies that have not merged and are not live entries, and absorbs changes. With a
    /// snapshot, only those of the same repository that have changed since their last read.
    async fn follow(
        &self,
        key: &QueueKey,
        queue: &Queue,
        repository: &Repository,
        host: &dyn GitHost,
        snapshot: Option<&Snapshot>,
    ) -> Result<(), Error> {
        let mut failed = 0;
        for on in self.changed_dependencies(key.queue, queue, snapshot) {
            match dependencies::read(&self.context, host, repository, &on).await? {
                Ok(state) if queue.dependency_state(&on) != Some(state) => {
                    let fact = Fact::DependencySeen { on: on.clone(), state };
                    self.queues.absorb(key.queue, fact).await?;
                }
                Ok(_) => {}
                Err(HostError::RateLimited { .. }) => break,
                // The repository of another one may be readable.
                Err(_) => {
                    failed += 1;
                    if failed == FAILED_READS {
                        break;
                    }
                    continue;
                }
            }
            let mut followed = self.followed();
            let followed = followed.entry(key.queue).or_default();
            if let (Dependency::Own(pr), Some(snapshot)) = (&on, snapshot) {
                followed.fingerprints.insert(*pr, snapshot.fingerprints.get(pr).cloned());
            }
            followed.last.insert(snapshot.is_some(), on);
        }
        Ok(())
    }

    /// The dependencies to read in this round, starting after the last one of the previous round.
    fn changed_dependencies(
        &self,
        key: QueueRef,
        queue: &Queue,
        snapshot: Option<&Snapshot>,
    ) -> Vec<Dependency> {
        let mut followed = self.followed();
        let followed = followed.entry(key).or_default();
        followed.fingerprints.retain(|pr, _| queue.waits_for(&Dependency::Own(*pr)));
        let is_changed = |pr: &PrNumber| {
            snapshot.is_none_or(|snapshot| {
                followed.fingerprints.get(pr) != Some(&snapshot.fingerprints.get(pr).cloned())
            })
        };
        let is_wanted = |on: &&Dependency| match on {
            Dependency::Own(pr) => queue.entry_of(*pr).is_none() && is_changed(pr),
            Dependency::Other(..) => snapshot.is_none(),
            Dependency::Unknown(_) => false,
        };
        let mut all: Vec<Dependency> = queue.dependencies().filter(is_wanted).cloned().collect();
        let last = followed.last.get(&snapshot.is_some());
        let next = all.partition_point(|on| Some(on) <= last);
        all.rotate_left(next);
        all.truncate(READ_AT_ONCE);
        all
    }

    fn followed(&self) -> MutexGuard<'_, BTreeMap<QueueRef, Followed>> {
        self.followed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The entries to read in this round: all of a short list, a share of a long one.
    fn share_of(&self, entries: Vec<Entry>) -> Vec<Entry> {
        let rounds = entries.len().div_ceil(READ_AT_ONCE).max(1);
        let round = self.round.load(Ordering::Relaxed) % rounds;
        entries.into_iter().skip(round * READ_AT_ONCE).take(READ_AT_ONCE).collect()
    }

    /// Deletes test branches that belong to no run and have not moved for 15 minutes; returns their
    /// number.
    pub async fn stray_branches(&self) -> Result<usize, Error> {
        let mut swept = 0;
        // Several organizations may share one repository and its branches.
        let mut by_repo = BTreeMap::<RepoPlace, Shared>::new();
        let listed = self.context.stores.queues.versions(None).await?;
        let repositories = self.context.repositories.list(None).await?;
        let repositories: BTreeMap<RepoId, Repository> =
            repositories.into_iter().map(|it| (it.id, it)).collect();
        for (key, _) in listed {
            let Some(repository) = repositories.get(&key.repo) else { continue };
            let (name, path) = (repository.name.clone(), repository.path.clone());
            let place = (name.host, path, name.owner, name.name);
            let host = || self.context.hosts.git_host(repository.org, &repository.name.host);
            if let Some(shared) = by_repo.get_mut(&place) {
                shared.repos.insert(key.repo);
            } else if let Some(host) = host() {
                let (repository, repos) = (repository.clone(), BTreeSet::from([key.repo]));
                by_repo.insert(place, Shared { repository, host, repos });
            }
        }
        for (place, shared) in &by_repo {
            swept += self.stray_branches_of(place, shared).await?;
        }
        self.seen().retain(|place, _| by_repo.contains_key(place));
        Ok(swept)
    }

    async fn stray_branches_of(&self, place: &RepoPlace, shared: &Shared) -> Result<usize, Error> {
        let (repository, host) = (&shared.repository, &shared.host);
        // Read the branches first, then the runs: a branch created in between is not in the list.
        let Ok(branches) = host.test_branches(repository).await else { return Ok(0) };
        if branches.is_empty() {
            self.seen().remove(place);
            return Ok(0);
        }
        let (mut known, mut live) = (BTreeSet::new(), BTreeSet::new());
        for (key, queue) in self.queues.states(false).await? {
            if shared.repos.contains(&key.repo) {
                known.extend(queue.runs().map(|run| run.branch.clone()));
                live.extend(queue.runs().map(|run| run.id.to_string()));
            }
        }
        // A scratch branch has the name of the run that it was created for.
        let of_live_run = |branch: &BranchName| {
            branch.as_str().rsplit('/').next().is_some_and(|last| live.contains(last))
        };
        let strays = branches
            .into_iter()
            .filter(|it| !known.contains(&it.branch) && !of_live_run(&it.branch));
        let mut swept = 0;
        for stray in self.unmoved(place, strays.collect()) {
            if host.delete_branch(repository, &stray.branch, Some(&stray.sha)).await.is_ok() {
                swept += 1;
            }
        }
        Ok(swept)
    }

    fn seen(&self) -> MutexGuard<'_, BTreeMap<RepoPlace, BTreeMap<BranchName, Seen>>> {
        self.strays.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records the orphaned branches, and returns the ones that have not moved for a while.
    fn unmoved(&self, place: &RepoPlace, strays: Vec<TestBranch>) -> Vec<TestBranch> {
        let now = self.context.clock.now();
        let before = self.seen().remove(place).unwrap_or_default();
        let since = |stray: &TestBranch| {
            let seen = before.get(&stray.branch).filter(|(sha, _)| *sha == stray.sha);
            seen.map_or(now, |(_, since)| *since)
        };
        let known = strays.iter().map(|it| (it.branch.clone(), (it.sha.clone(), since(it))));
        self.seen().insert(place.clone(), known.collect());
        let old = |stray: &TestBranch| now >= since(stray).plus(Span::minutes(STRAY_MINUTES));
        strays.into_iter().filter(old).collect()
    }
}
