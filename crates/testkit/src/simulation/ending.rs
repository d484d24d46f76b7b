//! The properties at the end, after the faults have stopped and the queue has settled.

use signalbox_domain::ids::PrNumber;
use signalbox_domain::ports::{Clock as _, Loaded};
use signalbox_domain::queue::{
    Dependency, DependencyState, EffectClass, Entry, EntryState, Exit, FailReason, PrState,
    PullRequestState, Queue, QueueState, WaitReason, fold,
};
use signalbox_domain::time::Span;

use super::pause::block_on;
use super::watch::apart;
use super::world::World;

impl World {
    /// Whether the queue has settled.
    pub(super) fn is_settled(&self) -> bool {
        let header = self.watch.queue().header;
        header.state == QueueState::Running
            && header.landing.is_none()
            && header.host.unreachable_since.is_none()
            && self.waiting() == 0
            && self.in_line().is_empty()
    }

    /// The number of effects in the outbox, leased or not.
    fn waiting(&self) -> u64 {
        let later = self.schedule.clock.now().plus(Span::hours(1_000));
        let due =
            |class| block_on(self.stores.queue.outbox.backlog(class, later)).expect("answered").due;
        EffectClass::ALL.iter().map(|class| due(*class)).sum()
    }

    fn in_line(&self) -> Vec<(PrNumber, PrState)> {
        let queue = self.watch.queue();
        let waits = |state| state != PrState::NotReady;
        let all = queue.entries_in_order().map(|entry| (entry.pr, entry.state.name()));
        all.filter(|(_, state)| waits(*state)).collect()
    }

    /// The violated properties.
    pub(super) fn complaints(&self) -> Vec<String> {
        let mut complaints = self.schedule.violations();
        if !self.is_settled() {
            let state = self.watch.queue().header.state.name();
            complaints.push(format!(
                "Q8: {} effects wait, in the line are {:?}, the queue is {}",
                self.waiting(),
                self.in_line(),
                state.as_str()
            ));
        }
        complaints.extend(self.pull_requests());
        complaints.extend(self.target());
        complaints.extend(self.replay());
        let left = self.host.inner.test_branches_there(&self.repo);
        if !left.is_empty() {
            complaints.push(format!("test branches are left: {left:?}"));
        }
        complaints
    }

    /// Q3: every pull request has ended, or is rightly not ready.
    fn pull_requests(&self) -> Vec<String> {
        let (queue, reference) = (self.watch.queue(), self.watch.reference());
        let mut complaints = Vec::new();
        for (pr, told) in self.watch.told() {
            let stored = block_on(self.stores.queue.reads.entry(reference, pr)).expect("answered");
            let Some(entry) = stored else {
                complaints.push(format!("Q3: #{pr} was submitted and is nowhere"));
                continue;
            };
            if entry.state.name() != told {
                complaints.push(format!(
                    "Q3: #{pr} is {:?} and its last event was {told:?}",
                    entry.state
                ));
            }
            let shown = self.host.inner.shown(&self.repo, pr);
            let merged = shown.state == PullRequestState::Merged;
            if entry.is_live() {
                complaints.extend(self.unread_dependencies(&entry));
                let missing = entry.readiness(&queue.header).missing();
                if missing == Some(WaitReason::ComputingTargets) {
                    complaints.push(format!("the targets of #{pr} were never computed"));
                }
                let ready = missing.is_none();
                if ready || *entry.pull_request != shown {
                    complaints.push(format!("Q8: #{pr} is ready and waits: {:?}", entry.state));
                }
            }
            if told == PrState::Merged && !merged {
                complaints.push(format!("Q3: #{pr} is called merged and is not"));
            }
            if self.host.witnessed().landed.contains(&pr) && told != PrState::Merged {
                complaints.push(format!("Q3: #{pr} landed and is called {told:?}"));
            }
            complaints.extend(self.injustice(pr, &entry.state));
        }
        complaints
    }

    /// Q11: the queue knows the states of dependencies as the host shows them.
    fn unread_dependencies(&self, entry: &Entry) -> Vec<String> {
        let state = |on: &Dependency| match on {
            Dependency::Own(pr) => self.host.inner.find(&self.repo, *pr).map(|it| it.state.into()),
            Dependency::Other(..) | Dependency::Unknown(_) => None,
        };
        let shown = |on: &Dependency| state(on).unwrap_or(DependencyState::Missing);
        let wrong = entry.dependencies.iter().filter(|it| it.state != shown(&it.on));
        wrong.map(|it| format!("Q11: #{} depends on {}: {:?}", entry.pr, it.on, it.state)).collect()
    }

    /// Q7: a pull request that was never at fault does not fail, unless tests are flaky.
    fn injustice(&self, pr: PrNumber, state: &EntryState) -> Option<String> {
        let EntryState::Ended(Exit::Failed { reason, .. }) = state else { return None };
        let blames = match reason {
            FailReason::MergeConflict | FailReason::RequiredStatus => !self.temper.flaky,
            // A result that follows from a timeout says nothing about the files.
            FailReason::Optimization => !self.temper.flaky && !self.watch.has_timed_out(),
            FailReason::Timeout | FailReason::UpdatedAtMergeTime => false,
            FailReason::ConfigParsingFailure
            | FailReason::NoRequiredStatuses
            | FailReason::StartRefused
            | FailReason::MergeRefused => true,
        };
        let spotless = self.prs.iter().any(|it| it.number == pr && it.spotless);
        (blames && spotless).then(|| format!("Q7: #{pr} was never at fault: {state:?}"))
    }

    /// Q1 at the end: every commit on the target came from the queue or from a push outside it, and
    /// every landing is on the target.
    fn target(&self) -> Vec<String> {
        let files = self.host.inner.files(&self.repo, "main").unwrap_or_default();
        let mut complaints = Vec::new();
        let seen = self.host.witnessed().clone();
        for head in self.host.inner.past_heads(&self.repo, &self.main) {
            if !seen.heads.contains(&head) && !self.pushed.contains(&head) {
                complaints.push(format!("Q1: {head} on the target has no origin"));
            }
        }
        if !self.host.rules.are_good(&files) {
            complaints.push("Q1: the target is red at the end".to_owned());
        }
        for pr in &seen.landed {
            let path = self.prs.iter().find(|it| it.number == *pr).map(|it| &it.path);
            if path.is_none_or(|path| !files.contains_key(path)) {
                complaints.push(format!("Q1: #{pr} landed and is not on the target"));
            }
        }
        complaints
    }

    /// Q9: folding the journal gives the stored state.
    fn replay(&self) -> Option<String> {
        let reference = self.watch.reference();
        let journal =
            block_on(self.stores.queue.reads.journal(reference, 0, u32::MAX)).expect("answered");
        let inputs: Vec<_> = journal.into_iter().map(|it| (it.at, it.input)).collect();
        let folded = fold(self.watch.created_queue(), &inputs);
        let stored = block_on(self.stores.queue.queues.load(reference, None)).expect("answered");
        let stored: Option<Queue> = match stored {
            Some(Loaded::Fresh(queue, _)) => Some(*queue),
            Some(Loaded::Current) | None => None,
        };
        let folded = Some(folded);
        (stored != folded).then(|| {
            let apart = apart(&folded, &stored);
            format!("Q9: folding the journal does not give the stored state:{apart}")
        })
    }
}
