//! Announcements on pull requests of forges, shortly after each commit of their queue.
//!
//! A commit records the pull requests whose state it changes, in its own transaction. What the host
//! shows of each is stored, so that no announcement is repeated, and a failed one is retried until
//! the host accepts it, also by another server or after a restart.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use uuid::Uuid;

use signalbox_domain::ids::Sha;
use signalbox_domain::ports::{
    Announcement, Forge, HostError, LandedNote, LeasedAnnouncement, QueueRef, Repository, Shown,
    StatusNote,
};
use signalbox_domain::queue::{Entry, EntryState, Exit, MergeMethod, Queue};
use signalbox_domain::time::{Span, Timestamp};

use super::announcement_words::{AnnouncementText, LABELS, phase};
use super::{Error, QueueContext, QueueService};

/// The duration of a lease on a pull request, in seconds.
const LEASE_SECONDS: u32 = 30;
/// The first and the longest pause after a failure, in seconds.
const PAUSE_SECONDS: (u32, u32) = (2, 60);
/// How long announcements are remembered, in days.
const REMEMBERED_DAYS: u32 = 30;

/// Announces the states of entries on their pull requests: commit status, comment and labels.
pub struct StatusReporter {
    context: QueueContext,
    queues: Arc<QueueService>,
    holder: Uuid,
    /// The pauses of parts that a host rejects at present; each server keeps its own.
    pauses: Mutex<BTreeMap<(QueueRef, Part), Pause>>,
}

/// The parts of an announcement; each succeeds or fails on its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Closed,
    Status,
    Comment,
    Labels,
}

/// The pause of a part of a queue after a failure.
#[derive(Clone, Copy, Debug)]
struct Pause {
    failures: u32,
    until: Timestamp,
}

/// The fingerprints of all parts of an announcement.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Prints {
    closed: Option<Uuid>,
    status: Option<Uuid>,
    comment: Option<Uuid>,
    labels: Option<Uuid>,
}

/// The announcement of an entry.
struct Wanted {
    announcement: Announcement,
    landed: Option<LandedNote>,
}

impl Wanted {
    /// Builds the announcement that the queue's settings ask for.
    fn of(queue: &Queue, entry: &Entry, forge: &dyn Forge, newer: Option<&Sha>) -> Self {
        let settings = &queue.header.settings;
        let text = AnnouncementText::of(queue, entry, forge, newer);
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

    /// The announcement with only this part.
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

/// A queue with its repository and forge.
struct QueueAtHost<'a> {
    key: QueueRef,
    queue: &'a Queue,
    repository: &'a Repository,
    forge: &'a dyn Forge,
}

impl StatusReporter {
    /// Creates a reporter with a lease holder id of its own.
    pub fn new(context: impl Into<QueueContext>, queues: Arc<QueueService>) -> Self {
        let context = context.into();
        let holder = context.ids.new_id();
        Self { context, queues, holder, pauses: Mutex::new(BTreeMap::new()) }
    }

    /// Announces the pull request that has been due for the longest time; `false` if none is due.
    pub async fn next(&self) -> Result<bool, Error> {
        let now = self.context.clock.now();
        let until = now.plus(Span::seconds(LEASE_SECONDS));
        let store = &self.context.stores.announcements;
        let Some(mut leased) = store.lease(1, self.holder, now, until).await?.pop() else {
            return Ok(false);
        };
        let next = self.update(&mut leased).await?;
        let now = self.context.clock.now();
        // If the lease was lost, another server has it and announces the rest.
        let _kept = store.release(&leased, now, next).await?;
        Ok(true)
    }

    /// Deletes old records of announcements; returns the number of deleted records.
    pub async fn forget(&self) -> Result<u64, Error> {
        let before = self.context.clock.now().minus(Span::days(REMEMBERED_DAYS));
        Ok(self.context.stores.announcements.forget(before, 1_000).await?)
    }

    /// Announces the changed parts of a pull request. Returns when to continue; `None` if every
    /// part is shown or was rejected for good, or if the host has no forge.
    async fn update(&self, leased: &mut LeasedAnnouncement) -> Result<Option<Timestamp>, Error> {
        let (key, pr) = (leased.queue, leased.pr);
        let Some(queue) = self.queues.state(key).await? else { return Ok(None) };
        let found = self.context.repositories.find(key.org, queue.header.repo).await?;
        let Some(repository) = found else { return Ok(None) };
        let host = &repository.name.host;
        let Some(forge) = self.context.hosts.forge(key.org, host) else { return Ok(None) };
        let entry = match queue.entry_of(pr) {
            Some(live) => Some(live.clone()),
            None => self.context.stores.history.entries(key, &[pr]).await?.pop(),
        };
        let Some(entry) = entry else { return Ok(None) };
        let (queue, repository, forge) = (&*queue, &repository, forge.as_ref());
        let place = QueueAtHost { key, queue, repository, forge };
        if self.show(&place, &entry, &mut leased.shown).await {
            return Ok(None);
        }
        let (first, _) = PAUSE_SECONDS;
        let soon = self.context.clock.now().plus(Span::seconds(first));
        Ok(Some(self.pause_end(key).map_or(soon, |end| end.max(soon))))
    }

    /// Announces the changed parts. Returns whether every part is shown or was rejected for good.
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
        // The comment names the head that was not merged.
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

    /// When the earliest pause of a queue ends.
    fn pause_end(&self, key: QueueRef) -> Option<Timestamp> {
        let now = self.context.clock.now();
        let pauses = locked(&self.pauses);
        let of_queue = pauses.iter().filter(|((of, _), pause)| *of == key && now < pause.until);
        of_queue.map(|(_, pause)| pause.until).min()
    }

    fn is_paused(&self, key: QueueRef, part: Part) -> bool {
        let now = self.context.clock.now();
        locked(&self.pauses).get(&(key, part)).is_some_and(|pause| now < pause.until)
    }

    /// Records the result of a part; returns `true` if it must be retried, after a pause for all
    /// pull requests of the queue. A part that the host rejects is not retried until it changes.
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
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
