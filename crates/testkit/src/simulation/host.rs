//! The git host and its checks, with slow calls and late answers, and a record of what passed and
//! what landed.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use signalbox_domain::ids::{BranchName, HostId, OrgId, PrNumber, RepoName, Sha, TreeId};
use signalbox_domain::ports::Clock as _;
use signalbox_domain::ports::{
    Abilities, Built, ChecksJob, ChecksRunner, ChecksSink, GitHost, Head, HostError, Hosts,
    LandAnswer, Landed, PastLanding, PullRequestQuery, Repository, TestBranch,
};
use signalbox_domain::queue::{
    BuildCandidate, ChangedPaths, Check, CheckConclusion, CheckStatus, Composition, HostStatuses,
    Land, MergeMethod, Mismatch, Mode, PullRequest,
};
use signalbox_domain::time::Span;

use super::rules::Rules;
use super::schedule::Schedule;
use super::watch::Watch;
use signalbox_conformance::fake_host::FakeHost;

/// The fake host, made unreliable.
pub(super) struct UnreliableHost {
    pub(super) schedule: Arc<Schedule>,
    pub(super) watch: Arc<Watch>,
    pub(super) inner: Arc<FakeHost>,
    pub(super) rules: Rules,
    pub(super) seen: Mutex<Witnessed>,
}

/// The record of passed trees and landings.
#[derive(Clone, Debug, Default)]
pub(super) struct Witnessed {
    /// Trees of which a run passed every required check.
    pub(super) passed: BTreeSet<TreeId>,
    /// Pull requests that the queue landed.
    pub(super) landed: BTreeSet<PrNumber>,
    /// The heads of the target after landings.
    pub(super) heads: BTreeSet<Sha>,
}

impl UnreliableHost {
    pub(super) fn witnessed(&self) -> MutexGuard<'_, Witnessed> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One call: pause, call, pause, answer.
    async fn call<T>(
        &self,
        name: &str,
        call: impl Future<Output = Result<T, HostError>> + Send,
    ) -> Result<T, HostError> {
        self.schedule.pause(false).await;
        let answer = call.await;
        if let Err(error) = &answer {
            self.schedule.note_here(format!("host {name}: {error}"));
        }
        self.schedule.pause(false).await;
        answer
    }

    /// Q1 and Q3 at the target: what the queue landed was tested, and landed once.
    fn target_moved(&self, repo: &RepoName, land: &Land, to: &Head) {
        let schedule = &self.schedule;
        let single = self.watch.mode() == Mode::Single;
        let good = self.rules.are_good(&self.inner.files_at(repo, &to.sha));
        let mut seen = self.witnessed();
        if !seen.passed.contains(&land.candidate.tree) {
            schedule.violated(format!("Q1: run {} landed and has not passed", land.run));
        }
        if single && to.tree != land.candidate.tree {
            schedule.violated(format!("Q1: run {} landed another tree", land.run));
        }
        if !good {
            schedule.violated(format!("Q1: run {} made the target red", land.run));
        }
        for change in &land.changes {
            if !seen.landed.insert(change.pr) {
                schedule.violated(format!("Q3: #{} landed twice", change.pr));
            }
        }
        seen.heads.insert(to.sha.clone());
        drop(seen);
        let prs: Vec<String> = land.changes.iter().map(|it| format!("#{}", it.pr)).collect();
        schedule.note_here(format!("target moved by {}", prs.join(" ")));
    }

    fn check(&self, name: &str, conclusion: Option<CheckConclusion>) -> Check {
        let status =
            if conclusion.is_some() { CheckStatus::Completed } else { CheckStatus::InProgress };
        let at = self.schedule.clock.now();
        Check {
            name: name.to_owned(),
            status,
            conclusion,
            url: String::new(),
            summary: None,
            at,
            excused: Vec::new(),
        }
    }
}

#[async_trait]
impl GitHost for UnreliableHost {
    fn abilities(&self) -> Abilities {
        self.inner.abilities()
    }

    async fn locate(&self, repository: &Repository) -> Result<Option<String>, HostError> {
        self.inner.locate(repository).await
    }

    async fn pull_request(
        &self,
        repository: &Repository,
        query: &PullRequestQuery,
    ) -> Result<Option<PullRequest>, HostError> {
        self.call("pull_request", self.inner.pull_request(repository, query)).await
    }

    async fn head(
        &self,
        repository: &Repository,
        branch: &BranchName,
    ) -> Result<Option<Head>, HostError> {
        self.call("head", self.inner.head(repository, branch)).await
    }

    async fn changed_paths(
        &self,
        repository: &Repository,
        target: &Sha,
        head: &Sha,
        method: MergeMethod,
    ) -> Result<ChangedPaths, HostError> {
        self.call("changed_paths", self.inner.changed_paths(repository, target, head, method)).await
    }

    async fn required_statuses(
        &self,
        repository: &Repository,
        target: &BranchName,
        at: &Sha,
    ) -> Result<HostStatuses, HostError> {
        self.call("required_statuses", self.inner.required_statuses(repository, target, at)).await
    }

    async fn build_candidate(
        &self,
        repository: &Repository,
        build: &BuildCandidate,
    ) -> Result<Built, HostError> {
        self.call("build_candidate", self.inner.build_candidate(repository, build)).await
    }

    async fn land(&self, repository: &Repository, land: &Land) -> Result<LandAnswer, HostError> {
        let call = async {
            let before = self.inner.tip(&repository.name, &land.target);
            let answer = self.inner.land(repository, land).await;
            let after = self.inner.tip(&repository.name, &land.target);
            if let Some(after) = after.filter(|after| before.as_ref() != Some(after)) {
                self.target_moved(&repository.name, land, &after);
            }
            answer
        };
        self.call("land", call).await
    }

    async fn contained(
        &self,
        repository: &Repository,
        target: &BranchName,
        head: &Sha,
        landings: &[Landed],
    ) -> Result<Vec<bool>, HostError> {
        let made = self.inner.contained(repository, target, head, landings);
        self.call("contained", made).await
    }

    async fn prove(
        &self,
        repository: &Repository,
        landing: &PastLanding,
    ) -> Result<Result<Composition, Mismatch>, HostError> {
        self.call("prove", self.inner.prove(repository, landing)).await
    }

    async fn delete_branch(
        &self,
        repository: &Repository,
        branch: &BranchName,
        expected: Option<&Sha>,
    ) -> Result<(), HostError> {
        self.call("delete_branch", self.inner.delete_branch(repository, branch, expected)).await
    }

    async fn test_branches(&self, repository: &Repository) -> Result<Vec<TestBranch>, HostError> {
        self.call("test_branches", self.inner.test_branches(repository)).await
    }
}

#[async_trait]
impl ChecksRunner for UnreliableHost {
    async fn run(&self, job: &ChecksJob, sink: &dyn ChecksSink) -> Result<(), HostError> {
        self.schedule.pause(false).await;
        if self.schedule.fault(30) {
            return Err(HostError::Unavailable { words: "a planned fault".to_owned() });
        }
        let (checks, repo) = (&job.checks, &job.repository.name);
        let files = self.inner.files_at(repo, &checks.candidate.sha);
        let verdict = |name: &str| self.rules.verdict(&files, name, checks.run);
        if checks.required.iter().all(|name| verdict(name).is_success()) {
            self.witnessed().passed.insert(checks.candidate.tree.clone());
        }
        let started = checks.required.iter().map(|name| self.check(name, None)).collect();
        if sink.report(started).await.is_err() {
            return Ok(());
        }
        let mut hangs = self.schedule.fault(25);
        while hangs {
            self.schedule.sleep(Span::seconds(60)).await;
            let again = checks.required.iter().map(|name| self.check(name, None)).collect();
            if sink.report(again).await.is_err() {
                return Ok(());
            }
            hangs = !self.schedule.is_calm();
        }
        let mut left = checks.required.clone();
        while !left.is_empty() {
            let at =
                self.schedule.draw(|random| random.below(u32::try_from(left.len()).unwrap_or(0)));
            let name = left.remove(usize::try_from(at).unwrap_or(0));
            let seconds = self.schedule.draw(|random| random.between(1, 60));
            self.schedule.sleep(Span::seconds(seconds)).await;
            let report = vec![self.check(&name, Some(verdict(&name)))];
            if sink.report(report.clone()).await.is_err() {
                return Ok(());
            }
            if self.schedule.fault(100) && sink.report(report).await.is_err() {
                return Ok(());
            }
        }
        Ok(())
    }
}

/// One host for all organizations.
pub(super) struct OneHost(pub(super) Arc<UnreliableHost>);

impl Hosts for OneHost {
    fn git_host(&self, _: OrgId, _: &HostId) -> Option<Arc<dyn GitHost>> {
        Some(self.0.clone())
    }

    fn checks_runner(&self, _: OrgId, _: &HostId) -> Option<Arc<dyn ChecksRunner>> {
        Some(self.0.clone())
    }
}
