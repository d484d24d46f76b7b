//! CI: pull requests, pushes, merges and nightly runs, and the jobs that they start.

use std::collections::BTreeMap;

use signalbox_domain::time::{Span, Timestamp};

use super::Retries;
use super::plan::{Calendar, Plan};
use crate::simulation::random::{Random, mixed};

/// A job of the matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Job {
    /// One of two shards on Linux.
    Linux(u32),
    /// All tests on Windows.
    Windows,
}

impl Job {
    const ALL: [Self; 3] = [Self::Linux(1), Self::Linux(2), Self::Windows];

    /// Its name, as GitHub shows it.
    pub(super) fn name(self) -> String {
        match self {
            Self::Linux(shard) => format!("test (ubuntu-latest, {shard})"),
            Self::Windows => "test (windows-latest)".into(),
        }
    }

    /// The platform.
    pub(super) const fn platform(self) -> &'static str {
        match self {
            Self::Linux(_) => "linux",
            Self::Windows => "windows",
        }
    }
}

/// What is tested.
#[derive(Clone, Debug)]
pub(super) struct Commit {
    /// The head of the branch.
    pub(super) sha: u64,
    /// When the head of `main` was made that it is merged with, or that it is: what was broken then is
    /// broken here.
    pub(super) code_of: Timestamp,
    /// The tests that the pull request breaks.
    pub(super) bug: Vec<usize>,
}

/// A run of a job.
#[derive(Clone, Debug)]
pub(super) struct Execution {
    pub(super) number: u64,
    /// When its report is uploaded.
    pub(super) at: Timestamp,
    pub(super) commit: Commit,
    pub(super) job: Job,
    /// 1, and more when the job was run again.
    pub(super) attempt: u32,
    pub(super) pr: Option<u32>,
}

struct PullRequest {
    number: u32,
    bug: Vec<usize>,
    pushes: u32,
}

enum Event {
    Push(PullRequest),
    Merge,
    Nightly,
    /// The jobs of a commit of a pull request, merged with the head of `main` of now.
    Again(Commit, u32),
    Run(Box<Execution>),
}

/// What happens next.
pub(super) struct Ci<'a> {
    plan: &'a Plan,
    random: Random,
    queue: BTreeMap<(Timestamp, u64), Event>,
    numbers: u64,
    prs: u32,
    /// The next day for which nothing is planned.
    day: u32,
    head: (u64, Timestamp),
    /// When each head was made, in order.
    heads: Vec<Timestamp>,
}

impl<'a> Ci<'a> {
    pub(super) fn new(plan: &'a Plan) -> Self {
        let random = Random::new(mixed(plan.shape.seed ^ 0xc1));
        let head = (mixed(plan.shape.seed), plan.calendar.start);
        Self {
            plan,
            random,
            queue: BTreeMap::new(),
            numbers: 0,
            prs: 0,
            day: 0,
            head,
            heads: Vec::new(),
        }
    }

    /// The next run of a job; `None` when the time is over.
    pub(super) fn next(&mut self) -> Option<Execution> {
        loop {
            let next = self.queue.first_key_value().map(|((at, _), _)| *at);
            let midnight = self.plan.calendar.at(self.day, 0);
            if next.is_none_or(|at| at >= midnight) && self.day < self.plan.calendar.days {
                self.plan_day();
                continue;
            }
            let ((at, _), event) = self.queue.pop_first()?;
            if at >= self.plan.calendar.end() {
                return None;
            }
            match event {
                Event::Push(pull_request) => self.push(pull_request, at),
                Event::Merge => {
                    self.head = (self.sha(), at);
                    self.heads.push(at);
                    self.run_main(at);
                }
                Event::Nightly => self.run_main(at),
                Event::Again(commit, pr) => {
                    let (_, code_of) = self.head;
                    self.run_jobs(&Commit { code_of, ..commit }, Some(pr), at);
                }
                Event::Run(execution) => return Some(*execution),
            }
        }
    }

    /// When the commit was made that was the head of `main` at a time.
    pub(super) fn head_at(&self, at: Timestamp) -> Timestamp {
        let made = self.heads.iter().rev().find(|made| **made <= at);
        made.copied().unwrap_or(self.plan.calendar.start)
    }

    /// A person may run a failed job again.
    pub(super) fn failed(&mut self, execution: &Execution) {
        let again = match (self.plan.shape.retries, execution.attempt) {
            (Retries::Jobs | Retries::Tests, 1) => 700,
            (Retries::Jobs | Retries::Tests, 2) => 300,
            (Retries::Never | Retries::Jobs | Retries::Tests, _) => 0,
        };
        if self.random.per_mille(again) {
            let at = execution.at.plus(Span::minutes(self.random.between(12, 40)));
            self.run(Execution { at, attempt: execution.attempt + 1, ..execution.clone() });
        }
    }

    fn sha(&mut self) -> u64 {
        mixed(self.random.next())
    }

    fn add(&mut self, at: Timestamp, event: Event) {
        self.numbers += 1;
        self.queue.insert((at, self.numbers), event);
    }

    fn plan_day(&mut self) {
        let day = self.day;
        self.day += 1;
        self.add(self.plan.calendar.at(day, 120), Event::Nightly);
        let opened = self.plan.shape.pull_requests;
        let opened = if Calendar::is_weekend(day) { opened.div_ceil(10) } else { opened };
        for _ in 0..opened {
            self.prs += 1;
            let pull_request = PullRequest {
                number: self.prs,
                bug: Vec::new(),
                pushes: self.random.between(1, 3),
            };
            let at = self.plan.calendar.at(day, self.random.between(8 * 60, 17 * 60));
            self.add(at, Event::Push(pull_request));
        }
    }

    /// One push in seven breaks one to three tests; the next one fixes them.
    fn push(&mut self, mut pull_request: PullRequest, at: Timestamp) {
        pull_request.pushes = pull_request.pushes.saturating_sub(1);
        let breaks = pull_request.bug.is_empty() && self.random.per_mille(150);
        pull_request.bug.clear();
        if breaks {
            let tests = self.plan.tests.len();
            let below = u32::try_from(tests).unwrap_or(u32::MAX);
            for _ in 0..self.random.between(1, 3) {
                let test = usize::try_from(self.random.below(below)).unwrap_or(0);
                pull_request.bug.push(test);
            }
            pull_request.pushes = pull_request.pushes.max(1);
        }
        let (_, code_of) = self.head;
        let commit = Commit { sha: self.sha(), code_of, bug: pull_request.bug.clone() };
        self.run_jobs(&commit, Some(pull_request.number), at);
        if self.random.per_mille(100) {
            let later = at.plus(Span::hours(self.random.between(20, 30)));
            self.add(later, Event::Again(commit, pull_request.number));
        }
        if pull_request.pushes == 0 {
            let later = at.plus(Span::minutes(self.random.between(60, 240)));
            self.add(later, Event::Merge);
        } else {
            let later = at.plus(Span::minutes(self.random.between(60, 600)));
            self.add(later, Event::Push(pull_request));
        }
    }

    fn run_main(&mut self, at: Timestamp) {
        let (sha, code_of) = self.head;
        self.run_jobs(&Commit { sha, code_of, bug: Vec::new() }, None, at);
    }

    fn run_jobs(&mut self, commit: &Commit, pr: Option<u32>, at: Timestamp) {
        for job in Job::ALL {
            let at = at.plus(Span::minutes(self.random.between(10, 25)));
            let commit = commit.clone();
            self.run(Execution { number: 0, at, commit, job, attempt: 1, pr });
        }
    }

    fn run(&mut self, mut execution: Execution) {
        execution.number = mixed(self.random.next());
        self.add(execution.at, Event::Run(Box::new(execution)));
    }
}
