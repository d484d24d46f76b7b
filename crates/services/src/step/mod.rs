//! Steps of queues: load, decide, commit; repeated after a concurrent commit.

mod decided;
mod failed;
mod input;
mod turns;

use std::panic::{AssertUnwindSafe, resume_unwind};
use std::sync::Arc;

use futures_util::FutureExt as _;
use quick_cache::sync::Cache;
use signalbox_domain::audit::of_queue;
use signalbox_domain::ids::{PrNumber, RepoId, RepoName};
use signalbox_domain::ports::{
    Commit, CommitError, EventRecord, Loaded, Observed, QueueKey, QueuePlace, QueueRef, StoreError,
    Version,
};
use signalbox_domain::queue::{
    EffectClass, Event, Fact, Input, Queue, Refusal, SharedPolicy, Transition, absorb, decide,
    next_deadline,
};
use signalbox_domain::time::Timestamp;

use super::{Error, QueueContext};
use decided::{Decided, watched_until};
use failed::{Failed, Panic};
use input::{Reported, submission, with_targets};
use turns::Turns;

pub(super) use input::{Seen, Step};

/// The most attempts of a step in case of concurrent commits.
const ATTEMPTS: u32 = 32;
/// The most queues in the cache.
const REMEMBERED: usize = 4_096;

/// Executes steps. Queues are cached between steps; each commit checks with the store that the cached
/// version is the latest. Steps of a queue that wait while another one is committed are decided one after
/// the other and committed together.
pub(super) struct Stepper {
    pub(super) context: QueueContext,
    pub(super) policy: SharedPolicy,
    remembered: Cache<QueueRef, (Version, Arc<Queue>)>,
    turns: Turns<Step, Result<Outcome, Panic>>,
    /// The names of repositories, which never change.
    names: Cache<RepoId, Arc<RepoName>>,
}

impl Stepper {
    pub(super) fn new(context: QueueContext, policy: SharedPolicy) -> Self {
        Self {
            context,
            policy,
            remembered: Cache::new(REMEMBERED),
            turns: Turns::default(),
            names: Cache::new(REMEMBERED),
        }
    }

    /// The latest state; `None` if the queue does not exist.
    pub(super) async fn load(
        &self,
        queue: QueueRef,
    ) -> Result<Option<(Version, Arc<Queue>)>, StoreError> {
        // Until the state of a running commit is in the cache, the cached version looks like an old one, and
        // the whole queue would be read.
        self.turns.after_commit(queue).await;
        self.load_now(queue).await
    }

    async fn load_now(&self, queue: QueueRef) -> Result<Option<(Version, Arc<Queue>)>, StoreError> {
        let known = self.remembered.get(&queue);
        let version = known.as_ref().map(|(version, _)| *version);
        let loaded = self.context.stores.queues.load(queue, version).await?;
        Ok(self.latest(queue, known, loaded))
    }

    /// The latest state, and the targets that were reported before submissions. A report after the load
    /// makes the commit fail, and both are read again.
    async fn load_for(
        &self,
        queue: QueueRef,
        steps: &[Step],
    ) -> Result<Option<Before>, StoreError> {
        let submitted = steps.iter().filter_map(|step| submission(&step.input));
        let submitted: Vec<PrNumber> = submitted.map(|it| it.pull_request.number).collect();
        if submitted.is_empty() {
            let loaded = self.load_now(queue).await?;
            return Ok(loaded.map(|(version, state)| (version, state, Reported::new())));
        }
        let known = self.remembered.get(&queue);
        let version = known.as_ref().map(|(version, _)| *version);
        let queues = &self.context.stores.queues;
        let loaded = queues.load_with_targets(queue, version, &submitted).await?;
        let (loaded, reported) = loaded.unzip();
        let latest = self.latest(queue, known, loaded);
        let reported = reported.unwrap_or_default().into_iter();
        let reported = reported.map(|(pr, targets)| (pr, Arc::new(targets))).collect();
        Ok(latest.map(|(version, state)| (version, state, reported)))
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
        let known = || self.remembered.get(&queue).filter(|(known, _)| *known >= version);
        if let Some((_, state)) = known() {
            return Ok(Some(state));
        }
        self.turns.after_commit(queue).await;
        if let Some((_, state)) = known() {
            return Ok(Some(state));
        }
        Ok(self.load_now(queue).await?.map(|(_, state)| state))
    }

    /// Executes a step when it is its turn. Returns the new state, and whether the step was executed;
    /// `None` if the queue does not exist.
    pub(super) async fn execute(self: &Arc<Self>, queue: QueueRef, step: Step) -> Outcome {
        let step = Step { request: self.context.ids.request_id(), ..step };
        // Steps of this process take turns; only other servers can commit concurrently.
        let stepper = self.clone();
        let execute = move |steps: Vec<Step>| async move { stepper.together(queue, steps).await };
        match self.turns.take(queue, step, execute).await {
            Some(Ok(outcome)) => outcome,
            Some(Err(panic)) => resume_unwind(panic),
            // Each step has an outcome.
            None => Err(Error::Busy),
        }
    }

    /// Executes steps that waited for the same turn. If one panics, or the store refuses what they write,
    /// each is executed alone, so that it does not fail the others.
    async fn together(&self, queue: QueueRef, steps: Vec<Step>) -> Vec<Result<Outcome, Panic>> {
        let error = match self.attempt(queue, &steps).await {
            Ok(outcomes) => return outcomes.into_iter().map(Ok).collect(),
            Err(error) => error,
        };
        let committed_on = match &error {
            Failed::Commit(version, _) => Some(*version),
            Failed::Load(_) | Failed::Panicked(_) | Failed::Busy => None,
        };
        let concerns_all = steps.len() == 1 || error.concerns_all();
        let mut outcomes = Vec::with_capacity(steps.len());
        if concerns_all || self.has_changed_since(queue, committed_on).await {
            outcomes.extend(steps.iter().skip(1).map(|_| Ok(Err(error.again()))));
            outcomes.push(error.into_outcome());
            return outcomes;
        }
        let mut all: Option<Failed> = None;
        for step in steps {
            if let Some(error) = &all {
                outcomes.push(Ok(Err(error.again())));
                continue;
            }
            match self.attempt(queue, &[step]).await {
                Ok(alone) => outcomes.extend(alone.into_iter().map(Ok)),
                Err(error) if error.concerns_all() => {
                    outcomes.push(Ok(Err(error.again())));
                    all = Some(error);
                }
                Err(error) => outcomes.push(error.into_outcome()),
            }
        }
        outcomes
    }

    /// Whether a queue has another version than the one of a failed commit, which may then have been
    /// written after all.
    async fn has_changed_since(&self, queue: QueueRef, committed_on: Option<Version>) -> bool {
        let Some(version) = committed_on else { return false };
        let loaded = self.load_now(queue).await;
        !matches!(loaded, Ok(Some((latest, _))) if latest == version)
    }

    /// Decides and commits steps, repeatedly after concurrent commits.
    async fn attempt(&self, queue: QueueRef, steps: &[Step]) -> Result<Vec<Outcome>, Failed> {
        let mut seen = self.seen(queue, steps);
        for _ in 0..ATTEMPTS {
            let begun = self.context.clock.now();
            let was_seen = seen.is_some();
            let before = match seen.take() {
                Some(seen) => Some(seen),
                None => self.load_for(queue, steps).await.map_err(Failed::Load)?,
            };
            let Some((version, before, reported)) = before else {
                return Ok(steps.iter().map(|_| Ok(None)).collect());
            };
            let decided = AssertUnwindSafe(self.decide(queue, before, reported, steps));
            let decided = decided.catch_unwind().await.map_err(Failed::Panicked)?;
            let (outcomes, decided) = decided.map_err(Failed::Load)?;
            if decided.is_empty() && was_seen {
                // No commit shows that it is still the latest version.
                continue;
            }
            match self.commit(queue, (version, begun), &decided).await {
                Ok(()) => return Ok(outcomes),
                Err(CommitError::Conflict) => {
                    self.remembered.remove(&queue);
                    self.context.observer.observe(&Observed::CommitConflict { queue });
                }
                Err(CommitError::Store(error)) => {
                    self.remembered.remove(&queue);
                    return Err(Failed::Commit(version, error));
                }
            }
        }
        Err(Failed::Busy)
    }

    /// The cached state, if all of these steps have just seen its version.
    fn seen(&self, queue: QueueRef, steps: &[Step]) -> Option<Before> {
        let (version, state) = self.remembered.get(&queue)?;
        let is_seen = |step: &Step| step.seen.as_ref().is_some_and(|it| it.version == version);
        let reported = || steps.iter().filter_map(Step::reported).collect();
        steps.iter().all(is_seen).then(|| (version, state, reported()))
    }

    /// Decides steps, each on the state after the one before it. Returns the outcome of each, which holds
    /// once the decided ones are committed.
    async fn decide(
        &self,
        queue: QueueRef,
        before: Arc<Queue>,
        mut reported: Reported,
        steps: &[Step],
    ) -> Result<(Vec<Outcome>, Vec<Decided>), StoreError> {
        let (mut state, mut decided) = (before, Vec::new());
        let mut outcomes = Vec::with_capacity(steps.len());
        for step in steps {
            if state.header.deleted {
                outcomes.push(Ok(None));
                continue;
            }
            if (step.out_of_date)(&state) {
                outcomes.push(Ok(Some((state.clone(), false))));
                continue;
            }
            let at = self.context.clock.now();
            let input = with_targets(&step.input, &reported);
            let transition = match apply(&state, &input, at) {
                Ok(transition) => transition,
                Err(refusal) => {
                    outcomes.push(Err(refusal.into()));
                    continue;
                }
            };
            if !transition.is_empty() || transition.queue.header != state.header {
                let next = self.decided(queue, &state, (step, &input, at), transition).await?;
                reported.extend(next.changes.targets.iter().cloned());
                state = next.after.clone();
                decided.push(next);
            }
            outcomes.push(Ok(Some((state.clone(), true))));
        }
        Ok((outcomes, decided))
    }

    /// Everything that a step writes.
    async fn decided(
        &self,
        queue: QueueRef,
        before: &Queue,
        (step, input, at): (&Step, &Input, Timestamp),
        transition: Transition,
    ) -> Result<Decided, StoreError> {
        let audit = step.audit_entry.as_ref().map(|audit_entry| {
            let (from, to) = (of_queue(&before.header), of_queue(&transition.queue.header));
            audit_entry.record(&*self.context.ids, at, &from, &to)
        });
        let deleted = transition.queue.header.deleted;
        let events = self.event_records(queue, &transition, step.request.as_deref()).await?;
        Ok(Decided {
            at,
            input: input.name(),
            journal: transition.record(input.clone(), at),
            audit: audit.filter(|it| deleted || !it.changes.is_empty()),
            events,
            request: step.request.clone(),
            shown: self.shown(queue, &transition).await?,
            watched_until: watched_until(before, &transition.queue, at),
            next_deadline: next_deadline(&transition.queue),
            after: Arc::new(transition.queue),
            changes: transition.changes,
            effects: transition.effects,
        })
    }

    /// Commits steps, if any.
    async fn commit(
        &self,
        queue: QueueRef,
        (version, begun): (Version, Timestamp),
        decided: &[Decided],
    ) -> Result<(), CommitError> {
        let Some(last) = decided.last() else { return Ok(()) };
        let versions = (version.0..).map(Version);
        let commits: Vec<Commit<'_>> =
            versions.zip(decided).map(|(expected, it)| it.commit(queue, expected)).collect();
        {
            let _committing = self.turns.committing(queue).await;
            let version = self.context.stores.queues.commit(&commits).await?;
            self.remember(queue, version, last.after.clone());
        }
        for step in decided {
            self.context.observer.observe(&Observed::Step {
                queue,
                input: step.input,
                decisions: &step.journal.decisions,
                took: self.context.clock.now().since(begun),
            });
        }
        let effects = || decided.iter().flat_map(|step| &step.effects);
        let has = |class: &EffectClass| effects().any(|it| it.effect.class() == *class);
        let classes: Vec<EffectClass> = EffectClass::ALL.iter().copied().filter(has).collect();
        self.context.notifier.committed(queue, &classes);
        if decided.iter().any(|step| !step.events.is_empty()) {
            self.context.notifier.emitted(queue.org);
        }
        Ok(())
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
        request: Option<&str>,
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
            request: request.map(ToOwned::to_owned),
        };
        Ok(transition.events.iter().map(record).collect())
    }

    /// Lets a queue absorb a fact. Does nothing if the queue no longer exists.
    pub(super) async fn absorb(self: &Arc<Self>, queue: QueueRef, fact: Fact) -> Result<(), Error> {
        self.execute(queue, Step::new(Input::Fact(fact))).await.map(drop)
    }

    /// Caches a state unless a newer one is cached. Concurrent calls may leave the older one, which
    /// the next load detects.
    fn remember(&self, queue: QueueRef, version: Version, state: Arc<Queue>) {
        if self.remembered.get(&queue).is_none_or(|(known, _)| known <= version) {
            self.remembered.insert(queue, (version, state));
        }
    }
}

/// What a step is decided on: a version, its state, and reported targets.
type Before = (Version, Arc<Queue>, Reported);

/// The state after a step, and whether the step was executed; `None` if the queue does not exist.
type Outcome = Result<Option<(Arc<Queue>, bool)>, Error>;

fn apply(before: &Queue, input: &Input, at: Timestamp) -> Result<Transition, Refusal> {
    match input {
        Input::Command(command) => decide(before, command, at),
        Input::Fact(fact) => Ok(absorb(before, fact, at)),
    }
}
