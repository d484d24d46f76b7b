//! The host of the small world: it builds, checks and lands.

use crate::ids::{RunId, Sha};
use crate::queue::{
    Ahead, BuildCandidate, Candidate, Change, Check, CheckCause, CheckConclusion, CheckStatus,
    ConflictWith, Effect, Entry, EntryState, Exit, Fact, FailureCause, HostStatuses, Land,
    LandRefusal, Mismatch, PullRequestState, RunChecks, WrongLanding,
};

use super::{Content, World, tree_of};

/// A commit whose tree is not the right one.
fn wrong_commit(base: &Sha, commit: &Sha) -> Mismatch {
    Mismatch {
        base: base.clone(),
        commit: commit.clone(),
        found: tree_of(&Content::from([(0, 0)])),
        expected: None,
        paths: vec!["file".to_owned()],
    }
}

impl World {
    /// Runs an effect on the host; its facts are queued in [`World::facts`].
    pub fn run(&mut self, effect: &Effect) {
        let facts = match effect {
            Effect::InspectTarget { .. } => vec![self.target_seen()],
            Effect::InspectDependency { on } => vec![self.dependency_seen(on)],
            Effect::ComputeTargets { pr, head, revision } => {
                let answer = self.computed_targets(*pr);
                let is_of = |fact: &Fact| {
                    matches!(fact, Fact::TargetsComputed { head: of, revision: by, .. }
                        if of == head && by == revision)
                };
                answer.into_iter().filter(is_of).collect()
            }
            Effect::BuildCandidate(build) => vec![self.build(build)],
            Effect::RunChecks(checks) => self.check(checks),
            Effect::CancelChecks { run, .. } => {
                self.outbox.retain(
                    |it| !matches!(&it.effect, Effect::RunChecks(checks) if checks.run == *run),
                );
                Vec::new()
            }
            Effect::FindCauses { run, sha, checks } => vec![self.find_causes(*run, sha, checks)],
            Effect::DeleteBranch { .. } | Effect::OpenTestPullRequest { .. } => Vec::new(),
            Effect::Land(land) => vec![self.land(land)],
            Effect::CheckLandings { was, head, .. } => {
                let (was, head) = (was.clone(), head.clone());
                vec![Fact::LandingsChecked { was, head, lost: Vec::new(), back: Vec::new() }]
            }
        };
        self.facts.extend(facts);
    }

    /// Answers an effect with a refusal or a CI failure: a candidate or a landing is refused,
    /// checks end without a result.
    pub fn refuse(&mut self, effect: &Effect) {
        let words = "refused".to_owned();
        self.made += 1;
        let fact = match effect {
            Effect::BuildCandidate(build) => Fact::CandidateRefused { run: build.run, words },
            Effect::RunChecks(checks) => Fact::ChecksReported {
                run: checks.run,
                sha: checks.candidate.sha.clone(),
                checks: vec![Check {
                    name: "test".into(),
                    status: CheckStatus::Completed,
                    conclusion: Some(CheckConclusion::Cancelled),
                    url: format!("https://ci.example/{}", self.made),
                    summary: None,
                    at: self.at,
                    excused: Vec::new(),
                }],
                read: true,
            },
            Effect::Land(land) => {
                Fact::LandRefused { run: land.run, because: LandRefusal::Refused { words } }
            }
            Effect::InspectTarget { .. } => Fact::TargetMissing,
            Effect::InspectDependency { .. }
            | Effect::ComputeTargets { .. }
            | Effect::CancelChecks { .. }
            | Effect::FindCauses { .. }
            | Effect::DeleteBranch { .. }
            | Effect::OpenTestPullRequest { .. }
            | Effect::CheckLandings { .. } => return self.run(effect),
        };
        self.facts.push(fact);
    }

    /// The answer of an audit of everything that has landed, which finds that the commit of this
    /// landing, if there is one, is something else.
    pub fn audited(&self, wrong: usize) -> Fact {
        let landing = |entry: &Entry| {
            let EntryState::Ended(exit) = &entry.state else { return None };
            let Exit::Merged { sha: Some(sha), proof: Some(proof), .. } = exit else { return None };
            Some((proof.base.clone(), sha.clone()))
        };
        let wrong = self.merged.values().nth(wrong).and_then(landing);
        let wrong = wrong.into_iter().flat_map(|(base, commit)| {
            let mismatch = wrong_commit(&base, &commit);
            let is_in = move |entry: &&Entry| landing(entry).is_some_and(|it| it.1 == commit);
            let entries = self.merged.values().filter(is_in);
            entries.map(move |it| WrongLanding { entry: it.clone(), mismatch: mismatch.clone() })
        });
        let proved = u32::try_from(self.merged.len()).unwrap_or(u32::MAX);
        Fact::LandingsAudited { proved, not_checked: 0, wrong: wrong.collect() }
    }

    /// Answers the build of a candidate, or a landing, by reporting that the host composed it
    /// wrongly. Other effects are run.
    pub fn miscompose(&mut self, effect: &Effect) {
        let fact = match effect {
            Effect::BuildCandidate(build) => {
                let mismatch = wrong_commit(&build.base, &build.target_head);
                Fact::CandidateMismatch { run: build.run, mismatch }
            }
            Effect::Land(land) => {
                let mismatch = wrong_commit(&land.expected, &land.candidate.sha);
                let because = LandRefusal::Mismatch(mismatch);
                Fact::LandRefused { run: land.run, because }
            }
            Effect::InspectTarget { .. }
            | Effect::InspectDependency { .. }
            | Effect::ComputeTargets { .. }
            | Effect::RunChecks(_)
            | Effect::CancelChecks { .. }
            | Effect::FindCauses { .. }
            | Effect::DeleteBranch { .. }
            | Effect::OpenTestPullRequest { .. }
            | Effect::CheckLandings { .. } => return self.run(effect),
        };
        self.facts.push(fact);
    }

    fn build(&mut self, build: &BuildCandidate) -> Fact {
        let run = build.run;
        let content = |world: &Self, sha: &Sha| world.commits[sha].0.clone();
        let version =
            |change: &Change| u32::from_str_radix(&change.head.as_str()[32..], 16).unwrap_or(0);
        let mut result = content(self, &build.base);
        for (with, change) in &build.before {
            if self.rules.conflicts(&result, change.pr.0) {
                let (pr, with) = (build.changes[0].pr, ConflictWith::Ahead(*with));
                return Fact::CandidateConflict { run, pr, with, paths: vec!["file".into()] };
            }
            result.insert((change.pr.0, version(change)));
        }
        for change in &build.changes {
            let pr = change.pr.0;
            if self.rules.conflicts(&result, pr) {
                let target = content(self, &build.target_head);
                let with = if self.rules.conflicts(&target, pr) {
                    ConflictWith::Target
                } else {
                    let in_its_way =
                        |ahead: &&Ahead| self.rules.conflicts(&content(self, &ahead.sha), pr);
                    let ahead = build.ahead.iter().find(in_its_way).map(|ahead| ahead.run);
                    let conflicts = |other: &&Change| {
                        self.rules.conflicts(&Content::from([(other.pr.0, 1)]), pr)
                    };
                    let group = build.changes.iter().find(conflicts).map(|other| other.pr);
                    ahead
                        .map(ConflictWith::Ahead)
                        .or(group.map(ConflictWith::Group))
                        .unwrap_or(ConflictWith::Target)
                };
                let paths = vec!["file".into()];
                return Fact::CandidateConflict { run, pr: change.pr, with, paths };
            }
            result.insert((pr, version(change)));
        }
        let tree = tree_of(&result);
        let sha = self.commit(result, build.base.clone());
        let names = vec!["test".to_owned()];
        let external = if self.rules.external { names.clone() } else { Vec::new() };
        let statuses =
            HostStatuses { repository: Some(names), external, ..HostStatuses::default() };
        let branch = build.branch.clone();
        let candidate = Candidate { sha, tree };
        Fact::CandidateBuilt {
            run,
            branch,
            candidate,
            statuses,
            head_checks: Vec::new(),
            empty: Vec::new(),
            composition: None,
            has_forge: false,
        }
    }

    fn check(&mut self, checks: &RunChecks) -> Vec<Fact> {
        let sha = checks.candidate.sha.clone();
        let mut passes = self.rules.passes(&self.commits[&sha].0);
        for pr in checks.prs.iter().filter(|pr| self.rules.flaky.contains(&pr.0)) {
            passes &= !self.flaked.insert(pr.0);
        }
        self.made += 1;
        let url = format!("https://ci.example/{}", self.made);
        let report = |status, conclusion, at| Fact::ChecksReported {
            run: checks.run,
            sha: sha.clone(),
            checks: vec![Check {
                name: "test".into(),
                status,
                conclusion,
                url: url.clone(),
                summary: None,
                at,
                excused: Vec::new(),
            }],
            read: false,
        };
        let conclusion = if passes { CheckConclusion::Success } else { CheckConclusion::Failure };
        let cause = checks.prs.iter().find_map(|pr| self.rules.causes.get(&pr.0));
        let explained = cause.filter(|_| !passes).map(|cause| Fact::CausesFound {
            run: checks.run,
            sha: sha.clone(),
            causes: vec![CheckCause { check: "test".into(), at: self.at, cause: cause.clone() }],
        });
        let started = report(CheckStatus::InProgress, None, self.at);
        let completed = report(CheckStatus::Completed, Some(conclusion), self.at);
        [started].into_iter().chain(explained).chain([completed]).collect()
    }

    /// The awaited reports say what the rules say about the pull requests.
    fn find_causes(&self, run: RunId, sha: &Sha, checks: &[Check]) -> Fact {
        let found = self
            .queue
            .run(run)
            .and_then(|run| run.prs().find_map(|pr| self.rules.awaited.get(&pr.0)).cloned());
        let cause = found.unwrap_or(FailureCause::New { tests: vec!["a test".into()] });
        let cause_of = |check: &Check| CheckCause {
            check: check.name.clone(),
            at: check.at,
            cause: cause.clone(),
        };
        Fact::CausesFound { run, sha: sha.clone(), causes: checks.iter().map(cause_of).collect() }
    }

    fn is_ancestor(&self, ancestor: &Sha, of: &Sha) -> bool {
        let mut at = Some(of);
        while let Some(sha) = at {
            if sha == ancestor {
                return true;
            }
            at = self.commits.get(sha).and_then(|(_, parent)| parent.as_ref());
        }
        false
    }

    fn land(&mut self, land: &Land) -> Fact {
        let run = land.run;
        let candidate = land.candidate.sha.clone();
        if self.is_ancestor(&candidate, &self.target_sha) {
            return Fact::Landed {
                run,
                sha: candidate,
                tree: land.candidate.tree.clone(),
                composition: None,
            };
        }
        for change in &land.changes {
            let pull_request = self.pull_request(change.pr.0);
            if pull_request.head != change.head || pull_request.state != PullRequestState::Open {
                let because = LandRefusal::HeadMoved { pr: change.pr };
                return Fact::LandRefused { run, because };
            }
        }
        let tested = self.commits[&candidate].0.clone();
        let mut content = self.target.clone();
        for change in &land.changes {
            content.extend(tested.iter().filter(|(pr, _)| *pr == change.pr.0));
        }
        let conflicts =
            || land.changes.iter().any(|change| self.rules.conflicts(&self.target, change.pr.0));
        let tree_is_right = if land.exact { content == tested } else { !conflicts() };
        if self.target_sha != land.expected || !tree_is_right {
            let (head, tree) = (self.target_sha.clone(), tree_of(&self.target));
            return Fact::LandRefused { run, because: LandRefusal::TargetMoved { head, tree } };
        }
        if self.is_ancestor(&land.expected, &candidate) {
            self.target_sha = candidate;
            self.target = content;
        } else {
            self.move_target(content);
        }
        for change in &land.changes {
            self.landed.push(change.pr.0);
            if let Some(proposed) = self.proposed.get_mut(&change.pr.0) {
                proposed.state = PullRequestState::Merged;
            }
        }
        let (sha, tree) = (self.target_sha.clone(), tree_of(&self.target));
        Fact::Landed { run, sha, tree, composition: None }
    }
}
