//! The parts of a scenario of the demo.

use serde_json::Value;
use signalbox_domain::queue::Mode;

/// A scenario: a target branch with its own queue, and the steps that the demo takes there.
pub(crate) struct Scenario {
    pub(crate) target: &'static str,
    /// What it shows, in a few words.
    pub(crate) shows: &'static str,
    /// The introduction, printed before it starts; one line each.
    pub(crate) preface: &'static [&'static str],
    pub(crate) mode: Mode,
    /// Test runs at the same time, from 1.
    pub(crate) concurrency: u32,
    /// Further settings, as `updateQueue` takes them.
    pub(crate) settings: fn() -> Value,
    /// In the order of their pull requests.
    pub(crate) branches: &'static [Branch],
    /// The actions of the demo, in order; each waits for its condition.
    pub(crate) cues: &'static [Cue],
    /// The branches that merge, in the order of their commits on the target branch.
    pub(crate) lands: &'static [&'static str],
    /// Whether all must be tested in one run first, then in halves and alone.
    pub(crate) bisects: bool,
    /// Whether the repository quarantines flaky tests from this scenario on; `None`: as before.
    pub(crate) quarantine: Option<bool>,
}

/// A branch with a pull request: the subject of its commit, its files, how it should end.
pub(crate) struct Branch {
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    /// Paths and texts, on top of the first commit.
    pub(crate) files: &'static [(&'static str, &'static str)],
    /// Impacted targets to report; none are reported when it is empty.
    pub(crate) targets: &'static [&'static str],
    pub(crate) comes: Comes,
    /// Whether its tests fail on the first commit of `main`, on their first run.
    pub(crate) fails_alone: bool,
    pub(crate) end: End,
}

/// When a pull request is submitted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Comes {
    /// While the queue is paused.
    First,
    /// While the queue is paused; it is cancelled before the queue runs.
    AndLeaves,
    /// On a cue, with priority urgent.
    Urgent,
    /// On a cue.
    Later,
}

/// The expected end of a branch.
pub(crate) struct End {
    /// What the branch does, for the table.
    pub(crate) what: &'static str,
    pub(crate) state: &'static str,
    pub(crate) reason: &'static str,
    pub(crate) culprit: Option<&'static str>,
    /// The branch of the pull request that it conflicts with.
    pub(crate) because_of: Option<&'static str>,
    /// A text that the failure's details must contain.
    pub(crate) names: Option<&'static str>,
    /// A reason that a step of its timeline must have.
    pub(crate) step: Option<&'static str>,
    /// Whether another lane merges while it is tested, so that its changes land on a tree that its
    /// own run did not have.
    pub(crate) joins: bool,
    /// The flaky test whose failure must have been excused in its run.
    pub(crate) excused: Option<&'static str>,
}

/// An action, and the conditions that must hold before it.
pub(crate) struct Cue {
    pub(crate) when: &'static [(&'static str, Sign)],
    pub(crate) then: Action,
}

/// A condition on a branch's pull request, read through the API.
#[derive(Clone, Copy)]
pub(crate) enum Sign {
    /// It waits, for a reason of this kind.
    Waits(&'static str),
    /// Its failed check runs again, for a failure of this class.
    Retries(&'static str),
    /// It is in this state.
    Is(&'static str),
    /// This test is quarantined.
    Quarantined(&'static str),
}

/// An action of the demo.
#[derive(Clone, Copy)]
pub(crate) enum Action {
    /// Opens a gate, so that the checks that wait at it continue.
    Open(Gate),
    /// Submits the pull request of this branch.
    Submit(&'static str),
}

/// A gate that checks wait at, so that the outcome does not depend on the speed of the machine.
#[derive(Clone, Copy)]
pub(crate) enum Gate {
    /// All checks.
    Checks,
    /// The slow test, and the second attempt of the check with the flaky test.
    Slow,
    /// The second attempt of the check on the broken machine.
    Again,
}

impl Gate {
    pub(crate) const ALL: [Self; 3] = [Self::Checks, Self::Slow, Self::Again];

    /// The name of its file, which the checks look for.
    pub(crate) const fn file(self) -> &'static str {
        match self {
            Self::Checks => "checks",
            Self::Slow => "slow",
            Self::Again => "again",
        }
    }
}
