//! Steps of queues: load, decide, commit; repeated after a concurrent commit.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::error::Error as _;
use std::sync::Arc;

use quick_cache::sync::Cache;
use signalbox_domain::audit::of_queue;
use signalbox_domain::ids::{PrNumber, RepoId, RepoName};
use signalbox_domain::ports::{
    Commit, CommitError, EventRecord, Loaded, Observed, QueueKey, QueuePlace, QueueRef, StoreError,
    Version,
};
use signalbox_domain::queue::{
    Command, EffectClass, Event, Fact, Input, Queue, Refusal, ReportedTargets, SharedPolicy,
    Submission, Transition, absorb, decide, next_deadline,
};
use signalbox_domain::time::Timestamp;

use super::audit::AuditEntryBuilder;
use super::decided::{Decided, watched_until};
use super::turns::Turns;
use super::{Error, QueueContext};

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
    turns: Turns<Step, Outcome>,
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
    ///
    /// Between a commit and its entry in the cache, the cached version seems to be an old one, and the whole
    /// queue would be read. So this waits for a step that is being executed.
    pub(super) async fn load(
        &self,
        queue: QueueRef,
    ) -> Result<Option<(Version, Arc<Queue>)>, StoreError> {
        let _no_step = self.turns.pause(queue).await;
        self.load_in_turn(queue).await
    }

    async fn load_in_turn(
        &self,
        queue: QueueRef,
    ) -> Result<Option<(Version, Arc<Queue>)>, StoreError> {
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
    ) -> Result<Option<(Version, Arc<Queue>, Reported)>, StoreError> {
        let known = self.remembered.get(&queue);
        if let Some((version, state)) = &known
            && steps.iter().all(|step| step.seen.as_ref().is_some_and(|it| it.version == *version))
        {
            let reported = steps.iter().filter_map(Step::reported).collect();
            return Ok(Some((*version, state.clone(), reported)));
        }
        let submitted = steps.iter().filter_map(|step| submission(&step.input));
        let submitted: Vec<PrNumber> = submitted.map(|it| it.pull_request.number).collect();
        if submitted.is_empty() {
            let loaded = self.load_in_turn(queue).await?;
            return Ok(loaded.map(|(version, state)| (version, state, Reported::new())));
        }
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
        let _no_step = self.turns.pause(queue).await;
        if let Some((_, state)) = known() {
            return Ok(Some(state));
        }
        Ok(self.load_in_turn(queue).await?.map(|(_, state)| state))
    }

    /// Executes a step when it is its turn. Returns the new state, and whether the step was executed;
    /// `None` if the queue does not exist.
    pub(super) async fn execute(self: &Arc<Self>, queue: QueueRef, step: Step) -> Outcome {
        let step = Step { request: self.context.ids.request_id(), ..step };
        // Steps of this process take turns; only other servers can commit concurrently.
        let stepper = self.clone();
        let execute = move |steps: Vec<Step>| async move { stepper.together(queue, steps).await };
        self.turns.take(queue, step, execute).await.unwrap_or(Err(Error::Busy))
    }

    /// Executes steps that waited for the same turn. If the store refuses what they write, each is
    /// executed alone, so that one of them does not fail the others.
    async fn together(&self, queue: QueueRef, steps: Vec<Step>) -> Vec<Outcome> {
        let error = match self.attempt(queue, &steps).await {
            Ok(outcomes) => return outcomes,
            Err(error) => error,
        };
        let refused = matches!(&error, StoreError::Failed(_) | StoreError::Corrupt { .. });
        let mut outcomes = Vec::with_capacity(steps.len());
        if let [_, _, ..] = &steps[..]
            && refused
        {
            for step in steps {
                let alone = self.attempt(queue, &[step]).await;
                outcomes.extend(alone.unwrap_or_else(|error| vec![Err(error.into())]));
            }
            return outcomes;
        }
        outcomes.extend(steps.iter().skip(1).map(|_| Err(same(&error).into())));
        outcomes.push(Err(error.into()));
        outcomes
    }

    /// Decides and commits steps, repeatedly after concurrent commits.
    async fn attempt(&self, queue: QueueRef, steps: &[Step]) -> Result<Vec<Outcome>, StoreError> {
        for _ in 0..ATTEMPTS {
            let Some((version, before, reported)) = self.load_for(queue, steps).await? else {
                return Ok(steps.iter().map(|_| Ok(None)).collect());
            };
            let (outcomes, decided) = self.decide(queue, before, reported, steps).await?;
            match self.commit(queue, version, &decided).await {
                Ok(()) => return Ok(outcomes),
                Err(CommitError::Conflict) => {
                    self.remembered.remove(&queue);
                    self.context.observer.observe(&Observed::CommitConflict { queue });
                }
                Err(CommitError::Store(error)) => {
                    self.remembered.remove(&queue);
                    return Err(error);
                }
            }
        }
        Ok(steps.iter().map(|_| Err(Error::Busy)).collect())
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
        version: Version,
        decided: &[Decided],
    ) -> Result<(), CommitError> {
        let Some(last) = decided.last() else { return Ok(()) };
        let versions = (version.0..).map(Version);
        let commits: Vec<Commit<'_>> =
            versions.zip(decided).map(|(expected, it)| it.commit(queue, expected)).collect();
        let version = self.context.stores.queues.commit(&commits).await?;
        self.remember(queue, version, last.after.clone());
        for step in decided {
            self.context.observer.observe(&Observed::Step {
                queue,
                input: step.input,
                decisions: &step.journal.decisions,
                took: self.context.clock.now().since(step.at),
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

/// The state after a step, and whether the step was executed; `None` if the queue does not exist.
type Outcome = Result<Option<(Arc<Queue>, bool)>, Error>;
/// Reported targets by pull request.
type Reported = BTreeMap<PrNumber, Arc<ReportedTargets>>;

/// A step.
pub(super) struct Step {
    input: Input,
    audit_entry: Option<AuditEntryBuilder>,
    out_of_date: Box<dyn Fn(&Queue) -> bool + Send + Sync>,
    seen: Option<Seen>,
    /// The id of the request that caused it.
    request: Option<String>,
}

/// What the request that causes a step has just read. While the cached state has that version, the step
/// is decided on it without another read.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    /// The version of the queue.
    pub(super) version: Version,
    /// The reported targets of the pull request, of a submission.
    pub(super) targets: Option<ReportedTargets>,
}

impl Step {
    pub(super) fn new(input: Input) -> Self {
        let out_of_date = Box::new(|_: &Queue| false);
        Self { input, audit_entry: None, out_of_date, seen: None, request: None }
    }

    /// Writes its changes to the audit log.
    pub(super) fn audited(self, audit_entry: Option<&AuditEntryBuilder>) -> Self {
        Self { audit_entry: audit_entry.cloned(), ..self }
    }

    /// Is not executed if the input is out of date for the latest state.
    pub(super) fn unless(
        self,
        out_of_date: impl Fn(&Queue) -> bool + Send + Sync + 'static,
    ) -> Self {
        Self { out_of_date: Box::new(out_of_date), ..self }
    }

    /// See [`Seen`].
    pub(super) fn seen(self, version: Version, targets: Option<ReportedTargets>) -> Self {
        Self { seen: Some(Seen { version, targets }), ..self }
    }

    /// The targets that were read with the version.
    fn reported(&self) -> Option<(PrNumber, Arc<ReportedTargets>)> {
        let pr = submission(&self.input)?.pull_request.number;
        Some((pr, Arc::new(self.seen.as_ref()?.targets.clone()?)))
    }
}

/// An error for each further step that it failed.
fn same(error: &StoreError) -> StoreError {
    let source = error.source().map_or_else(String::new, ToString::to_string).into();
    match error {
        StoreError::Unavailable(_) => StoreError::Unavailable(source),
        StoreError::Damaged(_) => StoreError::Damaged(source),
        StoreError::Failed(_) => StoreError::Failed(source),
        StoreError::Corrupt { what, .. } => StoreError::Corrupt { what: what.clone(), source },
    }
}

fn submission(input: &Input) -> Option<&Submission> {
    match input {
        Input::Command(Command::Submit(submission)) => Some(submission),
        Input::Command(_) | Input::Fact(_) => None,
    }
}

/// Adds its targets to a submission.
fn with_targets<'a>(input: &'a Input, reported: &Reported) -> Cow<'a, Input> {
    let Some(submission) = submission(input) else { return Cow::Borrowed(input) };
    let targets = reported.get(&submission.pull_request.number);
    let targets = targets.map(|targets| targets.as_ref().clone());
    let submission = Submission { targets, ..submission.clone() };
    Cow::Owned(Input::Command(Command::Submit(Box::new(submission))))
}

fn apply(before: &Queue, input: &Input, at: Timestamp) -> Result<Transition, Refusal> {
    match input {
        Input::Command(command) => decide(before, command, at),
        Input::Fact(fact) => Ok(absorb(before, fact, at)),
    }
}
