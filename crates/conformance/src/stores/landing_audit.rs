//! The contract of the audit of landings: what it finds is stored with the entries.

use std::sync::Arc;

use signalbox_domain::ids::{BranchName, PrNumber, RepoName, Sha};
use signalbox_domain::ports::{PullRequestQuery, QueueRef, Stores};
use signalbox_domain::queue::{
    ChangeSource, CheckConclusion, Decision, EffectClass, Entry, EntryState, Exit, LandingProof,
    Mode, QueueStateName, RequestedState, SettingsPatch,
};
use signalbox_domain::testing::{CountingIds, ManualClock, Quiet};
use signalbox_domain::time::Span;
use signalbox_domain::token::Caller;
use signalbox_services::{
    Context, EffectRunner, LandingAudit, QueueChange, QueueService, SubmitOptions,
};

use super::Sample;
use crate::fake_host::{Call, Failure, FakeHost, FakeHosts};
use crate::plain_events::PlainEvents;

/// A server with a queue that lands everything.
struct House {
    clock: Arc<ManualClock>,
    host: Arc<FakeHost>,
    stores: Stores,
    queues: Arc<QueueService>,
    runner: EffectRunner,
    audit: LandingAudit,
    caller: Caller,
    repo: RepoName,
    main: BranchName,
}

impl House {
    async fn new(stores: &Stores) -> Self {
        let org = Sample::org(stores, "acme").await;
        let clock = Arc::new(ManualClock::default());
        let repo = RepoName::new("git.test", "acme", "calc").expect("a name");
        let host = Arc::new(FakeHost::new(clock.clone(), |_| CheckConclusion::Success));
        host.add_repository(&repo, &[("readme", "calc")]);
        let context = Context {
            stores: stores.clone(),
            hosts: Arc::new(FakeHosts::one(&repo.host, host.clone())),
            clock: clock.clone(),
            ids: Arc::new(CountingIds::default()),
            observer: Arc::new(Quiet),
            events: Arc::new(PlainEvents),
            notifier: Arc::new(Quiet),
        };
        let caller = Sample::caller(&org);
        let queues = Arc::new(QueueService::new(context.clone()));
        let main = BranchName::new("main").expect("a branch");
        let (mode, slots) = (Mode::Single, Some(2));
        let created =
            queues.create_queue(&caller, &repo, &main, mode, slots, ChangeSource::Direct).await;
        created.expect("a queue");
        Self {
            runner: EffectRunner::new(context.clone(), queues.clone()),
            audit: LandingAudit::new(context, queues.clone()),
            stores: stores.clone(),
            clock,
            host,
            queues,
            caller,
            repo,
            main,
        }
    }

    /// Submits a pull request and waits until it has landed.
    async fn land(&self, path: &str) -> PrNumber {
        let (caller, repo, main) = (&self.caller, &self.repo, &self.main);
        let pr = self.host.open(repo, "main", &[(path, "1")]);
        let submitted = self.queues.submit(caller, repo, main, pr, SubmitOptions::default()).await;
        submitted.expect("accepted");
        for _ in 0..200 {
            if matches!(self.entry(pr).await.state, EntryState::Ended(_)) {
                return pr;
            }
            for class in EffectClass::ALL {
                for leased in self.runner.lease(*class, 8).await.expect("leased") {
                    let sink = self.runner.sink(&leased);
                    self.runner.run(&leased, &sink).await.expect("run");
                }
            }
            self.clock.advance(Span::seconds(1));
        }
        panic!("#{pr} does not land");
    }

    async fn entry(&self, pr: PrNumber) -> Entry {
        let query = PullRequestQuery::Number(pr);
        let found = self.queues.entry(&self.caller, &self.repo, &self.main, &query).await;
        found.expect("it was submitted").entry
    }

    async fn landing(&self, pr: PrNumber) -> (Sha, LandingProof) {
        match self.entry(pr).await.state {
            EntryState::Ended(Exit::Merged { sha: Some(sha), proof: Some(proof), .. }) => {
                (sha, *proof)
            }
            other => panic!("{other:?}"),
        }
    }

    /// The state of the queue, and the results of all audits so far.
    async fn seen(&self) -> (QueueStateName, Vec<(u32, u32, u32)>) {
        let queue = self.queues.queue(&self.caller, &self.repo, &self.main).await.expect("a queue");
        let key = QueueRef { org: queue.header.org, id: queue.header.id };
        let journal = self.stores.queue.reads.journal(key, 0, 1_000).await.expect("a journal");
        let audited = |decision: &Decision| match decision {
            Decision::LandingsAudited { proved, not_checked, wrong } => {
                Some((*proved, *not_checked, *wrong))
            }
            _ => None,
        };
        let audits = journal.iter().flat_map(|record| record.decisions.iter().filter_map(audited));
        (queue.header.state.name(), audits.collect())
    }

    async fn audit(&self) -> usize {
        self.audit.audit().await.expect("the stores answer").len()
    }
}

/// Landings that are right stay as they are. A wrong one is stored with its entry and pauses the queue,
/// once. A host that fails ends the audit; landings of long ago are not read.
pub async fn a_wrong_landing_is_stored_and_pauses_the_queue_once(stores: &Stores) {
    let house = House::new(stores).await;
    let (first, second) = (house.land("one").await, house.land("two").await);
    assert_eq!(house.audit().await, 0);
    assert_eq!(house.seen().await, (QueueStateName::Running, vec![(2, 0, 0)]));

    let (commit, proof) = house.landing(first).await;
    house.host.landed_wrongly(&commit);
    assert_eq!(house.audit().await, 0);
    assert_eq!(house.seen().await, (QueueStateName::Paused, vec![(2, 0, 0), (1, 0, 1)]));
    let (_, marked) = house.landing(first).await;
    let mismatch = marked.mismatch.clone().expect("the difference");
    assert_eq!((&mismatch.base, &mismatch.commit), (&proof.base, &commit));
    assert_eq!(mismatch.paths, ["file"]);
    assert_eq!(
        LandingProof { mismatch: None, ..marked },
        proof,
        "the record is the same otherwise"
    );
    assert_eq!(house.landing(second).await.1.mismatch, None);

    // The user has undone it and resumes the queue.
    let state = Some(RequestedState::Running);
    let change =
        QueueChange { settings: SettingsPatch::default(), state, ..QueueChange::default() };
    let resumed = house.queues.update_queue(&house.caller, &house.repo, &house.main, change).await;
    resumed.expect("resumed");
    assert_eq!(house.audit().await, 0);
    let (state, audits) = house.seen().await;
    assert_eq!((state, audits.last()), (QueueStateName::Running, Some(&(1, 0, 0))));

    house.host.fail(Call::Prove, 1, Failure::Unavailable);
    assert_eq!(house.audit().await, 1, "the queue whose audit did not end");
    assert_eq!(house.seen().await.1.len(), audits.len(), "nothing was proved");

    house.clock.advance(Span::days(8));
    let calls = house.host.calls(Call::Prove);
    assert_eq!((house.audit().await, house.host.calls(Call::Prove)), (0, calls));
}
