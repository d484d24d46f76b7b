//! The automatic consequences of a change: ends, removed monitors, labels, the status.

use std::collections::BTreeSet;

use super::super::{
    Action, Actor, Decision, EventKind, Finding, Judgement, LabelSource, MonitorCause, MonitorId,
    MonitorStatus, QuarantineDecision, Quarantining, StatusReason, Suspicion, TestStatus, Trigger,
    TriggerKind,
};
use super::builder::TransitionBuilder;
use super::facts::resolve;

/// Ends mutes, overrides and suspicions whose time is over.
pub(super) fn end_what_is_over(builder: &mut TransitionBuilder<'_>) {
    let at = builder.at;
    let is_over = |until: Option<_>| until.is_some_and(|end| end <= at);
    let mut unmuted = Vec::new();
    for (id, record) in &mut builder.test.monitors {
        if record.mute.as_ref().is_some_and(|mute| is_over(mute.until)) {
            record.mute = None;
            unmuted.push(*id);
        }
    }
    for monitor in unmuted {
        builder.decided(Decision::Unmuted { monitor, by: Actor::system() });
    }
    builder.suspected.take_if(|suspicion| suspicion.until <= at);
    if is_over(builder.test.quarantining().expires_at) {
        let (quarantining, by) = (Quarantining::FOLLOW, Actor::system());
        let reason = Some("expired".into());
        set_quarantine(builder, QuarantineDecision { quarantining, reason, by, at });
    }
}

/// Records an override and emits its event.
pub(super) fn set_quarantine(builder: &mut TransitionBuilder<'_>, decision: QuarantineDecision) {
    let (previous, updated) = (builder.test.quarantining(), decision.quarantining);
    let (reason, by) = (decision.reason.clone(), decision.by.clone());
    builder.test.quarantine = Some(decision);
    builder.decided(Decision::QuarantineSet {
        previous,
        updated,
        reason: reason.clone(),
        by: by.clone(),
    });
    if previous.setting != updated.setting {
        builder.emit(EventKind::QuarantiningSettingChanged {
            actor: by,
            reason,
            previous: previous.setting,
            updated: updated.setting,
        });
    }
}

/// Lets everything follow that follows.
pub(super) fn settle(builder: &mut TransitionBuilder<'_>) {
    let settings = builder.settings;
    let monitors = builder.test.monitors.iter();
    let gone: Vec<MonitorId> = monitors
        .filter(|(_, record)| record.status == MonitorStatus::Active)
        .filter(|(id, _)| settings.working_monitor(**id).is_none())
        .map(|(id, _)| *id)
        .collect();
    for id in gone {
        resolve(builder, id, MonitorCause::Removed, None);
    }
    label(builder);
    let was_healthy = builder.test.standing.value == TestStatus::Healthy;
    judge(builder);
    show_retirement(builder);
    suspect(builder, was_healthy);
}

/// Gives monitors the labels that they hold, and takes the others from them.
fn label(builder: &mut TransitionBuilder<'_>) {
    let mut held: BTreeSet<(String, MonitorId)> = BTreeSet::new();
    for (id, _, action) in builder.test.counting_monitors(builder.settings) {
        if let Action::Label { labels, .. } = action {
            held.extend(labels.iter().map(|label| (label.clone(), id)));
        }
    }
    let mut holding: BTreeSet<(String, MonitorId)> = BTreeSet::new();
    for (label, sources) in &builder.test.labels {
        for source in sources {
            if let LabelSource::Monitor(id) = source {
                holding.insert((label.clone(), *id));
            }
        }
    }
    let by = Actor::system();
    for (label, id) in held.difference(&holding) {
        let source = LabelSource::Monitor(*id);
        builder.test.labels.entry(label.clone()).or_default().insert(source);
        builder.decided(Decision::Labelled { label: label.clone(), source, by: by.clone() });
    }
    for (label, id) in holding.difference(&held) {
        let stays = match builder.settings.monitor(*id).map(|monitor| &monitor.action) {
            Some(Action::Label { labels, remove_when_resolved }) => {
                !remove_when_resolved && labels.contains(label)
            }
            Some(Action::Classify(_)) | None => false,
        };
        if !stays {
            let source = LabelSource::Monitor(*id);
            if let Some(sources) = builder.test.labels.get_mut(label) {
                sources.remove(&source);
            }
            builder.decided(Decision::Unlabelled { label: label.clone(), source, by: by.clone() });
        }
    }
    builder.test.labels.retain(|_, sources| !sources.is_empty());
}

/// Gives the test the status that follows from its findings.
fn judge(builder: &mut TransitionBuilder<'_>) {
    let findings = builder.test.findings(builder.settings);
    let to = builder.test.judged(builder.settings);
    let from = builder.test.standing.value;
    let same = |finding: &&Finding| {
        let now = &builder.test.standing;
        (finding.reason, finding.monitor) == (now.reason, now.monitor)
    };
    let worst = || findings.iter().filter(|finding| finding.status == to);
    if from == to && (to == TestStatus::Healthy || worst().any(|it| same(&it))) {
        return;
    }
    let finding = worst().next().copied();
    let (reason, monitor, trigger) = explained(builder, finding, to < from);
    let evidence = monitor.and_then(|id| builder.test.monitors.get(&id));
    let evidence = evidence.filter(|_| to != TestStatus::Healthy).map(|it| it.evidence.clone());
    let since = if from == to { builder.test.standing.since } else { builder.at };
    builder.test.standing = Judgement { value: to, reason, monitor, evidence, since };
    if from == to {
        builder.decided(Decision::ReasonChanged { reason, monitor });
        return;
    }
    builder.decided(Decision::StatusChanged { from, to, reason, monitor });
    let current = builder.test.standing.clone();
    builder.emit(EventKind::StatusChanged { previous: from, current });
    builder.emit(EventKind::StatusChangedV2 { previous: from, new: to, triggered_by: trigger });
}

/// The reason of every retired test says that it is, and of no other.
fn show_retirement(builder: &mut TransitionBuilder<'_>) {
    let is_shown = builder.test.standing.reason == StatusReason::Retired;
    if builder.test.retired.is_some() == is_shown {
        return;
    }
    let reason = if is_shown { StatusReason::NothingFound } else { StatusReason::Retired };
    let (value, since) = (builder.test.standing.value, builder.test.standing.since);
    builder.test.standing = Judgement { value, reason, monitor: None, evidence: None, since };
    builder.decided(Decision::ReasonChanged { reason, monitor: None });
}

/// The reason of a test that was healthy before, too, says what a monitor suspects.
fn suspect(builder: &mut TransitionBuilder<'_>, was_healthy: bool) {
    let is_healthy = builder.test.standing.value == TestStatus::Healthy && was_healthy;
    if !is_healthy || builder.test.retired.is_some() {
        builder.test.suspicion = None;
        return;
    }
    let known = builder.test.suspicion.clone();
    let settings = builder.settings;
    let found =
        builder.suspected.take().filter(|it| settings.working_monitor(it.monitor).is_some());
    let is_shown = builder.test.standing.reason == StatusReason::MaybePlatformOrBase;
    let (reason, monitor, evidence) = match &found {
        Some(found) => {
            let end = |it: &Suspicion| (it.monitor, it.until);
            if is_shown && known.as_ref().map(end) == Some(end(found)) {
                return;
            }
            let evidence = Some(found.evidence.clone());
            (StatusReason::MaybePlatformOrBase, Some(found.monitor), evidence)
        }
        None if is_shown => (StatusReason::NothingFound, None, None),
        None => return,
    };
    builder.test.suspicion = found;
    let (value, since) = (builder.test.standing.value, builder.test.standing.since);
    builder.test.standing = Judgement { value, reason, monitor, evidence, since };
    builder.decided(Decision::ReasonChanged { reason, monitor });
}

/// Why a test has its new status, the monitor concerned, and the trigger: a finding that remains,
/// or the finding that ended.
fn explained(
    builder: &TransitionBuilder<'_>,
    finding: Option<Finding>,
    better: bool,
) -> (StatusReason, Option<MonitorId>, Trigger) {
    let began = finding.map(|finding| Trigger {
        monitor: finding.monitor,
        kind: finding
            .monitor
            .and_then(|id| builder.test.monitors.get(&id))
            .map_or(TriggerKind::ManualFlag, |record| record.kind.into()),
        status: MonitorStatus::Active,
    });
    let (let_go, ended) = builder.let_go.unwrap_or_else(|| changed_action(builder));
    let trigger = if better { ended } else { began.unwrap_or(ended) };
    match finding {
        Some(finding) => (finding.reason, finding.monitor, trigger),
        None => (let_go, ended.monitor, trigger),
    }
}

/// No monitor has stopped, so the action of the monitor behind the status has changed.
fn changed_action(builder: &TransitionBuilder<'_>) -> (StatusReason, Trigger) {
    let monitor = builder.test.standing.monitor;
    let kind = monitor
        .and_then(|id| builder.test.monitors.get(&id))
        .map_or(TriggerKind::ManualFlag, |record| record.kind.into());
    (StatusReason::MonitorChanged, Trigger { monitor, kind, status: MonitorStatus::Resolved })
}
