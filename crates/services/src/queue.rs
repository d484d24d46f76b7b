//! Use cases of queues.

use std::sync::Arc;

use signalbox_domain::audit::{AuditAction, AuditFields, of_queue};
use signalbox_domain::ids::{BranchName, OrgId, PrNumber, QueueId, RepoId, RepoName, RunId, Sha};
use signalbox_domain::ports::{
    CreateError, GitHost, Located, PullRequestQuery, QueueKey, QueueRef, Repository, Version,
};
use signalbox_domain::queue::{
    Actor, ChangeSource, CheckCause, CheckReport, Command, Fact, FailureCause, Input, Management,
    Mode, Queue, ReportedTargets, RequestedState, RunStatus, Settings, SettingsPatch, SharedPolicy,
};
use signalbox_domain::token::{Caller, Scope};

use super::audit::AuditEntryBuilder;
use super::failure_causes::{self, FailedRun};
use super::step::{Step, Stepper};
use super::{Error, QueueContext};

/// The default of `concurrency` in createQueue.
const DEFAULT_CONCURRENCY: u32 = 1;

/// A change of a queue; the default changes nothing.
#[derive(Clone, Debug, Default)]
pub struct QueueChange {
    /// The settings to change.
    pub settings: SettingsPatch,
    /// The requested state; `None` keeps the present one.
    pub state: Option<RequestedState>,
    /// The reason for a pause, shown on every waiting pull request.
    pub reason: Option<String>,
    /// The tool that the change came from.
    pub source: ChangeSource,
}

/// Use cases of queues. Every method checks the caller's scopes and repositories.
pub struct QueueService {
    pub(super) stepper: Arc<Stepper>,
}

impl QueueService {
    /// Creates the service.
    pub fn new(context: impl Into<QueueContext>) -> Self {
        Self { stepper: Arc::new(Stepper::new(context.into(), SharedPolicy::default())) }
    }

    /// The same service with another policy for all queues.
    #[must_use]
    pub fn with_policy(self, policy: SharedPolicy) -> Self {
        Self { stepper: Arc::new(Stepper::new(self.context().clone(), policy)) }
    }

    pub(super) fn context(&self) -> &QueueContext {
        &self.stepper.context
    }

    /// Creates the queue of a branch, in RUNNING.
    pub async fn create_queue(
        &self,
        caller: &Caller,
        repo: &RepoName,
        branch: &BranchName,
        mode: Mode,
        concurrency: Option<u32>,
        source: ChangeSource,
    ) -> Result<(), Error> {
        let repository = self.repository(caller, Scope::QueueAdmin, repo).await?;
        let settings = Settings::new(mode, concurrency.unwrap_or(DEFAULT_CONCURRENCY))?;
        let audit_entry =
            AuditEntryBuilder::to_queue(caller, AuditAction::QueueCreated, repo, branch);
        let by = Some(caller.actor()).filter(|_| source == ChangeSource::Terraform);
        self.make_queue(&repository, branch, settings, by, &audit_entry).await
    }

    /// Creates the queue of a branch with default settings, by a command on the server.
    pub async fn create_queue_as_operator(
        &self,
        repository: &Repository,
        branch: &BranchName,
    ) -> Result<(), Error> {
        let settings = Settings::new(Mode::Single, DEFAULT_CONCURRENCY)?;
        let object = format!("queue {branch} of {}", repository.name);
        let audit_entry = AuditEntryBuilder {
            repo: Some(repository.name.clone()),
            ..AuditEntryBuilder::operator(repository.org, AuditAction::QueueCreated, object)
        };
        self.make_queue(repository, branch, settings, None, &audit_entry).await
    }

    /// Creates a queue; `applied_by`: who ran Terraform, if it creates the queue.
    async fn make_queue(
        &self,
        repository: &Repository,
        branch: &BranchName,
        settings: Settings,
        applied_by: Option<Actor>,
        audit_entry: &AuditEntryBuilder,
    ) -> Result<(), Error> {
        let context = self.context();
        let (id, now) = (QueueId(context.ids.new_id()), context.clock.now());
        let org = repository.org;
        let mut queue = Queue::new(id, org, repository.id, branch.clone(), settings, now)?;
        queue.header.management = applied_by.map(|by| Management::applied(by, now));
        match context.stores.queues.create(&queue).await {
            Ok(()) => {}
            Err(CreateError::Exists) => {
                let (repo, branch) = (repository.name.clone(), branch.clone());
                return Err(Error::QueueExists { repo, branch });
            }
            Err(CreateError::Store(error)) => return Err(error.into()),
        }
        let record =
            audit_entry.record(&*context.ids, now, &AuditFields::new(), &of_queue(&queue.header));
        context.audit.append(&record).await?;
        // The first read of the target; the reconcile loop repeats it if the effect is lost.
        self.absorb(QueueRef { org, id }, Fact::TimePassed).await
    }

    /// Deletes a queue; refused while it has live entries.
    pub async fn delete_queue(
        &self,
        caller: &Caller,
        repo: &RepoName,
        branch: &BranchName,
    ) -> Result<(), Error> {
        let audit_entry =
            AuditEntryBuilder::to_queue(caller, AuditAction::QueueDeleted, repo, branch);
        self.administer(caller, repo, branch, Command::Delete, &audit_entry).await.map(drop)
    }

    /// Changes settings, the state, or both; returns the updated queue.
    pub async fn update_queue(
        &self,
        caller: &Caller,
        repo: &RepoName,
        branch: &BranchName,
        change: QueueChange,
    ) -> Result<Arc<Queue>, Error> {
        let QueueChange { settings, state, reason, source } = change;
        let by = caller.actor();
        let mut audit_entry =
            AuditEntryBuilder::to_queue(caller, AuditAction::QueueUpdated, repo, branch);
        audit_entry.reason.clone_from(&reason);
        let command = Command::Update { settings: Box::new(settings), state, reason, by, source };
        self.administer(caller, repo, branch, command, &audit_entry).await
    }

    /// Changes settings directly if the present ones equal `expected`; returns the queue, and whether it was
    /// changed.
    pub async fn update_settings(
        &self,
        caller: &Caller,
        repo: &RepoName,
        branch: &BranchName,
        expected: &Settings,
        change: SettingsPatch,
    ) -> Result<(Arc<Queue>, bool), Error> {
        let audit_entry =
            AuditEntryBuilder::to_queue(caller, AuditAction::QueueUpdated, repo, branch);
        let (settings, by) = (Box::new(change), caller.actor());
        let source = ChangeSource::Direct;
        let command = Command::Update { settings, state: None, reason: None, by, source };
        let (_, queue, version) = self.queue_of(caller, Scope::QueueAdmin, repo, branch).await?;
        let expected = expected.clone();
        let changed = move |newest: &Queue| *newest.header.settings != expected;
        let step = Step::new(Input::Command(command)).seen(version, None);
        let step = step.audited(&audit_entry).unless(changed);
        let taken = self.stepper.execute(queue, step).await?;
        taken.ok_or_else(|| Error::UnknownQueue { repo: repo.clone(), branch: branch.clone() })
    }

    /// Cancels a pull request.
    pub async fn cancel(
        &self,
        caller: &Caller,
        repo: &RepoName,
        branch: &BranchName,
        pr: PrNumber,
    ) -> Result<(), Error> {
        let command = Command::Cancel { pr, by: caller.actor() };
        self.command(caller, Scope::QueueSubmit, repo, branch, command).await.map(drop)
    }

    /// Restarts the tests of a pull request; it keeps its place.
    pub async fn restart(
        &self,
        caller: &Caller,
        repo: &RepoName,
        branch: &BranchName,
        pr: PrNumber,
    ) -> Result<(), Error> {
        let command = Command::Restart { pr, by: caller.actor() };
        self.command(caller, Scope::QueueSubmit, repo, branch, command).await.map(drop)
    }

    /// Lets a queue absorb a fact.
    pub async fn absorb(&self, queue: QueueRef, fact: Fact) -> Result<(), Error> {
        self.stepper.absorb(queue, fact).await
    }

    /// Handles a hint, for every queue of a repository, that a pull request may have changed: it is
    /// read from the host.
    pub async fn pull_request_hinted(
        &self,
        org: OrgId,
        repo: RepoId,
        pr: PrNumber,
    ) -> Result<(), Error> {
        let stores = &self.context().stores;
        let Some(repository) = self.context().repositories.find(org, repo).await? else {
            return Ok(());
        };
        let host = self.git_host(&repository)?;
        let read_at = self.context().clock.now();
        let seen = host
            .pull_request(&repository, &PullRequestQuery::Number(pr))
            .await
            .map_err(Error::Host)?;
        for key in stores.queues.list(Some(org), Some(repo)).await? {
            let fact = match &seen {
                Some(seen) => {
                    Fact::PullRequestSeen { pull_request: Box::new(seen.clone()), read_at }
                }
                None => Fact::PullRequestGone { pr },
            };
            self.absorb(key.queue, fact).await?;
        }
        Ok(())
    }

    /// Reads the target again before a failure counts, on hosts that do not report pushes. If it
    /// cannot be read now, the sweep reads it.
    pub(super) async fn reread_target(&self, queue: QueueRef) -> Result<(), Error> {
        let Some(state) = self.state(queue).await? else { return Ok(()) };
        let Some(repository) = self.repository_of(queue).await? else { return Ok(()) };
        let context = self.context();
        let host = context.hosts.git_host(repository.org, &repository.name.host);
        let Some(host) = host.filter(|host| host.abilities().needs_polling) else {
            return Ok(());
        };
        let read_at = context.clock.now();
        let (target, branch) = (&state.header.target, &state.header.branch);
        match host.head(&repository, branch).await {
            Ok(Some(head)) if target.head.as_ref() != Some(&head.sha) => {
                let fact = Fact::TargetSeen { head: head.sha, tree: head.tree, read_at };
                self.absorb(queue, fact).await
            }
            Ok(_) | Err(_) => Ok(()),
        }
    }

    /// The repository of a queue; `None` if the queue no longer exists.
    pub(super) async fn repository_of(&self, queue: QueueRef) -> Result<Option<Repository>, Error> {
        let Some((_, state)) = self.stepper.load(queue).await? else { return Ok(None) };
        Ok(self.context().repositories.find(queue.org, state.header.repo).await?)
    }

    /// The latest state of a queue; `None` if it no longer exists.
    pub(super) async fn state(&self, queue: QueueRef) -> Result<Option<Arc<Queue>>, Error> {
        Ok(self.stepper.load(queue).await?.map(|(_, state)| state))
    }

    /// The latest states of all queues, or only of watched ones, by one read and one more for each
    /// queue that has changed.
    pub(super) async fn states(
        &self,
        watched_only: bool,
    ) -> Result<Vec<(QueueKey, Arc<Queue>)>, Error> {
        Ok(self.stepper.all(watched_only).await?)
    }

    /// Those of these failed checks whose test reports a run still waits for.
    pub(super) async fn awaited_reports(
        &self,
        queue: QueueRef,
        run: RunId,
        checks: &[CheckReport],
    ) -> Result<Vec<CheckReport>, Error> {
        let Some(queue) = self.state(queue).await? else { return Ok(Vec::new()) };
        let testing = queue.run(run).filter(|run| run.status == RunStatus::Testing);
        let Some(run) = testing else { return Ok(Vec::new()) };
        let awaited: Vec<&CheckReport> = run.awaited_reports().map(|(check, _)| check).collect();
        let is_awaited = |check: &&CheckReport| {
            awaited.iter().any(|it| it.name == check.name && it.at == check.at)
        };
        Ok(checks.iter().filter(is_awaited).cloned().collect())
    }

    /// The causes of failed checks of a run, as far as they are known.
    pub(super) async fn causes(
        &self,
        queue: QueueRef,
        run: RunId,
        checks: &[CheckReport],
    ) -> Result<Vec<CheckCause>, Error> {
        let (Some(repository), Some(queue)) =
            (self.repository_of(queue).await?, self.state(queue).await?)
        else {
            return Ok(Vec::new());
        };
        let Some(run) = queue.run(run) else { return Ok(Vec::new()) };
        let failed = FailedRun { repository: &repository, queue: &queue, run };
        let context = self.context();
        let check_log = context.stores.check_log.as_ref();
        failure_causes::causes(&context.tests, check_log, &failed, checks).await
    }

    /// Withdraws that a machine has failed where reports have come since, and are awaited still.
    pub(super) async fn withdraw(
        &self,
        queue: QueueRef,
        run: RunId,
        sha: &Sha,
        mut awaited: Vec<CheckCause>,
    ) -> Result<(), Error> {
        let Some(state) = self.state(queue).await? else { return Ok(()) };
        let known = state.run(run).map_or(&[][..], |run| run.causes.as_slice());
        let has_machine = |cause: &FailureCause| {
            let FailureCause::Awaited { otherwise, .. } = cause else { return false };
            !otherwise.is_empty()
        };
        awaited.retain(|it| {
            let same = known.iter().find(|known| (&known.check, known.at) == (&it.check, it.at));
            !has_machine(&it.cause) && same.is_some_and(|known| has_machine(&known.cause))
        });
        if !awaited.is_empty() {
            let fact = Fact::CausesFound { run, sha: sha.clone(), causes: awaited };
            self.absorb(queue, fact).await?;
        }
        Ok(())
    }

    /// Whether a run waits for the reports of this attempt: the one that repeats these checks. A
    /// retry has replaced any other.
    pub(super) async fn awaits_attempt(
        &self,
        queue: QueueRef,
        run: RunId,
        again: &[CheckReport],
    ) -> Result<bool, Error> {
        let Some((_, state)) = self.stepper.load(queue).await? else { return Ok(false) };
        Ok(state.run(run).is_some_and(|run| {
            let last = run.retries.last().map_or(&[][..], |retry| &retry.failed);
            run.status.is_running() && last == again
        }))
    }

    /// Whether a run still waits for its checks.
    pub(super) async fn awaits_checks(&self, queue: QueueRef, run: RunId) -> Result<bool, Error> {
        let Some((_, state)) = self.stepper.load(queue).await? else { return Ok(false) };
        Ok(state.run(run).is_some_and(|run| run.status.is_running()))
    }

    pub(super) async fn command(
        &self,
        caller: &Caller,
        scope: Scope,
        repo: &RepoName,
        branch: &BranchName,
        command: Command,
    ) -> Result<Arc<Queue>, Error> {
        let (repository, queue, version) = self.queue_of(caller, scope, repo, branch).await?;
        let step = Step::new(Input::Command(command)).seen(version, None);
        self.step(queue, &repository, branch, step).await
    }

    /// Carries out a command that requires the scope `queue:admin`, and writes it to the audit log
    /// in the same commit.
    async fn administer(
        &self,
        caller: &Caller,
        repo: &RepoName,
        branch: &BranchName,
        command: Command,
        audit_entry: &AuditEntryBuilder,
    ) -> Result<Arc<Queue>, Error> {
        let (repository, queue, version) =
            self.queue_of(caller, Scope::QueueAdmin, repo, branch).await?;
        let step = Step::new(Input::Command(command)).seen(version, None);
        self.step(queue, &repository, branch, step.audited(audit_entry)).await
    }

    pub(super) async fn step(
        &self,
        queue: QueueRef,
        repository: &Repository,
        branch: &BranchName,
        step: Step,
    ) -> Result<Arc<Queue>, Error> {
        let (repo, branch) = (repository.name.clone(), branch.clone());
        let done = self.stepper.execute(queue, step).await?;
        done.map(|(after, _)| after).ok_or(Error::UnknownQueue { repo, branch })
    }

    /// The caller's repository of this name and the queue of a branch, with its latest version,
    /// after checking scope and repository of the token.
    pub(super) async fn queue_of(
        &self,
        caller: &Caller,
        scope: Scope,
        name: &RepoName,
        branch: &BranchName,
    ) -> Result<(Repository, QueueRef, Version), Error> {
        let (repository, queue, version, _) =
            self.queue_with_targets(caller, scope, name, branch, None).await?;
        Ok((repository, queue, version))
    }

    /// As [`queue_of`](Self::queue_of), with the targets of a pull request.
    pub(super) async fn queue_with_targets(
        &self,
        caller: &Caller,
        scope: Scope,
        name: &RepoName,
        branch: &BranchName,
        pr: Option<PrNumber>,
    ) -> Result<(Repository, QueueRef, Version, Option<ReportedTargets>), Error> {
        self.check(caller, scope, name)?;
        let context = self.context();
        let queues = context.stores.queues.as_ref();
        let located = context.repositories.located(queues, caller.org, name, branch, pr).await?;
        let repository = match located {
            Some(Located { repository, queue: Some((queue, version)), targets }) => {
                return Ok((repository, queue, version, targets));
            }
            Some(Located { repository, queue: None, .. }) => repository,
            None => self.repository(caller, scope, name).await?,
        };
        Err(Error::UnknownQueue { repo: repository.name, branch: branch.clone() })
    }

    /// Checks scope and repository of the caller's token; returns the repository's host.
    fn check(
        &self,
        caller: &Caller,
        scope: Scope,
        name: &RepoName,
    ) -> Result<Arc<dyn GitHost>, Error> {
        if !caller.may(scope) {
            return Err(Error::MissingScope(scope));
        }
        let context = self.context();
        if !context.repositories.may_see(caller, name) {
            return Err(Error::UnknownRepository(name.clone()));
        }
        let host = context.hosts.git_host(caller.org, &name.host);
        host.ok_or_else(|| Error::UnknownRepository(name.clone()))
    }

    /// The caller's repository of this name, after checking scope and repository of the token. On
    /// hosts that allow it, an existing repository is registered on first use.
    pub(super) async fn repository(
        &self,
        caller: &Caller,
        scope: Scope,
        name: &RepoName,
    ) -> Result<Repository, Error> {
        let host = self.check(caller, scope, name)?;
        let context = self.context();
        if let Some(known) = context.repositories.named(caller.org, name).await? {
            return Ok(known);
        }
        let mut new = Repository {
            id: RepoId(context.ids.new_id()),
            org: caller.org,
            name: name.clone(),
            path: None,
            created_at: context.clock.now(),
        };
        if !host.abilities().registers_on_first_use {
            return Err(Error::UnknownRepository(name.clone()));
        }
        match host.locate(&new).await.map_err(Error::Host)? {
            Some(path) => new.path = Some(path),
            None => return Err(Error::UnknownRepository(name.clone())),
        }
        Ok(context.repositories.register(&new).await?)
    }

    pub(super) async fn find(
        &self,
        org: OrgId,
        repository: &Repository,
        branch: &BranchName,
    ) -> Result<QueueRef, Error> {
        self.context().stores.queues.find(org, repository.id, branch).await?.ok_or_else(|| {
            Error::UnknownQueue { repo: repository.name.clone(), branch: branch.clone() }
        })
    }

    pub(super) fn git_host(&self, repository: &Repository) -> Result<Arc<dyn GitHost>, Error> {
        self.context()
            .hosts
            .git_host(repository.org, &repository.name.host)
            .ok_or_else(|| Error::UnknownRepository(repository.name.clone()))
    }
}
