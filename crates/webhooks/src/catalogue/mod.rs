//! Every public event, with the JSON Schema of its payload.

mod parts;
mod queues;
mod tests;

use std::fmt::Write as _;

use serde_json::{Value, json};

/// A public event.
#[derive(Clone, Copy, Debug)]
pub struct EventType {
    /// Its public name.
    pub name: &'static str,
    /// When it is told, in one sentence.
    pub description: &'static str,
    fields: fn(&'static str) -> Value,
}

impl EventType {
    /// The JSON Schema of its payload, in the dialect 2020-12.
    pub fn schema(&self) -> Value {
        let mut schema = (self.fields)(self.name);
        if let Value::Object(fields) = &mut schema {
            let dialect = "https://json-schema.org/draft/2020-12/schema";
            fields.insert("$schema".to_owned(), json!(dialect));
            fields.insert("title".to_owned(), json!(self.name));
            fields.insert("description".to_owned(), json!(self.description));
        }
        schema
    }
}

macro_rules! catalogue {
    ($($name:literal, $fields:path, $description:literal;)+) => {
        /// Every public event.
        pub const ALL: &[EventType] = &[
            $(EventType { name: $name, description: $description, fields: $fields }),+
        ];
    };
}

catalogue! {
    "pull_request.submitted", queues::pull_request, "A pull request was submitted to a queue.";
    "pull_request.queued", queues::pull_request, "A pull request waits in the line, for the first time or again.";
    "pull_request.testing", queues::pull_request, "A pull request is under test.";
    "pull_request.pending_failure", queues::pull_request, "The run of a pull request failed, and the fault may lie elsewhere.";
    "pull_request.failed", queues::pull_request, "A pull request was taken out because of a failure.";
    "pull_request.canceled", queues::pull_request, "A pull request was taken out on request.";
    "pull_request.merged", queues::pull_request, "A pull request is on the target branch.";
    "pull_request.removed_from_target", queues::pull_request, "A pull request was merged, and the target branch was moved to where it is not.";
    "pull_request_batch.submitted", queues::batch, "The candidate of several pull requests is made, and is tested as one.";
    "pull_request_batch.queued", queues::batch, "Pull requests of a batch went back to the line.";
    "pull_request_batch.testing", queues::batch, "All pull requests of a batch are under test.";
    "pull_request_batch.pending_failure", queues::batch, "The run of a batch failed, and the last pull request of it is held.";
    "pull_request_batch.failed", queues::batch, "Pull requests of a batch were taken out because of a failure.";
    "pull_request_batch.canceled", queues::batch, "Pull requests of a batch were taken out on request.";
    "pull_request_batch.merged", queues::batch, "The last pull request of a batch is on the target branch.";
    "queue.state_changed", queues::queue, "A queue was paused, resumed, drained, or changes its mode.";
    "queue.config_changed", queues::queue, "The settings of a queue were changed.";
    "test_case.status_changed", tests::status_changed, "A test has another status.";
    "test_case.quarantining_setting_changed", tests::setting_changed, "Whether a test is quarantined was decided by a person, or such a decision ended.";
    "v2.test_case.status_changed", tests::status_changed_v2, "A test has another status, told in the second form.";
    "test_case.monitor_status_changed", tests::monitor_status_changed, "A monitor became active for a test, or resolved.";
    "test_case.investigation_completed", tests::investigation_completed, "The cause of a test's failures was looked into. This server makes no investigations: it sends the event as a test only.";
}

/// Events of the catalogue that nothing here causes: they can be asked for, and sent as a test.
pub const NEVER_CAUSED: &[&str] = &["test_case.investigation_completed"];

/// The event of that name.
pub fn find(name: &str) -> Option<&'static EventType> {
    ALL.iter().find(|event| event.name == name)
}

/// The page of all events for the documentation.
pub fn page() -> String {
    let mut page = String::from(include_str!("head.md"));
    for event in ALL {
        let schema = event.schema();
        let _ = write!(page, "\n## `{}`\n\n{}\n\n", event.name, event.description);
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

/// A field's shape in words.
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
