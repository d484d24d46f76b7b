//! The fake git host.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use signalbox_domain::ids::{BranchName, HostId, OrgId, RepoName, RunId, Sha, TreeId};
use signalbox_domain::ports::{
    Abilities, Built, ChecksRunner, Clock, Forge, GitHost, Head, HostError, Hosts, LandAnswer,
    Landed, PastLanding, PullRequestQuery, Repository, TestBranch,
};
use signalbox_domain::queue::{
    BuildCandidate, Candidate, Change, ChangedPaths, CheckConclusion, CheckReport, Composition,
    ConflictWith, HostStatuses, Land, MergeMethod, Mismatch, PullRequest, PullRequestState,
};

use super::faults::Faults;
use super::model::{ConflictingPaths, Repo, tree_id};
use super::{Call, Failure, FakeForge, Tree};

/// Decides the conclusion of a check by its name and the candidate's files.
type Judge = Box<dyn Fn(&str, &Tree) -> CheckConclusion + Send + Sync>;

/// A git host in memory, which also runs checks.
pub struct FakeHost {
    state: Mutex<State>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) judge: Judge,
}

pub(super) struct State {
    pub(super) repos: BTreeMap<RepoName, Repo>,
    pub(super) faults: Faults,
    wrong: WrongCompositions,
    pub(super) checks_hang: bool,
    abilities: Abilities,
    statuses: HostStatuses,
}

/// Compositions that are recognized as wrong. One of them is wrong for every call that
/// repeats it, also from another server.
#[derive(Debug, Default)]
struct WrongCompositions {
    next: BTreeSet<Call>,
    known: BTreeSet<(Call, RunId, Sha)>,
    landed: BTreeSet<Sha>,
}

impl WrongCompositions {
    fn is_wrong(&mut self, call: Call, run: RunId, base: &Sha) -> bool {
        let this = (call, run, base.clone());
        if self.next.remove(&call) {
            self.known.insert(this.clone());
        }
        self.known.contains(&this)
    }
}

impl FakeHost {
    /// Creates a host. `judge` decides the conclusion of checks by the candidate's files; the only
    /// required status is `test`.
    pub fn new(
        clock: Arc<dyn Clock>,
        judge: impl Fn(&Tree) -> CheckConclusion + Send + Sync + 'static,
    ) -> Self {
        Self::judging_each(clock, move |_, files| judge(files))
    }

    /// Creates a host. `judge` decides the conclusion of a check by its name and the candidate's
    /// files.
    pub fn judging_each(
        clock: Arc<dyn Clock>,
        judge: impl Fn(&str, &Tree) -> CheckConclusion + Send + Sync + 'static,
    ) -> Self {
        let state = State {
            repos: BTreeMap::new(),
            faults: Faults::default(),
            wrong: WrongCompositions::default(),
            checks_hang: false,
            abilities: Abilities {
                case_insensitive_names: false,
                registers_on_first_use: true,
                needs_polling: true,
                reread_after: signalbox_domain::time::Span::default(),
            },
            statuses: HostStatuses {
                repository: Some(vec!["test".to_owned()]),
                ..HostStatuses::default()
            },
        };
        Self { state: Mutex::new(state), clock, judge: Box::new(judge) }
    }

    /// Plans a failure of the `nth` call of a kind from now on; 1 is the next one.
    pub fn fail(&self, call: Call, nth: u32, failure: Failure) {
        self.state().faults.plan(call, nth, failure);
    }

    /// Makes the next candidate, or the next landing, one that is composed wrongly and recognized.
    pub fn compose_wrongly(&self, call: Call) {
        self.state().wrong.next.insert(call);
    }

    /// Makes a commit that has landed one that was composed wrongly, which a later proof finds.
    pub fn landed_wrongly(&self, commit: &Sha) {
        self.state().wrong.landed.insert(commit.clone());
    }

    /// Takes the host down, so that no call is answered, or up again.
    pub fn set_down(&self, down: bool) {
        self.state().faults.down = down;
    }

    /// The number of calls of a kind, including failed ones.
    pub fn calls(&self, call: Call) -> u32 {
        self.state().faults.made(call)
    }

    /// Sets whether checks that start from now on never complete, or complete immediately.
    pub fn set_checks_hang(&self, hang: bool) {
        self.state().checks_hang = hang;
    }

    /// Sets the abilities of the host.
    pub fn set_abilities(&self, abilities: Abilities) {
        self.state().abilities = abilities;
    }

    /// Sets the required statuses of candidates.
    pub fn set_required_statuses(&self, statuses: HostStatuses) {
        self.state().statuses = statuses;
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Executes one call: counts it and applies planned faults. The outer error is such a fault.
    fn call<T>(
        &self,
        call: Call,
        repository: &Repository,
        action: impl FnOnce(&mut Repo) -> Result<T, HostError>,
    ) -> Result<T, HostError> {
        let mut state = self.state();
        let lost = state.faults.meet(call)?;
        let what = || HostError::NotFound { what: format!("repository {}", repository.name) };
        let answer = action(state.repos.get_mut(&repository.name).ok_or_else(what)?);
        lost.map_or(answer, Err)
    }
}

#[async_trait]
impl GitHost for FakeHost {
    fn abilities(&self) -> Abilities {
        self.state().abilities
    }

    async fn locate(&self, repository: &Repository) -> Result<Option<String>, HostError> {
        let mut state = self.state();
        if let Some(lost) = state.faults.meet(Call::Locate)? {
            return Err(lost);
        }
        let known = state.repos.contains_key(&repository.name);
        Ok(known.then(|| format!("memory/{}", repository.name)))
    }

    async fn pull_request(
        &self,
        repository: &Repository,
        query: &PullRequestQuery,
    ) -> Result<Option<PullRequest>, HostError> {
        self.call(Call::PullRequest, repository, |repo| {
            Ok(match query {
                PullRequestQuery::Number(number) => repo.pull_requests.get(number).cloned(),
                PullRequestQuery::Branch(branch) => {
                    let from_it = |it: &&PullRequest| it.head_branch.as_ref() == Some(branch);
                    let newest_first = || repo.pull_requests.values().rev().filter(from_it);
                    let open = newest_first().find(|it| it.state == PullRequestState::Open);
                    open.or_else(|| newest_first().next()).cloned()
                }
            })
        })
    }

    async fn head(
        &self,
        repository: &Repository,
        branch: &BranchName,
    ) -> Result<Option<Head>, HostError> {
        self.call(Call::Head, repository, |repo| {
            Ok(repo.branches.get(branch).map(|sha| repo.head(sha)))
        })
    }

    async fn changed_paths(
        &self,
        repository: &Repository,
        target: &Sha,
        head: &Sha,
        method: MergeMethod,
    ) -> Result<ChangedPaths, HostError> {
        self.call(Call::ChangedPaths, repository, |repo| {
            for commit in [target, head] {
                if !repo.commits.contains_key(commit) {
                    return Err(HostError::NotFound { what: format!("commit {commit}") });
                }
            }
            Ok(repo.changed_paths(target, head, method))
        })
    }

    async fn required_statuses(
        &self,
        repository: &Repository,
        _target: &BranchName,
        _at: &Sha,
    ) -> Result<HostStatuses, HostError> {
        let statuses = self.state().statuses.clone();
        self.call(Call::RequiredStatuses, repository, |_| Ok(statuses))
    }

    async fn build_candidate(
        &self,
        repository: &Repository,
        build: &BuildCandidate,
    ) -> Result<Built, HostError> {
        let is_wrong = self.state().wrong.is_wrong(Call::BuildCandidate, build.run, &build.base);
        self.call(Call::BuildCandidate, repository, |repo| {
            let answer = built(repo, build)?;
            let Built::Candidate { candidate, .. } = &answer else { return Ok(answer) };
            if !is_wrong {
                return Ok(answer);
            }
            repo.branches.remove(&build.branch);
            repo.test_branches.remove(&build.branch);
            Ok(Built::Mismatch(mismatch(&build.base, candidate)))
        })
    }

    async fn land(&self, repository: &Repository, land: &Land) -> Result<LandAnswer, HostError> {
        let is_wrong = self.state().wrong.is_wrong(Call::Land, land.run, &land.expected);
        self.call(Call::Land, repository, |repo| {
            if is_wrong && repo.branches.get(&land.target) == Some(&land.expected) {
                return Ok(LandAnswer::Mismatch(mismatch(&land.expected, &land.candidate)));
            }
            let answer = landed(repo, land)?;
            if let LandAnswer::Landed(..) = &answer {
                for change in &land.changes {
                    if let Some(merged) = repo.pull_requests.get_mut(&change.pr) {
                        merged.state = PullRequestState::Merged;
                    }
                }
            }
            Ok(answer)
        })
    }

    async fn contained(
        &self,
        repository: &Repository,
        _target: &BranchName,
        head: &Sha,
        landings: &[Landed],
    ) -> Result<Vec<bool>, HostError> {
        self.call(Call::Contained, repository, |repo| {
            let history = repo.history(head);
            Ok(landings.iter().map(|landed| history.contains(&landed.commit)).collect())
        })
    }

    async fn prove(
        &self,
        repository: &Repository,
        landing: &PastLanding,
    ) -> Result<Result<Composition, Mismatch>, HostError> {
        let PastLanding { landed, proof } = landing;
        let is_wrong = self.state().wrong.landed.contains(&landed.sha);
        self.call(Call::Prove, repository, |repo| {
            Ok(match (is_wrong, repo.commits.contains_key(&landed.sha)) {
                (true, _) => Err(mismatch(&proof.base, landed)),
                (false, true) => Ok(Composition::recomputed()),
                (false, false) => Ok(Composition::not_checked("the commit is missing")),
            })
        })
    }

    async fn delete_branch(
        &self,
        repository: &Repository,
        branch: &BranchName,
        expected: Option<&Sha>,
    ) -> Result<(), HostError> {
        self.call(Call::DeleteBranch, repository, |repo| {
            if expected.is_none() || repo.branches.get(branch) == expected {
                repo.branches.remove(branch);
                repo.test_branches.remove(branch);
            }
            Ok(())
        })
    }

    async fn test_branches(&self, repository: &Repository) -> Result<Vec<TestBranch>, HostError> {
        self.call(Call::TestBranches, repository, |repo| {
            let on_host = repo.test_branches.iter().filter_map(|branch| {
                Some(TestBranch { branch: branch.clone(), sha: repo.branches.get(branch)?.clone() })
            });
            Ok(on_host.collect())
        })
    }
}

fn mismatch(base: &Sha, wrong: &Candidate) -> Mismatch {
    Mismatch {
        base: base.clone(),
        commit: wrong.sha.clone(),
        found: wrong.tree.clone(),
        expected: None,
        paths: vec!["file".to_owned()],
    }
}

fn built(repo: &mut Repo, build: &BuildCandidate) -> Result<Built, HostError> {
    let mut on = build.base.clone();
    if !repo.commits.contains_key(&on) {
        return Err(HostError::NotFound { what: format!("commit {on}") });
    }
    for (run, change) in &build.before {
        match repo.put(&change.head, &on, build.method, &change.title) {
            Ok(sha) => on = sha,
            Err(ConflictingPaths(paths)) => {
                let pr = build.changes.first().map_or(change.pr, |first| first.pr);
                return Ok(Built::Conflict { pr, with: ConflictWith::Ahead(*run), paths });
            }
        }
    }
    for (number, change) in build.changes.iter().enumerate() {
        match repo.put(&change.head, &on, build.method, &change.title) {
            Ok(sha) => on = sha,
            Err(ConflictingPaths(paths)) => {
                let with = conflicts_with(repo, build, number, change);
                return Ok(Built::Conflict { pr: change.pr, with, paths });
            }
        }
    }
    repo.move_branch(&build.branch, &on);
    repo.test_branches.insert(build.branch.clone());
    let candidate = repo.candidate(&on);
    Ok(Built::Candidate {
        head_checks: head_checks(repo, build, &candidate),
        candidate,
        empty: Vec::new(),
        composition: None,
    })
}

/// The checks of the only pull request's head, if its tree is the candidate's.
fn head_checks(repo: &Repo, build: &BuildCandidate, candidate: &Candidate) -> Vec<CheckReport> {
    let Some(change) = build.changes.first().filter(|_| build.direct) else { return Vec::new() };
    let stands_on_target = repo.history(&change.head).contains(&build.target_head);
    if stands_on_target && repo.head(&change.head).tree == candidate.tree {
        repo.head_checks.get(&change.head).cloned().unwrap_or_default()
    } else {
        Vec::new()
    }
}

/// Finds what a change conflicts with: the target, the first candidate ahead that it conflicts
/// with, or an earlier change of its group.
fn conflicts_with(
    repo: &Repo,
    build: &BuildCandidate,
    number: usize,
    change: &Change,
) -> ConflictWith {
    let conflicts = |sha: &Sha| repo.merged(sha, &change.head).is_err();
    if conflicts(&build.target_head) {
        return ConflictWith::Target;
    }
    if let Some(ahead) = build.ahead.iter().find(|ahead| conflicts(&ahead.sha)) {
        return ConflictWith::Ahead(ahead.run);
    }
    let before = build.changes.get(..number).unwrap_or_default();
    let group = before.iter().find(|other| conflicts(&other.head)).or(before.last());
    match (group, build.ahead.last()) {
        (Some(other), _) => ConflictWith::Group(other.pr),
        (None, Some(ahead)) => ConflictWith::Ahead(ahead.run),
        (None, None) => ConflictWith::Target,
    }
}

fn landed(repo: &mut Repo, land: &Land) -> Result<LandAnswer, HostError> {
    let missing = || HostError::NotFound { what: format!("branch {}", land.target) };
    let now = repo.branches.get(&land.target).ok_or_else(missing)?.clone();
    if repo.history(&now).contains(&land.candidate.sha) {
        return Ok(LandAnswer::Landed(repo.head(&land.candidate.sha), None));
    }
    if let Some(same) = same_tree_since(repo, &now, land) {
        return Ok(LandAnswer::Landed(repo.head(&same), None));
    }
    let unchanged = |change: &Change| {
        let shown = repo.pull_requests.get(&change.pr);
        shown.is_some_and(|it| it.head == change.head && it.state == PullRequestState::Open)
    };
    let moved = land.changes.iter().find(|change| !unchanged(change));
    if let Some(change) = moved {
        return Ok(LandAnswer::HeadMoved { pr: change.pr });
    }
    if now != land.expected {
        return Ok(LandAnswer::TargetMoved(repo.head(&now)));
    }
    let mut to = land.candidate.sha.clone();
    if !repo.history(&to).contains(&now) {
        to = now.clone();
        for change in &land.changes {
            match repo.put(&change.head, &to, land.method, &change.title) {
                Ok(sha) => to = sha,
                Err(_) => return Ok(LandAnswer::TargetMoved(repo.head(&now))),
            }
        }
        if Some(repo.candidate(&to).tree) != wanted_tree(repo, land) {
            return Ok(LandAnswer::TargetMoved(repo.head(&now)));
        }
    }
    repo.move_branch(&land.target, &to);
    Ok(LandAnswer::Landed(repo.head(&to), None))
}

/// The tree that must land: the tested one, or the clean merge of the expected head with it.
fn wanted_tree(repo: &Repo, land: &Land) -> Option<TreeId> {
    if land.exact {
        return Some(land.candidate.tree.clone());
    }
    repo.merged(&land.expected, &land.candidate.sha).ok().map(|tree| tree_id(&tree))
}

/// The commit with the wanted tree on the target after the expected head, if any: an earlier
/// landing whose answer was lost.
fn same_tree_since(repo: &Repo, now: &Sha, land: &Land) -> Option<Sha> {
    let history = repo.history(now);
    let since = history.iter().position(|sha| *sha == land.expected)?;
    let wanted = wanted_tree(repo, land)?;
    let later = history.iter().take(since);
    later.rev().find(|sha| repo.head(sha).tree == wanted).cloned()
}

/// Hosts that all organizations are connected to.
#[derive(Clone, Default)]
pub struct FakeHosts {
    hosts: BTreeMap<HostId, Arc<FakeHost>>,
    forge: Option<Arc<FakeForge>>,
}

impl FakeHosts {
    /// A single host.
    pub fn one(name: &HostId, host: Arc<FakeHost>) -> Self {
        Self { hosts: BTreeMap::from([(name.clone(), host)]), forge: None }
    }

    /// Adds a forge to the host.
    #[must_use]
    pub fn with_forge(self, forge: Arc<FakeForge>) -> Self {
        Self { forge: Some(forge), ..self }
    }
}

impl Hosts for FakeHosts {
    fn git_host(&self, _org: OrgId, host: &HostId) -> Option<Arc<dyn GitHost>> {
        let found = self.hosts.get(host)?.clone();
        Some(found)
    }

    fn checks_runner(&self, _org: OrgId, host: &HostId) -> Option<Arc<dyn ChecksRunner>> {
        let found = self.hosts.get(host)?.clone();
        Some(found)
    }

    fn forge(&self, _org: OrgId, host: &HostId) -> Option<Arc<dyn Forge>> {
        let forge = self.forge.clone().filter(|_| self.hosts.contains_key(host))?;
        Some(forge)
    }
}
