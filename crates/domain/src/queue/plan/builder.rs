//! The builder of a transition.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::ids::{EntryId, PrNumber, RunId};
use crate::time::Timestamp;

use super::super::{
    Actor, Changes, Decision, Effect, Entry, EntryState, Event, Exit, FreezeState, Header,
    IgnoredBecause, LinePosition, Moved, NumberedEffect, PrState, Queue, Reason, ReportedTargets,
    RunStatus, TestRun, Transition, outcomes, share,
};
use super::emit::BatchNews;
use super::{dependencies, quota};

/// Why an entry's state changes: the reason, who caused it, and details.
pub(super) struct Because<'a> {
    pub(super) reason: Reason,
    pub(super) actor: &'a Actor,
    pub(super) details: Vec<String>,
}

impl<'a> Because<'a> {
    pub(super) fn new(reason: impl Into<Reason>, actor: &'a Actor) -> Self {
        Self { reason: reason.into(), actor, details: Vec::new() }
    }

    pub(super) fn with(mut self, details: Vec<String>) -> Self {
        self.details = details;
        self
    }
}

/// The state under construction, with the changes, effects, decisions and events so far.
pub(super) struct TransitionBuilder {
    pub(super) queue: Queue,
    pub(super) at: Timestamp,
    changed_entries: BTreeMap<EntryId, Arc<Entry>>,
    changed_runs: BTreeSet<RunId>,
    gone_runs: BTreeMap<RunId, Arc<TestRun>>,
    left_runs: BTreeSet<RunId>,
    targets: Vec<(PrNumber, Arc<ReportedTargets>)>,
    effects: Vec<NumberedEffect>,
    decisions: Vec<Decision>,
    pub(super) events: Vec<Event>,
    pub(super) batches: Vec<BatchNews>,
    /// The authors, or agents, of entries that have left the line.
    pub(super) left_line: BTreeSet<String>,
    /// The pull requests that have ended, and whether they have merged.
    pub(super) ended: BTreeMap<PrNumber, bool>,
    /// Unchanged entries whose public state may have changed.
    pub(super) also_shown: BTreeSet<PrNumber>,
    before: Header,
}

impl TransitionBuilder {
    pub(super) fn of(queue: &Queue, at: Timestamp) -> Self {
        Self {
            queue: queue.clone(),
            at,
            changed_entries: BTreeMap::new(),
            changed_runs: BTreeSet::new(),
            gone_runs: BTreeMap::new(),
            left_runs: BTreeSet::new(),
            targets: Vec::new(),
            effects: Vec::new(),
            decisions: Vec::new(),
            events: Vec::new(),
            batches: Vec::new(),
            left_line: BTreeSet::new(),
            ended: BTreeMap::new(),
            also_shown: BTreeSet::new(),
            before: queue.header.clone(),
        }
    }

    /// The next number of the queue's own sequence.
    pub(super) const fn number(&mut self) -> u64 {
        self.queue.header.sequence += 1;
        self.queue.header.sequence
    }

    pub(super) fn decision(&mut self, decision: Decision) {
        self.decisions.push(decision);
    }

    pub(super) fn ignored(&mut self, because: IgnoredBecause) {
        self.decision(Decision::Ignored { because });
    }

    pub(super) fn effect(&mut self, effect: Effect) {
        let number = self.number();
        self.effects.push(NumberedEffect { number, effect });
    }

    pub(super) fn entry(&self, id: EntryId) -> Option<Arc<Entry>> {
        self.queue.shared_entry(id).cloned()
    }

    /// An entry, also one that has left the queue in this step.
    pub(super) fn last_version(&self, id: EntryId) -> Option<Arc<Entry>> {
        self.entry(id).or_else(|| self.changed_entries.get(&id).cloned())
    }

    pub(super) fn run(&self, id: RunId) -> Option<Arc<TestRun>> {
        self.queue.shared_run(id).cloned()
    }

    /// Writes an entry as it is now.
    pub(super) fn put_entry(&mut self, mut entry: Entry) {
        if let Some(old) = self.entry(entry.id) {
            let settings = &self.queue.header.settings;
            if old.place != LinePosition::Outside && settings.author_limit > 0 {
                let of = share::of(settings, &old.pull_request);
                let leaves = entry.place == LinePosition::Outside;
                if leaves || share::of(settings, &entry.pull_request) != of {
                    self.left_line.insert(of.to_owned());
                }
            }
            let is_outside = |entry: &Entry| entry.state == EntryState::NotReady;
            if is_outside(&old)
                && is_outside(&entry)
                && !super::may_time_out(&self.queue, &old)
                && super::may_time_out(&self.queue, &entry)
            {
                entry.unready_since = Some(self.at);
            }
        }
        let entry = Arc::new(entry);
        self.changed_entries.insert(entry.id, entry.clone());
        if entry.is_live() {
            self.queue.put_entry(entry);
        } else {
            self.queue.remove_entry(entry.id);
        }
    }

    pub(super) fn change_entry(&mut self, id: EntryId, change: impl FnOnce(&mut Entry)) {
        if let Some(entry) = self.entry(id) {
            let mut entry = Arc::unwrap_or_clone(entry);
            change(&mut entry);
            self.put_entry(entry);
        }
    }

    pub(super) fn put_run(&mut self, run: TestRun) {
        self.changed_runs.insert(run.id);
        self.queue.put_run(Arc::new(run));
    }

    pub(super) fn change_run(&mut self, id: RunId, change: impl FnOnce(&mut TestRun)) {
        if let Some(run) = self.run(id) {
            let mut run = Arc::unwrap_or_clone(run);
            change(&mut run);
            self.put_run(run);
        }
    }

    pub(super) fn put_targets(&mut self, pr: PrNumber, targets: Arc<ReportedTargets>) {
        self.targets.push((pr, targets));
    }

    /// Moves an entry to another state, and records the decision and the event.
    pub(super) fn move_entry(&mut self, id: EntryId, to: EntryState, because: Because<'_>) {
        self.change_and_move(id, |_| {}, to, because);
    }

    /// Changes an entry and then moves it to another state.
    pub(super) fn change_and_move(
        &mut self,
        id: EntryId,
        change: impl FnOnce(&mut Entry),
        to: EntryState,
        because: Because<'_>,
    ) {
        let Some(entry) = self.entry(id) else { return };
        let from = entry.state.name();
        let mut entry = Arc::unwrap_or_clone(entry);
        change(&mut entry);
        self.emit(&entry, Some(from), &to, because);
        self.left_runs.extend(entry.state.run());
        if to.name() != from {
            entry.state_changed_at = self.at;
        }
        match &to {
            EntryState::Ended(exit) => {
                entry.place = LinePosition::Outside;
                entry.part = None;
                outcomes::record(&mut self.queue.header, &entry, exit);
                self.ended.insert(entry.pr, matches!(exit, Exit::Merged { .. }));
                let cycle = dependencies::cycle(&self.queue, entry.pr, entry.waits_for());
                self.also_shown.extend(cycle.into_iter().flatten());
                if let Exit::Merged { tested_tree: Some(_), .. } = exit {
                    entry.verified_by = entry.state.run();
                }
            }
            EntryState::NotReady => {
                entry.place = LinePosition::Outside;
                entry.part = None;
                entry.proven = None;
                entry.reparented = false;
                entry.returned_at = None;
                entry.unready_since = None;
                entry.entered_line_at = None;
            }
            EntryState::Testing { .. } => entry.returned_at = None,
            EntryState::Pending { .. }
            | EntryState::TestsPassed { .. }
            | EntryState::PendingFailure { .. } => {}
        }
        if !matches!(to, EntryState::TestsPassed { .. }) {
            entry.absolved = None;
        }
        entry.state = to;
        self.put_entry(entry);
    }

    /// Attributes the success of an entry to another run.
    pub(super) fn pass_on(&mut self, id: EntryId, to: RunId) {
        self.change_entry(id, |entry| {
            if let EntryState::TestsPassed { run, .. } = &mut entry.state {
                *run = to;
            }
        });
    }

    /// Notes that a run lost a reference and may be dropped.
    pub(super) fn left(&mut self, run: RunId) {
        self.left_runs.insert(run);
    }

    /// Records a change of state in the journal and in the events.
    pub(super) fn emit(
        &mut self,
        entry: &Entry,
        from: Option<PrState>,
        to: &EntryState,
        because: Because<'_>,
    ) {
        let run = to.run().or_else(|| entry.state.run());
        let state = run.and_then(|run| self.run(run));
        let bisection = state.as_ref().is_some_and(|run| run.bisection);
        self.decision(Decision::Moved(Moved {
            entry: entry.id,
            pr: entry.pr,
            from,
            to: to.name(),
            reason: because.reason,
            actor: because.actor.clone(),
            run,
            bisection,
            after_micros: self.at.since(entry.state_changed_at).micros(),
            entered_line_at: entry.entered_line_at,
            details: because.details,
        }));
        self.emit_pull_request(entry, from, to, because.reason.as_str(), state.as_deref());
    }

    /// Ends a run with a result or as cancelled, and stops checks that may still run.
    pub(super) fn end_run(&mut self, id: RunId, status: RunStatus) {
        if let Some(run) = self.run(id).filter(|run| run.status.is_running()) {
            self.end_changed_run(Arc::unwrap_or_clone(run), status);
        }
    }

    /// The same for a running run that has changed.
    pub(super) fn end_changed_run(&mut self, mut run: TestRun, status: RunStatus) {
        let id = run.id;
        if run.status == RunStatus::Testing && status != RunStatus::Passed {
            let is_open = run.checks.is_empty()
                || run.checks.iter().any(|check| check.conclusion.is_none())
                || run.unreported().next().is_some();
            let sha = run.candidate.as_ref().map(|candidate| candidate.sha.clone());
            let on_host = sha.filter(|_| is_open).map(|sha| (sha, run.branch.clone()));
            self.effect(Effect::CancelChecks { run: id, on_host });
        }
        if let RunStatus::Cancelled { reason } = &status {
            self.decision(Decision::RunCancelled { run: id, reason: *reason });
        }
        quota::tested(self, &run, &status);
        run.status = status;
        run.ended_at = Some(self.at);
        self.put_run(run);
        self.left_runs.insert(id);
    }

    /// Drops runs that no live entry refers to, and deletes their branches.
    fn drop_unused_runs(&mut self) {
        for id in std::mem::take(&mut self.left_runs) {
            let Some(run) = self.run(id) else { continue };
            if self.queue.needs(&run) {
                continue;
            }
            self.queue.remove_run(id);
            if let Some(candidate) = &run.candidate {
                let expected = Some(candidate.sha.clone());
                self.effect(Effect::DeleteBranch { branch: run.branch.clone(), expected });
            }
            self.gone_runs.insert(id, run);
        }
    }

    /// The pull requests whose public state may have changed: those of changed entries, and all
    /// live ones when a setting that affects announcements has changed.
    fn shown(&self) -> BTreeSet<PrNumber> {
        let what = |header: &Header| {
            let settings = &header.settings;
            let parts = [
                settings.status_check_enabled,
                settings.comments_enabled,
                settings.state_labels_enabled,
            ];
            (parts, header.mode(), header.rules_revision)
        };
        let mut shown: BTreeSet<PrNumber> =
            self.changed_entries.values().map(|entry| entry.pr).collect();
        shown.extend(&self.also_shown);
        if what(&self.queue.header) != what(&self.before) {
            shown.extend(self.queue.entries_in_order().map(|entry| entry.pr));
        }
        let freezes = |header: &Header| {
            let FreezeState { in_force, partial, .. } = &header.freeze;
            (in_force.clone(), partial.clone())
        };
        if freezes(&self.queue.header) != freezes(&self.before) {
            let may_be_held = |entry: &&Entry| {
                matches!(entry.state, EntryState::NotReady | EntryState::TestsPassed { .. })
            };
            shown.extend(self.queue.entries_in_order().filter(may_be_held).map(|entry| entry.pr));
        }
        shown
    }

    /// Notes the entries outside the line that only the queue kept there, and that another mode, or
    /// the deletion of the rules that compute targets, makes unready.
    fn note_unready(&mut self) {
        let (before, now) = (&self.before, &self.queue.header);
        let what = |queue: &Header| (queue.requires_targets(), queue.computes_targets());
        if what(before) == what(now) {
            return;
        }
        let is_made_unready = |entry: &&Entry| {
            entry.state == EntryState::NotReady
                && entry.readiness(before).depends_on_others_only()
                && !entry.readiness(now).depends_on_others_only()
        };
        let entries = self.queue.entries_in_order().filter(is_made_unready);
        let at = self.at;
        for id in entries.map(|entry| entry.id).collect::<Vec<_>>() {
            self.change_entry(id, |entry| entry.unready_since = Some(at));
        }
    }

    pub(super) fn finish(mut self) -> Transition {
        self.note_unready();
        self.emit_batches();
        self.drop_unused_runs();
        let shown = self.shown();
        let live = self.changed_runs.iter().filter_map(|id| self.queue.shared_run(*id).cloned());
        let runs: Vec<Arc<TestRun>> = live.chain(self.gone_runs.into_values()).collect();
        let changes = Changes {
            entries: self.changed_entries.into_values().collect(),
            runs,
            targets: self.targets,
        };
        let mut transition = Transition {
            queue: self.queue,
            changes,
            effects: self.effects,
            decisions: self.decisions,
            events: self.events,
            shown,
        };
        // Every recorded step has a number of its own.
        let worth_a_record = !transition.is_empty() || transition.queue.header != self.before;
        if worth_a_record && transition.queue.header.sequence == self.before.sequence {
            transition.queue.header.sequence += 1;
        }
        transition
    }
}
