//! Events of tests.

use serde_json::{Value, json};
use signalbox_domain::flaky::{Event, EventKind};
use signalbox_domain::ports::TestSnapshot;

use super::Links;
use super::test_case::{evidence, repository_url, slim, whole};

/// What leaves the house for an event.
pub(super) fn payload(links: &Links, snapshot: &TestSnapshot, event: &Event) -> Value {
    let (name, at) = (event.kind.name(), event.at.to_string());
    let repository = json!({
        "id": snapshot.record.test.repo.to_string(),
        "html_url": repository_url(&snapshot.repo),
    });
    match &event.kind {
        EventKind::StatusChanged { previous, current } => json!({
            "type": name,
            "test_case": whole(links, snapshot, event),
            "status_change": {
                "previous_status": previous.word(),
                "current_status": {
                    "value": current.value.word(),
                    "reason": current.reason_text(),
                    "timestamp": current.since.to_string(),
                },
            },
        }),
        EventKind::QuarantiningSettingChanged { actor, reason, previous, updated } => json!({
            "type": name,
            "test_case": whole(links, snapshot, event),
            "quarantine_setting_changed": {
                "actor": {"full_name": actor.full_name, "email": actor.email},
                "reason": reason,
                "timestamp": at,
                "previous_quarantining_setting": previous.word(),
                "updated_quarantining_setting": updated.word(),
            },
        }),
        EventKind::StatusChangedV2 { previous, new, triggered_by } => json!({
            "type": name,
            "timestamp": at,
            "previous_status": previous.word().to_uppercase(),
            "new_status": new.word().to_uppercase(),
            "triggered_by": {
                "monitor_id": triggered_by.monitor.map(|id| id.to_string()),
                "monitor_type": triggered_by.kind.word(),
                "monitor_status": triggered_by.status.word(),
            },
            "repository": repository,
            "test_case": slim(links, snapshot, event),
        }),
        EventKind::MonitorStatusChanged { monitor, kind, status, evidence: seen } => json!({
            "type": name,
            "timestamp": at,
            "monitor": {
                "id": monitor.to_string(),
                "type": kind.word(),
                "status": status.word(),
            },
            "evidence": seen.as_ref().map_or_else(|| json!({}), evidence),
            "repository": repository,
            "test_case": slim(links, snapshot, event),
        }),
    }
}
