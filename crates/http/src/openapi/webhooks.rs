//! The messages to webhook endpoints: the payload of each event of the catalog.

use serde_json::{Map, Value, json};

use super::completion::in_camel_case;
use crate::api::EventDescription;

/// The headers of a message.
const HEADERS: [(&str, &str); 6] = [
    ("webhook-id", "The id of the message, the same in every attempt."),
    ("webhook-timestamp", "When this attempt was made, in seconds since 1970."),
    ("webhook-signature", "Signatures of the message, separated by spaces: `v1,` and base64."),
    ("svix-id", "The same as `webhook-id`."),
    ("svix-timestamp", "The same as `webhook-timestamp`."),
    ("svix-signature", "The same as `webhook-signature`."),
];

/// A message for each event.
pub(super) fn messages(catalog: &[EventDescription]) -> Map<String, Value> {
    catalog.iter().map(|event| (event.kind.clone(), message(event))).collect()
}

/// The name of the operation at the receiver: `onPullRequestMerged`.
fn operation(kind: &str) -> String {
    format!("on{}", in_camel_case(kind))
}

fn message(event: &EventDescription) -> Value {
    let headers = HEADERS.map(|(name, description)| {
        json!({
            "name": name, "in": "header", "required": true, "description": description,
            "schema": {"type": "string"}
        })
    });
    let mut payload: Value = serde_json::from_str(&event.schema).unwrap_or_default();
    if let Some(payload) = payload.as_object_mut() {
        // The dialect is that of the whole document.
        payload.remove("$schema");
    }
    json!({"post": {
        "operationId": operation(&event.kind),
        "tags": ["messages"],
        "summary": event.description,
        "parameters": headers,
        "requestBody": {"required": true, "content": {"application/json": {"schema": payload}}},
        "responses": {"2XX": {"description": "Received. The message is sent again after any other status."}},
        "security": []
    }})
}
