//! Every public event, with the JSON Schema of its payload.

use std::fmt::Write as _;

use serde_json::Value;

use super::{PublicEvent, imports, incidents, queues, tests};

/// A public event.
#[derive(Clone, Copy, Debug)]
pub struct EventType {
    /// Its public name.
    pub name: &'static str,
    /// When it is sent, in one sentence.
    pub description: &'static str,
    schema: fn() -> Value,
}

impl EventType {
    pub(super) const fn of<E: PublicEvent>() -> Self {
        Self { name: E::NAME, description: E::DESCRIPTION.trim_ascii_start(), schema: E::schema }
    }

    /// The JSON Schema of its payload, in the dialect 2020-12.
    pub fn schema(&self) -> Value {
        (self.schema)()
    }
}

/// Every public event.
pub fn all() -> impl Iterator<Item = &'static EventType> {
    queues::EVENTS.iter().chain(tests::EVENTS).chain(incidents::EVENTS).chain(imports::EVENTS)
}

pub use tests::NEVER_CAUSED;

/// The events of the public API, which an endpoint without a list of events receives. Clients that
/// were written for that API fail on other names.
pub const OF_THE_PUBLIC_API: [&str; 19] = [
    "pull_request.submitted",
    "pull_request.queued",
    "pull_request.testing",
    "pull_request.pending_failure",
    "pull_request.failed",
    "pull_request.canceled",
    "pull_request.merged",
    "pull_request_batch.submitted",
    "pull_request_batch.queued",
    "pull_request_batch.testing",
    "pull_request_batch.pending_failure",
    "pull_request_batch.failed",
    "pull_request_batch.canceled",
    "pull_request_batch.merged",
    "test_case.status_changed",
    "test_case.quarantining_setting_changed",
    "test_case.monitor_status_changed",
    "test_case.investigation_completed",
    "v2.test_case.status_changed",
];

/// The event of that name.
pub fn find(name: &str) -> Option<&'static EventType> {
    all().find(|event| event.name == name)
}

/// The page of all events for the documentation.
pub fn page() -> String {
    let mut page = String::from(include_str!("head.md"));
    for event in all() {
        let schema = event.schema();
        let sent = if OF_THE_PUBLIC_API.contains(&event.name) {
            ""
        } else {
            "\n\nSent only to endpoints that list it."
        };
        let _ = write!(page, "\n## `{}`\n\n{}{sent}\n\n", event.name, event.description);
        page += "| field | required | value |\n|---|---|---|\n";
        let required: Vec<&str> =
            schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        for (field, shape) in schema["properties"].as_object().into_iter().flatten() {
            let needed = if required.contains(&field.as_str()) { "yes" } else { "" };
            let _ = writeln!(page, "| `{field}` | {needed} | {} |", words(shape));
        }
    }
    page
}

/// The type of a field, for the documentation.
fn words(shape: &Value) -> String {
    if let Some(only) = shape["const"].as_str() {
        return format!("`{only}`");
    }
    if let Some(values) = shape["enum"].as_array() {
        let values: Vec<String> =
            values.iter().filter_map(Value::as_str).map(|it| format!("`{it}`")).collect();
        return values.join(" ");
    }
    let kind = match &shape["type"] {
        Value::String(kind) => kind.clone(),
        Value::Array(kinds) => {
            kinds.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" or ")
        }
        _ => String::new(),
    };
    if kind == "array" {
        return format!("array of {}", words(&shape["items"]));
    }
    if let Some(fields) = shape["properties"].as_object() {
        let names: Vec<String> = fields.keys().map(|name| format!("`{name}`")).collect();
        return format!("object: {}", names.join(", "));
    }
    match shape["format"].as_str() {
        Some(format) => format!("{kind}, {format}"),
        None => kind,
    }
}
