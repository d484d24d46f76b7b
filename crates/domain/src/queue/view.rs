//! How a queue looks from outside: order, states and the one reason why each entry waits.

use crate::ids::PrNumber;

use super::{
    Entry, EntryState, Place, PrState, Queue, QueueState, Readiness, RunStatus, TestRun, WaitReason,
};

/// An entry as it is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryView<'a> {
    /// The entry.
    pub entry: &'a Entry,
    /// Its state.
    pub state: PrState,
    /// What is known about its being ready.
    pub readiness: Readiness,
    /// Why it is not further; `None` once it has ended.
    pub waits: Option<WaitReason>,
    /// Its run, while it has one.
    pub run: Option<&'a TestRun>,
    /// Its position in the line, from 1; `None` outside the line.
    pub position: Option<usize>,
}

/// A queue as it is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueView<'a> {
    /// The queue.
    pub queue: &'a Queue,
    /// Its live entries in queue order; those outside the line last.
    pub entries: Vec<EntryView<'a>>,
}

/// Shows a whole queue.
pub fn view_queue(queue: &Queue) -> QueueView<'_> {
    let mut ahead = Ahead::default();
    let mut entries = Vec::with_capacity(queue.live());
    for entry in queue.entries_in_order() {
        entries.push(view(queue, entry, &ahead));
        ahead.pass(queue, entry);
    }
    QueueView { queue, entries }
}

/// Shows one live entry; `None` when the pull request has none.
pub fn view_entry(queue: &Queue, pr: PrNumber) -> Option<EntryView<'_>> {
    let mut ahead = Ahead::default();
    for entry in queue.entries_in_order() {
        if entry.pr == pr {
            return Some(view(queue, entry, &ahead));
        }
        ahead.pass(queue, entry);
    }
    None
}

/// What stands before an entry in the line.
#[derive(Default)]
struct Ahead {
    count: usize,
    /// Not settled: still to be tested, or being tested.
    unsettled: Vec<PrNumber>,
    /// Without a candidate to build on.
    unbuilt: Vec<PrNumber>,
}

impl Ahead {
    fn pass(&mut self, queue: &Queue, entry: &Entry) {
        if entry.place == Place::Outside {
            return;
        }
        self.count += 1;
        match &entry.state {
            EntryState::Testing { run, .. } => {
                self.unsettled.push(entry.pr);
                if queue.run(*run).is_none_or(|run| run.candidate.is_none()) {
                    self.unbuilt.push(entry.pr);
                }
            }
            EntryState::PendingFailure { .. } => self.unsettled.push(entry.pr),
            EntryState::Pending { held_by: None, .. } => {
                self.unsettled.push(entry.pr);
                self.unbuilt.push(entry.pr);
            }
            EntryState::Pending { held_by: Some(_), .. }
            | EntryState::NotReady
            | EntryState::TestsPassed { .. }
            | EntryState::Ended(_) => {}
        }
    }
}

fn view<'a>(queue: &'a Queue, entry: &'a Entry, ahead: &Ahead) -> EntryView<'a> {
    EntryView {
        entry,
        state: entry.state.name(),
        readiness: entry.readiness(&queue.header.branch, queue.mode()),
        waits: waits(queue, entry, ahead),
        run: entry.state.run().and_then(|run| queue.run(run)),
        position: (entry.place != Place::Outside).then_some(ahead.count + 1),
    }
}

fn waits(queue: &Queue, entry: &Entry, ahead: &Ahead) -> Option<WaitReason> {
    let header = &queue.header;
    let halted = match &header.state {
        QueueState::Paused { by, reason } => {
            Some(WaitReason::QueuePaused { by: by.to_string(), reason: reason.clone() })
        }
        QueueState::Running | QueueState::Draining | QueueState::SwitchingModes { .. } => None,
    };
    let silent = header.host.unreachable_since.map(|since| WaitReason::HostUnreachable { since });
    Some(match &entry.state {
        EntryState::Ended(_) => return None,
        EntryState::NotReady => {
            entry.readiness(&header.branch, queue.mode()).missing().or(halted).or(silent).unwrap_or(
                match &header.state {
                    QueueState::SwitchingModes { .. } => WaitReason::QueueSwitchingModes,
                    QueueState::Running | QueueState::Paused { .. } | QueueState::Draining => {
                        WaitReason::QueueDraining
                    }
                },
            )
        }
        EntryState::Pending { held_by: Some(pr), .. } => WaitReason::ConflictWithAhead { pr: *pr },
        EntryState::Pending { held_by: None, .. } => {
            let (used, limit) = (queue.slots_used(), header.settings.concurrency);
            halted.or(silent).unwrap_or_else(|| {
                if header.target.missing {
                    WaitReason::TargetBranchMissing
                } else if header.target.head.is_none() {
                    WaitReason::TargetUnknown
                } else if used >= limit {
                    WaitReason::SlotsFull { used, limit }
                } else {
                    WaitReason::BehindPrs {
                        prs: if ahead.unbuilt.is_empty() {
                            ahead.unsettled.clone()
                        } else {
                            ahead.unbuilt.clone()
                        },
                    }
                }
            })
        }
        EntryState::Testing { run, .. } => silent.unwrap_or_else(|| match queue.run(*run) {
            Some(run) if matches!(run.status, RunStatus::Building) => WaitReason::BuildingCandidate,
            Some(run) if run.required.is_some() => {
                let (done, of) = run.progress();
                let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
                WaitReason::ChecksRunning { done: count(done), of: count(of) }
            }
            Some(_) | None => WaitReason::RequiredChecksUnknown,
        }),
        EntryState::TestsPassed { run, .. } => halted.or(silent).unwrap_or_else(|| {
            let landing = header.landing.as_ref().is_some_and(|it| it.runs.contains(run));
            if landing || ahead.count == 0 {
                WaitReason::Landing
            } else {
                WaitReason::PredecessorTesting { prs: ahead.unsettled.clone() }
            }
        }),
        EntryState::PendingFailure { .. } => {
            if ahead.unsettled.is_empty() {
                halted.or(silent).unwrap_or(WaitReason::SuccessorWindow {
                    depth: header.settings.pending_failure_depth,
                    until: None,
                })
            } else {
                WaitReason::PredecessorTesting { prs: ahead.unsettled.clone() }
            }
        }
    })
}

impl Queue {
    /// How many runs of the main line take a slot now.
    pub fn slots_used(&self) -> u32 {
        let used = self.runs().filter(|run| !run.bisection && run.status.is_running()).count();
        u32::try_from(used).unwrap_or(u32::MAX)
    }
}
