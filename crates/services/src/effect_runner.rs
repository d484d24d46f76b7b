//! Running effects: lease, call the host, absorb the answer, finish.

use std::sync::Arc;

use uuid::Uuid;

use signalbox_domain::ids::{BranchName, PrNumber};
use signalbox_domain::ports::{
    ChecksJob, ChecksRunner, GitHost, HostError, LandAnswer, Leased, Observed, QueueRef,
    Repository, TestPullRequest,
};
use signalbox_domain::queue::{
    CheckCause, Effect, EffectClass, Fact, FailureCause, HostTrouble, HostTroubleKind, Land,
    LandRefusal, Queue, RunChecks, RunStatus,
};
use signalbox_domain::time::{Span, Timestamp};

use super::candidate::{self, Verdict};
use super::checks_sink::QueueSink;
use super::landings::{self, LandingsCheck, LookError};
use super::{Error, QueueContext, QueueService};
use super::{dependencies, targets};

/// The duration of a lease, in seconds; renewed during the work.
const LEASE_SECONDS: u32 = 12;
/// The longest pause that a host asks a busy client for, in minutes.
const SHORT_PAUSE_MINUTES: u32 = 2;
/// The first and the longest pause after a failure, in seconds.
const BACKOFF_SECONDS: (u32, u32) = (1, 60);
/// The pause, in seconds, before repeating a call whose answer depends on an active landing.
const UNSETTLED_SECONDS: u32 = 1;
/// The most failing effects of a queue that are checked at a time.
const FAILING_AT_ONCE: u32 = 100;

/// Runs effects on behalf of one server.
pub struct EffectRunner {
    context: QueueContext,
    queues: Arc<QueueService>,
    holder: Uuid,
}

/// The result of an effect.
enum Outcome {
    /// The host answered; these facts follow.
    Facts(Vec<Fact>),
    /// The effect is done, without a fact.
    Done,
    /// The answer depends on something that has not happened yet, in these words: repeat the call
    /// soon.
    Unsettled(&'static str),
}

impl EffectRunner {
    /// Creates a runner with a lease holder id of its own.
    pub fn new(context: impl Into<QueueContext>, queues: Arc<QueueService>) -> Self {
        let context = context.into();
        let holder = context.ids.new_id();
        Self { context, queues, holder }
    }

    /// The longest interval between renewals of a lease.
    pub fn renewal() -> std::time::Duration {
        Span::seconds(LEASE_SECONDS / 3).to_std()
    }

    /// Leases up to `limit` effects of a class.
    pub async fn lease(&self, class: EffectClass, limit: u32) -> Result<Vec<Leased>, Error> {
        let now = self.context.clock.now();
        let until = now.plus(Span::seconds(LEASE_SECONDS));
        Ok(self.context.stores.outbox.lease(class, limit, self.holder, now, until).await?)
    }

    /// Extends a lease; `false` if it was lost or revoked.
    pub async fn renew(&self, leased: &Leased) -> Result<bool, Error> {
        let until = self.context.clock.now().plus(Span::seconds(LEASE_SECONDS));
        Ok(self.context.stores.outbox.renew(leased.token, until).await?)
    }

    /// Ends all leases, for the start of the only server on a database. The leases of other servers
    /// would be lost too.
    pub async fn take_over(&self) -> Result<u64, Error> {
        Ok(self.context.stores.outbox.hand_back(None).await?)
    }

    /// Ends all leases of this runner, for a shutdown.
    pub async fn hand_back(&self) -> Result<u64, Error> {
        Ok(self.context.stores.outbox.hand_back(Some(self.holder)).await?)
    }

    /// Runs one leased effect to completion. Closing `sink`, when the lease is lost, stops its
    /// checks.
    ///
    /// Fails only if the database fails; the lease then expires and the effect is due again.
    pub async fn run(&self, leased: &Leased, sink: &QueueSink) -> Result<(), Error> {
        let started = self.context.clock.now();
        let answer = self.attempt(leased, sink).await?;
        let outcome = match answer {
            Ok(Outcome::Facts(facts)) => {
                for fact in facts {
                    self.queues.absorb(leased.queue, fact).await?;
                }
                self.done(leased).await?
            }
            Ok(Outcome::Done) => self.done(leased).await?,
            Ok(Outcome::Unsettled(words)) => {
                let now = self.context.clock.now();
                let (at, since) = (
                    now.plus(Span::seconds(UNSETTLED_SECONDS)),
                    leased.failing_since.unwrap_or(now),
                );
                let kept = self.context.stores.outbox.retry(leased.token, at, since, words).await?;
                if kept { "retried" } else { "lost" }
            }
            Err(error) => self.failed(leased, &error, started).await?,
        };
        self.context.observer.observe(&Observed::EffectRun {
            queue: leased.queue,
            effect: leased.effect.name(),
            outcome,
            took: self.context.clock.now().since(started),
        });
        Ok(())
    }

    async fn done(&self, leased: &Leased) -> Result<&'static str, Error> {
        let kept = self.context.stores.outbox.finish(leased.token).await?;
        if leased.failing_since.is_some() && !is_kept_waiting(&self.context, leased.queue).await? {
            self.queues.absorb(leased.queue, Fact::HostReachable).await?;
        }
        Ok(if kept { "done" } else { "lost" })
    }

    /// Handles an error of the host: the effect is retried, or the error becomes a fact; it is
    /// never dropped.
    async fn failed(
        &self,
        leased: &Leased,
        error: &HostError,
        started: Timestamp,
    ) -> Result<&'static str, Error> {
        if is_final(&leased.effect, error) {
            if let Some(fact) = refused(&leased.effect, error) {
                self.queues.absorb(leased.queue, fact).await?;
            }
            return self.done(leased).await;
        }
        if !self.is_wanted(leased).await? {
            return self.done(leased).await;
        }
        let soon = self.context.clock.now().plus(Span::minutes(SHORT_PAUSE_MINUTES));
        // Hosts ask busy clients for short pauses: the effect fails only if it is refused again.
        let failing_since = if let HostError::RateLimited { retry_at } = error
            && *retry_at <= soon
        {
            leased.failing_since.unwrap_or(*retry_at)
        } else {
            leased.failing_since.unwrap_or(started)
        };
        if let Some(trouble) = trouble(error).filter(|_| keeps_waiting(&leased.effect)) {
            self.queues.absorb(leased.queue, Fact::HostUnreachable { trouble }).await?;
        }
        let at = match error {
            HostError::RateLimited { retry_at } => *retry_at,
            HostError::Unavailable { .. }
            | HostError::AccessDenied { .. }
            | HostError::CredentialRejected { .. }
            | HostError::Rejected { .. }
            | HostError::NotFound { .. }
            | HostError::Conflict { .. } => {
                let (first, longest) = BACKOFF_SECONDS;
                let doubled = first.saturating_mul(1_u32 << leased.attempts.min(10));
                self.context.clock.now().plus(spread(leased, Span::seconds(doubled.min(longest))))
            }
        };
        let words = error.to_string();
        let kept =
            self.context.stores.outbox.retry(leased.token, at, failing_since, &words).await?;
        Ok(if kept { "retried" } else { "lost" })
    }

    /// Whether a failed effect should be retried: its run may have been cancelled meanwhile.
    async fn is_wanted(&self, leased: &Leased) -> Result<bool, Error> {
        let Some(queue) = self.queues.state(leased.queue).await? else { return Ok(false) };
        Ok(is_wanted(&queue, &leased.effect))
    }

    async fn attempt(
        &self,
        leased: &Leased,
        sink: &QueueSink,
    ) -> Result<Result<Outcome, HostError>, Error> {
        let Some(repository) = self.queues.repository_of(leased.queue).await? else {
            return Ok(Ok(Outcome::Done));
        };
        let host = self.context.hosts.git_host(repository.org, &repository.name.host);
        let Some(host) = host else {
            let words = format!("{} is no longer configured", repository.name.host);
            return Ok(Err(HostError::AccessDenied { words }));
        };
        let (host, repository) = (host.as_ref(), &repository);
        let read_at = self.context.clock.now();
        Ok(match &leased.effect {
            Effect::InspectTarget { branch } => host
                .head(repository, branch)
                .await
                .map(|head| match head {
                    Some(head) => Fact::TargetSeen { head: head.sha, tree: head.tree, read_at },
                    None => Fact::TargetMissing,
                })
                .map(one),
            Effect::InspectDependency { on } => {
                let state = dependencies::read(&self.context, host, repository, on).await?;
                state.map(|state| one(Fact::DependencySeen { on: on.clone(), state }))
            }
            Effect::ComputeTargets { pr, head, revision } => {
                let queue = self.queues.state(leased.queue).await?;
                let queue = queue.filter(|queue| is_wanted(queue, &leased.effect));
                let Some(queue) = queue else { return Ok(Ok(Outcome::Done)) };
                let computed = targets::compute(host, repository, &queue.header, head).await;
                let computed = computed
                    .or_else(|error| targets::or_all_targets(&queue, leased, *pr, error, read_at));
                let (pr, head, revision) = (*pr, head.clone(), *revision);
                computed.map(|computed| one(Fact::TargetsComputed { pr, head, revision, computed }))
            }
            Effect::BuildCandidate(build) => {
                let order = candidate::Order { queue: leased.queue, repository, build, read_at };
                let verdict = candidate::build(&self.context, &self.queues, host, &order).await?;
                verdict.map(|verdict| match verdict {
                    Verdict::Final(facts) => Outcome::Facts(facts),
                    Verdict::Unsettled => {
                        Outcome::Unsettled("waiting for the head of the target branch")
                    }
                })
            }
            Effect::Land(land) => land_candidate(host, repository, land).await.map(one),
            Effect::CheckLandings { branch, was, head, off_target } => {
                let check = LandingsCheck { branch, was, head, off_target };
                let history = self.context.stores.history.as_ref();
                match landings::check(history, host, repository, leased.queue, &check).await {
                    Ok(fact) => Ok(one(fact)),
                    Err(LookError::Host(error)) => Err(error),
                    Err(LookError::Store(error)) => return Err(error.into()),
                }
            }
            Effect::DeleteBranch { branch, expected } => host
                .delete_branch(repository, branch, expected.as_ref())
                .await
                .map(|()| Outcome::Done),
            Effect::CancelChecks { run, on_host } => {
                self.context.stores.outbox.revoke_checks(leased.queue, *run).await?;
                match (on_host, self.checks_runner(repository)) {
                    (Some((sha, branch)), Some(runner)) => {
                        runner.cancel(repository, sha, branch).await.map(|()| Outcome::Done)
                    }
                    (Some(_) | None, _) => Ok(Outcome::Done),
                }
            }
            Effect::FindCauses { run, sha, checks } => {
                let awaited = self.queues.awaited_reports(leased.queue, *run, checks).await?;
                if awaited.is_empty() {
                    return Ok(Ok(Outcome::Done));
                }
                let causes = self.queues.causes(leased.queue, *run, &awaited).await?;
                let is_awaited = |it: &CheckCause| matches!(it.cause, FailureCause::Awaited { .. });
                let known: Vec<CheckCause> =
                    causes.iter().filter(|it| !is_awaited(it)).cloned().collect();
                let (run, sha) = (*run, sha.clone());
                if causes.iter().any(is_awaited) {
                    let causes = causes.into_iter().filter(is_awaited).collect();
                    self.queues.withdraw(leased.queue, run, &sha, causes).await?;
                    return Ok(Ok(Outcome::Unsettled("waiting for test results")));
                }
                // A check without a known cause has no reports; the failure counts as it is.
                let unknown =
                    awaited.iter().filter(|check| !known.iter().any(|it| it.check == check.name));
                let unknown = unknown.map(|check| CheckCause {
                    check: check.name.clone(),
                    at: check.at,
                    cause: FailureCause::New { tests: Vec::new() },
                });
                let causes = known.iter().cloned().chain(unknown).collect();
                Ok(one(Fact::CausesFound { run, sha, causes }))
            }
            Effect::OpenTestPullRequest { run, branch, target, prs } => {
                if !self.queues.awaits_checks(leased.queue, *run).await? {
                    return Ok(Ok(Outcome::Done));
                }
                let forge = self.context.hosts.forge(repository.org, &repository.name.host);
                // A host without a forge needs no pull request to start checks.
                let Some(forge) = forge else { return Ok(Ok(Outcome::Done)) };
                let wanted = test_pull_request(branch, target, prs);
                let opened = forge.open_test_pull_request(repository, &wanted).await;
                opened.map(|()| Outcome::Done)
            }
            Effect::RunChecks(checks) => {
                let Some(runner) = self.checks_runner(repository) else {
                    return Ok(Ok(Outcome::Done));
                };
                let job = ChecksJob { repository: repository.clone(), checks: checks.clone() };
                // Done also if the sink was closed, because the run was cancelled. If the lease was
                // lost, `finish` fails and the new holder continues.
                sink.reads_the_host(runner.reads_the_host());
                let done = runner.run(&job, sink).await;
                if sink.has_failed() {
                    return Err(Error::Busy);
                }
                done.map(|()| Outcome::Done)
            }
        })
    }

    fn checks_runner(&self, repository: &Repository) -> Option<Arc<dyn ChecksRunner>> {
        self.context.hosts.checks_runner(repository.org, &repository.name.host)
    }

    /// Creates the sink for the checks of a leased effect.
    pub fn sink(&self, leased: &Leased) -> QueueSink {
        QueueSink::new(self.context.clone(), self.queues.clone(), leased)
    }
}

/// Shortens a pause by up to a quarter, so that effects that failed together are not retried
/// together. Deterministic in the effect and the attempt, so that a history is the same on every
/// store.
fn spread(leased: &Leased, pause: Span) -> Span {
    let queue = leased.queue.id.0.as_bytes().last().copied().unwrap_or_default();
    let [number, ..] = leased.number.to_le_bytes();
    let [tries, ..] = leased.attempts.to_le_bytes();
    let chance = queue.wrapping_add(number.wrapping_mul(157)).wrapping_add(tries.wrapping_mul(31));
    Span::from_micros(pause.micros() - pause.micros() / 4 * i64::from(chance) / 256)
}

/// The draft pull request of a test branch.
fn test_pull_request(
    branch: &BranchName,
    target: &BranchName,
    prs: &[PrNumber],
) -> TestPullRequest {
    let prs: Vec<String> = prs.iter().map(|pr| format!("#{pr}")).collect();
    let prs = prs.join(", ");
    TestPullRequest {
        branch: branch.clone(),
        target: target.clone(),
        title: format!("[merge queue] tests {prs}"),
        body: format!("The merge queue tests {prs} on top of `{target}` here. Do not merge this."),
    }
}

fn one(fact: Fact) -> Outcome {
    Outcome::Facts(vec![fact])
}

async fn land_candidate(
    host: &dyn GitHost,
    repository: &Repository,
    land: &Land,
) -> Result<Fact, HostError> {
    let run = land.run;
    let answer = match host.land(repository, land).await {
        Ok(answer) => answer,
        // The missing object may be the target branch, which is a fact of the queue and not an
        // outage.
        Err(error @ HostError::NotFound { .. }) => {
            if host.head(repository, &land.target).await?.is_some() {
                return Err(error);
            }
            return Ok(Fact::LandRefused { run, because: LandRefusal::TargetMissing });
        }
        Err(error) => return Err(error),
    };
    Ok(match answer {
        LandAnswer::Landed(head, composition) => {
            Fact::Landed { run, sha: head.sha, tree: head.tree, composition }
        }
        LandAnswer::HeadMoved { pr } => {
            Fact::LandRefused { run, because: LandRefusal::HeadMoved { pr } }
        }
        LandAnswer::Mismatch(mismatch) => {
            Fact::LandRefused { run, because: LandRefusal::Mismatch(mismatch) }
        }
        LandAnswer::TargetMoved(head) => Fact::LandRefused {
            run,
            because: LandRefusal::TargetMoved { head: head.sha, tree: head.tree },
        },
    })
}

/// The outage of the host that keeps an effect from completing. A refusal that does not answer the
/// call counts as an outage, too.
fn trouble(error: &HostError) -> Option<HostTrouble> {
    if let HostError::RateLimited { .. } = error {
        return None;
    }
    Some(error.trouble().unwrap_or_else(|| HostTrouble {
        kind: HostTroubleKind::Unreachable,
        words: error.to_string(),
    }))
}

/// Whether the whole queue waits for this effect. It does not wait for the deletion of a branch, and only
/// single pull requests wait for a dependency or for targets.
const fn keeps_waiting(effect: &Effect) -> bool {
    match effect {
        Effect::BuildCandidate(_)
        | Effect::RunChecks(_)
        | Effect::Land(_)
        | Effect::InspectTarget { .. } => true,
        Effect::InspectDependency { .. }
        | Effect::ComputeTargets { .. }
        | Effect::CancelChecks { .. }
        | Effect::FindCauses { .. }
        | Effect::CheckLandings { .. }
        | Effect::OpenTestPullRequest { .. }
        | Effect::DeleteBranch { .. } => false,
    }
}

/// Whether an effect that a queue waits for is failing.
pub(super) async fn is_kept_waiting(
    context: &QueueContext,
    queue: QueueRef,
) -> Result<bool, Error> {
    let (outbox, now) = (&context.stores.outbox, context.clock.now());
    let failing = outbox.failing(Some(queue), now, FAILING_AT_ONCE).await?;
    Ok(failing.longest.iter().any(|it| keeps_waiting(&it.effect)))
}

/// Whether a queue still wants an effect to be done.
fn is_wanted(queue: &Queue, effect: &Effect) -> bool {
    let status = |run| queue.run(run).map(|run| &run.status);
    match effect {
        Effect::BuildCandidate(build) => status(build.run) == Some(&RunStatus::Building),
        Effect::RunChecks(RunChecks { run, .. })
        | Effect::FindCauses { run, .. }
        | Effect::OpenTestPullRequest { run, .. } => {
            status(*run).is_some_and(RunStatus::is_running)
        }
        Effect::Land(land) => {
            queue.header.landing.as_ref().is_some_and(|landing| landing.run == land.run)
        }
        Effect::InspectDependency { on } => queue.waits_for(on),
        Effect::ComputeTargets { pr, head, revision } => {
            queue.header.rules_revision == *revision && queue.computes_targets(*pr, head)
        }
        Effect::InspectTarget { .. }
        | Effect::CancelChecks { .. }
        | Effect::CheckLandings { .. }
        | Effect::DeleteBranch { .. } => true,
    }
}

/// Whether an error is the host's final answer to an effect. Only the refusal of the change itself
/// is: a missing object may return, and a refused read says nothing about the object. The sweep
/// deletes branches that could not be deleted.
fn is_final(effect: &Effect, error: &HostError) -> bool {
    match effect {
        Effect::BuildCandidate(_) | Effect::RunChecks(_) | Effect::Land(_) => match error {
            HostError::Rejected { .. } | HostError::Conflict { .. } => true,
            HostError::RateLimited { .. }
            | HostError::Unavailable { .. }
            | HostError::AccessDenied { .. }
            | HostError::CredentialRejected { .. }
            | HostError::NotFound { .. } => false,
        },
        Effect::InspectTarget { .. }
        | Effect::InspectDependency { .. }
        | Effect::ComputeTargets { .. }
        | Effect::CheckLandings { .. } => false,
        Effect::CancelChecks { .. }
        | Effect::FindCauses { .. }
        | Effect::OpenTestPullRequest { .. }
        | Effect::DeleteBranch { .. } => !error.is_passing(),
    }
}

/// The fact of the host's final refusal.
fn refused(effect: &Effect, error: &HostError) -> Option<Fact> {
    let words = error.to_string();
    match effect {
        Effect::BuildCandidate(build) => Some(Fact::CandidateRefused { run: build.run, words }),
        Effect::RunChecks(checks) => Some(Fact::CandidateRefused { run: checks.run, words }),
        Effect::Land(land) => {
            Some(Fact::LandRefused { run: land.run, because: LandRefusal::Refused { words } })
        }
        Effect::InspectTarget { .. }
        | Effect::InspectDependency { .. }
        | Effect::ComputeTargets { .. }
        | Effect::CancelChecks { .. }
        | Effect::FindCauses { .. }
        | Effect::CheckLandings { .. }
        | Effect::OpenTestPullRequest { .. }
        | Effect::DeleteBranch { .. } => None,
    }
}
