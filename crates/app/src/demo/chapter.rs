//! What a chapter of the demo is made of.

use serde_json::Value;
use signalbox_domain::queue::Mode;

/// A chapter: a target branch with a queue of its own, and what happens there.
pub(super) struct Chapter {
    pub(super) target: &'static str,
    /// What it shows, in a few words.
    pub(super) shows: &'static str,
    /// What the reader should know before it starts; one line each.
    pub(super) preface: &'static [&'static str],
    pub(super) mode: Mode,
    /// Test runs at the same time, from 1.
    pub(super) concurrency: u32,
    /// Further settings, as `updateQueue` takes them.
    pub(super) settings: fn() -> Value,
    /// In the order of their pull requests.
    pub(super) branches: &'static [Branch],
    /// What is done once something can be seen, in this order.
    pub(super) cues: &'static [Cue],
    /// The branches that land, in the order in which git must have them.
    pub(super) lands: &'static [&'static str],
    /// Whether all must have been tested in one run first, and then in halves and alone.
    pub(super) bisects: bool,
    /// Whether the repository quarantines flaky tests from this chapter on.
    pub(super) quarantines: bool,
}

/// A branch with a pull request: the subject of its commit, what it contains, how it should end.
pub(super) struct Branch {
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    /// Paths and texts, on top of the first commit.
    pub(super) files: &'static [(&'static str, &'static str)],
    /// Impacted targets to report; none are reported when it is empty.
    pub(super) targets: &'static [&'static str],
    pub(super) comes: Comes,
    /// Whether its tests fail where it was made, on their first run.
    pub(super) fails_alone: bool,
    pub(super) end: End,
}

/// When a pull request is submitted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Comes {
    /// While the queue is paused.
    First,
    /// While the queue is paused, and it is taken out again before the queue runs.
    AndLeaves,
    /// On a cue, with the priority urgent.
    Urgent,
    /// On a cue.
    Later,
}

/// What should become of a branch.
pub(super) struct End {
    /// What it is there to show.
    pub(super) what: &'static str,
    pub(super) state: &'static str,
    pub(super) reason: &'static str,
    pub(super) culprit: Option<&'static str>,
    /// The branch of the pull request that is named as being in the way.
    pub(super) because_of: Option<&'static str>,
    /// What the particulars must name.
    pub(super) names: Option<&'static str>,
    /// The reason that a step on its way must have.
    pub(super) told: Option<&'static str>,
    /// Whether another lane lands while it is tested, so that its changes land on a tree that its
    /// own run did not have.
    pub(super) joins: bool,
    /// The flaky test whose failure must have been excused in its run.
    pub(super) excused: Option<&'static str>,
}

/// Something that is done once all of this can be seen.
pub(super) struct Cue {
    pub(super) when: &'static [(&'static str, Sign)],
    pub(super) then: Action,
}

/// What can be seen of a branch's pull request through the API.
#[derive(Clone, Copy)]
pub(super) enum Sign {
    /// The kind of its reason to wait.
    Waits(&'static str),
    /// Its state.
    Is(&'static str),
    /// That this test is quarantined.
    Quarantined(&'static str),
}

/// What is done on a cue.
#[derive(Clone, Copy)]
pub(super) enum Action {
    /// Lets the checks go on that wait there.
    Open(Gate),
    /// Submits the pull request of this branch.
    Submit(&'static str),
}

/// What checks wait for, so that the outcome does not depend on which machine is how fast.
#[derive(Clone, Copy)]
pub(super) enum Gate {
    /// All checks.
    Checks,
    /// The slow test.
    Slow,
}

impl Gate {
    pub(super) const ALL: [Self; 2] = [Self::Checks, Self::Slow];

    /// The name of its file, which the checks look for.
    pub(super) const fn file(self) -> &'static str {
        match self {
            Self::Checks => "checks",
            Self::Slow => "slow",
        }
    }
}
