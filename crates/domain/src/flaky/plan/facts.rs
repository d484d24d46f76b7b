//! Facts, one function each.

use crate::time::Timestamp;

use super::super::monitor::Before;
use super::super::{
    Decision, Fact, IgnoredBecause, MonitorCause, MonitorId, MonitorRecord, MonitorStatus, Reading,
    StatusReason, Suspicion, Verdict,
};
use super::builder::TransitionBuilder;

/// Changes what the fact says.
pub(super) fn take_in(builder: &mut TransitionBuilder<'_>, fact: &Fact) {
    match fact {
        Fact::Measured { as_of, readings } => measured(builder, *as_of, readings, None),
        Fact::Recounted { as_of, readings, since, counts, .. } => {
            measured(builder, *as_of, readings, Some(*since).filter(|_| !counts));
        }
        // What follows from these happens on every step.
        Fact::SettingsChanged | Fact::TimePassed => {}
    }
}

/// Records the readings of monitors. A finding since `excluded_since` must still hold without the
/// failures that no longer count; otherwise it is undone.
fn measured(
    builder: &mut TransitionBuilder<'_>,
    as_of: Timestamp,
    readings: &[(MonitorId, Reading)],
    excluded_since: Option<Timestamp>,
) {
    match builder.test.measured_at {
        Some(last) if as_of == last => return builder.ignored(IgnoredBecause::Known),
        Some(last) if as_of < last => return builder.ignored(IgnoredBecause::Superseded),
        Some(_) | None => builder.test.measured_at = Some(as_of),
    }
    for (id, reading) in readings {
        let verdict = builder.settings.working_monitor(*id).and_then(|monitor| {
            let record = builder.test.monitors.get(id);
            let before = record.map_or(
                Before { status: MonitorStatus::Resolved, since: as_of, evidence: None },
                |it| Before { status: it.status, since: it.since, evidence: Some(&it.evidence) },
            );
            let found_since =
                record.filter(|it| it.status == MonitorStatus::Active).map(|it| it.since);
            let doubted =
                found_since.zip(excluded_since).is_some_and(|(found, from)| found >= from);
            let verdict = monitor.judge(before, reading, as_of)?;
            let undone = doubted && monitor.judge_first(reading, as_of) != Some(Verdict::Activate);
            Some((monitor.rule.kind(), verdict, undone))
        });
        let Some((kind, verdict, undone)) = verdict else {
            builder.ignored(IgnoredBecause::NoSuchMonitor);
            continue;
        };
        if undone {
            resolve(builder, *id, MonitorCause::Excluded, Some(reading));
            continue;
        }
        match verdict {
            Verdict::Keep => {}
            Verdict::Activate => {
                let mute = builder.test.monitors.remove(id).and_then(|record| record.mute);
                let record = MonitorRecord {
                    kind,
                    status: MonitorStatus::Active,
                    since: builder.at,
                    evidence: reading.clone(),
                    mute,
                };
                builder.test.monitors.insert(*id, record);
                builder.monitor_moved(*id, MonitorCause::Detected, Some(reading));
            }
            Verdict::Renew => {
                if let Some(record) = builder.test.monitors.get_mut(id) {
                    record.evidence = reading.clone();
                }
                let (monitor, evidence) = (*id, reading.clone());
                builder.decided(Decision::MonitorRenewed { monitor, evidence });
            }
            Verdict::Resolve => {
                resolve(builder, *id, MonitorCause::Recovered, Some(reading));
            }
            Verdict::Expire => resolve(builder, *id, MonitorCause::Stale, Some(reading)),
        }
    }
    suspect(builder, as_of, readings);
}

/// What a monitor suspects that is not active.
fn suspect(
    builder: &mut TransitionBuilder<'_>,
    as_of: Timestamp,
    readings: &[(MonitorId, Reading)],
) {
    let measured = |id: MonitorId| readings.iter().any(|(of, _)| *of == id);
    let known = builder.suspected.take().filter(|known| !measured(known.monitor));
    let found = readings.iter().find_map(|(id, reading)| {
        let monitor = builder.settings.working_monitor(*id)?;
        let record = builder.test.monitors.get(id);
        if record.is_some_and(|it| it.status == MonitorStatus::Active || it.mute.is_some()) {
            return None;
        }
        let until = monitor.suspects_until(reading, as_of.max(builder.at))?;
        Some(Suspicion { monitor: *id, evidence: reading.clone(), until })
    });
    builder.suspected = found.or(known);
}

/// Resolves an active monitor of the test.
pub(super) fn resolve(
    builder: &mut TransitionBuilder<'_>,
    id: MonitorId,
    cause: MonitorCause,
    evidence: Option<&Reading>,
) {
    if let Some(record) = builder.test.monitors.get_mut(&id) {
        record.status = MonitorStatus::Resolved;
        record.since = builder.at;
    }
    builder.monitor_moved(id, cause, evidence);
    let reason = match cause {
        MonitorCause::Stale => StatusReason::Stale,
        MonitorCause::Excluded => StatusReason::Incident,
        MonitorCause::Removed => StatusReason::MonitorChanged,
        MonitorCause::Recovered | MonitorCause::Detected => StatusReason::Recovered,
    };
    builder.release(id, reason);
}
