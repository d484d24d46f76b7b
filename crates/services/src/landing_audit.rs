//! The nightly audit: proves the newest landings again.

use std::collections::BTreeMap;
use std::sync::Arc;

use signalbox_domain::ids::{PrNumber, RepoId, Sha};
use signalbox_domain::ports::{EntryFilter, GitHost, HostError, PastLanding, QueueKey, Repository};
use signalbox_domain::queue::{
    Candidate, CompositionCheck, Entry, EntryState, Exit, Fact, Mismatch, PrState, WrongLanding,
};
use signalbox_domain::time::Span;

use super::{Error, QueueContext, QueueService};

/// The most merged pull requests of a queue that one audit reads, newest submissions first.
const MOST: u32 = 100;
/// The age of the oldest landing that is audited, in days: a night whose audit fails is made up for.
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

    /// Audits every queue. A host that fails ends the audit of its queue; what was found until then is
    /// recorded. Returns the queues whose audit did not end.
    pub async fn audit(&self) -> Result<Vec<(QueueKey, HostError)>, Error> {
        let mut unfinished = Vec::new();
        let listed = self.context.repositories.list(None).await?;
        let repositories: BTreeMap<RepoId, Repository> =
            listed.into_iter().map(|repository| (repository.id, repository)).collect();
        for (key, _) in self.queues.states(false).await? {
            let Some(repository) = repositories.get(&key.repo) else { continue };
            let host = self.context.hosts.git_host(repository.org, &repository.name.host);
            let Some(host) = host else { continue };
            let ended = self.audit_queue(&key, repository, &*host).await?;
            unfinished.extend(ended.err().map(|error| (key, error)));
        }
        Ok(unfinished)
    }

    async fn audit_queue(
        &self,
        key: &QueueKey,
        repository: &Repository,
        host: &dyn GitHost,
    ) -> Result<Result<(), HostError>, Error> {
        let landings = self.landings(key).await?;
        let mut found = Found::default();
        let mut ended = Ok(());
        for (landing, prs) in landings.into_values() {
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

    /// The landings of the last days by their commit, each with the pull requests that landed.
    async fn landings(
        &self,
        key: &QueueKey,
    ) -> Result<BTreeMap<Sha, (PastLanding, Vec<PrNumber>)>, Error> {
        let filter = EntryFilter { state: Some(PrState::Merged), ..EntryFilter::default() };
        let history = &self.context.stores.history;
        let entries = history.entries_by_submission(key.queue, &filter, None, MOST).await?;
        let since = self.context.clock.now().minus(Span::days(DAYS));
        let mut landings = BTreeMap::new();
        for entry in entries.iter().filter(|entry| entry.state_changed_at >= since) {
            let Some(landing) = recorded(entry) else { continue };
            let commit = landing.landed.sha.clone();
            landings.entry(commit).or_insert((landing, Vec::new())).1.push(entry.pr);
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

async fn prove(
    host: &dyn GitHost,
    repository: &Repository,
    landing: &PastLanding,
    prs: &[PrNumber],
    found: &mut Found,
) -> Result<(), HostError> {
    match host.prove(repository, landing).await? {
        Ok(composition) if composition.check == CompositionCheck::NotChecked => {
            found.not_checked += 1;
        }
        Ok(_) => found.proved += 1,
        Err(mismatch) => found.wrong.extend(prs.iter().map(|pr| (*pr, mismatch.clone()))),
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
    if entry.off_target_since.is_some() || proof.mismatch.is_some() {
        return None;
    }
    let landed = Candidate { sha: sha.clone(), tree: tree.clone() };
    Some(PastLanding { landed, proof: proof.as_ref().clone() })
}
