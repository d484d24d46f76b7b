//! What a chapter of the demo is made of.

use serde_json::Value;
use signalbox_domain::queue::Mode;

/// A chapter: a target branch with a queue of its own, and what happens there.
pub(crate) struct Chapter {
    pub(crate) target: &'static str,
    /// What it shows, in a few words.
    pub(crate) shows: &'static str,
    /// What the reader should know before it starts; one line each.
    pub(crate) preface: &'static [&'static str],
    pub(crate) mode: Mode,
    /// Test runs at the same time, from 1.
    pub(crate) concurrency: u32,
    /// Further settings, as `updateQueue` takes them.
    pub(crate) settings: fn() -> Value,
    /// In the order of their pull requests.
    pub(crate) branches: &'static [Branch],
    /// What is done once something can be seen, in this order.
    pub(crate) cues: &'static [Cue],
    /// The branches that land, in the order in which git must have them.
    pub(crate) lands: &'static [&'static str],
    /// Whether all must have been tested in one run first, and then in halves and alone.
    pub(crate) bisects: bool,
    /// Whether the repository quarantines flaky tests from this chapter on.
    pub(crate) quarantines: bool,
}

/// A branch with a pull request: the subject of its commit, what it contains, how it should end.
pub(crate) struct Branch {
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    /// Paths and texts, on top of the first commit.
    pub(crate) files: &'static [(&'static str, &'static str)],
    /// Impacted targets to report; none are reported when it is empty.
    pub(crate) targets: &'static [&'static str],
    pub(crate) comes: Comes,
    /// Whether its tests fail where it was made, on their first run.
    pub(crate) fails_alone: bool,
    pub(crate) end: End,
}

/// When a pull request is submitted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Comes {
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
pub(crate) struct End {
    /// What it is there to show.
    pub(crate) what: &'static str,
    pub(crate) state: &'static str,
    pub(crate) reason: &'static str,
    pub(crate) culprit: Option<&'static str>,
    /// The branch of the pull request that is named as being in the way.
    pub(crate) because_of: Option<&'static str>,
    /// What the particulars must name.
    pub(crate) names: Option<&'static str>,
    /// The reason that a step on its way must have.
    pub(crate) told: Option<&'static str>,
    /// Whether another lane lands while it is tested, so that its changes land on a tree that its
    /// own run did not have.
    pub(crate) joins: bool,
    /// The flaky test whose failure must have been excused in its run.
    pub(crate) excused: Option<&'static str>,
}

/// Something that is done once all of this can be seen.
pub(crate) struct Cue {
    pub(crate) when: &'static [(&'static str, Sign)],
    pub(crate) then: Action,
}

/// What can be seen of a branch's pull request through the API.
#[derive(Clone, Copy)]
pub(crate) enum Sign {
    /// The kind of its reason to wait.
    Waits(&'static str),
    /// Its state.
    Is(&'static str),
    /// That this test is quarantined.
    Quarantined(&'static str),
}

/// What is done on a cue.
#[derive(Clone, Copy)]
pub(crate) enum Action {
    /// Lets the checks go on that wait there.
    Open(Gate),
    /// Submits the pull request of this branch.
    Submit(&'static str),
}

/// What checks wait for, so that the outcome does not depend on which machine is how fast.
#[derive(Clone, Copy)]
pub(crate) enum Gate {
    /// All checks.
    Checks,
    /// The slow test.
    Slow,
}

impl Gate {
    pub(crate) const ALL: [Self; 2] = [Self::Checks, Self::Slow];

    /// The name of its file, which the checks look for.
    pub(crate) const fn file(self) -> &'static str {
        match self {
            Self::Checks => "checks",
            Self::Slow => "slow",
        }
    }
}
