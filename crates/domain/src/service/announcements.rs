//! What is shown on pull requests of hosts with people: it follows the queue, a moment behind.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::ids::{PrNumber, RunId};
use crate::ports::{
    Announcement, EntryFilter, Forge, HostError, QueueKey, QueueRef, Repository, StatusNote,
    StatusState, TestPullRequest,
};
use crate::queue::{Entry, EntryState, Exit, PrState, Queue, RunStatus};
use crate::time::{Span, Timestamp, Window};
use crate::vocabulary::{Named as _, blame, reason};

use super::{Context, Error, QueueService};

/// How far back ended entries are shown that were not shown while they were live, in hours.
const LOOK_BACK_HOURS: u32 = 1;
/// The most ended entries of a queue that are looked at in a round.
const ENDED_AT_ONCE: u32 = 100;
/// The labels of states: `signalbox: testing`.
const LABELS: [(PrState, &str); 5] = [
    (PrState::NotReady, "signalbox: not ready"),
    (PrState::Pending, "signalbox: queued"),
    (PrState::Testing, "signalbox: testing"),
    (PrState::Failed, "signalbox: failed"),
    (PrState::Merged, "signalbox: merged"),
];

type Key = (QueueRef, PrNumber);

/// Shows what queues do on the pull requests themselves.
pub struct Announcer {
    context: Context,
    queues: Arc<QueueService>,
    told: Mutex<BTreeMap<Key, Told>>,
    drafts: Mutex<BTreeSet<RunId>>,
}

/// What was wanted in the last round, and what the host shows.
struct Told {
    wanted: Announcement,
    shown: Option<Announcement>,
    submitted_at: Timestamp,
}

impl Announcer {
    /// An announcer that has shown nothing yet.
    pub const fn new(context: Context, queues: Arc<QueueService>) -> Self {
        let told = Mutex::new(BTreeMap::new());
        Self { context, queues, told, drafts: Mutex::new(BTreeSet::new()) }
    }

    /// Looks at every queue once, and shows what has changed and stayed so since the last round.
    pub async fn round(&self) -> Result<(), Error> {
        for key in self.context.stores.queues.list(None, None).await? {
            let found = self.context.stores.repos.find(key.queue.org, key.repo).await?;
            let Some(repository) = found else { continue };
            let host = &repository.name.host;
            let Some(forge) = self.context.hosts.forge(repository.org, host) else { continue };
            let Some(queue) = self.queues.state(key.queue).await? else { continue };
            // A host that does not answer is asked again in the next round.
            if self.open_drafts(&queue, &repository, forge.as_ref()).await.is_ok() {
                self.announce(&key, &queue, &repository, forge.as_ref()).await?;
            }
        }
        Ok(())
    }

    async fn open_drafts(
        &self,
        queue: &Queue,
        repository: &Repository,
        forge: &dyn Forge,
    ) -> Result<(), HostError> {
        if !queue.header.settings.create_prs_for_testing_branches {
            return Ok(());
        }
        for run in queue.runs() {
            let waits = run.status == RunStatus::Testing && run.candidate.is_some();
            if !waits || locked(&self.drafts).contains(&run.id) {
                continue;
            }
            let prs: Vec<String> = run.group.iter().map(|it| format!("#{}", it.pr)).collect();
            let prs = prs.join(", ");
            let wanted = TestPullRequest {
                branch: run.branch.clone(),
                target: queue.header.branch.clone(),
                title: format!("[merge queue] tests {prs}"),
                body: format!(
                    "The merge queue tests {prs} on top of `{}` here. Do not merge this.",
                    queue.header.branch
                ),
            };
            match forge.open_test_pull_request(repository, &wanted).await {
                Err(error) if error.is_passing() => return Err(error),
                // A host that refuses it is not asked again for this run.
                Ok(()) | Err(_) => {}
            }
            locked(&self.drafts).insert(run.id);
        }
        // Those that are no longer known have ended.
        let mut drafts = locked(&self.drafts);
        if drafts.len() > 10_000 {
            drafts.retain(|id| queue.run(*id).is_some());
        }
        Ok(())
    }

    async fn announce(
        &self,
        key: &QueueKey,
        queue: &Queue,
        repository: &Repository,
        forge: &dyn Forge,
    ) -> Result<(), Error> {
        for entry in self.worth_showing(key.queue, queue).await? {
            let at = (key.queue, entry.pr);
            let wanted = announcement(queue, &entry, forge);
            let ended = !entry.is_live();
            let due = {
                let mut told = locked(&self.told);
                let shown = told.remove(&at);
                let settled = ended || shown.as_ref().is_some_and(|it| it.wanted == wanted);
                let before = shown.and_then(|it| it.shown);
                let due = settled && before.as_ref() != Some(&wanted);
                let submitted_at = entry.submitted_at;
                told.insert(at, Told { wanted: wanted.clone(), shown: before, submitted_at });
                due
            };
            if !due {
                continue;
            }
            match forge.announce(repository, &wanted).await {
                Err(error) if error.is_passing() => return Ok(()),
                // What the host refuses is not tried again until there is something new to show.
                Ok(()) | Err(_) => {}
            }
            if let Some(told) = locked(&self.told).get_mut(&at) {
                told.shown = Some(wanted);
            }
        }
        self.forget_old(key.queue, queue);
        Ok(())
    }

    /// Live entries, and those that have ended lately.
    async fn worth_showing(&self, key: QueueRef, queue: &Queue) -> Result<Vec<Entry>, Error> {
        let mut entries: Vec<Entry> = queue.entries_in_order().cloned().collect();
        let since = self.context.clock.now().minus(Span::hours(LOOK_BACK_HOURS));
        let concluded = Some(Window::inclusive(Some(since), None));
        let filter = EntryFilter { state: None, concluded };
        let history = &self.context.stores.history;
        let ended = history.entries_by_submission(key, &filter, None, ENDED_AT_ONCE).await?;
        entries.extend(ended.into_iter().filter(|entry| !entry.is_live()));
        Ok(entries)
    }

    fn forget_old(&self, key: QueueRef, queue: &Queue) {
        // Twice as long as ended entries are looked at, so that nothing is shown again.
        let before = self.context.clock.now().minus(Span::hours(24 * LOOK_BACK_HOURS));
        locked(&self.told).retain(|(of, pr), told| {
            *of != key || queue.entry_of(*pr).is_some() || told.submitted_at > before
        });
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What is to be shown for an entry, as the queue's settings say.
fn announcement(queue: &Queue, entry: &Entry, forge: &dyn Forge) -> Announcement {
    let settings = &queue.header.settings;
    let text = Words::of(queue, entry, forge);
    Announcement {
        pr: entry.pr,
        queue: queue.header.branch.clone(),
        status: settings.status_check_enabled.then(|| StatusNote {
            sha: entry.pull_request.head.clone(),
            state: text.state,
            description: text.line.clone(),
        }),
        comment: settings.comments_enabled.then(|| text.comment.clone()),
        labels: settings.state_labels_enabled.then(|| {
            let shown = phase(&entry.state);
            let (wanted, unwanted): (Vec<_>, Vec<_>) =
                LABELS.iter().partition(|(state, _)| *state == shown);
            let names = |list: Vec<&(PrState, &str)>| {
                list.into_iter().map(|(_, name)| (*name).to_owned()).collect()
            };
            (names(wanted), names(unwanted))
        }),
    }
}

/// The state as it is shown: short-lived ones are part of a longer one, so that nobody is told of
/// each step.
const fn phase(state: &EntryState) -> PrState {
    match state {
        EntryState::NotReady => PrState::NotReady,
        EntryState::Pending { .. } => PrState::Pending,
        EntryState::Testing { .. }
        | EntryState::TestsPassed { .. }
        | EntryState::PendingFailure { .. } => PrState::Testing,
        EntryState::Ended(exit) => exit.state(),
    }
}

/// The words for an entry.
struct Words {
    state: StatusState,
    line: String,
    comment: String,
}

impl Words {
    fn of(queue: &Queue, entry: &Entry, forge: &dyn Forge) -> Self {
        let branch = forge.neutral(queue.header.branch.as_str());
        let neutral = |list: &[String]| {
            let items: Vec<String> =
                list.iter().take(20).map(|it| format!("\n- {}", forge.neutral(it))).collect();
            items.concat()
        };
        let called = |state: PrState, word: &str| {
            reason(state, word).map_or_else(|| forge.neutral(word), |it| it.label.to_owned())
        };
        let (state, why, more) = match &entry.state {
            EntryState::NotReady => {
                let reason = entry.readiness(&queue.header.branch, queue.mode()).missing();
                let more = reason.map(|it| forge.neutral(&it.sentence())).unwrap_or_default();
                (StatusState::Pending, None, more)
            }
            EntryState::Pending { .. } => (StatusState::Pending, None, String::new()),
            EntryState::Testing { .. }
            | EntryState::TestsPassed { .. }
            | EntryState::PendingFailure { .. } => {
                let branch = entry.state.run().and_then(|run| queue.run(run));
                let more = branch.map(|run| {
                    format!("The test branch is {}.", forge.neutral(run.branch.as_str()))
                });
                let more = more.filter(|_| matches!(entry.state, EntryState::Testing { .. }));
                (StatusState::Pending, None, more.unwrap_or_default())
            }
            EntryState::Ended(Exit::Merged { sha, tested_tree, landed_tree, .. }) => {
                let mut more =
                    sha.as_ref().map(|sha| format!("Landed as {sha}.")).unwrap_or_default();
                if let (Some(tested), Some(landed)) = (tested_tree, landed_tree) {
                    let verdict = if tested == landed { "is" } else { "**is not**" };
                    more = format!(
                        "{more} The landed tree {landed} {verdict} the tested tree {tested}."
                    );
                }
                if let Some(since) = entry.off_target_since {
                    more = format!(
                        "{more} The target branch was moved and has not contained it since {since}."
                    );
                }
                (StatusState::Success, None, more)
            }
            EntryState::Ended(exit @ Exit::Failed { reason, details, .. }) => {
                let blame = blame(exit).unwrap_or_default();
                let why = called(PrState::Failed, reason.word());
                let more = format!("{why}: {blame}{}", neutral(details));
                (StatusState::Failure, Some(why), more)
            }
            EntryState::Ended(Exit::Cancelled { reason, by }) => {
                let why = called(PrState::Cancelled, reason.word());
                let more = format!("{why}, by {}.", forge.neutral(&by.to_string()));
                (StatusState::Failure, Some(why), more)
            }
        };
        let word = phase(&entry.state).named();
        let line = why.map_or_else(|| word.label.into(), |why| format!("{}: {why}", word.label));
        let comment =
            format!("**Merge queue {branch}**: {}: {}.\n\n{more}", word.label, word.sentence);
        Self { state, line, comment }
    }
}
