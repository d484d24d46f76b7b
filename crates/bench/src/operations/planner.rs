//! The planner alone: steps of a queue in memory that never rests. Pull requests are submitted,
//! built, checked and landed; for each that lands another one comes.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write as _;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use signalbox_domain::ids::{BranchName, OrgId, PrNumber, QueueId, RepoId, Sha, TreeId};
use signalbox_domain::queue::{
    Actor, Candidate, Check, CheckConclusion, CheckStatus, Command, Effect, Fact, HostStatuses,
    Input, Mergeability, Mode, PullRequest, PullRequestState, Queue, ReportedTargets, RunChecks,
    Settings, Submission, SubmitReason, Transition, absorb, decide,
};
use signalbox_domain::time::{Span, Timestamp};
use uuid::Uuid;

use super::Operation;
use crate::failure::{During, Failure};
use crate::measure::{median, micros_each};
use crate::parts::Random;
use crate::report::{Report, Row, count};
use crate::setup::Setup;

/// Pull requests under test at a time.
const CONCURRENCY: u32 = 50;
/// Targets that each pull request touches.
const TARGETS: usize = 100;
/// How many targets there are: few pull requests share one, or nearly all do.
const UNIVERSES: [(&str, u64); 2] = [("sparse", 100_000), ("dense", 2_000)];
/// Entries that are live at a time.
const SIZES: [usize; 3] = [100, 1_000, 10_000];
/// The size that the goal is about, and the goal in steps a second.
const GOAL: (usize, f64) = (1_000, 20_000.0);
/// How long a round lasts.
const ROUND: Duration = Duration::from_millis(600);

/// The time limit for filling a queue of one size.
const FILL: Duration = Duration::from_secs(20);

/// The planner alone.
pub(crate) struct Planner;

#[async_trait(?Send)]
impl Operation for Planner {
    fn name(&self) -> &'static str {
        "planner"
    }

    async fn run(&self, setup: &Setup, report: &mut Report) -> Result<(), Failure> {
        for (kind, universe) in UNIVERSES {
            let mut costs = Vec::new();
            for size in setup.sizes(&SIZES) {
                if let Some(cost) = measured(setup, report, kind, universe, *size)? {
                    costs.push((*size, cost));
                }
            }
            for pair in costs.windows(2) {
                let [(small, cheap), (large, dear)] = pair else { continue };
                let data = format!(
                    "{kind}: cost at {} entries ÷ cost at {}",
                    count(*large),
                    count(*small)
                );
                report.add(Row::of(self.name(), data, dear / cheap, "×"));
            }
        }
        Ok(())
    }
}

/// Measures one size; returns the microseconds of a step, or nothing when the queue could not be
/// filled in time.
fn measured(
    setup: &Setup,
    report: &mut Report,
    kind: &str,
    universe: u64,
    size: usize,
) -> Result<Option<f64>, Failure> {
    let mut line = Line::new(universe, size)?;
    let mut filling = Duration::ZERO;
    while line.queue.live() < size {
        filling += line.step()?;
        if filling > FILL {
            let (reached, size) = (count(line.queue.live()), count(size));
            report.note(format!(
                "{size} entries, {kind}: not measured, only {reached} were submitted within {} s.",
                FILL.as_secs()
            ));
            return Ok(None);
        }
    }
    let lasts = if setup.quick { ROUND / 6 } else { ROUND };
    let mut rounds = Vec::new();
    // The first round fills the slots and is not counted.
    for round in 0..=setup.rounds {
        line.costs.clear();
        let (mut steps, mut took) = (0, Duration::ZERO);
        while took < lasts {
            took += line.step()?;
            steps += 1;
        }
        if round > 0 {
            rounds.push(micros_each(took, steps));
        }
    }
    let cost = median(&rounds);
    let data = format!("{} entries, {kind} targets", count(size));
    let row = Row::of("planner", data, 1e6 / cost, "steps/s");
    let (of_size, steps) = GOAL;
    let with_goal = |row: Row| row.with_goal("≥ 20,000", 1e6 / cost >= steps);
    report.add(if size == of_size { with_goal(row) } else { row });
    report.note(format!("{} entries, {kind}: {}.", count(size), line.cost_summary()));
    Ok(Some(cost))
}

/// A queue that never rests, and just enough of a host.
struct Line {
    queue: Queue,
    at: Timestamp,
    facts: VecDeque<Fact>,
    universe: u64,
    size: usize,
    random: Random,
    objects: u64,
    last_pr: u32,
    /// Steps of the last round and their duration, by kind of command or fact.
    costs: BTreeMap<&'static str, (usize, Duration)>,
}

impl Line {
    fn new(universe: u64, size: usize) -> Result<Self, Failure> {
        let at = Timestamp::from_unix_seconds(1_767_225_600);
        let branch = BranchName::new("main").during("a branch")?;
        let settings = Settings::new(Mode::Parallel, CONCURRENCY).during("settings")?;
        let id = Uuid::from_u128;
        let queue = Queue::new(QueueId(id(1)), OrgId(id(2)), RepoId(id(3)), branch, settings, at);
        let queue = queue.during("a queue")?;
        let mut line = Self {
            queue,
            at,
            facts: VecDeque::new(),
            universe,
            size,
            random: Random::new(universe),
            objects: 0,
            last_pr: 0,
            costs: BTreeMap::new(),
        };
        let (head, tree) = (line.sha()?, line.tree()?);
        line.take(&Input::Fact(Fact::TargetSeen { head, tree, read_at: at }))?;
        Ok(line)
    }

    /// One step: a submission if there is room, else the next thing that has happened.
    fn step(&mut self) -> Result<Duration, Failure> {
        self.at = self.at.plus(Span::seconds(1));
        if self.queue.live() < self.size {
            let submission = self.submission()?;
            return self.take(&Input::Command(Command::Submit(Box::new(submission))));
        }
        match self.facts.pop_front() {
            Some(fact) => self.take(&Input::Fact(fact)),
            None => Err(Failure::new("the planner", "the queue stands still")),
        }
    }

    fn take(&mut self, input: &Input) -> Result<Duration, Failure> {
        let begun = Instant::now();
        let transition = match input {
            Input::Command(command) => {
                decide(&self.queue, command, self.at).during("a submission")?
            }
            Input::Fact(fact) => absorb(&self.queue, fact, self.at),
        };
        let Transition { queue, effects, .. } = transition;
        self.queue = queue;
        let took = begun.elapsed();
        let (steps, time) = self.costs.entry(input.name()).or_default();
        *steps += 1;
        *time += took;
        for effect in effects {
            self.run(effect.effect)?;
        }
        Ok(took)
    }

    fn run(&mut self, effect: Effect) -> Result<(), Failure> {
        match effect {
            Effect::BuildCandidate(build) => {
                let candidate = Candidate { sha: self.sha()?, tree: self.tree()? };
                let repository = Some(vec!["test".to_owned()]);
                self.facts.push_back(Fact::CandidateBuilt {
                    run: build.run,
                    branch: build.branch,
                    candidate,
                    statuses: HostStatuses { repository, ..HostStatuses::default() },
                    head_checks: Vec::new(),
                    empty: Vec::new(),
                    has_forge: false,
                });
            }
            Effect::RunChecks(checks) => {
                let begun = self.report(&checks, CheckStatus::InProgress, None);
                let done = CheckConclusion::Success;
                let done = self.report(&checks, CheckStatus::Completed, Some(done));
                self.facts.extend([begun, done]);
            }
            Effect::Land(land) => {
                let (sha, tree) = if land.exact {
                    (land.candidate.sha, land.candidate.tree)
                } else {
                    (self.sha()?, self.tree()?)
                };
                self.facts.push_back(Fact::Landed { run: land.run, sha, tree });
            }
            Effect::InspectPullRequest { pr } => {
                let pull_request = Box::new(self.pull_request(pr)?);
                let read_at = self.at;
                self.facts.push_back(Fact::PullRequestSeen { pull_request, read_at });
            }
            Effect::InspectTarget { .. }
            | Effect::CancelChecks { .. }
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
        let check = Check { name, status, conclusion, url, summary, at };
        let sha = checks.candidate.sha.clone();
        Fact::ChecksReported { run: checks.run, sha, checks: vec![check], read: false }
    }

    fn submission(&mut self) -> Result<Submission, Failure> {
        self.last_pr += 1;
        let pull_request = self.pull_request(PrNumber(self.last_pr))?;
        let mut names = std::collections::BTreeSet::new();
        while names.len() < TARGETS {
            names.insert(format!("//area/package:target-{}", self.random.below(self.universe)));
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
            author: "ada".to_owned(),
            head: Sha::new(format!("{:040x}", pr.0)).during("a commit")?,
            head_branch: Some(format!("change-{pr}")),
            base: self.queue.header.branch.clone(),
            state: PullRequestState::Open,
            merged_as: None,
            draft: false,
            mergeability: Mergeability::Mergeable,
            url: format!("http://localhost/{pr}"),
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
    fn cost_summary(&self) -> String {
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
