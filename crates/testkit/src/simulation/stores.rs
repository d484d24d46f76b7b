//! Unreliable stores: every call pauses, and some fail before or after their effect.

use std::sync::Arc;

use async_trait::async_trait;
use signalbox_domain::ids::{BranchName, OrgId, PrNumber, RepoId, RepoName, RunId};
use signalbox_domain::ports::{
    Backlog, Commit, CommitError, CreateError, Failing, LeaseToken, Leased, Loaded, Located,
    Outbox, QueueKey, QueueRef, QueueStore, QueueStores, StoreError, Stores, Version,
};
use signalbox_domain::queue::{EffectClass, Queue, ReportedTargets};
use signalbox_domain::time::Timestamp;
use uuid::Uuid;

use super::schedule::Schedule;
use super::watch::Watch;

/// The rates (per mille) of failing calls and of lost answers.
const FAILURES: u32 = 3;

/// The stores that affect the order of events, made unreliable.
pub(super) struct UnreliableStores {
    schedule: Arc<Schedule>,
    watch: Arc<Watch>,
    inner: QueueStores,
}

impl UnreliableStores {
    pub(super) fn around(inner: Stores, schedule: Arc<Schedule>, watch: Arc<Watch>) -> Stores {
        let wrapped = Arc::new(Self { schedule, watch, inner: inner.queue.clone() });
        let queue = QueueStores { queues: wrapped.clone(), outbox: wrapped, ..inner.queue };
        Stores { queue, ..inner }
    }

    /// One call: pause, call, pause, answer. Each half may fail.
    async fn call<T>(
        &self,
        in_turn: bool,
        name: &str,
        call: impl Future<Output = Result<T, StoreError>> + Send,
    ) -> Result<T, StoreError> {
        self.schedule.pause(in_turn).await;
        if self.schedule.fault(FAILURES) {
            self.schedule.note_here(format!("store {name} fails"));
            return Err(unavailable());
        }
        let answer = call.await;
        self.schedule.pause(in_turn).await;
        if answer.is_ok() && self.schedule.fault(FAILURES) {
            self.schedule.note_here(format!("store {name} is not answered"));
            return Err(unavailable());
        }
        answer
    }
}

fn unavailable() -> StoreError {
    StoreError::Unavailable("a planned fault".into())
}

#[async_trait]
impl QueueStore for UnreliableStores {
    async fn create(&self, queue: &Queue) -> Result<(), CreateError> {
        self.inner.queues.create(queue).await?;
        self.watch.created(queue);
        Ok(())
    }

    async fn find(
        &self,
        org: OrgId,
        repo: RepoId,
        branch: &BranchName,
    ) -> Result<Option<QueueRef>, StoreError> {
        self.inner.queues.find(org, repo, branch).await
    }

    async fn locate(
        &self,
        org: OrgId,
        name: &RepoName,
        any_case: bool,
        branch: &BranchName,
        pr: Option<PrNumber>,
    ) -> Result<Option<Located>, StoreError> {
        self.inner.queues.locate(org, name, any_case, branch, pr).await
    }

    async fn load(
        &self,
        queue: QueueRef,
        known: Option<Version>,
    ) -> Result<Option<Loaded>, StoreError> {
        let load = async {
            let loaded = self.inner.queues.load(queue, known).await?;
            if let Some(Loaded::Fresh(fresh, version)) = &loaded {
                self.watch.loaded(fresh, *version);
            }
            Ok(loaded)
        };
        self.call(true, "load", load).await
    }

    async fn commit(&self, steps: &[Commit<'_>]) -> Result<Version, CommitError> {
        self.schedule.pause(true).await;
        if self.schedule.fault(FAILURES) {
            self.schedule.note_here("store commit fails");
            return Err(unavailable().into());
        }
        let version = self.inner.queues.commit(steps).await;
        match &version {
            Ok(_) => steps.iter().for_each(|step| self.watch.committed(step)),
            Err(error) => self.schedule.note_here(format!("store commit: {error}")),
        }
        self.schedule.pause(true).await;
        if version.is_ok() && self.schedule.fault(FAILURES) {
            self.schedule.note_here("store commit is not answered");
            return Err(unavailable().into());
        }
        version
    }

    async fn list(
        &self,
        org: Option<OrgId>,
        repo: Option<RepoId>,
    ) -> Result<Vec<QueueKey>, StoreError> {
        self.inner.queues.list(org, repo).await
    }

    async fn versions(
        &self,
        watched_at: Option<Timestamp>,
    ) -> Result<Vec<(QueueKey, Version)>, StoreError> {
        self.inner.queues.versions(watched_at).await
    }

    async fn due(&self, at: Timestamp, limit: u32) -> Result<Vec<QueueRef>, StoreError> {
        self.call(false, "due", self.inner.queues.due(at, limit)).await
    }

    async fn targets(
        &self,
        queue: QueueRef,
        pr: PrNumber,
    ) -> Result<Option<ReportedTargets>, StoreError> {
        self.call(true, "targets", self.inner.queues.targets(queue, pr)).await
    }
}

#[async_trait]
impl Outbox for UnreliableStores {
    async fn lease(
        &self,
        class: EffectClass,
        limit: u32,
        holder: Uuid,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<Vec<Leased>, StoreError> {
        let call = self.inner.outbox.lease(class, limit, holder, now, until);
        self.call(false, "lease", call).await
    }

    async fn renew(&self, token: LeaseToken, until: Timestamp) -> Result<bool, StoreError> {
        self.call(false, "renew", self.inner.outbox.renew(token, until)).await
    }

    async fn finish(&self, token: LeaseToken) -> Result<bool, StoreError> {
        self.call(false, "finish", self.inner.outbox.finish(token)).await
    }

    async fn retry(
        &self,
        token: LeaseToken,
        at: Timestamp,
        failing_since: Timestamp,
        error: &str,
    ) -> Result<bool, StoreError> {
        let call = self.inner.outbox.retry(token, at, failing_since, error);
        self.call(false, "retry", call).await
    }

    async fn revoke_checks(&self, queue: QueueRef, run: RunId) -> Result<u64, StoreError> {
        self.call(false, "revoke_checks", self.inner.outbox.revoke_checks(queue, run)).await
    }

    async fn answering(&self, queue: QueueRef) -> Result<Vec<RunId>, StoreError> {
        self.call(false, "answering", self.inner.outbox.answering(queue)).await
    }

    async fn hand_back(&self, holder: Option<Uuid>) -> Result<u64, StoreError> {
        self.call(false, "hand_back", self.inner.outbox.hand_back(holder)).await
    }

    async fn failing(
        &self,
        queue: Option<QueueRef>,
        before: Timestamp,
        limit: u32,
    ) -> Result<Failing, StoreError> {
        self.inner.outbox.failing(queue, before, limit).await
    }

    async fn backlog(&self, class: EffectClass, now: Timestamp) -> Result<Backlog, StoreError> {
        self.inner.outbox.backlog(class, now).await
    }
}
