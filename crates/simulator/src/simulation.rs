//! The simulation: the planner on a virtual clock, with a host and a CI that answer in time.

use std::collections::{BTreeMap, HashMap};

use signalbox_domain::ids::{BranchName, OrgId, PrNumber, QueueId, RepoId, RunId, Sha};
use signalbox_domain::queue::{
    Actor, BuildCandidate, Change as Changed, Check, CheckConclusion, CheckStatus, Effect, Fact,
    HostStatuses, Land, Mode, PrState, PullRequest, Queue, ReportedTargets, RunChecks, Settings,
    Submission, Transition, absorb, decide, next_deadline,
};
use signalbox_domain::time::{Span, Timestamp};
use uuid::Uuid;

use crate::host::Host;
use crate::workload::minutes;
use crate::{Areas, Choice, Outcome, SimulationError, Stream};

/// How long a queue may do nothing, in days, until it counts as stuck.
const IDLE_DAYS: u32 = 90;
/// The name of the only check.
const CHECK: &str = "test";

/// Submits a stream to a queue with these settings, and lets the time pass until the queue is
/// empty.
pub fn simulate(stream: &Stream, settings: &Settings) -> Result<Outcome, SimulationError> {
    simulate_while(stream, &Choice::recorded(settings), &|| true)
}

/// The same, ended with [`SimulationError::Stopped`] by the first step of the planner before which
/// `may_continue` is false.
pub(crate) fn simulate_while(
    stream: &Stream,
    choice: &Choice,
    may_continue: &dyn Fn() -> bool,
) -> Result<Outcome, SimulationError> {
    let mut world = World::new(stream, choice, may_continue)?;
    for number in 0..stream.changes.len() {
        let Some(change) = stream.changes.get(number) else { break };
        while let Some(next) = world.next().filter(|next| *next <= change.at) {
            world.happen(next)?;
        }
        world.at = world.at.max(change.at);
        world.submit(number)?;
    }
    let mut active = world.at;
    while let Some(next) = world.next().filter(|_| world.queue.live() > 0) {
        if !world.facts.is_empty() {
            active = next;
        }
        if next.since(active) > Span::days(IDLE_DAYS) {
            // Only the starts and ends of freezes remain.
            break;
        }
        world.happen(next)?;
    }
    world.finish()
}

/// A run whose tests are under way: when they started, and the key of their report.
struct Started {
    at: Timestamp,
    report: (Timestamp, u64),
}

struct World<'a> {
    stream: &'a Stream,
    may_continue: &'a dyn Fn() -> bool,
    host: Host<'a>,
    queue: Queue,
    at: Timestamp,
    /// What happens next: by time, and in the order of the effects.
    facts: BTreeMap<(Timestamp, u64), Fact>,
    answers: u64,
    started: HashMap<RunId, Started>,
    /// When each pull request left the queue.
    ended: Vec<Option<Timestamp>>,
    outcome: Outcome,
}

impl<'a> World<'a> {
    fn new(
        stream: &'a Stream,
        choice: &Choice,
        may_continue: &'a dyn Fn() -> bool,
    ) -> Result<Self, SimulationError> {
        let at = stream.changes.first().map_or(Timestamp::from_unix_seconds(0), |first| first.at);
        let (branch, id) = (BranchName::new("main")?, Uuid::from_u128(1));
        let host = Host::new(stream);
        let settings = choice.settings.clone();
        let queue = Queue::new(QueueId(id), OrgId(id), RepoId(id), branch, settings, at)?;
        let queue = queue.with_policy(choice.policy.clone());
        let count = stream.changes.len();
        let mut world = Self {
            stream,
            may_continue,
            host,
            queue,
            at,
            facts: BTreeMap::new(),
            answers: 0,
            started: HashMap::new(),
            ended: vec![None; count],
            outcome: Outcome { merges: vec![false; count], ..Outcome::default() },
        };
        let target = world.host.target()?;
        let seen = Fact::TargetSeen { head: target.sha, tree: target.tree, read_at: at };
        world.absorb(&seen)?;
        Ok(world)
    }

    /// When something happens next, besides submissions.
    fn next(&self) -> Option<Timestamp> {
        let fact = self.facts.first_key_value().map(|((at, _), _)| *at);
        fact.into_iter().chain(next_deadline(&self.queue)).min()
    }

    fn check(&self) -> Result<(), SimulationError> {
        if (self.may_continue)() { Ok(()) } else { Err(SimulationError::Stopped) }
    }

    /// Lets the next thing happen.
    fn happen(&mut self, next: Timestamp) -> Result<(), SimulationError> {
        self.at = self.at.max(next);
        let due = self.facts.first_entry().filter(|it| it.key().0 <= self.at);
        let fact = due.map(std::collections::btree_map::OccupiedEntry::remove);
        if let Some(Fact::ChecksReported { run, checks, .. }) = &fact
            && checks.iter().any(|check| check.status == CheckStatus::Completed)
            && let Some(started) = self.started.remove(run)
        {
            self.outcome.run_minutes += minutes(self.at.since(started.at));
        }
        self.absorb(&fact.unwrap_or(Fact::TimePassed))
    }

    fn absorb(&mut self, fact: &Fact) -> Result<(), SimulationError> {
        self.check()?;
        let transition = absorb(&self.queue, fact, self.at);
        self.commit(transition)
    }

    fn submit(&mut self, number: usize) -> Result<(), SimulationError> {
        self.check()?;
        let pull_request = self.pull_request(number)?;
        let head = pull_request.head.clone();
        let priority = self.stream.changes.get(number).and_then(|change| change.priority);
        let mut submission =
            Submission::builder(pull_request, Actor::Token("simulator".to_owned()), self.at)
                .priority(priority);
        if self.queue.mode() == Mode::Parallel {
            submission = submission.targets(self.targets(number, head));
        }
        let transition = decide(&self.queue, &submission.build().into(), self.at)?;
        self.outcome.submitted += 1;
        self.commit(transition)
    }

    fn targets(&self, number: usize, head: Sha) -> Option<ReportedTargets> {
        let change = self.stream.changes.get(number)?;
        Some(match &change.areas {
            Areas::All => ReportedTargets::all(Some(head)),
            Areas::Only(areas) => {
                ReportedTargets::only(Some(head), areas.iter().map(|area| format!("{area:x}")))
            }
        })
    }

    fn pull_request(&self, number: usize) -> Result<PullRequest, SimulationError> {
        let author = self.stream.changes.get(number).map_or("", |change| &change.author);
        let number = u32::try_from(number).unwrap_or(u32::MAX).saturating_add(1);
        let head = Sha::new(format!("f{number:039x}"))?;
        let base = self.queue.header.branch.clone();
        Ok(PullRequest::builder(PrNumber(number), head, base)
            .title("A change")
            .author(author)
            .build()?)
    }

    fn commit(&mut self, transition: Transition) -> Result<(), SimulationError> {
        let Transition { queue, changes, effects, .. } = transition;
        self.queue = queue;
        self.outcome.steps += 1;
        for entry in changes.entries.iter().filter(|entry| !entry.is_live()) {
            self.end(place(entry.pr), entry.state.name());
        }
        effects.into_iter().try_for_each(|numbered| self.run(numbered.effect))
    }

    fn end(&mut self, number: usize, state: PrState) {
        if let Some(ended) = self.ended.get_mut(number) {
            *ended = Some(self.at);
        }
        if state == PrState::Merged {
            self.outcome.merged += 1;
            if let Some(merges) = self.outcome.merges.get_mut(number) {
                *merges = true;
            }
        } else {
            self.outcome.failed += 1;
        }
    }

    /// Plans a fact after a time, and returns its key.
    fn answer(&mut self, fact: Fact, after: Span) -> (Timestamp, u64) {
        self.answers += 1;
        let key = (self.at.plus(after), self.answers);
        self.facts.insert(key, fact);
        key
    }

    fn run(&mut self, effect: Effect) -> Result<(), SimulationError> {
        let host = Span::seconds(self.stream.conditions.host_seconds);
        match effect {
            Effect::BuildCandidate(build) => {
                let fact = self.build(build)?;
                self.answer(fact, host);
            }
            Effect::RunChecks(checks) => self.test(&checks),
            Effect::CancelChecks { run, .. } => {
                if let Some(started) = self.started.remove(&run) {
                    self.facts.remove(&started.report);
                    self.outcome.cancelled_runs += 1;
                    self.outcome.run_minutes += minutes(self.at.since(started.at));
                }
            }
            Effect::Land(land) => {
                let landed = self.land(land)?;
                self.answer(landed, host);
            }
            Effect::InspectTarget { .. } => {
                let target = self.host.target()?;
                let (head, tree, read_at) = (target.sha, target.tree, self.at);
                self.answer(Fact::TargetSeen { head, tree, read_at }, host);
            }
            // No report of tests is ever awaited, nothing is pushed from outside, nothing depends on
            // another pull request, and targets are reported.
            Effect::InspectDependency { .. }
            | Effect::ComputeTargets { .. }
            | Effect::FindCauses { .. }
            | Effect::DeleteBranch { .. }
            | Effect::OpenTestPullRequest { .. }
            | Effect::CheckLandings { .. } => {}
        }
        Ok(())
    }

    fn build(&mut self, build: BuildCandidate) -> Result<Fact, SimulationError> {
        let before = build.before.iter().map(|(_, change)| place(change.pr));
        let added = before.chain(places(&build.changes)).collect();
        let candidate = self.host.build(&build.base, added)?;
        let repository = Some(vec![CHECK.to_owned()]);
        Ok(Fact::CandidateBuilt {
            run: build.run,
            branch: build.branch,
            candidate,
            statuses: HostStatuses { repository, ..HostStatuses::default() },
            head_checks: Vec::new(),
            empty: Vec::new(),
            composition: None,
            has_forge: false,
        })
    }

    fn test(&mut self, checks: &RunChecks) {
        self.outcome.runs += 1;
        let sha = &checks.candidate.sha;
        let attempt = u64::try_from(self.outcome.runs).unwrap_or(u64::MAX);
        let fails = self.host.fails(sha) || self.stream.flakes(self.host.content(sha), attempt);
        let newest = checks.prs.iter().max().and_then(|pr| self.stream.changes.get(place(*pr)));
        let take = newest.map_or(Span::ZERO, |change| change.tests_take);
        let begun = report(checks, CheckStatus::InProgress, None, self.at);
        let conclusion = if fails { CheckConclusion::Failure } else { CheckConclusion::Success };
        let done = report(checks, CheckStatus::Completed, Some(conclusion), self.at.plus(take));
        self.answer(begun, Span::ZERO);
        let report = self.answer(done, take);
        self.started.insert(checks.run, Started { at: self.at, report });
    }

    fn land(&mut self, land: Land) -> Result<Fact, SimulationError> {
        let changes: Vec<usize> = places(&land.changes).collect();
        let on_target = if land.exact {
            land.candidate
        } else {
            self.host.build(&land.expected, changes.clone())?
        };
        if !self.host.is_target_with(&on_target.sha, &changes) {
            let pr = land.changes.first().map_or(0, |change| change.pr.0);
            return Err(SimulationError::WrongTree { pr });
        }
        for change in &changes {
            self.outcome.bad_merges += usize::from(!self.host.is_valid(*change));
        }
        self.host.land(&on_target.sha, &changes);
        let (sha, tree) = (on_target.sha, on_target.tree);
        Ok(Fact::Landed { run: land.run, sha, tree, composition: None })
    }

    fn finish(mut self) -> Result<Outcome, SimulationError> {
        if self.queue.live() > 0 {
            return Err(SimulationError::Stuck { left: self.queue.live() });
        }
        let merges = &self.outcome.merges;
        let is_valid = self.stream.good_after(merges);
        let good_and_failed =
            is_valid.iter().zip(merges).filter(|(good, merged)| **good && !**merged);
        self.outcome.false_ejections = good_and_failed.count();
        let first = self.stream.changes.first().map_or(self.at, |change| change.at);
        self.outcome.makespan_minutes = minutes(self.at.since(first));
        let spent = self.stream.changes.iter().zip(&self.ended);
        self.outcome.minutes_in_queue = spent
            .skip(self.stream.counted_from())
            .filter_map(|(change, ended)| Some(minutes(ended.as_ref()?.since(change.at))))
            .collect();
        Ok(self.outcome)
    }
}

fn report(
    checks: &RunChecks,
    status: CheckStatus,
    conclusion: Option<CheckConclusion>,
    at: Timestamp,
) -> Fact {
    let (name, url, summary) = (CHECK.to_owned(), String::new(), None);
    let check = Check { name, status, conclusion, url, summary, at, excused: Vec::new() };
    let sha = checks.candidate.sha.clone();
    Fact::ChecksReported { run: checks.run, sha, checks: vec![check], read: false }
}

/// The position of a pull request in the stream.
fn place(pr: PrNumber) -> usize {
    usize::try_from(pr.0.saturating_sub(1)).unwrap_or(usize::MAX)
}

fn places(changes: &[Changed]) -> impl Iterator<Item = usize> {
    changes.iter().map(|change| place(change.pr))
}
