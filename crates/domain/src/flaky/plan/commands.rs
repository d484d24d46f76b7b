//! Commands, one function each.

use std::collections::BTreeSet;

use super::super::command::MAX_REASON;
use super::super::{
    Actor, Command, Decision, IgnoredBecause, LabelSource, ManualFlag, MonitorId, Mute, MuteLength,
    QuarantineDecision, QuarantineOverride, Quarantining, Refusal, StatusReason,
};
use super::builder::TransitionBuilder;
use super::settle::set_quarantine;

/// Changes what the command says, or refuses it.
pub(super) fn carry_out(
    builder: &mut TransitionBuilder<'_>,
    command: &Command,
) -> Result<(), Refusal> {
    if command.reason().is_some_and(|reason| reason.chars().count() > MAX_REASON) {
        let rule = format!("must have at most {MAX_REASON} characters");
        return Err(Refusal::setting("reason", rule));
    }
    match command {
        Command::Flag { reason, by } => flag(builder, reason.clone(), by),
        Command::Unflag { reason, by } => unflag(builder, reason.clone(), by),
        Command::Mute { monitor, length, reason, by } => {
            mute(builder, *monitor, *length, reason.clone(), by)
        }
        Command::Unmute { monitor, by } => unmute(builder, *monitor, by),
        Command::SetQuarantine { setting, expires_at, reason, by } => {
            let to = Quarantining { setting: *setting, expires_at: *expires_at };
            quarantine(builder, to, reason.clone(), by)
        }
        Command::AddLabel { label, by } => add_label(builder, label, by),
        Command::RemoveLabel { label, by } => {
            remove_label(builder, label, by);
            Ok(())
        }
    }
}

fn flag(
    builder: &mut TransitionBuilder<'_>,
    reason: Option<String>,
    by: &Actor,
) -> Result<(), Refusal> {
    if builder.test.flag.is_some() {
        return Err(Refusal::AlreadyFlagged);
    }
    builder.test.flag = Some(ManualFlag { reason: reason.clone(), by: by.clone(), at: builder.at });
    builder.decided(Decision::Flagged { reason, by: by.clone() });
    Ok(())
}

fn unflag(
    builder: &mut TransitionBuilder<'_>,
    reason: Option<String>,
    by: &Actor,
) -> Result<(), Refusal> {
    if builder.test.flag.take().is_none() {
        return Err(Refusal::NotFlagged);
    }
    builder.decided(Decision::Unflagged { reason, by: by.clone() });
    builder.release_flag(StatusReason::FlagRemoved);
    Ok(())
}

fn mute(
    builder: &mut TransitionBuilder<'_>,
    monitor: MonitorId,
    length: MuteLength,
    reason: Option<String>,
    by: &Actor,
) -> Result<(), Refusal> {
    if builder.settings.monitor(monitor).is_none() {
        return Err(Refusal::NoSuchMonitor { monitor });
    }
    let (at, until) = (builder.at, length.end(builder.at));
    let Some(record) = builder.test.monitors.get_mut(&monitor) else {
        return Err(Refusal::MonitorNeverFired { monitor });
    };
    record.mute = Some(Mute { until, reason: reason.clone(), by: by.clone(), at });
    builder.decided(Decision::Muted { monitor, until, reason, by: by.clone() });
    builder.release(monitor, StatusReason::MonitorMuted);
    Ok(())
}

fn unmute(
    builder: &mut TransitionBuilder<'_>,
    monitor: MonitorId,
    by: &Actor,
) -> Result<(), Refusal> {
    let record = builder.test.monitors.get_mut(&monitor);
    if record.and_then(|record| record.mute.take()).is_none() {
        return Err(Refusal::NotMuted { monitor });
    }
    builder.decided(Decision::Unmuted { monitor, by: by.clone() });
    Ok(())
}

fn quarantine(
    builder: &mut TransitionBuilder<'_>,
    to: Quarantining,
    reason: Option<String>,
    by: &Actor,
) -> Result<(), Refusal> {
    if let Some(end) = to.expires_at {
        if to.setting != QuarantineOverride::Always {
            return Err(Refusal::setting("expiresAt", "is possible for ALWAYS_QUARANTINE only"));
        }
        if end <= builder.at {
            return Err(Refusal::setting("expiresAt", "must be in the future"));
        }
    }
    if builder.test.quarantining() == to {
        builder.ignored(IgnoredBecause::Known);
        return Ok(());
    }
    let (by, at) = (by.clone(), builder.at);
    set_quarantine(builder, QuarantineDecision { quarantining: to, reason, by, at });
    Ok(())
}

fn add_label(builder: &mut TransitionBuilder<'_>, label: &str, by: &Actor) -> Result<(), Refusal> {
    if label.is_empty() || label.chars().count() > 100 {
        return Err(Refusal::setting("label", "must have 1 to 100 characters"));
    }
    let source = LabelSource::Person;
    if builder.test.labels.entry(label.into()).or_default().insert(source) {
        builder.decided(Decision::Labelled { label: label.into(), source, by: by.clone() });
    } else {
        builder.ignored(IgnoredBecause::Known);
    }
    Ok(())
}

fn remove_label(builder: &mut TransitionBuilder<'_>, label: &str, by: &Actor) {
    let source = LabelSource::Person;
    if builder.test.labels.get_mut(label).is_some_and(|held| held.remove(&source)) {
        builder.decided(Decision::Unlabelled { label: label.into(), source, by: by.clone() });
    } else {
        builder.ignored(IgnoredBecause::Known);
    }
    if builder.test.labels.get(label).is_some_and(BTreeSet::is_empty) {
        builder.test.labels.remove(label);
    }
}
