//! Commands, one function each.

use std::collections::BTreeSet;

use super::super::command::MAX_REASON;
use super::super::{
    Actor, Command, Decision, IgnoredBecause, LabelSource, ManualFlag, MonitorId, Mute, MuteLength,
    QuarantineDecision, QuarantineOverride, Quarantining, Refusal, StatusReason,
};
use super::draft::Draft;
use super::settle::set_quarantine;

/// Changes what the command says, or refuses it.
pub(super) fn carry_out(draft: &mut Draft<'_>, command: &Command) -> Result<(), Refusal> {
    if command.reason().is_some_and(|reason| reason.chars().count() > MAX_REASON) {
        let rule = format!("must have at most {MAX_REASON} characters");
        return Err(Refusal::setting("reason", rule));
    }
    match command {
        Command::Flag { reason, by } => flag(draft, reason.clone(), by),
        Command::Unflag { reason, by } => unflag(draft, reason.clone(), by),
        Command::Mute { monitor, length, reason, by } => {
            mute(draft, *monitor, *length, reason.clone(), by)
        }
        Command::Unmute { monitor, by } => unmute(draft, *monitor, by),
        Command::SetQuarantine { setting, expires_at, reason, by } => {
            let to = Quarantining { setting: *setting, expires_at: *expires_at };
            quarantine(draft, to, reason.clone(), by)
        }
        Command::AddLabel { label, by } => add_label(draft, label, by),
        Command::RemoveLabel { label, by } => {
            remove_label(draft, label, by);
            Ok(())
        }
    }
}

fn flag(draft: &mut Draft<'_>, reason: Option<String>, by: &Actor) -> Result<(), Refusal> {
    if draft.test.flag.is_some() {
        return Err(Refusal::AlreadyFlagged);
    }
    draft.test.flag = Some(ManualFlag { reason: reason.clone(), by: by.clone(), at: draft.at });
    draft.decided(Decision::Flagged { reason, by: by.clone() });
    Ok(())
}

fn unflag(draft: &mut Draft<'_>, reason: Option<String>, by: &Actor) -> Result<(), Refusal> {
    if draft.test.flag.take().is_none() {
        return Err(Refusal::NotFlagged);
    }
    draft.decided(Decision::Unflagged { reason, by: by.clone() });
    draft.flag_lets_go();
    Ok(())
}

fn mute(
    draft: &mut Draft<'_>,
    monitor: MonitorId,
    length: MuteLength,
    reason: Option<String>,
    by: &Actor,
) -> Result<(), Refusal> {
    if draft.settings.monitor(monitor).is_none() {
        return Err(Refusal::NoSuchMonitor { monitor });
    }
    let (at, until) = (draft.at, length.end(draft.at));
    let Some(record) = draft.test.monitors.get_mut(&monitor) else {
        return Err(Refusal::MonitorNeverFired { monitor });
    };
    record.mute = Some(Mute { until, reason: reason.clone(), by: by.clone(), at });
    draft.decided(Decision::Muted { monitor, until, reason, by: by.clone() });
    draft.lets_go(monitor, StatusReason::MonitorMuted);
    Ok(())
}

fn unmute(draft: &mut Draft<'_>, monitor: MonitorId, by: &Actor) -> Result<(), Refusal> {
    let record = draft.test.monitors.get_mut(&monitor);
    if record.and_then(|record| record.mute.take()).is_none() {
        return Err(Refusal::NotMuted { monitor });
    }
    draft.decided(Decision::Unmuted { monitor, by: by.clone() });
    Ok(())
}

fn quarantine(
    draft: &mut Draft<'_>,
    to: Quarantining,
    reason: Option<String>,
    by: &Actor,
) -> Result<(), Refusal> {
    if let Some(end) = to.expires_at {
        if to.setting != QuarantineOverride::Always {
            return Err(Refusal::setting("expiresAt", "is possible for ALWAYS_QUARANTINE only"));
        }
        if end <= draft.at {
            return Err(Refusal::setting("expiresAt", "must be in the future"));
        }
    }
    if draft.test.quarantining() == to {
        draft.ignored(IgnoredBecause::Known);
        return Ok(());
    }
    let (by, at) = (by.clone(), draft.at);
    set_quarantine(draft, QuarantineDecision { quarantining: to, reason, by, at });
    Ok(())
}

fn add_label(draft: &mut Draft<'_>, label: &str, by: &Actor) -> Result<(), Refusal> {
    if label.is_empty() || label.chars().count() > 100 {
        return Err(Refusal::setting("label", "must have 1 to 100 characters"));
    }
    let source = LabelSource::Person;
    if draft.test.labels.entry(label.into()).or_default().insert(source) {
        draft.decided(Decision::Labelled { label: label.into(), source, by: by.clone() });
    } else {
        draft.ignored(IgnoredBecause::Known);
    }
    Ok(())
}

fn remove_label(draft: &mut Draft<'_>, label: &str, by: &Actor) {
    let source = LabelSource::Person;
    if draft.test.labels.get_mut(label).is_some_and(|held| held.remove(&source)) {
        draft.decided(Decision::Unlabelled { label: label.into(), source, by: by.clone() });
    } else {
        draft.ignored(IgnoredBecause::Known);
    }
    if draft.test.labels.get(label).is_some_and(BTreeSet::is_empty) {
        draft.test.labels.remove(label);
    }
}
