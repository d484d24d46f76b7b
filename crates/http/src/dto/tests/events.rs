//! What leaves the house for events of tests.

use serde_json::{Value, json};
use signalbox_domain::flaky::{Event, EventKind, Reading};
use signalbox_domain::ports::{TestEventWriter, TestSnapshot};

use super::test_case::{TestCaseReply, TestLinks, repository_url};

/// Writes the payloads of events.
#[derive(Clone, Debug)]
pub struct EventPayloads(
    /// Where pages of tests and tickets are.
    pub TestLinks,
);

impl TestEventWriter for EventPayloads {
    fn payload(&self, snapshot: &TestSnapshot, event: &Event) -> String {
        self.value(snapshot, event).to_string()
    }
}

impl EventPayloads {
    fn value(&self, snapshot: &TestSnapshot, event: &Event) -> Value {
        let (kind, at) = (event.kind.name(), event.at.to_string());
        let repository = json!({
            "id": snapshot.record.test.repo.to_string(),
            "html_url": repository_url(&snapshot.repo),
        });
        match &event.kind {
            EventKind::StatusChanged { previous, current } => json!({
                "type": kind,
                "test_case": self.whole(snapshot, event),
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
                "type": kind,
                "test_case": self.whole(snapshot, event),
                "quarantine_setting_changed": {
                    "actor": {"full_name": actor.full_name, "email": actor.email},
                    "reason": reason,
                    "timestamp": at,
                    "previous_quarantining_setting": previous.word(),
                    "updated_quarantining_setting": updated.word(),
                },
            }),
            EventKind::StatusChangedV2 { previous, new, triggered_by } => json!({
                "type": kind,
                "timestamp": at,
                "previous_status": previous.word().to_uppercase(),
                "new_status": new.word().to_uppercase(),
                "triggered_by": {
                    "monitor_id": triggered_by.monitor.map(|id| id.to_string()),
                    "monitor_type": triggered_by.kind.word(),
                    "monitor_status": triggered_by.status.word(),
                },
                "repository": repository,
                "test_case": self.slim(snapshot, event),
            }),
            EventKind::MonitorStatusChanged { monitor, kind: monitor_kind, status, evidence } => {
                json!({
                    "type": kind,
                    "timestamp": at,
                    "monitor": {
                        "id": monitor.to_string(),
                        "type": monitor_kind.word(),
                        "status": status.word(),
                    },
                    "evidence": evidence.as_ref().map_or_else(|| json!({}), evidence_value),
                    "repository": repository,
                    "test_case": self.slim(snapshot, event),
                })
            }
        }
    }

    fn whole(&self, snapshot: &TestSnapshot, event: &Event) -> Value {
        let case = TestCaseReply::of(snapshot, &self.0);
        let mut value = serde_json::to_value(case).unwrap_or_default();
        value["quarantined"] = json!(event.quarantined);
        let parent = &snapshot.record.test.key.parent;
        if !parent.is_empty() {
            value["test_suite"] = json!(parent);
        }
        value
    }

    fn slim(&self, snapshot: &TestSnapshot, event: &Event) -> Value {
        let (record, key) = (&snapshot.record, &snapshot.record.test.key);
        json!({
            "id": record.test.id.to_string(),
            "name": key.name,
            "classname": key.classname,
            "file_path": key.file,
            "html_url": self.0.test(snapshot),
            "codeowners": record.owners,
            "quarantined": event.quarantined,
            "variant": key.variant,
        })
    }
}

/// What a monitor saw.
pub(super) fn evidence_value(reading: &Reading) -> Value {
    match reading {
        Reading::PassOnRetry(reading) => json!({
            "summary": Reading::PassOnRetry(reading.clone()).to_string(),
            "last_disagreement_at": reading.last.as_ref().map(|it| it.at.to_string()),
            "runs": reading.runs,
        }),
        Reading::FailureRate(reading) => json!({
            "summary": Reading::FailureRate(*reading).to_string(),
            "runs": reading.runs,
            "failures": reading.failures,
        }),
        Reading::FailureCount(reading) => json!({
            "summary": Reading::FailureCount(*reading).to_string(),
            "failures": reading.failures,
            "last_failure_at": reading.last_failure_at.map(|at| at.to_string()),
        }),
    }
}
