//! The audit of a test, and of settings.

use serde::Serialize;
use signalbox_domain::flaky::{Actor, Decision, Input, JournalRecord, LabelSource};
use signalbox_domain::ports::SettingsStep;
use utoipa::ToSchema;

use super::monitors::MonitorReply;
use super::settings::FlakySettingsReply;

/// A decision.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DecisionReply {
    /// Its kind.
    kind: &'static str,
    /// The decision as a sentence.
    words: String,
    /// The actor; omitted for a decision by the rules.
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<String>,
    /// The reason, as it was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

/// A step of a test's history.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TestStepReply {
    /// Its number within the test.
    number: u64,
    /// The time of the change.
    at: String,
    /// Its cause.
    cause: &'static str,
    /// Its decisions.
    decisions: Vec<DecisionReply>,
}

/// Steps of a test, newest first.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({"history": [{
    "number": 1, "at": "2026-01-01T00:00:00.000Z", "cause": "flag",
    "decisions": [{"kind": "flagged", "words": "flagged as flaky", "by": "ada"}]
}]}))]
pub(crate) struct HistoryReply {
    /// The steps.
    pub(crate) history: Vec<TestStepReply>,
}

impl HistoryReply {
    pub(crate) fn of(records: &[JournalRecord]) -> Self {
        Self { history: records.iter().map(step).collect() }
    }
}

fn step(record: &JournalRecord) -> TestStepReply {
    let cause = match &record.input {
        Input::Command(command) => command.name(),
        Input::Fact(fact) => fact.name(),
    };
    let decisions = record.decisions.iter().filter_map(decision).collect();
    TestStepReply { number: record.number, at: record.at.to_string(), cause, decisions }
}

fn name(actor: &Actor) -> String {
    actor.full_name.clone()
}

fn holder(source: &LabelSource) -> String {
    match source {
        LabelSource::Person => "a user".to_owned(),
        LabelSource::Monitor(id) => format!("monitor {id}"),
    }
}

/// A decision as a reply; `None` for one that changed nothing.
pub(crate) fn decision(decision: &Decision) -> Option<DecisionReply> {
    let plain = |kind, words: String| DecisionReply { kind, words, by: None, reason: None };
    Some(match decision {
        Decision::StatusChanged { from, to, reason, .. } => {
            let words = format!("{} is now {}: {}", from.as_str(), to.as_str(), reason.as_str());
            plain("status_changed", words)
        }
        Decision::ReasonChanged { reason, .. } => {
            plain("reason_changed", format!("the reason is now {}", reason.as_str()))
        }
        Decision::MonitorMoved { monitor, kind, to, cause, evidence } => {
            let (kind, to, cause) = (kind.as_str(), to.as_str(), cause.as_str());
            let seen = evidence.as_ref().map_or_else(String::new, |it| format!(": {it}"));
            plain("monitor_moved", format!("{kind} monitor {monitor} {to} ({cause}){seen}"))
        }
        Decision::MonitorRenewed { monitor, evidence } => {
            plain("monitor_renewed", format!("monitor {monitor} saw it again: {evidence}"))
        }
        Decision::Muted { monitor, until, reason, by: actor } => DecisionReply {
            kind: "muted",
            words: match until {
                Some(until) => format!("monitor {monitor} muted until {until}"),
                None => format!("monitor {monitor} muted"),
            },
            by: Some(name(actor)),
            reason: reason.clone(),
        },
        Decision::Unmuted { monitor, by: actor } => DecisionReply {
            by: Some(name(actor)),
            ..plain("unmuted", format!("monitor {monitor} counts again"))
        },
        Decision::Flagged { reason, by: actor } => DecisionReply {
            by: Some(name(actor)),
            reason: reason.clone(),
            ..plain("flagged", "flagged as flaky".to_owned())
        },
        Decision::Unflagged { reason, by: actor } => DecisionReply {
            by: Some(name(actor)),
            reason: reason.clone(),
            ..plain("unflagged", "no longer flagged as flaky".to_owned())
        },
        Decision::QuarantineSet { previous, updated, reason, by: actor } => DecisionReply {
            kind: "quarantine_set",
            words: {
                let (from, to) = (previous.setting.as_str(), updated.setting.as_str());
                let until =
                    updated.expires_at.map_or_else(String::new, |at| format!(" until {at}"));
                format!("{from} is now {to}{until}")
            },
            by: Some(name(actor)),
            reason: reason.clone(),
        },
        Decision::Labelled { label, source, by: actor } => DecisionReply {
            by: Some(name(actor)),
            ..plain("labelled", format!("{label:?}, set by {}", holder(source)))
        },
        Decision::Unlabelled { label, source, by: actor } => DecisionReply {
            by: Some(name(actor)),
            ..plain("unlabelled", format!("{label:?}, no longer set by {}", holder(source)))
        },
        Decision::Retired(retirement) => {
            let (commits, since) = (retirement.commits, retirement.missing_since);
            let to =
                retirement.renamed_to.map_or_else(String::new, |to| format!("; renamed to {to}"));
            plain("retired", format!("missing in {commits} commits since {since}{to}"))
        }
        Decision::Returned => plain("returned", "a stable branch contains it again".to_owned()),
        Decision::Inherited { from } => plain("inherited", format!("renamed from {from}")),
        Decision::Ignored { .. } => return None,
    })
}

impl DecisionReply {
    /// The decision on one line.
    pub(crate) fn line(&self) -> String {
        let by = self.by.as_ref().map_or_else(String::new, |by| format!(", by {by}"));
        let reason = self.reason.as_ref().map_or_else(String::new, |it| format!(" ({it})"));
        format!("{}{by}{reason}", self.words)
    }
}

/// A change of settings.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SettingsStepReply {
    /// The time of the change.
    at: String,
    /// The actor.
    by: String,
    /// The new settings.
    settings: FlakySettingsReply,
    /// The new monitors.
    monitors: Vec<MonitorReply>,
}

/// Changes of settings, newest first.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({"history": []}))]
pub(crate) struct SettingsHistoryReply {
    /// The changes, at most 100.
    history: Vec<SettingsStepReply>,
}

impl SettingsHistoryReply {
    pub(crate) fn of(steps: &[SettingsStep]) -> Self {
        let reply = |step: &SettingsStep| SettingsStepReply {
            at: step.at.to_string(),
            by: step.by.full_name.clone(),
            settings: FlakySettingsReply::of(&step.settings),
            monitors: step.settings.monitors.iter().map(MonitorReply::of).collect(),
        };
        Self { history: steps.iter().map(reply).collect() }
    }
}
