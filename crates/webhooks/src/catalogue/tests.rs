//! Schemas of events of tests.

use serde_json::{Value, json};

use super::parts::{array, boolean, count, format, object, one_of, share, string, string_or_null};

const STATUSES: [&str; 3] = ["healthy", "flaky", "broken"];
const UPPER_STATUSES: [&str; 3] = ["HEALTHY", "FLAKY", "BROKEN"];

fn link() -> Value {
    object([("html_url", true, format("uri"))])
}

/// What has a value, a reason and a time.
fn status() -> Value {
    object([
        ("value", true, one_of(STATUSES)),
        ("reason", true, string()),
        ("timestamp", true, format("date-time")),
    ])
}

/// The whole test.
fn test_case() -> Value {
    let failure = object([
        ("summary", true, string()),
        ("occurrence_count", true, count()),
        ("last_occurrence", true, format("date-time")),
    ]);
    object([
        ("id", true, format("uuid")),
        ("repository", true, link()),
        ("html_url", true, format("uri")),
        ("name", true, string()),
        ("variant", true, string()),
        ("status", true, status()),
        ("most_common_failures", true, array(&failure)),
        ("failure_rate_last_7d", true, share()),
        ("failure_rate_last_24h", true, share()),
        ("codeowners", true, array(&string())),
        ("pull_requests_impacted_last_7d", true, count()),
        ("quarantined", true, boolean()),
        ("file_path", false, string()),
        ("parent", false, string()),
        ("test_suite", false, string()),
        ("classname", false, string()),
        ("ticket", false, link()),
    ])
}

/// The slim test of the newer events.
fn slim() -> Value {
    object([
        ("id", true, format("uuid")),
        ("name", true, string()),
        ("classname", true, string()),
        ("file_path", true, string()),
        ("html_url", true, format("uri")),
        ("codeowners", true, array(&string())),
        ("quarantined", true, boolean()),
        ("variant", true, string()),
    ])
}

fn repository() -> Value {
    object([("id", true, format("uuid")), ("html_url", true, format("uri"))])
}

/// A test has another status.
pub(super) fn status_changed(name: &'static str) -> Value {
    let change =
        object([("previous_status", true, one_of(STATUSES)), ("current_status", true, status())]);
    object([
        ("type", true, json!({"const": name})),
        ("test_case", true, test_case()),
        ("status_change", true, change),
    ])
}

/// The override changed.
pub(super) fn setting_changed(name: &'static str) -> Value {
    let actor = object([("full_name", true, string()), ("email", true, string())]);
    let change = object([
        ("actor", true, actor),
        ("reason", true, string_or_null()),
        ("timestamp", true, format("date-time")),
        ("previous_quarantining_setting", true, string()),
        ("updated_quarantining_setting", true, string()),
    ]);
    object([
        ("type", true, json!({"const": name})),
        ("test_case", true, test_case()),
        ("quarantine_setting_changed", true, change),
    ])
}

/// A test has another status, in the second form.
pub(super) fn status_changed_v2(name: &'static str) -> Value {
    let trigger = object([
        ("monitor_id", true, json!({"type": ["string", "null"], "format": "uuid"})),
        ("monitor_type", true, string()),
        ("monitor_status", true, string()),
    ]);
    object([
        ("type", true, json!({"const": name})),
        ("timestamp", true, format("date-time")),
        ("previous_status", true, one_of(UPPER_STATUSES)),
        ("new_status", true, one_of(UPPER_STATUSES)),
        ("triggered_by", true, trigger),
        ("repository", true, repository()),
        ("test_case", true, slim()),
    ])
}

/// A monitor became active or resolved.
pub(super) fn monitor_status_changed(name: &'static str) -> Value {
    let monitor = object([
        ("id", true, format("uuid")),
        ("type", true, string()),
        ("status", true, one_of(["active", "resolved"])),
    ]);
    object([
        ("type", true, json!({"const": name})),
        ("timestamp", true, format("date-time")),
        ("monitor", true, monitor),
        ("evidence", true, json!({"type": "object"})),
        ("repository", true, repository()),
        ("test_case", true, slim()),
    ])
}

/// Somebody has looked for the cause of a test's failures.
pub(super) fn investigation_completed(name: &'static str) -> Value {
    let fact = object([
        ("fact_type", true, string()),
        ("content", true, string()),
        ("confidence", true, share()),
    ]);
    object([
        ("type", true, json!({"const": name})),
        ("investigation_id", true, format("uuid")),
        ("confidence", true, share()),
        ("created_at", true, format("date-time")),
        ("markdown_summary", true, string()),
        ("failure_message", true, string()),
        ("facts", true, array(&fact)),
        ("repository", true, repository()),
        ("test_case", true, slim()),
    ])
}
