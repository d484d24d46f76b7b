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
    #[error("{0:?} must end with a whole number from 1 to {MOST}")]
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

    /// Whether an entry needs the target. One that impacts all targets does.
    fn covers(&self, entry: &Entry, exact: Option<&TargetSet>) -> bool {
        match (entry.applied_targets().map(|applied| &applied.targets), exact) {
            (None | Some(Targets::All), _) => true,
            (Some(Targets::Only(targets)), Some(exact)) => targets.meets(exact),
            (Some(Targets::Only(targets)), None) => {
                targets.iter().any(|target| batch::matches(self.target, target))
            }
        }
    }
}

/// A target that as many test runs use as may.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Full {
    /// The target, or the pattern for targets, as in the rule.
    pub(super) target: String,
    pub(super) used: u32,
    pub(super) limit: u32,
}

/// The first rule that keeps a group from starting now.
pub(super) fn full(queue: &Queue, group: &[&Entry]) -> Option<Full> {
    let rules = &queue.header.settings.target_capacities;
    if queue.mode() != Mode::Parallel {
        return None;
    }
    let mut capacities = rules.iter().filter_map(|rule| Capacity::parse(rule).ok());
    capacities.find_map(|capacity| {
        let Capacity { target, limit } = capacity;
        let exact = (!target.contains('*')).then(|| [target].into_iter().collect::<TargetSet>());
        let covers = |entry: &Entry| capacity.covers(entry, exact.as_ref());
        if !group.iter().any(|entry| covers(entry)) {
            return None;
        }
        let needs_it = |run: &&TestRun| {
            let mut members = run.group.iter().filter_map(|member| queue.entry(member.entry));
            run.status.is_running() && members.any(covers)
        };
        let used = u32::try_from(queue.runs().filter(needs_it).count()).unwrap_or(u32::MAX);
        (used >= limit).then(|| Full { target: target.to_owned(), used, limit })
    })
}

/// What keeps the group that starts with this entry from starting, if only the capacity of a target does.
pub(super) fn keeps_waiting(queue: &Queue, entry: &Entry) -> Option<Full> {
    match lanes::ready_from(queue, entry, Timestamp::from_unix_micros(i64::MAX)) {
        Ok(Next::Start(group)) => full(queue, &group),
        Ok(Next::Wait(_)) | Err(_) => None,
    }
}
