//! A test case while it is being changed.

use crate::time::Timestamp;

use super::super::{
    Decision, Event, EventKind, IgnoredBecause, MonitorCause, MonitorId, MonitorStatus, Reading,
    Settings, StatusReason, Suspicion, TestCase, Transition, Trigger, TriggerKind,
};

/// The state being changed, and what came of it so far.
pub(super) struct TransitionBuilder<'a> {
    pub(super) test: TestCase,
    pub(super) settings: &'a Settings,
    pub(super) at: Timestamp,
    /// The finding that ended last: the reason and the trigger of a status that improves because
    /// of it.
    pub(super) let_go: Option<(StatusReason, Trigger)>,
    /// What monitors suspect after this step, if the test stays healthy.
    pub(super) suspected: Option<Suspicion>,
    /// Since when the test was quarantined before this step.
    quarantined_since: Option<Timestamp>,
    decisions: Vec<Decision>,
    events: Vec<EventKind>,
}

impl<'a> TransitionBuilder<'a> {
    /// A copy of a state. Time never runs backwards for it.
    pub(super) fn of(test: &TestCase, settings: &'a Settings, at: Timestamp) -> Self {
        let at = at.max(test.changed_at);
        Self {
            test: test.clone(),
            settings,
            at,
            let_go: None,
            suspected: test.suspicion.clone(),
            quarantined_since: test.quarantined_since(settings, at),
            decisions: Vec::new(),
            events: Vec::new(),
        }
    }

    pub(super) fn decided(&mut self, decision: Decision) {
        self.decisions.push(decision);
    }

    pub(super) fn ignored(&mut self, because: IgnoredBecause) {
        self.decided(Decision::Ignored { because });
    }

    pub(super) fn emit(&mut self, event: EventKind) {
        self.events.push(event);
    }

    /// Notes that the finding of a monitor has ended.
    pub(super) fn release(&mut self, monitor: MonitorId, reason: StatusReason) {
        if let Some(record) = self.test.monitors.get(&monitor) {
            let trigger = Trigger {
                monitor: Some(monitor),
                kind: TriggerKind::from(record.kind),
                status: MonitorStatus::Resolved,
            };
            self.let_go = Some((reason, trigger));
        }
    }

    /// Notes that a user's flag no longer counts.
    pub(super) fn release_flag(&mut self, reason: StatusReason) {
        let trigger = Trigger {
            monitor: None,
            kind: TriggerKind::ManualFlag,
            status: MonitorStatus::Resolved,
        };
        self.let_go = Some((reason, trigger));
    }

    /// Tells that a monitor is active or resolved now.
    pub(super) fn monitor_moved(
        &mut self,
        monitor: MonitorId,
        cause: MonitorCause,
        evidence: Option<&Reading>,
    ) {
        let Some(record) = self.test.monitors.get(&monitor) else { return };
        let (kind, status) = (record.kind, record.status);
        self.decided(Decision::MonitorMoved {
            monitor,
            kind,
            to: status,
            cause,
            evidence: evidence.cloned(),
        });
        self.emit(EventKind::MonitorStatusChanged {
            monitor,
            kind,
            status,
            evidence: evidence.cloned(),
        });
    }

    /// The outcome: numbered, and marked as changed if it is.
    pub(super) fn finish(mut self) -> Transition {
        let quarantined = self.test.is_quarantined(self.settings, self.at);
        let mut events = Vec::with_capacity(self.events.len());
        for kind in self.events {
            self.test.events += 1;
            let (number, test) = (self.test.events, self.test.id);
            events.push(Event { number, at: self.at, test, quarantined, kind });
        }
        let mut transition = Transition { test: self.test, decisions: self.decisions, events };
        if !transition.is_empty() {
            transition.test.sequence += 1;
            transition.test.changed_at = self.at;
            let since = self.quarantined_since.unwrap_or(self.at);
            transition.test.quarantined_at = quarantined.then_some(since);
        }
        transition
    }
}
