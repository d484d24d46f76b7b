//! Steps of queues: load, decide, commit; repeated after a concurrent commit.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use quick_cache::sync::Cache;
use signalbox_domain::audit::{AuditRecord, of_queue};
use signalbox_domain::ids::{PrNumber, RepoId, RepoName};
use signalbox_domain::ports::{
    Commit, CommitError, EventRecord, Loaded, Observed, QueueKey, QueuePlace, QueueRef, StoreError,
    Version,
};
use signalbox_domain::queue::{
    Command, EffectClass, Event, Fact, Input, Queue, Refusal, ReportedTargets, SharedPolicy,
    Submission, Transition, absorb, decide, next_deadline,
};
use signalbox_domain::time::{Span, Timestamp};

use super::audit::AuditEntryBuilder;
use super::{Error, QueueContext};

/// The most attempts of a step in case of concurrent commits.
const ATTEMPTS: u32 = 32;
/// How long a queue stays watched after its last entry has left, in minutes.
const WATCHED_MINUTES: u32 = 10;
/// The most queues in the cache.
const REMEMBERED: usize = 4_096;

/// Executes steps. Queues are cached between steps; each step checks with the store that the cached
/// version is the latest.
pub(super) struct Stepper {
    pub(super) context: QueueContext,
    pub(super) policy: SharedPolicy,
    remembered: Cache<QueueRef, (Version, Arc<Queue>)>,
    turns: Mutex<BTreeMap<QueueRef, Arc<async_lock::Mutex<()>>>>,
    /// The names of repositories, which never change.
    names: Cache<RepoId, Arc<RepoName>>,
}

impl Stepper {
    pub(super) fn new(context: QueueContext) -> Self {
        Self {
            context,
            policy: SharedPolicy::default(),
            remembered: Cache::new(REMEMBERED),
            turns: Mutex::new(BTreeMap::new()),
            names: Cache::new(REMEMBERED),
        }
    }

    /// The latest state; `None` if the queue does not exist.
    pub(super) async fn load(
        &self,
        queue: QueueRef,
    ) -> Result<Option<(Version, Arc<Queue>)>, StoreError> {
        let known = self.remembered.get(&queue);
        let version = known.as_ref().map(|(version, _)| *version);
        let loaded = self.context.stores.queues.load(queue, version).await?;
        Ok(self.latest(queue, known, loaded))
    }

    /// The latest state, and the targets that were reported before a submission. A report after the
    /// load makes the commit fail, and both are read again.
    async fn load_for(
        &self,
        queue: QueueRef,
        input: &Input,
    ) -> Result<Option<(Version, Arc<Queue>, Option<ReportedTargets>)>, StoreError> {
        let Input::Command(Command::Submit(submission)) = input else {
            let loaded = self.load(queue).await?;
            return Ok(loaded.map(|(version, state)| (version, state, None)));
        };
        let known = self.remembered.get(&queue);
        let version = known.as_ref().map(|(version, _)| *version);
        let pr = submission.pull_request.number;
        let loaded = self.context.stores.queues.load_with_targets(queue, version, pr).await?;
        let (loaded, targets) = loaded.unzip();
        let latest = self.latest(queue, known, loaded);
        Ok(latest.map(|(version, state)| (version, state, targets.flatten())))
    }

    /// The state after a load with this version known.
    fn latest(
        &self,
        queue: QueueRef,
        known: Option<(Version, Arc<Queue>)>,
        loaded: Option<Loaded>,
    ) -> Option<(Version, Arc<Queue>)> {
        match loaded {
            Some(Loaded::Current) => known,
            Some(Loaded::Fresh(fresh, version)) => {
                let fresh = Arc::new(fresh.with_policy(self.policy.clone()));
                self.remember(queue, version, fresh.clone());
                Some((version, fresh))
            }
            None => {
                self.remembered.remove(&queue);
                None
            }
        }
    }

    /// The latest states of all queues, or only of watched ones. Cached states that are the latest
    /// are not read again.
    pub(super) async fn all(
        &self,
        watched_only: bool,
    ) -> Result<Vec<(QueueKey, Arc<Queue>)>, StoreError> {
        let watched_at = watched_only.then(|| self.context.clock.now());
        let listed = self.context.stores.queues.versions(watched_at).await?;
        let mut found = Vec::with_capacity(listed.len());
        for (key, version) in listed {
            found.extend(self.at(key.queue, version).await?.map(|queue| (key, queue)));
        }
        Ok(found)
    }

    /// The state of this version, which was the latest a moment ago, or a later one.
    pub(super) async fn at(
        &self,
        queue: QueueRef,
        version: Version,
    ) -> Result<Option<Arc<Queue>>, StoreError> {
        let known = self.remembered.get(&queue).filter(|(known, _)| *known >= version);
        let latest = match known {
            Some(known) => Some(known),
            None => self.load(queue).await?,
        };
        Ok(latest.map(|(_, state)| state))
    }

    /// Executes a step and returns the new state; `None` if the queue does not exist.
    pub(super) async fn step(
        &self,
        queue: QueueRef,
        input: &Input,
    ) -> Result<Option<Arc<Queue>>, Error> {
        Ok(self.step_unless(queue, input, None, |_| false).await?.map(|(after, _)| after))
    }

    /// Executes a step, and writes its changes to the audit log.
    pub(super) async fn step_by(
        &self,
        queue: QueueRef,
        input: &Input,
        audit_entry: Option<&AuditEntryBuilder>,
    ) -> Result<Option<Arc<Queue>>, Error> {
        Ok(self.step_unless(queue, input, audit_entry, |_| false).await?.map(|(after, _)| after))
    }

    /// Executes a step unless the input is out of date for the latest state. Returns the new state,
    /// and whether the step was executed; `None` if the queue does not exist.
    pub(super) async fn step_unless(
        &self,
        queue: QueueRef,
        input: &Input,
        audit_entry: Option<&AuditEntryBuilder>,
        out_of_date: impl Fn(&Queue) -> bool + Send,
    ) -> Result<Option<(Arc<Queue>, bool)>, Error> {
        // Steps of this process are serialized; only other servers can commit concurrently.
        let turn = self.turn(queue);
        let _turn = turn.lock().await;
        for _ in 0..ATTEMPTS {
            let at = self.context.clock.now();
            let Some((version, before, targets)) = self.load_for(queue, input).await? else {
                return Ok(None);
            };
            if out_of_date(&before) {
                return Ok(Some((before, false)));
            }
            let input = &*with_targets(input, targets);
            let transition = apply(&before, input, at)?;
            if transition.is_empty() && transition.queue.header == before.header {
                return Ok(Some((before, true)));
            }
            let audit = audit_entry.map(|audit_entry| {
                let (from, to) = (of_queue(&before.header), of_queue(&transition.queue.header));
                audit_entry.record(&*self.context.ids, at, &from, &to)
            });
            let audit = audit.filter(|it| deleted(&transition) || !it.changes.is_empty());
            let step = Step { queue, before: (version, &before), input, at, audit: audit.as_ref() };
            match self.commit(&step, &transition).await {
                Ok(after) => return Ok(Some((after, true))),
                Err(CommitError::Conflict) => {
                    self.remembered.remove(&queue);
                    self.context.observer.observe(&Observed::CommitConflict { queue });
                }
                Err(CommitError::Store(error)) => {
                    self.remembered.remove(&queue);
                    return Err(error.into());
                }
            }
        }
        Err(Error::Busy)
    }

    async fn commit(
        &self,
        step: &Step<'_>,
        transition: &Transition,
    ) -> Result<Arc<Queue>, CommitError> {
        let Step { queue, before: (expected, before), input, at, audit } = *step;
        let journal = transition.record(input.clone(), at);
        let events = self.event_records(queue, transition).await?;
        let request = self.context.ids.request_id();
        let shown = self.shown(queue, transition).await?;
        let commit = Commit {
            queue,
            expected,
            header: &transition.queue.header,
            next_deadline: next_deadline(&transition.queue),
            changes: &transition.changes,
            journal: &journal,
            effects: &transition.effects,
            events: &events,
            at,
            audit,
            request: request.as_deref(),
            shown: &shown,
            watched_until: watched_until(before, &transition.queue, at),
        };
        let version = self.context.stores.queues.commit(&commit).await?;
        let after = Arc::new(transition.queue.clone());
        self.remember(queue, version, after.clone());
        self.context.observer.observe(&Observed::Step {
            queue,
            input: input.name(),
            decisions: &transition.decisions,
            took: self.context.clock.now().since(at),
        });
        let classes: Vec<EffectClass> = EffectClass::ALL
            .iter()
            .copied()
            .filter(|class| transition.effects.iter().any(|it| it.effect.class() == *class))
            .collect();
        self.context.notifier.committed(queue, &classes);
        if !events.is_empty() {
            self.context.notifier.emitted(queue.org);
        }
        Ok(after)
    }

    /// The pull requests to announce; none on a host without a forge.
    async fn shown(
        &self,
        queue: QueueRef,
        transition: &Transition,
    ) -> Result<Vec<PrNumber>, StoreError> {
        if transition.shown.is_empty() {
            return Ok(Vec::new());
        }
        let name = self.name(queue, transition.queue.header.repo).await?;
        let shows = self.context.hosts.forge(queue.org, &name.host).is_some();
        Ok(if shows { transition.shown.iter().copied().collect() } else { Vec::new() })
    }

    /// The name of a queue's repository.
    async fn name(&self, queue: QueueRef, repo: RepoId) -> Result<Arc<RepoName>, StoreError> {
        if let Some(known) = self.names.get(&repo) {
            return Ok(known);
        }
        let found = self.context.repositories.find(queue.org, repo).await?;
        let found = found.ok_or_else(|| StoreError::Corrupt {
            what: format!("queue {}", queue.id),
            source: "its repository is not registered".into(),
        })?;
        let name = Arc::new(found.name);
        self.names.insert(repo, name.clone());
        Ok(name)
    }

    /// The event records of a transition.
    async fn event_records(
        &self,
        queue: QueueRef,
        transition: &Transition,
    ) -> Result<Vec<EventRecord>, StoreError> {
        if transition.events.is_empty() {
            return Ok(Vec::new());
        }
        let header = &transition.queue.header;
        let name = self.name(queue, header.repo).await?;
        let place = QueuePlace { repo: name.as_ref().clone(), branch: header.branch.clone() };
        let record = |event: &Event| EventRecord {
            id: self.context.ids.new_id(),
            kind: event.kind.as_str(),
            at: event.at,
            payload: self.context.events.queue_event(&place, event),
            request: self.context.ids.request_id(),
        };
        Ok(transition.events.iter().map(record).collect())
    }

    /// Lets a queue absorb a fact. Does nothing if the queue no longer exists.
    pub(super) async fn absorb(&self, queue: QueueRef, fact: Fact) -> Result<(), Error> {
        self.step(queue, &Input::Fact(fact)).await.map(drop)
    }

    fn turn(&self, queue: QueueRef) -> Arc<async_lock::Mutex<()>> {
        let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        if turns.len() >= REMEMBERED {
            turns.retain(|_, turn| Arc::strong_count(turn) > 1);
        }
        turns.entry(queue).or_default().clone()
    }

    /// Caches a state unless a newer one is cached. Concurrent calls may leave the older one, which
    /// the next load detects.
    fn remember(&self, queue: QueueRef, version: Version, state: Arc<Queue>) {
        if self.remembered.get(&queue).is_none_or(|(known, _)| known <= version) {
            self.remembered.insert(queue, (version, state));
        }
    }
}

/// A decided step.
#[derive(Clone, Copy)]
struct Step<'a> {
    queue: QueueRef,
    before: (Version, &'a Queue),
    input: &'a Input,
    at: Timestamp,
    audit: Option<&'a AuditRecord>,
}

/// Until when a queue is watched after a step: while entries wait or the host is unavailable, and
/// for a while after that, because users push to targets around landings.
fn watched_until(before: &Queue, after: &Queue, at: Timestamp) -> Option<Timestamp> {
    let watched = |queue: &Queue| {
        queue.entries_in_order().next().is_some() || queue.header.host.unreachable_since.is_some()
    };
    if watched(after) {
        return Some(Timestamp::from_unix_micros(i64::MAX));
    }
    watched(before).then(|| at.plus(Span::minutes(WATCHED_MINUTES)))
}

/// Adds its targets to a submission.
fn with_targets(input: &Input, targets: Option<ReportedTargets>) -> Cow<'_, Input> {
    let Input::Command(Command::Submit(submission)) = input else { return Cow::Borrowed(input) };
    let submission = Submission { targets, ..submission.as_ref().clone() };
    Cow::Owned(Input::Command(Command::Submit(Box::new(submission))))
}

fn deleted(transition: &Transition) -> bool {
    transition.queue.header.deleted
}

fn apply(before: &Queue, input: &Input, at: Timestamp) -> Result<Transition, Refusal> {
    match input {
        Input::Command(command) => decide(before, command, at),
        Input::Fact(fact) => Ok(absorb(before, fact, at)),
    }
}
