//! Reads of public events.

use std::collections::BTreeSet;
use std::sync::Arc;

use signalbox_domain::flaky;
use signalbox_domain::ids::RepoId;
use signalbox_domain::ports::{EventLog, PublicEvent};
use signalbox_domain::queue;
use signalbox_domain::token::{Caller, Scope};

use super::{Error, Repositories};

/// The most pages of the log that one call reads, if the token may see few of its events.
const PAGES: u32 = 10;

/// A page of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventsRead {
    /// The events that the caller may see, in order.
    pub events: Vec<PublicEvent>,
    /// The position to continue from.
    pub next: i64,
    /// The newest position of the organization's log.
    pub newest: i64,
}

/// Reads public events.
pub struct EventService {
    log: Arc<dyn EventLog>,
    repositories: Repositories,
}

impl EventService {
    /// Creates the service.
    pub const fn new(log: Arc<dyn EventLog>, repositories: Repositories) -> Self {
        Self { log, repositories }
    }

    /// The public names of all kinds of events.
    pub fn kinds() -> impl Iterator<Item = &'static str> {
        let of_queues = queue::EventKind::ALL.iter().map(|kind| kind.as_str());
        of_queues.chain(flaky::EventKind::NAMES.iter().copied())
    }

    /// Events of the organization after a position, at most `limit`, restricted to the repositories
    /// and kinds that the token may read, and to the given kinds.
    pub async fn after(
        &self,
        caller: &Caller,
        after: i64,
        kinds: Option<&[String]>,
        limit: u32,
    ) -> Result<EventsRead, Error> {
        let kinds = visible_kinds(caller, kinds)?;
        let repos = self.visible_repos(caller).await?;
        let newest = self.log.newest(caller.org).await?;
        let most = usize::try_from(limit).unwrap_or(usize::MAX);
        let (mut events, mut next) = (Vec::new(), after);
        for _ in 0..PAGES {
            let page = self.log.after(caller.org, next, kinds.as_deref(), limit).await?;
            let whole = page.len() >= most;
            for event in page {
                if events.len() >= most {
                    break;
                }
                next = event.position;
                let visible =
                    |repos: &BTreeSet<RepoId>| event.repo.is_some_and(|repo| repos.contains(&repo));
                if repos.as_ref().is_none_or(visible) {
                    events.push(event);
                }
            }
            if !whole && events.len() < most {
                // Events above the position that was newest before are left for the next call.
                next = next.max(newest);
            }
            if !whole || events.len() >= most {
                break;
            }
        }
        Ok(EventsRead { events, next, newest: newest.max(next) })
    }

    /// The newest position of the caller's organization.
    pub async fn newest(&self, caller: &Caller) -> Result<i64, Error> {
        visible_kinds(caller, None)?;
        Ok(self.log.newest(caller.org).await?)
    }

    /// The repositories that a limited token may see; `None` for all.
    async fn visible_repos(&self, caller: &Caller) -> Result<Option<BTreeSet<RepoId>>, Error> {
        if caller.repos.is_empty() {
            return Ok(None);
        }
        let repos = self.repositories.list(Some(caller.org)).await?;
        let seen = repos.iter().filter(|repo| self.repositories.may_see(caller, &repo.name));
        Ok(Some(seen.map(|repo| repo.id).collect()))
    }
}

/// The requested kinds that the token may read; `None` for all.
fn visible_kinds(caller: &Caller, asked: Option<&[String]>) -> Result<Option<Vec<String>>, Error> {
    let may = |kind: &str| caller.may(scope_of(kind));
    if !caller.may(Scope::QueueRead) && !caller.may(Scope::TestsRead) {
        return Err(Error::MissingScope(Scope::QueueRead));
    }
    if asked.is_none() && caller.may(Scope::QueueRead) && caller.may(Scope::TestsRead) {
        return Ok(None);
    }
    let kinds: Vec<String> = match asked {
        Some(asked) => asked.iter().filter(|kind| may(kind)).cloned().collect(),
        None => EventService::kinds().filter(|kind| may(kind)).map(str::to_owned).collect(),
    };
    Ok(Some(kinds))
}

/// The scope that events of this kind require.
fn scope_of(kind: &str) -> Scope {
    if flaky::EventKind::NAMES.contains(&kind) { Scope::TestsRead } else { Scope::QueueRead }
}
