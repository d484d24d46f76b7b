//! Capacities: how many test runs at a time may test pull requests with a certain impacted target, for
//! tests that need something scarce, such as devices. They apply in PARALLEL mode.

use crate::time::Timestamp;

use super::lanes::{self, Next};
use super::{Entry, Mode, Queue, TargetSet, Targets, TestRun, batch};

/// The largest capacity.
const MOST: u32 = 1000;

/// A rule of `targetCapacities` that is not valid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidCapacity {
    /// It has no target, or no number.
    #[error("{0:?} is not of the form TARGET NUMBER, such as \"ios 2\" or \"gpu-* 4\"")]
    Form(String),
    /// Its number is out of bounds.
    #[error("{0:?} must end with a whole number from 1 to {MOST}, as in \"ios 2\"")]
    Number(String),
    /// It has a comma, which separates rules on the command line, or a line break, which separates them
    /// on pages.
    #[error("{0:?} must not contain commas, tabs, or other control characters")]
    Separator(String),
}

/// Checks a rule of the setting.
pub(super) fn check(rule: &str) -> Result<(), InvalidCapacity> {
    Capacity::parse(rule).map(drop)
}

/// A rule.
struct Capacity<'a> {
    /// A pattern for targets; `*` matches any text.
    target: &'a str,
    limit: u32,
}

impl<'a> Capacity<'a> {
    fn parse(rule: &'a str) -> Result<Self, InvalidCapacity> {
        if rule.contains(|c: char| c == ',' || c.is_control()) {
            return Err(InvalidCapacity::Separator(rule.to_owned()));
        }
        let form = || InvalidCapacity::Form(rule.to_owned());
        let (target, number) = rule.trim_matches(' ').rsplit_once(' ').ok_or_else(form)?;
        let limit = Some(number).filter(|number| !number.starts_with(['0', '+']));
        let limit = limit.and_then(|number| number.parse().ok()).filter(|limit| *limit <= MOST);
        let limit = limit.ok_or_else(|| InvalidCapacity::Number(rule.to_owned()))?;
        Ok(Self { target: target.trim_end_matches(' '), limit })
    }
}

/// A target that as many test runs need as may.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Full {
    /// The target, or the pattern for targets, as in the rule.
    pub(super) target: String,
    pub(super) used: u32,
    pub(super) limit: u32,
}

/// A rule, and the test runs that it applies to now.
struct Use<'a> {
    rule: Capacity<'a>,
    /// The target, unless it is a pattern.
    exact: Option<TargetSet>,
    used: u32,
}

impl Use<'_> {
    /// Whether an entry needs the target. One that impacts all targets does.
    fn covers(&self, entry: &Entry) -> bool {
        match (entry.applied_targets().map(|applied| &applied.targets), &self.exact) {
            (None | Some(Targets::All), _) => true,
            (Some(Targets::Only(targets)), Some(exact)) => targets.meets(exact),
            (Some(Targets::Only(targets)), None) => {
                targets.iter().any(|target| batch::matches(self.rule.target, target))
            }
        }
    }
}

/// The capacities of a queue, and how much of them is in use.
pub(super) struct Capacities<'a> {
    queue: &'a Queue,
    uses: Vec<Use<'a>>,
}

impl<'a> Capacities<'a> {
    pub(super) fn of(queue: &'a Queue) -> Self {
        let rules = queue.header.settings.target_capacities.iter();
        let rules = rules.filter(|_| queue.mode() == Mode::Parallel);
        let count = |rule: Capacity<'a>| {
            let is_pattern = rule.target.contains('*');
            let exact = (!is_pattern).then(|| [rule.target].into_iter().collect::<TargetSet>());
            let mut of_rule = Use { rule, exact, used: 0 };
            let needs_it = |run: &&TestRun| {
                let mut members = run.group.iter().filter_map(|member| queue.entry(member.entry));
                run.status.is_running() && members.any(|entry| of_rule.covers(entry))
            };
            let used = queue.runs().filter(needs_it).count();
            of_rule.used = u32::try_from(used).unwrap_or(u32::MAX);
            of_rule
        };
        let uses = rules.filter_map(|rule| Capacity::parse(rule).ok()).map(count).collect();
        Self { queue, uses }
    }

    /// The first target that keeps a run with an entry from starting now.
    fn full(&self, entry: &Entry) -> Option<Full> {
        let is_full = |it: &&Use<'_>| it.used >= it.rule.limit && it.covers(entry);
        self.uses.iter().find(is_full).map(|it| Full {
            target: it.rule.target.to_owned(),
            used: it.used,
            limit: it.rule.limit,
        })
    }

    /// Removes members from a group until it can start: those behind the first that needs a full target, or
    /// all of a part of a batch, which is not divided.
    pub(super) fn fit(&self, group: &mut Vec<&Entry>) {
        if let Some(first_full) = group.iter().position(|entry| self.full(entry).is_some()) {
            let is_part = group.iter().any(|entry| entry.part.is_some());
            group.truncate(if is_part { 0 } else { first_full });
        }
    }

    /// The target that keeps the group which starts with this entry from starting, if only that does.
    pub(super) fn keeps_waiting(&self, entry: &Entry) -> Option<Full> {
        if self.uses.is_empty() {
            return None;
        }
        match lanes::group_from(self.queue, entry, Timestamp::from_unix_micros(i64::MAX)) {
            Ok(Next::Start(group)) if entry.part.is_some() => {
                group.into_iter().find_map(|member| self.full(member))
            }
            Ok(Next::Start(_)) => self.full(entry),
            Ok(Next::Wait(_)) | Err(_) => None,
        }
    }
}
