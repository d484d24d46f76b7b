//! Public events of a step.

use crate::ids::{PrNumber, RunId};

use super::super::{
    Actor, Entry, EntryState, Event, EventBatch, EventKind, EventRun, Exit, Mismatch, PrState,
    QueueStateName, RunStatus, Subject, TestRun,
};
use super::builder::TransitionBuilder;

/// Changes of a batch's members within a step; emitted at its end as one event.
pub(super) struct BatchNews {
    batch: EventBatch,
    kind: EventKind,
    reason: Option<String>,
    prs: Vec<PrNumber>,
}

impl TransitionBuilder {
    /// Emits the event of an entry's change of state, if there is one for it.
    pub(super) fn emit_pull_request(
        &mut self,
        entry: &Entry,
        from: Option<PrState>,
        to: &EntryState,
        reason: &str,
        run: Option<&TestRun>,
    ) {
        let (kind, of_batch) = match to {
            EntryState::NotReady if from.is_none() => (EventKind::Submitted, None),
            EntryState::NotReady | EntryState::TestsPassed { .. } => return,
            EntryState::Pending { .. } => (EventKind::Queued, Some(EventKind::BatchQueued)),
            // The event of the batch follows when its candidate is built.
            EntryState::Testing { .. } => (EventKind::Testing, None),
            EntryState::PendingFailure { .. } => {
                (EventKind::PendingFailure, Some(EventKind::BatchPendingFailure))
            }
            EntryState::Ended(Exit::Merged { .. }) => {
                (EventKind::Merged, Some(EventKind::BatchMerged))
            }
            EntryState::Ended(Exit::Failed { .. }) => {
                (EventKind::Failed, Some(EventKind::BatchFailed))
            }
            EntryState::Ended(Exit::Cancelled { .. }) => {
                (EventKind::Canceled, Some(EventKind::BatchCanceled))
            }
        };
        let subject = Subject::PullRequest {
            pr: entry.pr,
            author: entry.pull_request.author.clone(),
            url: entry.pull_request.url.clone(),
            exit: if let EntryState::Ended(exit) = to {
                Some(Box::new(exit.clone()))
            } else {
                None
            },
        };
        self.event(kind, subject, Some(reason.to_owned()), run.map(EventRun::from));
        let batch = || match &entry.absolved {
            Some(batch) => Some(EventBatch::clone(batch)),
            None => EventBatch::of(run?),
        };
        let batch = of_batch.zip(of_batch.and_then(|_| batch()));
        if let Some((kind, batch)) = batch.filter(|(_, it)| it.together.contains(&entry.pr)) {
            self.note_batch(kind, batch, entry.pr, reason);
        }
    }

    /// Emits an event of the queue itself.
    pub(super) fn emit_queue(
        &mut self,
        kind: EventKind,
        by: &Actor,
        from: QueueStateName,
        reason: Option<String>,
    ) {
        let to = self.queue.header.state.name();
        self.event(kind, Subject::Queue { by: by.to_string(), from, to }, reason, None);
    }

    /// Emits the events of a batch whose candidate was built.
    pub(super) fn emit_candidate(&mut self, id: RunId) {
        let Some(run) = self.run(id) else { return };
        let Some(batch) = EventBatch::of(&run) else { return };
        let prs = batch.together.clone();
        let reasons = prs.iter().filter_map(|pr| self.queue.entry_of(*pr));
        let mut reasons = reasons.map(|entry| entry.submit_reason);
        let first = reasons.next();
        let same = first.filter(|first| reasons.all(|reason| reason == *first));
        let reason = same.map(|reason| reason.as_str().to_owned());
        let news =
            |kind, reason| BatchNews { batch: batch.clone(), kind, reason, prs: prs.clone() };
        let submitted = news(EventKind::BatchSubmitted, reason);
        let testing = news(EventKind::BatchTesting, None);
        self.batches.push(submitted);
        if run.status == RunStatus::Testing {
            self.batches.push(testing);
        }
    }

    /// Requests the external checks of a run.
    pub(super) fn emit_checks_requested(
        &mut self,
        id: RunId,
        prs: Vec<PrNumber>,
        checks: Vec<String>,
    ) {
        let run = self.run(id).map(|run| EventRun::from(&*run));
        self.event(EventKind::ChecksRequested, Subject::TestRun { prs, checks }, None, run);
    }

    /// Reports a candidate that was composed wrongly.
    pub(super) fn emit_mismatch(&mut self, id: RunId, prs: Vec<PrNumber>, mismatch: Mismatch) {
        let run = self.run(id).map(|run| EventRun::from(&*run));
        let subject = Subject::Composition { prs, mismatch };
        self.event(EventKind::CompositionMismatch, subject, None, run);
    }

    fn note_batch(&mut self, kind: EventKind, batch: EventBatch, pr: PrNumber, reason: &str) {
        let same = |it: &&mut BatchNews| {
            it.batch.run.id == batch.run.id
                && it.kind == kind
                && it.reason.as_deref() == Some(reason)
        };
        if let Some(news) = self.batches.iter_mut().find(same) {
            news.prs.push(pr);
            return;
        }
        let reason = Some(reason.to_owned());
        self.batches.push(BatchNews { batch, kind, reason, prs: vec![pr] });
    }

    /// Emits the collected events of batches.
    pub(super) fn emit_batches(&mut self) {
        for BatchNews { batch, kind, reason, prs } in std::mem::take(&mut self.batches) {
            // Events of a whole batch wait until its last member reaches the state.
            let still_behind = [
                (EventKind::BatchMerged, PrState::TestsPassed),
                (EventKind::BatchPendingFailure, PrState::Testing),
            ];
            let waits_for_others = still_behind
                .iter()
                .any(|(of, state)| *of == kind && self.has_member_in(&batch, *state));
            if !waits_for_others {
                let EventBatch { run, together } = batch;
                self.event(kind, Subject::Batch { prs, together }, reason, Some(run));
            }
        }
    }

    /// Whether a member of the batch is in this state, by the batch's own run or absolved by
    /// another.
    fn has_member_in(&self, batch: &EventBatch, state: PrState) -> bool {
        let members = batch.together.iter().filter_map(|pr| self.queue.entry_of(*pr));
        let run_of = |entry: &Entry| match &entry.absolved {
            Some(own) => Some(own.run.id),
            None => entry.state.run(),
        };
        let mut by_it = members.filter(|entry| run_of(entry) == Some(batch.run.id));
        by_it.any(|entry| entry.state.name() == state)
    }

    pub(super) fn event(
        &mut self,
        kind: EventKind,
        subject: Subject,
        reason: Option<String>,
        run: Option<EventRun>,
    ) {
        let (number, at) = (self.number(), self.at);
        self.events.push(Event { number, kind, at, subject, reason, run });
    }
}
