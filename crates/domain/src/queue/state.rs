//! The queue. States are enums with data: what a state needs, it carries.

use std::ops::Bound;
use std::sync::Arc;

use rpds::{RedBlackTreeMapSync, RedBlackTreeSetSync};

use crate::ids::{BranchName, EntryId, OrgId, PrNumber, QueueId, RepoId, RunId, Sha, TreeId};
use crate::time::Timestamp;
use crate::words::words;

use super::order::OrderKey;
use super::waiting::Waiting;
use super::{Actor, Entry, Mode, Refusal, Settings, TestRun};

words!(
    /// A pull request's state in a queue, as clients see it.
    PrState {
        /// Submitted; something is missing before it may enter the line.
        NotReady = "NOT_READY",
        /// In the line, waiting for its turn.
        Pending = "PENDING",
        /// Being tested; holds a slot.
        Testing = "TESTING",
        /// Tested; waits for what is ahead to land.
        TestsPassed = "TESTS_PASSED",
        /// On the target branch.
        Merged = "MERGED",
        /// Taken out because of a failure.
        Failed = "FAILED",
        /// Taken out on somebody's or some event's request.
        Cancelled = "CANCELLED",
        /// Its run failed, but the fault may lie elsewhere.
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
        /// Everything goes on.
        Running = "RUNNING",
        /// Nothing starts and nothing merges.
        Paused = "PAUSED",
        /// What is in the line is finished; nothing new enters.
        Draining = "DRAINING",
        /// As draining, then on in the other mode.
        SwitchingModes = "SWITCHING_MODES",
    }
);

words!(
    /// The states that can be asked for.
    RequestedState {
        /// Everything goes on.
        Running = "RUNNING",
        /// Nothing starts and nothing merges.
        Paused = "PAUSED",
        /// What is in the line is finished; nothing new enters.
        Draining = "DRAINING",
    }
);

/// A queue's state with what it needs.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum QueueState {
    /// Everything goes on.
    Running,
    /// Nothing starts and nothing merges.
    Paused {
        /// Who paused it.
        by: Actor,
        /// Why, if it was said.
        reason: Option<String>,
        /// The mode in force until the line is empty, when the settings already name another.
        #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
        switching_from: Option<Mode>,
    },
    /// What is in the line is finished; nothing new enters.
    Draining,
    /// The line empties in the old mode; then the queue runs or drains in the new one, which the
    /// settings already name.
    SwitchingModes {
        /// The mode in force until the line is empty.
        from: Mode,
        /// Whether it drains on after that, because it did before.
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

    /// The mode in force until the line is empty, when the settings already name another.
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

/// The target branch as last seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Target {
    /// Its head, or the last one before it went missing; `None` before the host was asked, or when
    /// there never was one.
    pub head: Option<Sha>,
    /// The head's tree.
    pub tree: Option<TreeId>,
    /// Whether the host was asked and knows no such branch.
    pub missing: bool,
    /// When it was seen there, or landed on.
    pub seen_at: Option<Timestamp>,
}

/// A landing that was handed to the host and has not been answered.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Landing {
    /// The run whose candidate lands.
    pub run: RunId,
    /// All runs whose groups land with it, in line order; the last is `run`.
    pub runs: Vec<RunId>,
    /// Since when.
    pub since: Timestamp,
    /// Whether the tested tree itself must land.
    #[cfg_attr(feature = "serde", serde(default = "yes"))]
    pub exact: bool,
}

#[cfg(feature = "serde")]
const fn yes() -> bool {
    true
}

words!(
    /// What keeps the host from doing what a queue asks. None of it says anything about a change.
    HostTroubleKind {
        /// It does not answer, or it is unwell.
        Unreachable = "UNREACHABLE",
        /// It does not let this installation do it.
        AccessDenied = "ACCESS_DENIED",
        /// It does not accept the credential.
        CredentialRejected = "CREDENTIAL_REJECTED",
    }
);

/// What is wrong with the host.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct HostTrouble {
    /// Which kind of trouble.
    pub kind: HostTroubleKind,
    /// The host's or the system's words, at most 500 characters are kept.
    pub words: String,
}

/// Whether the host answers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct HostHealth {
    /// Since when it does not; `None` when it does.
    pub unreachable_since: Option<Timestamp>,
    /// What was seen last; `None` while it answers.
    #[cfg_attr(feature = "serde", serde(default))]
    pub trouble: Option<HostTrouble>,
}

/// A queue without its entries and runs.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Header {
    /// Its id.
    pub id: QueueId,
    /// Whose it is.
    pub org: OrgId,
    /// The repository.
    pub repo: RepoId,
    /// The target branch.
    pub branch: BranchName,
    /// Its state.
    pub state: QueueState,
    /// Its settings.
    pub settings: Settings,
    /// The target as last seen.
    pub target: Target,
    /// The landing under way.
    pub landing: Option<Landing>,
    /// The merged pull requests that the target does not contain, because somebody moved it.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Vec::is_empty"))]
    pub off_target: Vec<PrNumber>,
    /// Whether the host answers.
    pub host: HostHealth,
    /// When a batch that a slot is free for has waited long enough to fill.
    #[cfg_attr(feature = "serde", serde(default))]
    pub batch_due: Option<Timestamp>,
    /// The last number given to a run, an effect, a place or a journal record.
    pub sequence: u64,
    /// When it was created.
    pub created_at: Timestamp,
    /// Whether it was deleted.
    pub deleted: bool,
}

/// A merge queue with its live entries and the runs that matter to them.
///
/// The collections share structure: a copy costs nothing, a change costs the logarithm of the
/// length. So the cost of a step does not grow with the line.
#[derive(Clone, Debug)]
pub struct Queue {
    /// Everything but the collections.
    pub header: Header,
    pub(super) entries: RedBlackTreeMapSync<EntryId, Arc<Entry>>,
    pub(super) line: RedBlackTreeSetSync<OrderKey>,
    pub(super) runs: RedBlackTreeMapSync<RunId, Arc<TestRun>>,
    /// The entries by number.
    numbers: RedBlackTreeMapSync<PrNumber, EntryId>,
    pub(super) waiting: Waiting,
}

/// Two queues are the same when they hold the same; what was looked at makes no difference.
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
                settings,
                target: Target::default(),
                landing: None,
                off_target: Vec::new(),
                host: HostHealth::default(),
                batch_due: None,
                sequence: 0,
                created_at: at,
                deleted: false,
            },
            [],
            [],
        ))
    }

    /// Puts a queue together from stored parts: its header, its live entries and their runs.
    pub fn restore(
        header: Header,
        entries: impl IntoIterator<Item = Entry>,
        runs: impl IntoIterator<Item = TestRun>,
    ) -> Self {
        let mut queue = Self {
            header,
            entries: RedBlackTreeMapSync::new_sync(),
            line: RedBlackTreeSetSync::new_sync(),
            runs: RedBlackTreeMapSync::new_sync(),
            numbers: RedBlackTreeMapSync::new_sync(),
            waiting: Waiting::default(),
        };
        for entry in entries {
            queue.put_entry(Arc::new(entry));
        }
        for run in runs {
            queue.put_run(Arc::new(run));
        }
        queue
    }

    /// The entry of that pull request, if it is live.
    pub fn entry_of(&self, pr: PrNumber) -> Option<&Entry> {
        self.entry(*self.numbers.get(&pr)?)
    }

    /// The live entry with that id.
    pub fn entry(&self, id: EntryId) -> Option<&Entry> {
        self.entries.get(&id).map(AsRef::as_ref)
    }

    /// The id that this pull request's entry has or will have here: made from the queue's id and
    /// the number, so that it is the same for every submission.
    pub fn entry_id(&self, pr: PrNumber) -> EntryId {
        EntryId(uuid::Uuid::new_v5(&self.header.id.0, format!("entry:{pr}").as_bytes()))
    }

    /// The run with that id, if it still matters to a live entry.
    pub fn run(&self, id: RunId) -> Option<&TestRun> {
        self.runs.get(&id).map(AsRef::as_ref)
    }

    /// All live entries, in queue order; those outside the line last.
    pub fn entries_in_order(&self) -> impl Iterator<Item = &Entry> {
        self.line.iter().filter_map(|key| self.entry(key.entry()))
    }

    /// The runs that matter to live entries, oldest first by id of their start.
    pub fn runs(&self) -> impl Iterator<Item = &TestRun> {
        self.runs.values().map(AsRef::as_ref)
    }

    /// How many entries are live.
    pub fn live(&self) -> usize {
        self.entries.size()
    }

    /// The mode in force: while modes are switched, the old one.
    pub const fn mode(&self) -> Mode {
        match self.header.state.switching_from() {
            Some(from) => from,
            None => self.header.settings.mode,
        }
    }

    pub(super) fn put_entry(&mut self, entry: Arc<Entry>) {
        let key = OrderKey::of(&entry);
        let old = self.entries.get(&entry.id).cloned();
        match &old {
            Some(old) if OrderKey::of(old) == key => {}
            Some(old) => {
                self.line.remove_mut(&OrderKey::of(old));
                self.line.insert_mut(key);
            }
            None => {
                self.line.insert_mut(key);
                self.numbers.insert_mut(entry.pr, entry.id);
            }
        }
        self.waiting.replace(old.as_deref(), Some(&entry));
        self.entries.insert_mut(entry.id, entry);
    }

    pub(super) fn remove_entry(&mut self, id: EntryId) {
        if let Some(old) = self.entries.get(&id).cloned() {
            self.line.remove_mut(&OrderKey::of(&old));
            self.numbers.remove_mut(&old.pr);
            self.entries.remove_mut(&id);
            self.waiting.replace(Some(&old), None);
        }
    }

    pub(super) fn put_run(&mut self, run: Arc<TestRun>) {
        let known = self.runs.get(&run.id);
        let same = known.is_some_and(|known| {
            known.status == run.status && known.candidate.is_some() == run.candidate.is_some()
        });
        if !same {
            for member in &run.group {
                self.waiting.wake(member.pr);
            }
        }
        self.runs.insert_mut(run.id, run);
    }

    /// The entries in the line before this place that are part of what is built, the nearest first.
    pub(super) fn before(&self, key: OrderKey) -> impl Iterator<Item = &Entry> {
        let keys = self.line.range(..key).rev();
        keys.filter_map(|key| self.entry(key.entry())).filter(|entry| !entry.is_held())
    }

    /// The entries in the line behind this place, the nearest first.
    pub(super) fn behind(&self, key: OrderKey) -> impl Iterator<Item = &Entry> {
        let places = (Bound::Excluded(key), Bound::Excluded(OrderKey::first_outside()));
        self.line.range(places).filter_map(|key| self.entry(key.entry()))
    }
}
