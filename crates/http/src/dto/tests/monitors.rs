//! Monitors in replies.

use serde::Serialize;
use serde_json::Value;
use signalbox_domain::flaky::{Action, Classification, Monitor, Rule};
use signalbox_services::Preview;
use utoipa::ToSchema;

use super::super::words::{BranchClassWord, MonitorActionWord, MonitorKindWord};
use super::evidence::evidence_value;
use super::monitor_parameters;

/// A monitor.
#[derive(Debug, Serialize, ToSchema)]
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
    /// Its kind.
    #[schema(value_type = MonitorKindWord)]
    r#type: &'static str,
    /// Whether it is enabled.
    enabled: bool,
    /// Patterns of the branches that it considers.
    branch_scope: Vec<String>,
    /// Classes of the branches that it considers; none means all.
    #[schema(value_type = Vec<BranchClassWord>)]
    branch_classes: Vec<&'static str>,
    /// Its action.
    #[schema(value_type = MonitorActionWord)]
    action: &'static str,
    /// The labels that it adds to a test.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    labels: Vec<String>,
    /// Whether it removes them when it resolves.
    #[serde(skip_serializing_if = "Option::is_none")]
    remove_labels_when_resolved: Option<bool>,
    /// Hours without a run after which it resolves; omitted: never.
    #[serde(skip_serializing_if = "Option::is_none")]
    stale_timeout_hours: Option<u32>,
    /// The parameters of its kind, each a field of its own.
    #[serde(flatten, serialize_with = "monitor_parameters::serialize")]
    #[schema(ignore)]
    rule: Rule,
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
        Self {
            id: monitor.id.to_string(),
            name: monitor.name.clone(),
            r#type: monitor.rule.kind().as_str(),
            enabled: monitor.enabled,
            branch_scope: monitor.scope.patterns.iter().map(|it| it.0.clone()).collect(),
            branch_classes: monitor.scope.classes.iter().map(|it| it.as_str()).collect(),
            action,
            labels,
            remove_labels_when_resolved: remove,
            stale_timeout_hours: monitor.stale_timeout_hours,
            rule: monitor.rule,
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
    /// The evidence.
    #[schema(value_type = Object)]
    evidence: Value,
}

/// The tests that a monitor would find.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({"tests": [], "found": 0, "lookedAt": 120}))]
pub(crate) struct PreviewReply {
    /// The tests, at most 100.
    tests: Vec<PreviewedReply>,
    /// How many there are.
    found: u32,
    /// How many tests with failures were examined.
    looked_at: u32,
}

impl PreviewReply {
    pub(crate) fn of(preview: &Preview) -> Self {
        let tests = preview.tests.iter().map(|test| PreviewedReply {
            id: test.id.to_string(),
            name: test.name.clone(),
            variant: test.variant.clone(),
            status: test.status.as_str(),
            evidence: evidence_value(&test.evidence),
        });
        Self { tests: tests.collect(), found: preview.found, looked_at: preview.looked_at }
    }
}
