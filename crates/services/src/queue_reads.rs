//! Reads of queues.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures_util::future::try_join;
use signalbox_domain::ids::{BranchName, PrNumber, RepoName, RunId};
use signalbox_domain::ports::{MetricsScope, QueueDepth, QueueRef, Repository};
use signalbox_domain::queue::{
    Entry, EntryView, PrState, Queue, QueueMetrics, Readiness, ReportedTargets, Stay, TestRun,
    WaitReason, measure, view_entries,
};
use signalbox_domain::time::Span;
use signalbox_domain::token::{Caller, Scope};

use super::{Error, QueueService};

/// An entry at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntrySnapshot {
    /// The entry.
    pub entry: Entry,
    /// Its state.
    pub state: PrState,
    /// The conditions for entering the line.
    pub readiness: Readiness,
    /// Why it waits; `None` once it has ended.
    pub waits: Option<WaitReason>,
    /// Its position in the line, from 1; `None` outside the line.
    pub position: Option<usize>,
}

/// A queue with its repository.
#[derive(Clone, Debug)]
pub struct SeenQueue {
    /// Its repository.
    pub repository: Repository,
    /// The queue.
    pub queue: Arc<Queue>,
}

/// A test run at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunSnapshot {
    /// The run.
    pub run: TestRun,
    /// The pull requests that it was built on.
    pub dependent_prs: Vec<PrNumber>,
    /// The reported targets of the tested pull requests, in the order of the group.
    pub targets: Vec<Option<Arc<ReportedTargets>>>,
}

impl QueueService {
    /// The queues that the caller may see, of one repository or of all, ordered by repository and
    /// branch.
    pub async fn list(
        &self,
        caller: &Caller,
        repo: Option<&RepoName>,
    ) -> Result<Vec<SeenQueue>, Error> {
        if !caller.may(Scope::QueueRead) {
            return Err(Error::MissingScope(Scope::QueueRead));
        }
        let known = &self.context().repositories;
        let mut repositories = match repo {
            Some(name) => known.named(caller.org, name).await?.into_iter().collect(),
            None => known.list(Some(caller.org)).await?,
        };
        repositories.retain(|it| known.may_see(caller, &it.name));
        if let (Some(name), true) = (repo, repositories.is_empty()) {
            return Err(Error::UnknownRepository(name.clone()));
        }
        let only = repo.and(repositories.first()).map(|it| it.id);
        let mut seen = Vec::new();
        for key in self.context().stores.queues.list(Some(caller.org), only).await? {
            let Some(repository) = repositories.iter().find(|it| it.id == key.repo) else {
                continue;
            };
            // It may have been deleted since.
            if let Some(queue) = self.state(key.queue).await? {
                seen.push(SeenQueue { repository: repository.clone(), queue });
            }
        }
        seen.sort_by_key(|it| (it.repository.name.clone(), it.queue.header.branch.clone()));
        Ok(seen)
    }

    /// The queue of a branch.
    pub async fn queue(
        &self,
        caller: &Caller,
        repo: &RepoName,
        branch: &BranchName,
    ) -> Result<Arc<Queue>, Error> {
        self.read(caller, repo, branch).await.map(|(_, queue)| queue)
    }

    /// A test run of a queue, active or ended.
    pub async fn run(
        &self,
        caller: &Caller,
        repo: &RepoName,
        branch: &BranchName,
        id: RunId,
    ) -> Result<RunSnapshot, Error> {
        let (queue_ref, queue) = self.read(caller, repo, branch).await?;
        let run = match queue.run(id) {
            Some(run) => Some(run.clone()),
            None => self.context().stores.reads.run(queue_ref, id).await?,
        };
        let unknown = || Error::UnknownRun { repo: repo.clone(), branch: branch.clone(), run: id };
        Ok(snapshot(&queue, run.ok_or_else(unknown)?))
    }

    /// The active test runs of a queue, oldest first.
    pub async fn runs_in_progress(
        &self,
        caller: &Caller,
        repo: &RepoName,
        branch: &BranchName,
    ) -> Result<Vec<RunSnapshot>, Error> {
        let (_, queue) = self.read(caller, repo, branch).await?;
        let mut runs: Vec<TestRun> =
            queue.runs().filter(|run| run.status.is_running()).cloned().collect();
        runs.sort_by_key(|run| run.number);
        Ok(runs.into_iter().map(|run| snapshot(&queue, run)).collect())
    }

    /// The metrics of all queues of the organization, or of one repository.
    pub async fn metrics(
        &self,
        caller: &Caller,
        repo: Option<&RepoName>,
    ) -> Result<Vec<QueueMetrics>, Error> {
        let context = self.context();
        let repo = match repo {
            Some(repo) => Some(self.repository(caller, Scope::QueueRead, repo).await?.id),
            None if caller.may(Scope::QueueRead) => None,
            None => return Err(Error::MissingScope(Scope::QueueRead)),
        };
        let scope = MetricsScope { org: caller.org, repo };
        let since = context.clock.now().minus(Span::hours(1));
        let reads = &context.stores.reads;
        let (depths, ended) =
            try_join(reads.depths(scope), reads.stays_since(scope, since)).await?;
        let mut stays = BTreeMap::<QueueRef, Vec<Stay>>::new();
        for (queue, stay) in ended {
            stays.entry(queue).or_default().push(stay);
        }
        let seen: Vec<_> = depths
            .into_iter()
            .filter(|depth| context.repositories.may_see(caller, &depth.repo))
            .collect();
        let mut hosts = BTreeMap::<_, BTreeSet<&str>>::new();
        for QueueDepth { repo, .. } in &seen {
            hosts.entry((&repo.owner, &repo.name)).or_default().insert(repo.host.as_str());
        }
        let measured = seen.iter().flat_map(|depth| {
            let RepoName { host, owner, name } = &depth.repo;
            let stays = stays.get(&depth.queue).map(Vec::as_slice).unwrap_or_default();
            let branch = depth.branch.as_str();
            let mut both = measure(&format!("{owner}/{name}"), branch, &depth.counts, stays);
            // Two series with the same labels would make the page invalid.
            if hosts.get(&(owner, name)).is_some_and(|hosts| hosts.len() > 1) {
                for metrics in &mut both {
                    metrics.repo_host = Some(host.as_str().to_owned());
                }
            }
            both
        });
        Ok(measured.collect())
    }

    pub(super) async fn read(
        &self,
        caller: &Caller,
        repo: &RepoName,
        branch: &BranchName,
    ) -> Result<(QueueRef, Arc<Queue>), Error> {
        let (_, queue, version) = self.queue_of(caller, Scope::QueueRead, repo, branch).await?;
        match self.stepper.at(queue, version).await? {
            Some(state) => Ok((queue, state)),
            None => Err(Error::UnknownQueue { repo: repo.clone(), branch: branch.clone() }),
        }
    }
}

/// The snapshots of live entries, and of stored ones that have not changed since.
pub(super) struct Snapshots<'a> {
    queue: &'a Queue,
    views: BTreeMap<PrNumber, EntryView<'a>>,
}

impl<'a> Snapshots<'a> {
    /// Views the live entries of these pull requests, in one pass through the queue.
    pub(super) fn of(queue: &'a Queue, prs: impl IntoIterator<Item = PrNumber>) -> Self {
        let views = view_entries(queue, &prs.into_iter().collect());
        Self { queue, views: views.into_iter().map(|view| (view.entry.pr, view)).collect() }
    }

    /// The snapshot of a live entry.
    pub(super) fn live(&self, pr: PrNumber) -> Option<EntrySnapshot> {
        self.views.get(&pr).map(|view| EntrySnapshot {
            entry: view.entry.clone(),
            state: view.state,
            readiness: view.readiness.clone(),
            waits: view.waits.clone(),
            position: view.position,
        })
    }

    /// The snapshot of a stored entry, with the queue's view of it unless it has changed since.
    pub(super) fn stored(&self, entry: Entry) -> EntrySnapshot {
        let view = self.views.get(&entry.pr).filter(|view| view.entry.state == entry.state);
        view.and_then(|view| self.live(view.entry.pr)).unwrap_or_else(|| EntrySnapshot {
            state: entry.state.name(),
            readiness: entry.readiness(&self.queue.header),
            waits: None,
            position: None,
            entry,
        })
    }
}

fn snapshot(queue: &Queue, run: TestRun) -> RunSnapshot {
    let targets = run
        .group
        .iter()
        .map(|member| queue.entry(member.entry).and_then(|entry| entry.targets.clone()))
        .collect();
    let dependent_prs = run.ahead.iter().map(|(_, pr)| *pr).collect();
    RunSnapshot { run, dependent_prs, targets }
}
