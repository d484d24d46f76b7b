//! Facts, one function each.

use crate::time::Timestamp;

use super::super::monitor::Before;
use super::super::{
    Decision, Fact, IgnoredBecause, MonitorCause, MonitorId, MonitorRecord, MonitorStatus, Reading,
    StatusReason, Verdict,
};
use super::draft::Draft;

/// Changes what the fact says.
pub(super) fn take_in(draft: &mut Draft<'_>, fact: &Fact) {
    match fact {
        Fact::Measured { as_of, readings } => measured(draft, *as_of, readings),
        // What follows from these happens on every step.
        Fact::SettingsChanged | Fact::TimePassed => {}
    }
}

fn measured(draft: &mut Draft<'_>, as_of: Timestamp, readings: &[(MonitorId, Reading)]) {
    match draft.test.measured_at {
        Some(last) if as_of == last => return draft.ignored(IgnoredBecause::Known),
        Some(last) if as_of < last => return draft.ignored(IgnoredBecause::Superseded),
        Some(_) | None => draft.test.measured_at = Some(as_of),
    }
    for (id, reading) in readings {
        let verdict = draft.settings.working_monitor(*id).and_then(|monitor| {
            let record = draft.test.monitors.get(id);
            let before = record.map_or(
                Before { status: MonitorStatus::Resolved, since: as_of, evidence: None },
                |it| Before { status: it.status, since: it.since, evidence: Some(&it.evidence) },
            );
            Some((monitor.rule.kind(), monitor.judge(before, reading, as_of)?))
        });
        let Some((kind, verdict)) = verdict else {
            draft.ignored(IgnoredBecause::NoSuchMonitor);
            continue;
        };
        match verdict {
            Verdict::Keep => {}
            Verdict::Activate => {
                let mute = draft.test.monitors.remove(id).and_then(|record| record.mute);
                let record = MonitorRecord {
                    kind,
                    status: MonitorStatus::Active,
                    since: draft.at,
                    evidence: reading.clone(),
                    mute,
                };
                draft.test.monitors.insert(*id, record);
                draft.monitor_moved(*id, MonitorCause::Detected, Some(reading));
            }
            Verdict::Renew => {
                if let Some(record) = draft.test.monitors.get_mut(id) {
                    record.evidence = reading.clone();
                }
                let (monitor, evidence) = (*id, reading.clone());
                draft.decided(Decision::MonitorRenewed { monitor, evidence });
            }
            Verdict::Resolve => {
                resolve(draft, *id, MonitorCause::Recovered, Some(reading));
            }
            Verdict::Expire => resolve(draft, *id, MonitorCause::Stale, Some(reading)),
        }
    }
}

/// Ends what an active monitor says of the test.
pub(super) fn resolve(
    draft: &mut Draft<'_>,
    id: MonitorId,
    cause: MonitorCause,
    evidence: Option<&Reading>,
) {
    if let Some(record) = draft.test.monitors.get_mut(&id) {
        record.status = MonitorStatus::Resolved;
        record.since = draft.at;
    }
    draft.monitor_moved(id, cause, evidence);
    let reason = match cause {
        MonitorCause::Stale => StatusReason::Stale,
        MonitorCause::Removed => StatusReason::MonitorChanged,
        MonitorCause::Recovered | MonitorCause::Detected => StatusReason::Recovered,
    };
    draft.lets_go(id, reason);
}
