//! The daily audit: proves the newest landings again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use signalbox_domain::ids::{PrNumber, RepoId};
use signalbox_domain::ports::{EntryFilter, GitHost, HostError, PastLanding, QueueKey, Repository};
use signalbox_domain::queue::{
    Candidate, Composition, CompositionCheck, Entry, EntryState, Exit, Fact, Mismatch, PrState,
    WrongLanding,
};
use signalbox_domain::time::{Span, Window};

use super::{Error, QueueContext, QueueService};

/// The most pull requests of a queue whose landings one audit proves.
const MOST: usize = 100;
/// The most merged pull requests that it reads for that, newest submissions first.
const READ: u32 = 500;
/// The age of the oldest landing that is audited, in days: a day whose audit fails is made up for.
const DAYS: u32 = 2;

/// Proves landings again, from their records and the commits on the git hosts.
pub struct LandingAudit {
    context: QueueContext,
    queues: Arc<QueueService>,
}

/// What an audit of a queue has found.
#[derive(Default)]
struct Found {
    proved: u32,
    not_checked: u32,
    wrong: Vec<(PrNumber, Mismatch)>,
}

impl LandingAudit {
    /// Creates the audit.
    pub fn new(context: impl Into<QueueContext>, queues: Arc<QueueService>) -> Self {
        Self { context: context.into(), queues }
    }

    /// Audits every queue. A host that does not answer ends the audit of its queues; what was found
    /// until then is recorded. Returns the queues whose audit did not end.
    pub async fn audit(&self) -> Result<Vec<(QueueKey, HostError)>, Error> {
        let listed = self.context.repositories.list(None).await?;
        let repositories: BTreeMap<RepoId, Repository> =
            listed.into_iter().map(|repository| (repository.id, repository)).collect();
        let (mut unfinished, mut away, mut failed) = (Vec::new(), BTreeSet::new(), None);
        for (key, _) in self.queues.states(false).await? {
            let Some(repository) = repositories.get(&key.repo) else { continue };
            let place = (repository.org, repository.name.host.clone());
            let host = self.context.hosts.git_host(place.0, &place.1);
            let Some(host) = host.filter(|_| !away.contains(&place)) else { continue };
            match self.audit_queue(&key, repository, &*host).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => {
                    away.insert(place);
                    unfinished.push((key, error));
                }
                Err(error) => failed = Some(error),
            }
        }
        failed.map_or(Ok(unfinished), Err)
    }

    async fn audit_queue(
        &self,
        key: &QueueKey,
        repository: &Repository,
        host: &dyn GitHost,
    ) -> Result<Result<(), HostError>, Error> {
        let mut found = Found::default();
        let mut ended = Ok(());
        for (landing, prs) in self.landings(key).await? {
            ended = prove(host, repository, &landing, &prs, &mut found).await;
            if ended.is_err() {
                break;
            }
        }
        let Found { proved, not_checked, wrong } = found;
        if proved == 0 && not_checked == 0 && wrong.is_empty() {
            return Ok(ended);
        }
        let wrong = self.with_entries(key, wrong).await?;
        let fact = Fact::LandingsAudited { proved, not_checked, wrong };
        self.queues.absorb(key.queue, fact).await?;
        Ok(ended)
    }

    /// The landings of the last days, newest first, each with its pull requests.
    async fn landings(&self, key: &QueueKey) -> Result<Vec<(PastLanding, Vec<PrNumber>)>, Error> {
        let since = self.context.clock.now().minus(Span::days(DAYS));
        let window = Window { since: Some(since), until: None };
        let filter = EntryFilter { state: Some(PrState::Merged), concluded: Some(window) };
        let history = &self.context.stores.history;
        let mut entries = history.entries_by_submission(key.queue, &filter, None, READ).await?;
        entries.sort_by_key(|entry| std::cmp::Reverse((entry.state_changed_at, entry.pr)));
        let mut landings: Vec<(PastLanding, Vec<PrNumber>)> = Vec::new();
        for entry in entries.iter().take(MOST) {
            let Some(landing) = recorded(entry) else { continue };
            match landings.iter_mut().find(|(known, _)| known.landed.sha == landing.landed.sha) {
                Some((_, prs)) => prs.push(entry.pr),
                None => landings.push((landing, vec![entry.pr])),
            }
        }
        Ok(landings)
    }

    async fn with_entries(
        &self,
        key: &QueueKey,
        wrong: Vec<(PrNumber, Mismatch)>,
    ) -> Result<Vec<WrongLanding>, Error> {
        let prs: Vec<PrNumber> = wrong.iter().map(|(pr, _)| *pr).collect();
        let mut by_pr: BTreeMap<PrNumber, Mismatch> = wrong.into_iter().collect();
        let entries = self.context.stores.history.entries(key.queue, &prs).await?;
        let with = |entry: Entry| {
            let mismatch = by_pr.remove(&entry.pr)?;
            Some(WrongLanding { entry, mismatch })
        };
        Ok(entries.into_iter().filter_map(with).collect())
    }
}

/// The error is one of a host that does not answer; another one is about this landing alone.
async fn prove(
    host: &dyn GitHost,
    repository: &Repository,
    landing: &PastLanding,
    prs: &[PrNumber],
    found: &mut Found,
) -> Result<(), HostError> {
    match host.prove(repository, landing).await {
        Ok(Ok(composition)) if composition.check != CompositionCheck::NotChecked => {
            found.proved += 1;
        }
        Ok(Err(mismatch)) => found.wrong.extend(prs.iter().map(|pr| (*pr, mismatch.clone()))),
        Err(error) if error.is_passing() => return Err(error),
        Ok(Ok(_)) | Err(_) => found.not_checked += 1,
    }
    Ok(())
}

/// The record of a landing that the queue made and that the target still contains; `None` for others.
fn recorded(entry: &Entry) -> Option<PastLanding> {
    let EntryState::Ended(exit) = &entry.state else { return None };
    let Exit::Merged { sha: Some(sha), landed_tree: Some(tree), proof: Some(proof), .. } = exit
    else {
        return None;
    };
    let why_not = proof.composition.as_ref().and_then(|it| it.why_not.as_deref());
    let was_there = why_not == Some(Composition::FOUND_ON_TARGET);
    if entry.off_target_since.is_some() || proof.mismatch.is_some() || was_there {
        return None;
    }
    let landed = Candidate { sha: sha.clone(), tree: tree.clone() };
    Some(PastLanding { landed, proof: proof.as_ref().clone() })
}
