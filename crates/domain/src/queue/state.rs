//! The queue's state, and the states of pull requests as clients see them.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::ids::{BranchName, EntryId, OrgId, PrNumber, QueueId, RepoId, RunId};
use crate::time::Timestamp;
use crate::words::words;

use super::ended::RunsByStatus;
use super::host_health::HostHealth;
use super::lane_index::LaneIndex;
use super::order::OrderKey;
use super::sorted::{SortedMap, SortedSet};
use super::started::Started;
use super::turns::Turns;
use super::usage::Usage;
use super::waiting::Waiting;
use super::{
    Actor, Entry, FreezeState, Header, Landing, Mode, Outcomes, PolicyId, Refusal, Settings,
    ShareOutcomes, SharedPolicy, Target, TestRun,
};

words!(
    /// A pull request's state in a queue, as clients see it.
    PrState {
        /// Submitted; it may not enter the line yet.
        NotReady = "NOT_READY",
        /// In the line; its tests have not started.
        Pending = "PENDING",
        /// Being tested; occupies a slot.
        Testing = "TESTING",
        /// Tested; waits for the pull requests ahead to land.
        TestsPassed = "TESTS_PASSED",
        /// On the target branch.
        Merged = "MERGED",
        /// Failed; the queue removed it.
        Failed = "FAILED",
        /// Cancelled by a user, a client or an event on the host.
        Cancelled = "CANCELLED",
        /// Its run failed, but another pull request may be the culprit.
        PendingFailure = "PENDING_FAILURE",
    }
);

impl PrState {
    /// Whether the entry has left the queue.
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Merged | Self::Failed | Self::Cancelled)
    }
}

words!(
    /// A queue's state, as clients see it.
    QueueStateName {
        /// The queue tests and merges.
        Running = "RUNNING",
        /// Nothing starts and nothing merges.
        Paused = "PAUSED",
        /// The entries in the line are finished; no new entry is admitted.
        Draining = "DRAINING",
        /// The line empties in the old mode; then the queue continues in the new one.
        SwitchingModes = "SWITCHING_MODES",
    }
);

words!(
    /// The states that a client can request.
    RequestedState {
        /// The queue tests and merges.
        Running = "RUNNING",
        /// Nothing starts and nothing merges.
        Paused = "PAUSED",
        /// The entries in the line are finished; no new entry is admitted.
        Draining = "DRAINING",
    }
);

/// A queue's state with its data.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum QueueState {
    /// The queue tests and merges.
    Running,
    /// Nothing starts and nothing merges.
    Paused {
        /// Who paused it.
        by: Actor,
        /// The caller's reason, if given.
        reason: Option<String>,
        /// The mode in force until the line is empty, if the settings already name another.
        #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
        switching_from: Option<Mode>,
    },
    /// The entries in the line are finished; no new entry is admitted.
    Draining,
    /// The line empties in the old mode; then the queue runs or drains in the new one, which the
    /// settings already name.
    SwitchingModes {
        /// The mode in force until the line is empty.
        from: Mode,
        /// Whether the queue was draining and continues to drain after the switch.
        #[cfg_attr(feature = "serde", serde(default))]
        draining: bool,
    },
}

impl QueueState {
    /// The state without its data.
    pub const fn name(&self) -> QueueStateName {
        match self {
            Self::Running => QueueStateName::Running,
            Self::Paused { .. } => QueueStateName::Paused,
            Self::Draining => QueueStateName::Draining,
            Self::SwitchingModes { .. } => QueueStateName::SwitchingModes,
        }
    }

    /// The mode in force until the line is empty, if the settings already name another.
    pub const fn switching_from(&self) -> Option<Mode> {
        match self {
            Self::SwitchingModes { from, .. } => Some(*from),
            Self::Paused { switching_from, .. } => *switching_from,
            Self::Running | Self::Draining => None,
        }
    }

    /// Whether ready entries may enter the line.
    pub const fn lets_in(&self) -> bool {
        matches!(self, Self::Running)
    }

    /// Whether runs may start and tested entries may land.
    pub const fn moves(&self) -> bool {
        !matches!(self, Self::Paused { .. })
    }
}

/// A merge queue with its live entries and the runs that they refer to.
///
/// The collections share structure: a clone is O(1) and a change O(log n).
#[derive(Clone, Debug)]
pub struct Queue {
    /// Everything but the collections.
    pub header: Header,
    /// The live entries.
    entries: SortedMap<PrNumber, Arc<Entry>>,
    /// Their numbers by id.
    numbers: SortedMap<EntryId, PrNumber>,
    pub(super) line: SortedSet<OrderKey>,
    runs: SortedMap<RunId, Arc<TestRun>>,
    /// The pull requests that have left and that candidates of runs may contain, each with the number
    /// of the queue's sequence at that time.
    left: SortedMap<PrNumber, u64>,
    /// The size of `left` at which entries that no run contains are removed from it.
    most_left: usize,
    pub(super) waiting: Waiting,
    pub(super) started: Started,
    pub(super) lanes: LaneIndex,
    pub(super) turns: Turns,
    pub(super) by_status: RunsByStatus,
    pub(super) policy: SharedPolicy,
}

/// The least size at which the record of pull requests that have left is shortened.
const MOST_LEFT: usize = 64;

/// Compares contents only: the indexes are not part of the value.
impl PartialEq for Queue {
    fn eq(&self, other: &Self) -> bool {
        self.header == other.header && self.entries == other.entries && self.runs == other.runs
    }
}

impl Eq for Queue {}

impl Queue {
    /// A new, empty queue in RUNNING. Refused when a setting is out of its bounds.
    pub fn new(
        id: QueueId,
        org: OrgId,
        repo: RepoId,
        branch: BranchName,
        settings: Settings,
        at: Timestamp,
    ) -> Result<Self, Refusal> {
        settings.check()?;
        Ok(Self::restore(
            Header {
                id,
                org,
                repo,
                branch,
                state: QueueState::Running,
                freeze: FreezeState::at(&settings.freezes, at),
                settings: Arc::new(settings),
                target: Target::default(),
                landing: None,
                off_target: Vec::new(),
                retried: Vec::new(),
                rules_revision: 0,
                red: None,
                window: None,
                usage: Usage::default(),
                outcomes: Outcomes::default(),
                share_outcomes: ShareOutcomes::default(),
                started_turns: BTreeMap::new(),
                passed_in: Vec::new(),
                policy: PolicyId::default(),
                host: HostHealth::default(),
                batch_due: None,
                sequence: 0,
                management: None,
                created_at: at,
                deleted: false,
            },
            [],
            [],
        ))
    }

    /// Restores a queue from stored parts: its header, its live entries and their runs.
    pub fn restore(
        header: Header,
        entries: impl IntoIterator<Item = Entry>,
        runs: impl IntoIterator<Item = TestRun>,
    ) -> Self {
        let lanes = LaneIndex::new(&header.settings);
        let mut queue = Self {
            header,
            entries: SortedMap::default(),
            numbers: SortedMap::default(),
            line: SortedSet::default(),
            runs: SortedMap::default(),
            left: SortedMap::default(),
            most_left: MOST_LEFT,
            waiting: Waiting::default(),
            started: Started::default(),
            lanes,
            turns: Turns::default(),
            by_status: RunsByStatus::default(),
            policy: SharedPolicy::default(),
        };
        for run in runs {
            queue.put_run(Arc::new(run));
        }
        for entry in entries {
            queue.put_entry(Arc::new(entry));
        }
        let ahead = queue.runs.values().flat_map(|run| run.ahead.iter().map(|(_, pr)| *pr));
        let left: Vec<PrNumber> = ahead.filter(|pr| queue.entry_of(*pr).is_none()).collect();
        for pr in left {
            queue.left.insert(pr, queue.header.sequence);
        }
        queue
    }

    /// The live entry of this pull request.
    pub fn entry_of(&self, pr: PrNumber) -> Option<&Entry> {
        self.shared_entry_of(pr).map(AsRef::as_ref)
    }

    pub(super) fn shared_entry_of(&self, pr: PrNumber) -> Option<&Arc<Entry>> {
        self.entries.get(&pr)
    }

    /// The live entry with this id.
    pub fn entry(&self, id: EntryId) -> Option<&Entry> {
        self.shared_entry(id).map(AsRef::as_ref)
    }

    pub(super) fn shared_entry(&self, id: EntryId) -> Option<&Arc<Entry>> {
        self.shared_entry_of(*self.numbers.get(&id)?)
    }

    /// The id of this pull request's entry: derived from the queue's id and the number, so that it
    /// is the same for every submission.
    pub fn entry_id(&self, pr: PrNumber) -> EntryId {
        EntryId(uuid::Uuid::new_v5(&self.header.id.0, format!("entry:{pr}").as_bytes()))
    }

    /// The run with this id, if a live entry still refers to it.
    pub fn run(&self, id: RunId) -> Option<&TestRun> {
        self.shared_run(id).map(AsRef::as_ref)
    }

    pub(super) fn shared_run(&self, id: RunId) -> Option<&Arc<TestRun>> {
        self.runs.get(&id)
    }

    /// All live entries, in queue order; those outside the line last.
    pub fn entries_in_order(&self) -> impl Iterator<Item = &Entry> {
        self.line.iter().filter_map(|key| self.entry_of(key.pr()))
    }

    /// The runs that live entries refer to, ordered by id.
    pub fn runs(&self) -> impl Iterator<Item = &TestRun> {
        self.runs.values().map(AsRef::as_ref)
    }

    /// The number of live entries.
    pub fn live(&self) -> usize {
        self.entries.size()
    }

    /// The mode in force: during a mode switch, the old one.
    pub fn mode(&self) -> Mode {
        self.header.mode()
    }

    pub(super) fn put_entry(&mut self, entry: Arc<Entry>) {
        let key = OrderKey::of(&entry);
        let old = self.entries.get(&entry.pr).cloned();
        let old_key = old.as_deref().map(OrderKey::of);
        if old_key != Some(key) {
            if let Some(old) = old_key {
                self.line.remove(&old);
            }
            self.line.insert(key);
        }
        if old.is_none() {
            self.numbers.insert(entry.id, entry.pr);
            self.left.remove(&entry.pr);
        }
        let run = entry.state.run().and_then(|run| self.runs.get(&run)).map(AsRef::as_ref);
        self.lanes.replace(old.as_deref(), Some(&entry), run);
        self.started.replace(old.as_deref(), Some(&entry), run);
        self.waiting.replace(old.as_deref(), Some(&entry));
        self.turns.replace(&self.header.settings, old.as_deref(), Some(&entry));
        self.by_status.wake(entry.pr);
        self.entries.insert(entry.pr, entry);
    }

    pub(super) fn remove_entry(&mut self, id: EntryId) {
        let Some(old) = self.shared_entry(id).cloned() else { return };
        let key = OrderKey::of(&old);
        self.line.remove(&key);
        self.numbers.remove(&old.id);
        self.entries.remove(&old.pr);
        self.lanes.replace(Some(&old), None, None);
        self.started.replace(Some(&old), None, None);
        self.waiting.replace(Some(&old), None);
        self.turns.replace(&self.header.settings, Some(&old), None);
        self.by_status.wake(old.pr);
        self.note_left(old.pr);
    }

    /// Records that runs may contain a pull request that has left. When the record has doubled,
    /// removes the pull requests that left before the oldest present run was started.
    fn note_left(&mut self, pr: PrNumber) {
        self.left.insert(pr, self.header.sequence);
        if self.left.size() > self.most_left {
            let oldest = self.runs.values().map(|run| run.number).min().unwrap_or(u64::MAX);
            let before = self.left.iter().filter(|(_, left_at)| **left_at < oldest);
            for pr in before.map(|(pr, _)| *pr).collect::<Vec<_>>() {
                self.left.remove(&pr);
            }
            self.most_left = 2 * self.left.size().max(MOST_LEFT);
        }
    }

    /// Whether a run may contain this pull request, which is not in the queue.
    pub(super) fn may_contain_earlier(&self, pr: PrNumber) -> bool {
        self.left.contains_key(&pr)
    }

    pub(super) fn put_run(&mut self, run: Arc<TestRun>) {
        let known = self.runs.get(&run.id).cloned();
        let same = known.as_ref().is_some_and(|known| {
            known.status == run.status && known.candidate.is_some() == run.candidate.is_some()
        });
        self.by_status.replace(known.as_deref(), Some(&run));
        if !same {
            for member in run.group.iter() {
                self.waiting.wake(member.pr);
                self.built(member.pr, &run);
            }
        }
        self.runs.insert(run.id, run);
    }

    /// Updates the indexes of an entry whose run has changed.
    fn built(&mut self, pr: PrNumber, run: &TestRun) {
        let of_it = |entry: &&Arc<Entry>| entry.state.run() == Some(run.id);
        let Some(entry) = self.entries.get(&pr).filter(of_it).cloned() else { return };
        self.lanes.replace(Some(&entry), Some(&entry), Some(run));
        self.started.replace(Some(&entry), Some(&entry), Some(run));
    }

    pub(super) fn remove_run(&mut self, id: RunId) {
        if let Some(old) = self.runs.get(&id).cloned() {
            self.by_status.replace(Some(&old), None);
            self.runs.remove(&id);
        }
    }

    /// Whether a run is kept: it is running, landing, or the run of a live entry.
    pub(super) fn needs(&self, run: &TestRun) -> bool {
        let lands = |landing: &Landing| landing.runs.contains(&run.id);
        run.status.is_running()
            || self.header.landing.as_ref().is_some_and(lands)
            || self.started.of_run(run.id).next().is_some()
    }
}
