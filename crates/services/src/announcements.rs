//! What is shown on pull requests of hosts with people: it follows the queue, a moment behind.
//!
//! What was last shown is stored, so nothing is shown twice, and what could not be shown is tried
//! again until the host takes it, also by another server and after a restart.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use uuid::Uuid;

use signalbox_domain::ids::{PrNumber, RunId, Sha};
use signalbox_domain::ports::{
    Announcement, EntryFilter, Forge, HostError, LandedNote, QueueKey, QueueRef, Repository, Shown,
    StatusNote, TestPullRequest,
};
use signalbox_domain::queue::{Entry, EntryState, Exit, MergeMethod, Queue, RunStatus};
use signalbox_domain::time::{Span, Timestamp, Window};

use super::announcement_words::{LABELS, Words, phase};
use super::{Context, Error, QueueService};

/// How far back ended entries are looked at that were never shown while they were live, in hours.
const LOOK_BACK_HOURS: u32 = 1;
/// The most ended entries of a queue that are looked at in a round.
const ENDED_AT_ONCE: u32 = 100;
/// How long a pull request is claimed while it is shown, in seconds.
const CLAIM_SECONDS: u32 = 30;
/// The first pause after a part could not be shown, and the longest, in seconds.
const PAUSE_SECONDS: (u32, u32) = (2, 60);
/// How long what was shown is remembered, in days.
const REMEMBERED_DAYS: u32 = 30;

type Key = (QueueRef, PrNumber);

/// Shows what queues do on the pull requests themselves.
pub struct Announcer {
    context: Context,
    queues: Arc<QueueService>,
    holder: Uuid,
    /// What was wanted of live entries in the last round: short-lived states are not shown.
    wanted: Mutex<BTreeMap<Key, Prints>>,
    pauses: Mutex<BTreeMap<(QueueRef, Part), Pause>>,
    drafts: Mutex<BTreeSet<RunId>>,
}

/// What is shown separately: the host may take one and not the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Closed,
    Status,
    Comment,
    Labels,
    Draft,
}

/// A part of a queue that could not be shown, and until when it is left alone.
#[derive(Clone, Copy, Debug)]
struct Pause {
    failures: u32,
    until: Timestamp,
}

/// Fingerprints of everything that is to be shown.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Prints {
    closed: Option<Uuid>,
    status: Option<Uuid>,
    comment: Option<Uuid>,
    labels: Option<Uuid>,
}

impl Prints {
    /// The parts that are not shown yet.
    fn missing(&self, shown: &Shown) -> Vec<Part> {
        let parts = [
            (Part::Closed, self.closed, shown.closed),
            (Part::Status, self.status, shown.status),
            (Part::Comment, self.comment, shown.comment),
            (Part::Labels, self.labels, shown.labels),
        ];
        let missing =
            parts.into_iter().filter(|(_, wanted, has)| wanted.is_some() && wanted != has);
        missing.map(|(part, ..)| part).collect()
    }
}

/// What is to be shown for an entry.
struct Wanted {
    announcement: Announcement,
    landed: Option<LandedNote>,
}

impl Wanted {
    /// As the queue's settings say.
    fn of(queue: &Queue, entry: &Entry, forge: &dyn Forge, newer: Option<&Sha>) -> Self {
        let settings = &queue.header.settings;
        let text = Words::of(queue, entry, forge, newer);
        let announcement = Announcement {
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
                let names = |list: Vec<&(_, &str)>| {
                    list.into_iter().map(|(_, name)| (*name).to_owned()).collect()
                };
                (names(wanted), names(unwanted))
            }),
        };
        let landed = match &entry.state {
            EntryState::Ended(Exit::Merged { sha: Some(sha), .. }) => Some(LandedNote {
                pr: entry.pr,
                head: entry.pull_request.head.clone(),
                sha: sha.clone(),
                rewritten: settings.merge_method != MergeMethod::MergeCommit,
            }),
            EntryState::Ended(_)
            | EntryState::NotReady
            | EntryState::Pending { .. }
            | EntryState::Testing { .. }
            | EntryState::TestsPassed { .. }
            | EntryState::PendingFailure { .. } => None,
        };
        Self { announcement, landed }
    }

    fn prints(&self) -> Prints {
        let it = &self.announcement;
        Prints {
            closed: self.landed.as_ref().map(|it| print(&[it.head.as_str(), it.sha.as_str()])),
            status: it.status.as_ref().map(|status| {
                let state = format!("{:?}", status.state);
                print(&[status.sha.as_str(), &state, &status.description])
            }),
            comment: it.comment.as_deref().map(|text| print(&[text])),
            labels: it
                .labels
                .as_ref()
                .map(|(wanted, unwanted)| print(&[&wanted.join("\n"), &unwanted.join("\n")])),
        }
    }

    /// Only that part, for the host.
    fn part(&self, part: Part) -> Announcement {
        let it = &self.announcement;
        Announcement {
            pr: it.pr,
            queue: it.queue.clone(),
            status: it.status.clone().filter(|_| part == Part::Status),
            comment: it.comment.clone().filter(|_| part == Part::Comment),
            labels: it.labels.clone().filter(|_| part == Part::Labels),
        }
    }
}

/// A fingerprint of texts.
fn print(texts: &[&str]) -> Uuid {
    Uuid::new_v5(&Uuid::NAMESPACE_URL, texts.join("\0").as_bytes())
}

/// A queue in a round.
struct QueueAtHost<'a> {
    key: QueueRef,
    queue: &'a Queue,
    repository: &'a Repository,
    forge: &'a dyn Forge,
}

impl Announcer {
    /// An announcer with a holder id of its own.
    pub fn new(context: Context, queues: Arc<QueueService>) -> Self {
        let holder = context.ids.new_id();
        let (wanted, pauses) = (Mutex::new(BTreeMap::new()), Mutex::new(BTreeMap::new()));
        let drafts = Mutex::new(BTreeSet::new());
        Self { context, queues, holder, wanted, pauses, drafts }
    }

    /// Looks at every queue once, and shows what is not shown yet and, for live entries, has
    /// stayed so since the last round.
    pub async fn round(&self) -> Result<(), Error> {
        for key in self.context.stores.queues.list(None, None).await? {
            let found = self.context.stores.repos.find(key.queue.org, key.repo).await?;
            let Some(repository) = found else { continue };
            let host = &repository.name.host;
            let Some(forge) = self.context.hosts.forge(repository.org, host) else { continue };
            let Some(queue) = self.queues.state(key.queue).await? else { continue };
            let forge = forge.as_ref();
            let place =
                QueueAtHost { key: key.queue, queue: &queue, repository: &repository, forge };
            self.open_drafts(&place).await;
            self.announce(&key, &place).await?;
        }
        Ok(())
    }

    /// Forgets what was shown long ago. Returns how many pull requests.
    pub async fn forget(&self) -> Result<u64, Error> {
        let before = self.context.clock.now().minus(Span::days(REMEMBERED_DAYS));
        Ok(self.context.stores.announcements.forget(before, 1_000).await?)
    }

    async fn open_drafts(&self, place: &QueueAtHost<'_>) {
        let queue = place.queue;
        if !queue.header.settings.create_prs_for_testing_branches
            || self.is_paused(place.key, Part::Draft)
        {
            return;
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
            let opened = place.forge.open_test_pull_request(place.repository, &wanted).await;
            // A host that refuses it is not asked again for this run.
            if self.note(place.key, Part::Draft, opened.as_ref().err()) {
                return;
            }
            locked(&self.drafts).insert(run.id);
        }
        // Those that are no longer known have ended.
        let mut drafts = locked(&self.drafts);
        if drafts.len() > 10_000 {
            drafts.retain(|id| queue.run(*id).is_some());
        }
    }

    async fn announce(&self, key: &QueueKey, place: &QueueAtHost<'_>) -> Result<(), Error> {
        let back = Span::hours(2 * LOOK_BACK_HOURS);
        let since = self.context.clock.now().minus(back);
        let store = &self.context.stores.announcements;
        let shown = store.unsettled_or_since(key.queue, since, 4 * ENDED_AT_ONCE).await?;
        let shown: BTreeMap<PrNumber, Shown> = shown.into_iter().collect();
        for entry in self.worth_showing(place, &shown).await? {
            let known = shown.get(&entry.pr).cloned().unwrap_or_default();
            let wanted =
                Wanted::of(place.queue, &entry, place.forge, known.newer_head.as_ref()).prints();
            let ended = !entry.is_live();
            let lasts = self.has_lasted(place.key, entry.pr, ended, &wanted);
            let due = wanted.missing(&known);
            let is_settled = due.is_empty() && (known.settled || !ended);
            let all_paused =
                !due.is_empty() && due.iter().all(|part| self.is_paused(place.key, *part));
            if lasts && !is_settled && !all_paused {
                self.show_claimed(place, &entry).await?;
            }
        }
        let queue = place.queue;
        locked(&self.wanted)
            .retain(|(of, pr), _| *of != key.queue || queue.entry_of(*pr).is_some());
        Ok(())
    }

    /// Whether the same was wanted in the last round. What has ended does not change any more.
    fn has_lasted(&self, key: QueueRef, pr: PrNumber, ended: bool, wanted: &Prints) -> bool {
        let before = locked(&self.wanted).insert((key, pr), wanted.clone());
        ended || before.as_ref() == Some(wanted)
    }

    /// Shows an entry unless another server is at it.
    async fn show_claimed(&self, place: &QueueAtHost<'_>, entry: &Entry) -> Result<(), Error> {
        let store = &self.context.stores.announcements;
        let now = self.context.clock.now();
        let until = now.plus(Span::seconds(CLAIM_SECONDS));
        let claimed = store.claim(place.key, entry.pr, self.holder, now, until).await?;
        let Some(mut shown) = claimed else { return Ok(()) };
        shown.settled = self.show(place, entry, &mut shown).await && !entry.is_live();
        let now = self.context.clock.now();
        // A claim that was lost meanwhile is another server's: it shows the rest.
        let _kept = store.release(place.key, entry.pr, self.holder, &shown, now).await?;
        Ok(())
    }

    /// Shows what is not shown yet. Whether everything is shown now, or was refused for good.
    async fn show(&self, place: &QueueAtHost<'_>, entry: &Entry, shown: &mut Shown) -> bool {
        let mut done = true;
        let newer = shown.newer_head.clone();
        let wanted = Wanted::of(place.queue, entry, place.forge, newer.as_ref());
        if let Some(landed) = &wanted.landed
            && let closed @ Some(_) = wanted.prints().closed
            && shown.closed != closed
        {
            done &= self.close(place, landed, closed, shown).await;
        }
        // The comment names the commits that were left out.
        let wanted = Wanted::of(place.queue, entry, place.forge, shown.newer_head.as_ref());
        let prints = wanted.prints();
        for (part, print, has) in [
            (Part::Status, prints.status, &mut shown.status),
            (Part::Comment, prints.comment, &mut shown.comment),
            (Part::Labels, prints.labels, &mut shown.labels),
        ] {
            if print.is_none() || print == *has {
                continue;
            }
            if self.is_paused(place.key, part) {
                done = false;
                continue;
            }
            let answer = place.forge.announce(place.repository, &wanted.part(part)).await;
            if self.note(place.key, part, answer.as_ref().err()) {
                done = false;
            } else {
                *has = print;
            }
        }
        done
    }

    async fn close(
        &self,
        place: &QueueAtHost<'_>,
        landed: &LandedNote,
        print: Option<Uuid>,
        shown: &mut Shown,
    ) -> bool {
        if self.is_paused(place.key, Part::Closed) {
            return false;
        }
        let answer = place.forge.close_landed(place.repository, landed).await;
        if self.note(place.key, Part::Closed, answer.as_ref().err()) {
            return false;
        }
        shown.closed = print;
        shown.newer_head = answer.unwrap_or_default();
        true
    }

    fn is_paused(&self, key: QueueRef, part: Part) -> bool {
        let now = self.context.clock.now();
        locked(&self.pauses).get(&(key, part)).is_some_and(|pause| now < pause.until)
    }

    /// Remembers how a part went. `true` when it must be tried again: then it is left alone for a
    /// while, for all pull requests of the queue. What the host refuses is not tried again until
    /// there is something new to show.
    fn note(&self, key: QueueRef, part: Part, error: Option<&HostError>) -> bool {
        let mut pauses = locked(&self.pauses);
        let Some(error) = error.filter(|error| error.is_passing()) else {
            pauses.remove(&(key, part));
            return false;
        };
        let (first, longest) = PAUSE_SECONDS;
        let failures = pauses.get(&(key, part)).map_or(0, |pause| pause.failures);
        let seconds = first.saturating_mul(1 << failures.min(10)).min(longest);
        let until = match error {
            HostError::RateLimited { retry_at } => *retry_at,
            HostError::Unavailable { .. }
            | HostError::AccessDenied { .. }
            | HostError::CredentialRejected { .. }
            | HostError::Rejected { .. }
            | HostError::NotFound { .. }
            | HostError::Conflict { .. } => self.context.clock.now().plus(Span::seconds(seconds)),
        };
        pauses.insert((key, part), Pause { failures: failures.saturating_add(1), until });
        true
    }

    /// Live entries, those that have ended lately, and those of which the host was not shown
    /// everything yet, however long ago they ended.
    async fn worth_showing(
        &self,
        place: &QueueAtHost<'_>,
        shown: &BTreeMap<PrNumber, Shown>,
    ) -> Result<Vec<Entry>, Error> {
        let mut entries: Vec<Entry> = place.queue.entries_in_order().cloned().collect();
        let since = self.context.clock.now().minus(Span::hours(LOOK_BACK_HOURS));
        let concluded = Some(Window::inclusive(Some(since), None));
        let filter = EntryFilter { state: None, concluded };
        let history = &self.context.stores.history;
        let ended = history.entries_by_submission(place.key, &filter, None, ENDED_AT_ONCE).await?;
        entries.extend(ended.into_iter().filter(|entry| !entry.is_live()));
        let listed: BTreeSet<PrNumber> = entries.iter().map(|entry| entry.pr).collect();
        let late = shown.iter().filter(|(pr, it)| !it.settled && !listed.contains(pr));
        let late: Vec<PrNumber> = late.map(|(pr, _)| *pr).collect();
        if !late.is_empty() {
            let late = history.entries(place.key, &late).await?;
            entries.extend(late.into_iter().filter(|entry| !entry.is_live()));
        }
        Ok(entries)
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
