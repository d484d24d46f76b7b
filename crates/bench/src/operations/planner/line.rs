//! A queue in memory and just enough of a host: pull requests are submitted, built, checked and
//! landed.

use std::collections::btree_map::OccupiedEntry;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::time::{Duration, Instant};

use signalbox_domain::ids::{BranchName, OrgId, PrNumber, QueueId, RepoId, Sha, TreeId};
use signalbox_domain::queue::{
    Actor, Candidate, Check, CheckConclusion, CheckStatus, Command, Effect, Fact, HostStatuses,
    Input, Mergeability, Mode, PullRequest, PullRequestState, Queue, ReportedTargets, RunChecks,
    Settings, SettingsPatch, Submission, SubmitReason, Transition, absorb, decide, next_deadline,
};
use signalbox_domain::time::{Span, Timestamp};
use uuid::Uuid;

use crate::failure::{During, Failure};
use crate::measure::micros_each;
use crate::parts::Random;

/// A queue's settings and the targets of its pull requests.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub(super) mode: Mode,
    /// The most runs at a time.
    pub(super) slots: u32,
    /// The size of batches; 1 tests each pull request alone.
    pub(super) batch: u32,
    /// In PARALLEL mode, how many targets a pull request has, out of how many.
    pub(super) targets: (usize, u64),
}

/// How long the host and the checks take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Delays {
    /// An answer of the host, in seconds.
    pub(super) host: u32,
    /// The shortest checks, and how much longer they may take, in seconds.
    pub(super) checks: (u32, u64),
}

/// A queue and just enough of a host.
pub(super) struct Line {
    pub(super) queue: Queue,
    pub(super) at: Timestamp,
    /// What happens next: by time, and in the order of the effects.
    facts: BTreeMap<(Timestamp, u64), Fact>,
    /// Without delays everything happens immediately, in order.
    delays: Option<Delays>,
    answers: u64,
    shape: Shape,
    random: Random,
    objects: u64,
    last_pr: u32,
    /// Steps of the last round and their duration, by kind of command or fact.
    pub(super) costs: BTreeMap<&'static str, (usize, Duration)>,
    /// The slowest step of the last round.
    pub(super) slowest: Duration,
    /// Pull requests that have left the queue.
    pub(super) ended: usize,
}

impl Line {
    pub(super) fn new(shape: Shape, delays: Option<Delays>) -> Result<Self, Failure> {
        let at = Timestamp::from_unix_seconds(1_767_225_600);
        let branch = BranchName::new("main").during("a branch")?;
        let settings = Settings::new(shape.mode, shape.slots).during("settings")?;
        let batches = SettingsPatch {
            batch: Some(shape.batch > 1),
            batching_min_size: Some(shape.batch),
            batching_max_wait_time_minutes: Some(5),
            ..SettingsPatch::default()
        };
        let settings = batches.applied_to(&settings).during("settings")?;
        let id = Uuid::from_u128;
        let queue = Queue::new(QueueId(id(1)), OrgId(id(2)), RepoId(id(3)), branch, settings, at);
        let queue = queue.during("a queue")?;
        let mut line = Self {
            queue,
            at,
            facts: BTreeMap::new(),
            delays,
            answers: 0,
            shape,
            random: Random::new(shape.targets.1),
            objects: 0,
            last_pr: 0,
            costs: BTreeMap::new(),
            slowest: Duration::ZERO,
            ended: 0,
        };
        let (head, tree) = (line.sha()?, line.tree()?);
        line.take(&Input::Fact(Fact::TargetSeen { head, tree, read_at: at }))?;
        Ok(line)
    }

    /// One step of a queue that never rests: a submission while fewer than `size` pull requests
    /// are in it, else the next thing that happens.
    pub(super) fn step(&mut self, size: usize) -> Result<Duration, Failure> {
        self.at = self.at.plus(Span::seconds(1));
        if self.queue.live() < size {
            return self.submit();
        }
        let Some((_, fact)) = self.facts.pop_first() else {
            // A last batch waits to fill.
            self.at = next_deadline(&self.queue).map_or(self.at, |due| due.max(self.at));
            return self.take(&Input::Fact(Fact::TimePassed));
        };
        self.take(&Input::Fact(fact))
    }

    /// Submits a pull request at the present time.
    pub(super) fn submit(&mut self) -> Result<Duration, Failure> {
        let submission = self.submission()?;
        self.take(&Input::Command(Command::Submit(Box::new(submission))))
    }

    /// When something happens next, besides submissions.
    pub(super) fn next(&self) -> Option<Timestamp> {
        let fact = self.facts.first_key_value().map(|((at, _), _)| *at);
        fact.into_iter().chain(next_deadline(&self.queue)).min()
    }

    /// Lets the next thing happen that is due.
    pub(super) fn happen(&mut self) -> Result<Duration, Failure> {
        let due = |(at, _): &(Timestamp, u64)| *at <= self.at;
        let first = self.facts.first_entry().filter(|it| due(it.key()));
        let fact = first.map(OccupiedEntry::remove);
        self.take(&Input::Fact(fact.unwrap_or(Fact::TimePassed)))
    }

    fn answer(&mut self, fact: Fact, after: u32) {
        self.answers += 1;
        let at = self
            .delays
            .map_or(Timestamp::from_unix_micros(0), |_| self.at.plus(Span::seconds(after)));
        self.facts.insert((at, self.answers), fact);
    }

    fn take(&mut self, input: &Input) -> Result<Duration, Failure> {
        let begun = Instant::now();
        let transition = match input {
            Input::Command(command) => {
                decide(&self.queue, command, self.at).during("a submission")?
            }
            Input::Fact(fact) => absorb(&self.queue, fact, self.at),
        };
        let Transition { queue, effects, changes, .. } = transition;
        self.queue = queue;
        let took = begun.elapsed();
        let (steps, time) = self.costs.entry(input.name()).or_default();
        *steps += 1;
        *time += took;
        self.slowest = self.slowest.max(took);
        self.ended += changes.entries.iter().filter(|entry| !entry.is_live()).count();
        for effect in effects {
            self.run(effect.effect)?;
        }
        Ok(took)
    }

    fn run(&mut self, effect: Effect) -> Result<(), Failure> {
        let host = self.delays.map_or(0, |delays| delays.host);
        match effect {
            Effect::BuildCandidate(build) => {
                let candidate = Candidate { sha: self.sha()?, tree: self.tree()? };
                let repository = Some(vec!["test".to_owned()]);
                let fact = Fact::CandidateBuilt {
                    run: build.run,
                    branch: build.branch,
                    candidate,
                    statuses: HostStatuses { repository, ..HostStatuses::default() },
                    head_checks: Vec::new(),
                    empty: Vec::new(),
                    composition: None,
                    has_forge: false,
                };
                self.answer(fact, host);
            }
            Effect::RunChecks(checks) => {
                let begun = self.report(&checks, CheckStatus::InProgress, None);
                let done = CheckConclusion::Success;
                let done = self.report(&checks, CheckStatus::Completed, Some(done));
                self.answer(begun, host);
                let (least, more) = self.delays.map_or((0, 0), |delays| delays.checks);
                let more = u32::try_from(self.random.below(more + 1)).unwrap_or_default();
                self.answer(done, least + more);
            }
            Effect::Land(land) => {
                let (sha, tree) = if land.exact {
                    (land.candidate.sha, land.candidate.tree)
                } else {
                    (self.sha()?, self.tree()?)
                };
                self.answer(Fact::Landed { run: land.run, sha, tree, composition: None }, host);
            }
            Effect::InspectTarget { .. }
            | Effect::InspectDependency { .. }
            | Effect::ComputeTargets { .. }
            | Effect::CancelChecks { .. }
            | Effect::FindCauses { .. }
            | Effect::CheckLandings { .. }
            | Effect::DeleteBranch { .. }
            | Effect::OpenTestPullRequest { .. } => {}
        }
        Ok(())
    }

    fn report(
        &self,
        checks: &RunChecks,
        status: CheckStatus,
        conclusion: Option<CheckConclusion>,
    ) -> Fact {
        let (name, at) = ("test".to_owned(), self.at);
        let (url, summary) = (String::new(), None);
        let check = Check { name, status, conclusion, url, summary, at, excused: Vec::new() };
        let sha = checks.candidate.sha.clone();
        Fact::ChecksReported { run: checks.run, sha, checks: vec![check], read: false }
    }

    fn submission(&mut self) -> Result<Submission, Failure> {
        self.last_pr += 1;
        let pull_request = self.pull_request(PrNumber(self.last_pr))?;
        let (count, universe) = self.shape.targets;
        let mut names = BTreeSet::new();
        while self.shape.mode == Mode::Parallel && names.len() < count {
            names.insert(format!("//area/package:target-{}", self.random.below(universe)));
        }
        let sha = Some(pull_request.head.clone());
        let targets = ReportedTargets::only(sha, names);
        Ok(Submission {
            pull_request,
            read_at: self.at,
            targets: Some(targets),
            priority: None,
            force: false,
            no_batch: None,
            reason: SubmitReason::ApiRequested,
            by: Actor::Token("bench".to_owned()),
        })
    }

    fn pull_request(&self, pr: PrNumber) -> Result<PullRequest, Failure> {
        Ok(PullRequest {
            number: pr,
            title: format!("Change {pr}"),
            body: String::new(),
            depends_on: Vec::new(),
            author: "ada".to_owned(),
            head: Sha::new(format!("{:040x}", pr.0)).during("a commit")?,
            head_branch: Some(format!("change-{pr}")),
            base: self.queue.header.branch.clone(),
            state: PullRequestState::Open,
            merged_as: None,
            draft: false,
            mergeability: Mergeability::Mergeable,
            url: format!("http://localhost/{pr}"),
            labels: Vec::new(),
        })
    }

    fn sha(&mut self) -> Result<Sha, Failure> {
        self.objects += 1;
        Sha::new(format!("1{:039x}", self.objects)).during("a commit")
    }

    fn tree(&mut self) -> Result<TreeId, Failure> {
        self.objects += 1;
        TreeId::new(format!("2{:039x}", self.objects)).during("a tree")
    }

    /// What each kind of step cost in the last round, the most expensive kind first.
    pub(super) fn cost_summary(&self) -> String {
        let mut costs: Vec<_> = self.costs.iter().collect();
        costs.sort_by_key(|(_, (_, time))| std::cmp::Reverse(*time));
        let mut text = String::new();
        for (name, (steps, time)) in costs {
            let separator = if text.is_empty() { "" } else { ", " };
            let each = micros_each(*time, *steps);
            let _ = write!(text, "{separator}{name} {each:.1} µs ({steps} steps)");
        }
        text
    }
}
