//! Facts, one function each.

use crate::time::Timestamp;

use super::super::monitor::Before;
use super::super::{
    Actor, Decision, EventKind, Fact, IgnoredBecause, Inheritance, MonitorCause, MonitorId,
    MonitorRecord, MonitorStatus, Mute, QuarantineDecision, Quarantining, Reading, Retirement,
    StatusReason, Suspicion, Verdict,
};
use super::builder::TransitionBuilder;
use super::settle::set_quarantine;

/// Changes what the fact says.
pub(super) fn take_in(builder: &mut TransitionBuilder<'_>, fact: &Fact) {
    match fact {
        Fact::Measured { as_of, readings } => measured(builder, *as_of, readings, None),
        Fact::Recounted { as_of, readings, since, counts, .. } => {
            measured(builder, *as_of, readings, Some(*since).filter(|_| !counts));
        }
        // What follows from these happens on every step.
        Fact::SettingsChanged | Fact::TimePassed => {}
        Fact::Retired(retirement) => retire(builder, retirement),
        Fact::Returned { code_at } => bring_back(builder, *code_at),
        Fact::Inherited(inheritance) => inherit(builder, inheritance),
    }
}

/// Sets aside what was found and decided, and keeps it.
fn retire(builder: &mut TransitionBuilder<'_>, retirement: &Retirement) {
    if builder.test.retired.is_some() {
        return builder.ignored(IgnoredBecause::Known);
    }
    match builder.test.standing.monitor {
        Some(monitor) => builder.release(monitor, StatusReason::Retired),
        None => builder.release_flag(StatusReason::Retired),
    }
    builder.test.retired = Some(retirement.clone());
    builder.decided(Decision::Retired(retirement.clone()));
    builder.emit(EventKind::Retired(retirement.clone()));
}

fn bring_back(builder: &mut TransitionBuilder<'_>, code_at: Timestamp) {
    match &builder.test.retired {
        None => return builder.ignored(IgnoredBecause::Known),
        Some(retired) if code_at <= retired.code_at => {
            return builder.ignored(IgnoredBecause::Superseded);
        }
        Some(_) => builder.test.retired = None,
    }
    builder.decided(Decision::Returned);
    builder.emit(EventKind::Returned);
}

/// Takes over what was found and decided about a test that was renamed to this one. Of two decisions
/// the later one holds.
fn inherit(builder: &mut TransitionBuilder<'_>, it: &Inheritance) {
    let is_known = builder.test.renamed_from == Some(it.from) && builder.test.retired.is_none();
    if is_known || it.from == builder.test.id {
        return builder.ignored(IgnoredBecause::Known);
    }
    let at = builder.at;
    builder.test.retired = None;
    builder.test.renamed_from = Some(it.from);
    // What was measured before says nothing about it.
    builder.test.measured_at = builder.test.measured_at.max(Some(at));
    builder.decided(Decision::Inherited { from: it.from });
    builder.emit(EventKind::Renamed { from: it.from });
    if it.is_back {
        builder.test.flag = None;
        builder.test.monitors.clear();
        builder.test.labels.clear();
    }
    builder.test.flag = builder.test.flag.take().or_else(|| it.flag.clone());
    for (id, record) in &it.monitors {
        let own = builder.test.monitors.get(id);
        if own.is_some_and(|own| own.status == MonitorStatus::Active) {
            continue;
        }
        let is_over = |mute: &Mute| mute.until.is_some_and(|end| end <= at);
        let mute = record.mute.clone().filter(|mute| !is_over(mute));
        let mute = mute.or_else(|| own.and_then(|own| own.mute.clone()));
        builder.test.monitors.insert(*id, MonitorRecord { mute, ..record.clone() });
    }
    for (label, sources) in &it.labels {
        builder.test.labels.entry(label.clone()).or_default().extend(sources);
    }
    inherit_quarantine(builder, it);
}

fn inherit_quarantine(builder: &mut TransitionBuilder<'_>, it: &Inheritance) {
    let (own, at) = (builder.test.quarantine.clone(), builder.at);
    let is_over = |end: Option<Timestamp>| end.is_some_and(|end| end <= at);
    let inherited = it.quarantine.clone().filter(|it| !is_over(it.quarantining.expires_at));
    let decided = match (own, inherited) {
        (own, Some(inherited))
            if it.is_back || own.as_ref().is_none_or(|own| own.at < inherited.at) =>
        {
            inherited
        }
        (Some(_), None) if it.is_back => QuarantineDecision {
            quarantining: Quarantining::FOLLOW,
            reason: None,
            by: Actor::system(),
            at,
        },
        (_, Some(_) | None) => return,
    };
    if decided.quarantining == builder.test.quarantining() {
        builder.test.quarantine = Some(decided);
    } else {
        set_quarantine(builder, decided);
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
