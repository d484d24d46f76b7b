//! Monitors as they are shown.

use serde::Serialize;
use serde_json::Value;
use signalbox_domain::flaky::{Action, Classification, Monitor, Rule};
use signalbox_services::Preview;
use utoipa::ToSchema;

use super::evidence::evidence_value;

/// A monitor.
#[derive(Debug, Default, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({
    "id": "0b7d6f5e-6f0e-4f2a-9d58-1d3f6f0f8a11", "name": "Pass on retry",
    "type": "pass_on_retry", "enabled": true, "branchScope": ["*"], "branchClasses": [],
    "action": "flaky", "recoveryDays": 7
}))]
pub(crate) struct MonitorReply {
    /// Its id.
    id: String,
    /// Its name.
    name: String,
    /// `pass_on_retry`, `failure_rate` or `failure_count`.
    r#type: &'static str,
    /// Whether it works.
    enabled: bool,
    /// Patterns of the branches that it looks at.
    branch_scope: Vec<String>,
    /// Classes of the branches that it looks at; none means all.
    branch_classes: Vec<&'static str>,
    /// What it does: `flaky`, `broken` or `label`.
    action: &'static str,
    /// The labels that it puts on a test.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    labels: Vec<String>,
    /// Whether it takes them off when it resolves.
    #[serde(skip_serializing_if = "Option::is_none")]
    remove_labels_when_resolved: Option<bool>,
    /// Hours without a run after which it resolves; left out: never.
    #[serde(skip_serializing_if = "Option::is_none")]
    stale_timeout_hours: Option<u32>,
    /// Of pass_on_retry: days without a disagreement after which it resolves.
    #[serde(skip_serializing_if = "Option::is_none")]
    recovery_days: Option<u32>,
    /// Of failure_rate: percent from which it is active.
    #[serde(skip_serializing_if = "Option::is_none")]
    activation_threshold: Option<u32>,
    /// Of failure_rate: percent below which it resolves.
    #[serde(skip_serializing_if = "Option::is_none")]
    resolution_threshold: Option<u32>,
    /// Of failure_rate and failure_count: the window.
    #[serde(skip_serializing_if = "Option::is_none")]
    window_hours: Option<u32>,
    /// Of failure_rate: the fewest runs that say anything.
    #[serde(skip_serializing_if = "Option::is_none")]
    minimum_sample_size: Option<u32>,
    /// Of failure_count: the failures that make it active.
    #[serde(skip_serializing_if = "Option::is_none")]
    failure_count: Option<u32>,
    /// Of failure_count: hours without a failure after which it resolves.
    #[serde(skip_serializing_if = "Option::is_none")]
    resolution_timeout_hours: Option<u32>,
}

impl MonitorReply {
    pub(crate) fn of(monitor: &Monitor) -> Self {
        let (action, labels, remove) = match &monitor.action {
            Action::Classify(Classification::Flaky) => ("flaky", Vec::new(), None),
            Action::Classify(Classification::Broken) => ("broken", Vec::new(), None),
            Action::Label { labels, remove_when_resolved } => {
                ("label", labels.clone(), Some(*remove_when_resolved))
            }
        };
        let reply = Self {
            id: monitor.id.to_string(),
            name: monitor.name.clone(),
            r#type: monitor.rule.kind().word(),
            enabled: monitor.enabled,
            branch_scope: monitor.scope.patterns.iter().map(|it| it.0.clone()).collect(),
            branch_classes: monitor.scope.classes.iter().map(|it| it.word()).collect(),
            action,
            labels,
            remove_labels_when_resolved: remove,
            stale_timeout_hours: monitor.stale_timeout_hours,
            ..Self::default()
        };
        match monitor.rule {
            Rule::PassOnRetry(rule) => Self { recovery_days: Some(rule.recovery_days), ..reply },
            Rule::FailureRate(rule) => Self {
                activation_threshold: Some(rule.activation_percent),
                resolution_threshold: Some(rule.resolution_percent),
                window_hours: Some(rule.window_hours),
                minimum_sample_size: Some(rule.min_sample),
                ..reply
            },
            Rule::FailureCount(rule) => Self {
                failure_count: Some(rule.count),
                window_hours: Some(rule.window_hours),
                resolution_timeout_hours: Some(rule.resolution_timeout_hours),
                ..reply
            },
        }
    }
}

/// The monitors of a repository.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MonitorsReply {
    /// In the order of creation.
    pub(crate) monitors: Vec<MonitorReply>,
}

/// A test that a monitor would find.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PreviewedReply {
    /// Its id.
    id: String,
    /// Its name.
    name: String,
    /// Its variant; empty when it has none.
    variant: String,
    /// Its status now.
    status: &'static str,
    /// What the monitor sees.
    #[schema(value_type = Object)]
    evidence: Value,
}

/// What a monitor would find.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({"tests": [], "found": 0, "lookedAt": 120}))]
pub(crate) struct PreviewReply {
    /// The tests, at most 100.
    tests: Vec<PreviewedReply>,
    /// How many there are.
    found: u32,
    /// How many tests with failures were looked at.
    looked_at: u32,
}

impl PreviewReply {
    pub(crate) fn of(preview: &Preview) -> Self {
        let tests = preview.tests.iter().map(|test| PreviewedReply {
            id: test.id.to_string(),
            name: test.name.clone(),
            variant: test.variant.clone(),
            status: test.status.word(),
            evidence: evidence_value(&test.evidence),
        });
        Self { tests: tests.collect(), found: preview.found, looked_at: preview.looked_at }
    }
}
