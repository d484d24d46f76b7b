//! Checks every commit: whether it equals the planner's result, and whether the invariants hold.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use signalbox_domain::ids::PrNumber;
use signalbox_domain::ports::{Commit, QueueRef, Version};
use signalbox_domain::queue::{
    Decision, Effect, Fact, Input, Mode, Moved, PrState, Queue, QueueState, TestFailure, TestRun,
    absorb, check_invariants, decide,
};

use super::schedule::Schedule;

/// The observed history of the simulation's queue.
pub(super) struct Watch {
    schedule: Arc<Schedule>,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    created: Option<Queue>,
    /// The expected queue, folded from the commits.
    now: Option<Queue>,
    /// The last emitted state of each pull request.
    told: BTreeMap<PrNumber, PrState>,
    /// All absorbed facts, for repeats.
    facts: Vec<Fact>,
    commits: usize,
    /// Whether any run has timed out.
    timed_out: bool,
    version: Option<Version>,
}

impl Watch {
    pub(super) fn new(schedule: Arc<Schedule>) -> Arc<Self> {
        Arc::new(Self { schedule, seen: Mutex::default() })
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The queue as it was created.
    pub(super) fn created_queue(&self) -> Queue {
        self.seen().created.clone().expect("a queue was created")
    }

    /// The expected queue.
    pub(super) fn queue(&self) -> Queue {
        self.seen().now.clone().expect("a queue was created")
    }

    /// The mode in force.
    pub(super) fn mode(&self) -> Mode {
        self.queue().mode()
    }

    pub(super) fn reference(&self) -> QueueRef {
        let header = self.queue().header;
        QueueRef { org: header.org, id: header.id }
    }

    /// The last emitted state of each submitted pull request.
    pub(super) fn told(&self) -> BTreeMap<PrNumber, PrState> {
        self.seen().told.clone()
    }

    pub(super) fn facts(&self) -> Vec<Fact> {
        self.seen().facts.clone()
    }

    pub(super) fn has_timed_out(&self) -> bool {
        self.seen().timed_out
    }

    pub(super) fn commits(&self) -> usize {
        self.seen().commits
    }

    pub(super) fn created(&self, queue: &Queue) {
        let mut seen = self.seen();
        seen.created = Some(queue.clone());
        seen.now = Some(queue.clone());
    }

    /// Q9: a loaded queue equals the committed one.
    pub(super) fn loaded(&self, queue: &Queue, version: Version) {
        let now = self.queue();
        let known = self.seen().version;
        if known == Some(version) && now != *queue {
            self.schedule.violated(format!(
                "Q9: what was loaded is not what was committed:{}",
                apart(&now, queue)
            ));
        }
    }

    pub(super) fn committed(&self, commit: &Commit<'_>) {
        let version = Version(commit.expected.0 + 1);
        let before = self.queue();
        let (record, at) = (commit.journal, commit.at);
        self.schedule.note_here(format!("commit {} {}", version.0, described(commit)));
        let transition = match &record.input {
            Input::Command(command) => decide(&before, command, at),
            Input::Fact(fact) => Ok(absorb(&before, fact, at)),
        };
        let mut complaints = Vec::new();
        let after = match transition {
            Ok(transition) => {
                let must_be = (&transition.queue.header, &transition.changes, &transition.effects);
                let is = (commit.header, commit.changes, &commit.effects.to_vec());
                if must_be != is {
                    let apart = apart(&must_be, &is);
                    complaints.push(format!("Q9: a commit is not what its input leads to:{apart}"));
                }
                transition.queue
            }
            Err(refusal) => {
                complaints.push(format!("Q9: a refused command was committed: {refusal}"));
                before.clone()
            }
        };
        complaints
            .extend(check_invariants(&after).into_iter().map(|(id, it)| format!("{id}: {it}")));
        complaints.extend(capacity(&before, &after));
        complaints.extend(stillness(&before, &after, commit));
        let mut seen = self.seen();
        complaints.extend(told(&mut seen.told, &record.decisions));
        seen.timed_out |= record.decisions.iter().any(is_timeout);
        if self.schedule.is_calm_for_long() {
            complaints.extend(record.decisions.iter().filter_map(lost_checks));
        }
        if let Input::Fact(fact) = &record.input {
            seen.facts.push(fact.clone());
        }
        seen.now = Some(after);
        seen.version = Some(version);
        seen.commits += 1;
        drop(seen);
        for complaint in complaints {
            self.schedule.violated(complaint);
        }
    }
}

/// Q2: no run starts above the limits in force.
fn capacity(before: &Queue, after: &Queue) -> Vec<String> {
    let running = |bisection: bool| {
        let of_kind = move |run: &&TestRun| run.status.is_running() && run.bisection == bisection;
        after.runs().filter(of_kind).collect::<Vec<_>>()
    };
    let any_new = |runs: &[&TestRun]| {
        runs.iter().any(|run| before.run(run.id).is_none_or(|it| !it.status.is_running()))
    };
    let (main, bisecting) = (running(false), running(true));
    let settings = &after.header.settings;
    let (limit, own) = (after.slots_of_line().1, settings.bisection_concurrency);
    let mut complaints = Vec::new();
    let mut limited = |what: &str, started: bool, used: usize, limit: u32| {
        if started && used > usize::try_from(limit).unwrap_or(usize::MAX) {
            complaints.push(format!("Q2: {used} of {limit} {what} slots are used"));
        }
    };
    limited("main", any_new(&main), main.len(), limit);
    if own == 0 {
        let started = any_new(&main) || any_new(&bisecting);
        limited("shared", started, main.len() + bisecting.len(), limit);
    } else {
        limited("bisection", any_new(&bisecting), bisecting.len(), own);
    }
    complaints
}

/// Q5: a paused queue starts and lands nothing; entries are admitted only in RUNNING.
fn stillness(before: &Queue, after: &Queue, commit: &Commit<'_>) -> Vec<String> {
    let mut complaints = Vec::new();
    let state = &after.header.state;
    if let QueueState::Paused { .. } = state {
        let starts = commit
            .effects
            .iter()
            .map(|it| &it.effect)
            .find(|effect| matches!(effect, Effect::BuildCandidate(_) | Effect::Land(_)));
        if let Some(effect) = starts {
            complaints.push(format!("Q5: {} while paused", effect.name()));
        }
        if before.header.landing.is_none() && after.header.landing.is_some() {
            complaints.push("Q5: a landing begins while paused".to_owned());
        }
    }
    if *state != QueueState::Running {
        for decision in &commit.journal.decisions {
            if let Decision::Moved(Moved {
                pr,
                from: Some(PrState::NotReady),
                to: PrState::Pending,
                ..
            }) = decision
            {
                complaints.push(format!("Q5: #{pr} enters the line in {}", state.name().as_str()));
            }
        }
    }
    complaints
}

/// Q3: every move starts in the state of the previous one, and an ended entry stays ended until it
/// is resubmitted.
fn told(last: &mut BTreeMap<PrNumber, PrState>, decisions: &[Decision]) -> Vec<String> {
    let mut complaints = Vec::new();
    for decision in decisions {
        let Decision::Moved(Moved { pr, from, to, .. }) = decision else { continue };
        let known = last.insert(*pr, *to).filter(|known| !known.is_terminal());
        if known != *from {
            complaints.push(format!("Q3: #{pr} was {known:?} and moves from {from:?} to {to:?}"));
        }
    }
    complaints
}

/// Q8: if every check completes soon, no run times out.
fn lost_checks(decision: &Decision) -> Option<String> {
    let Decision::Moved(Moved { pr, .. }) = decision else { return None };
    is_timeout(decision).then(|| format!("Q8: the checks of #{pr} were lost"))
}

fn is_timeout(decision: &Decision) -> bool {
    matches!(decision, Decision::Moved(moved) if moved.reason.as_str() == TestFailure::Timeout.as_str())
}

/// The first lines in which two values differ.
pub(super) fn apart<T: std::fmt::Debug>(must_be: &T, is: &T) -> String {
    let (must_be, is) = (format!("{must_be:#?}"), format!("{is:#?}"));
    let only_in = |one: &str, other: &str, sign: char| {
        let other: BTreeSet<&str> = other.lines().collect();
        let own = one.lines().filter(|line| !other.contains(line)).take(12);
        own.fold(String::new(), |text, line| format!("{text}\n  {sign}{line}"))
    };
    only_in(&must_be, &is, '-') + &only_in(&is, &must_be, '+')
}

/// Describes a commit in one line of the trace.
fn described(commit: &Commit<'_>) -> String {
    let mut line = commit.journal.input.name().to_owned();
    for decision in &commit.journal.decisions {
        if let Decision::Moved(Moved { pr, to, reason, .. }) = decision {
            let _ = write!(line, " [#{pr} {} {}]", to.as_str(), reason.as_str());
        } else if let Decision::QueueMoved { to, .. } = decision {
            let _ = write!(line, " [queue {}]", to.as_str());
        }
    }
    for numbered in commit.effects {
        let _ = write!(line, " +{}", numbered.effect.name());
    }
    line
}
