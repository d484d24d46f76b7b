//! The invariants of a test case, by the ids that tests, docs and metrics share.
//!
//! What can be seen in one state is checked here, after every step of a debug build. F2
//! (hysteresis), F3 (no recovery without runs), F4 (replay), F5 (repetition), F7 (audit) and F8
//! (events) are about steps and histories; the model tests check them.

use super::{LabelSource, MonitorStatus, QuarantineOverride, Settings, StatusReason, TestCase};
use super::{TestStatus, is_known_quarantined};

/// An invariant that does not hold: its id and what was seen.
pub type Violation = (&'static str, String);

/// Checks everything that can be seen in one state. Empty when all invariants hold.
pub fn check(test: &TestCase, settings: &Settings) -> Vec<Violation> {
    let mut violations = Vec::new();
    declared_cause(test, settings, &mut violations);
    quarantine(test, settings, &mut violations);
    records(test, settings, &mut violations);
    violations
}

/// F1: the status is that of the most severe finding about the test, and the reason is that of a
/// finding with this status.
fn declared_cause(test: &TestCase, settings: &Settings, violations: &mut Vec<Violation>) {
    let (now, judged) = (&test.standing, test.judged(settings));
    if now.value != judged {
        violations.push(("F1", format!("is {:?}, follows {judged:?}", now.value)));
    }
    let explained = test.findings(settings).iter().any(|finding| {
        (finding.status, finding.reason, finding.monitor) == (now.value, now.reason, now.monitor)
    });
    if explained != (now.value != TestStatus::Healthy) || explained != now.reason.is_finding() {
        violations.push(("F1", format!("{:?} is not explained by {:?}", now.value, now.reason)));
    }
}

/// F6: nothing is quarantined that is disabled, unknown or never to be; only `Always` expires, and
/// nothing that has expired is left.
fn quarantine(test: &TestCase, settings: &Settings, violations: &mut Vec<Violation>) {
    let over = test.quarantining();
    let at = test.changed_at;
    let never = !settings.quarantine.enabled || over.setting == QuarantineOverride::Never;
    if never && is_known_quarantined(Some(settings), Some(test), at) {
        violations.push(("F6", "is quarantined, and must never be".into()));
    }
    if over.expires_at.is_some_and(|end| over.setting != QuarantineOverride::Always || end <= at) {
        violations.push(("F6", format!("{over:?} at {at}")));
    }
}

/// F9: only working monitors are active or suspect something, mutes and suspicions that are over are
/// gone, labels are held, and the id is that of the key.
fn records(test: &TestCase, settings: &Settings, violations: &mut Vec<Violation>) {
    for (id, record) in &test.monitors {
        let active = record.status == MonitorStatus::Active;
        if active && settings.working_monitor(*id).is_none() {
            violations.push(("F9", format!("monitor {id} is gone and active")));
        }
        let until = record.mute.as_ref().and_then(|mute| mute.until);
        if until.is_some_and(|end| end <= test.changed_at) {
            violations.push(("F9", format!("the mute of monitor {id} is over")));
        }
    }
    if test.suspicion.is_some() != (test.standing.reason == StatusReason::MaybePlatformOrBase) {
        violations.push(("F1", format!("{:?} is not explained by a suspicion", test.standing)));
    }
    if let Some(suspicion) = &test.suspicion {
        let gone = settings.working_monitor(suspicion.monitor).is_none();
        if gone || suspicion.until <= test.changed_at {
            violations.push(("F9", format!("suspects {suspicion:?}")));
        }
    }
    for (label, sources) in &test.labels {
        let unknown = sources.iter().any(|source| match source {
            LabelSource::Person => false,
            LabelSource::Monitor(id) => !test.monitors.contains_key(id),
        });
        if sources.is_empty() || unknown {
            violations.push(("F9", format!("label {label:?} is held by {sources:?}")));
        }
    }
    if test.retired.is_some() != (test.standing.reason == StatusReason::Retired) {
        violations
            .push(("F1", format!("{:?} is not explained by {:?}", test.standing, test.retired)));
    }
    if test.id != test.key.id() {
        violations.push(("F9", format!("{} is not the id of its key", test.id)));
    }
}
