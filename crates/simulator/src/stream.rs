//! Streams: the pull requests of a source with a seed, and the truth about them.

use std::collections::BTreeSet;

use signalbox_domain::queue::Priority;
use signalbox_domain::time::{Span, Timestamp};

use crate::numbers::float;
use crate::random::Random;
use crate::workload::span;
use crate::{Arrivals, Overlap, SimulationError, Workload};

/// 2026-01-01T00:00:00Z.
const START: i64 = 1_767_225_600;
/// How many pull requests before a pull request may conflict with it, and in a workload of pairs
/// overlap with it.
const NEIGHBOURS: u32 = 500;

/// What a random number is for. Numbers of different purposes are independent.
const ARRIVALS: u64 = 1;
pub(crate) const CHANGE: u64 = 2;
const OVERLAP: u64 = 3;
const CONFLICT: u64 = 4;
const FLAKE: u64 = 5;
const AREAS: u64 = 6;
const AUTHOR: u64 = 7;

/// The authors of a workload with agents.
const AGENTS: u32 = 3;
const PEOPLE: u32 = 20;

/// The areas of the repository that a pull request changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Areas {
    /// All areas.
    All,
    /// These areas; two pull requests that share one may conflict.
    Only(BTreeSet<u64>),
}

impl Areas {
    /// How many areas are listed.
    pub fn count(&self) -> usize {
        match self {
            Self::All => 0,
            Self::Only(areas) => areas.len(),
        }
    }

    /// Whether two pull requests with these areas may conflict.
    pub fn meet(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::All, _) | (_, Self::All) => true,
            (Self::Only(one), Self::Only(two)) => !one.is_disjoint(two),
        }
    }
}

/// A pull request of a stream.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// When it is submitted.
    pub at: Timestamp,
    /// How long the tests take that it is the newest change of.
    pub tests_take: Span,
    /// Whether it fails on its own.
    pub fails: bool,
    /// What it changes.
    pub areas: Areas,
    /// The pull requests that it conflicts with, by position; earlier and later ones.
    pub conflicts: Vec<usize>,
    /// Its priority; `None` for the default.
    pub priority: Option<Priority>,
    /// Its author; empty if unknown.
    pub author: String,
}

/// What holds for all pull requests of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Conditions {
    /// The share of test runs that fail without a cause in any change.
    pub flaky: f64,
    /// Seconds until the git host answers.
    pub host_seconds: u32,
    /// The share of pull requests at the start whose results do not count, because the queue was
    /// empty before.
    pub warm_up: f64,
}

impl Conditions {
    /// The position of the first of so many pull requests whose results count.
    pub(crate) fn counted_from(&self, count: usize) -> usize {
        let share = self.warm_up * float(count);
        (1..=count).take_while(|number| float(*number) <= share).count()
    }
}

/// The pull requests of a source with a seed, in the order of their submission.
#[derive(Clone, Debug, PartialEq)]
pub struct Stream {
    /// What holds for all of them.
    pub conditions: Conditions,
    /// The seed.
    pub seed: u64,
    /// The pull requests; the pull request at position 0 has number 1.
    pub changes: Vec<Change>,
}

/// What pull requests come from: a stated workload, or a recorded history.
pub trait Source {
    /// Whether pull requests come at a steady rate, so that longer waits at the end show that a queue
    /// does not keep up.
    fn is_steady(&self) -> bool;

    /// The pull requests with this seed; refused if the source is invalid.
    fn stream(&self, seed: u64) -> Result<Stream, SimulationError>;
}

impl Source for Workload {
    fn is_steady(&self) -> bool {
        self.arrivals != Arrivals::Burst
    }

    fn stream(&self, seed: u64) -> Result<Stream, SimulationError> {
        self.check()?;
        let mut arrivals = Random::keyed(&[seed, ARRIVALS]);
        let (mut at, start) = (0.0, Timestamp::from_unix_seconds(START));
        let mut changes: Vec<Change> = Vec::new();
        for number in 0..self.pull_requests {
            at += self.arrivals.gap(at, &mut arrivals);
            let mut random = Random::keyed(&[seed, CHANGE, u64::from(number)]);
            let (author, failing) = self.author(seed, number);
            let fails = random.is(failing);
            let tests_take = self.durations.draw(&mut random);
            changes.push(Change {
                at: start.plus(span(at)),
                tests_take,
                fails,
                areas: self.areas(seed, number),
                conflicts: Vec::new(),
                priority: None,
                author,
            });
            self.add_conflicts(seed, number, &mut changes);
        }
        Ok(Stream { conditions: self.conditions(), seed, changes })
    }
}

impl Workload {
    /// The author of a pull request, and the share of the author's pull requests that fail.
    fn author(&self, seed: u64, number: u32) -> (String, f64) {
        let Some(agents) = self.agents else { return ("ada".to_owned(), self.failing) };
        let mut random = Random::keyed(&[seed, AUTHOR, u64::from(number)]);
        if random.is(agents.share) {
            (format!("agent-{}", random.below(AGENTS)), agents.failing)
        } else {
            (format!("author-{}", random.below(PEOPLE)), self.failing)
        }
    }

    fn areas(&self, seed: u64, number: u32) -> Areas {
        match self.overlap {
            Overlap::Everything => Areas::All,
            Overlap::Pairs { share } => {
                let near = number.saturating_sub(NEIGHBOURS)..=number.saturating_add(NEIGHBOURS);
                let pairs = near.filter(|other| *other != number).filter_map(|other| {
                    let pair = pair(number, other);
                    Random::keyed(&[seed, OVERLAP, pair]).is(share).then_some(pair)
                });
                Areas::Only(pairs.collect())
            }
            Overlap::Areas { count } => {
                let mut random = Random::keyed(&[seed, AREAS, u64::from(number)]);
                let changed = match random.below(100) {
                    0..75 => 1,
                    75..90 => 2,
                    90..99 => 3,
                    _ => return Areas::All,
                };
                Areas::Only((0..changed).map(|_| u64::from(random.below(count))).collect())
            }
        }
    }

    /// Draws the conflicts of the last change with those before it.
    fn add_conflicts(&self, seed: u64, number: u32, changes: &mut [Change]) {
        let Some((last, earlier)) = changes.split_last_mut().filter(|_| self.conflicting > 0.0)
        else {
            return;
        };
        let place = earlier.len();
        let first = number.saturating_sub(NEIGHBOURS);
        let near = usize::try_from(first).unwrap_or(usize::MAX);
        for ((at, other), of) in earlier.iter_mut().enumerate().skip(near).zip(first..) {
            let drawn = || Random::keyed(&[seed, CONFLICT, pair(number, of)]).is(self.conflicting);
            if drawn() && last.areas.meet(&other.areas) {
                other.conflicts.push(place);
                last.conflicts.push(at);
            }
        }
    }
}

/// One number for two.
const fn pair(one: u32, other: u32) -> u64 {
    let (low, high) = if one < other { (one, other) } else { (other, one) };
    // Widening never loses anything, and `u64::from` is not const.
    #[expect(clippy::as_conversions, reason = "`u64::from` is not const")]
    let pair = ((low as u64) << 32) | high as u64;
    pair
}

impl Stream {
    /// Whether each pull request merges when all are tested one after the other: it does not fail
    /// on its own, and conflicts with no earlier one that merges.
    pub fn acceptable(&self) -> Vec<bool> {
        let mut accepted: Vec<bool> = Vec::with_capacity(self.changes.len());
        for change in &self.changes {
            let is_accepted = |at: &usize| accepted.get(*at).copied().unwrap_or_default();
            accepted.push(!change.fails && !change.conflicts.iter().any(is_accepted));
        }
        accepted
    }

    /// Whether each pull request is valid, given which ones merged: it does not fail on its own, and
    /// conflicts with no earlier one that merged.
    pub(crate) fn good_after(&self, merges: &[bool]) -> Vec<bool> {
        let has_merged = |at: &usize| merges.get(*at).copied().unwrap_or_default();
        let good = self.changes.iter().enumerate().map(|(place, change)| {
            let earlier = change.conflicts.iter().filter(|at| **at < place);
            !change.fails && !earlier.into_iter().any(has_merged)
        });
        good.collect()
    }

    /// The position of the first pull request whose results count.
    pub fn counted_from(&self) -> usize {
        self.conditions.counted_from(self.changes.len())
    }

    /// Whether a test run fails without a cause in any change. The same for the same content at the
    /// same attempt.
    pub(crate) fn flakes(&self, content: u64, attempt: u64) -> bool {
        self.conditions.flaky > 0.0
            && Random::keyed(&[self.seed, FLAKE, content, attempt]).is(self.conditions.flaky)
    }
}
