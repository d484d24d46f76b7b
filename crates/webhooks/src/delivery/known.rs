//! Which events endpoints may ask for, and examples of them.

use serde_json::{Map, Value, json};
use signalbox_domain::ports::EventCatalog;

use crate::events::catalog;

/// The public events of the catalog.
#[derive(Clone, Copy, Debug, Default)]
pub struct KnownEvents;

impl EventCatalog for KnownEvents {
    fn kinds(&self) -> Vec<String> {
        catalog::all().map(|event| event.name.to_owned()).collect()
    }

    fn defaults(&self) -> Vec<String> {
        catalog::OF_THE_PUBLIC_API.map(str::to_owned).to_vec()
    }

    fn example(&self, kind: &str) -> Option<String> {
        let event = catalog::find(kind)?;
        Some(example(&event.schema()).to_string())
    }
}

/// A value that a schema allows, with every field that it requires.
fn example(schema: &Value) -> Value {
    if let Some(value) = schema.get("const") {
        return value.clone();
    }
    if let Some(value) = schema["enum"].as_array().and_then(|words| words.first()) {
        return value.clone();
    }
    let kind = schema["type"].as_str().or_else(|| schema["type"][0].as_str());
    match kind.unwrap_or_default() {
        "object" => {
            let required: Vec<&str> = schema["required"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .collect();
            let fields = schema["properties"].as_object().into_iter().flatten();
            let needed = fields.filter(|(name, _)| required.contains(&name.as_str()));
            let fields: Map<String, Value> =
                needed.map(|(name, shape)| (name.clone(), example(shape))).collect();
            Value::Object(fields)
        }
        "array" => Value::Array(vec![example(&schema["items"])]),
        "integer" | "number" => {
            let least = schema["minimum"].as_i64().unwrap_or(1);
            json!(schema["maximum"].as_i64().map_or(least.max(1), |most| most.min(least.max(1))))
        }
        "boolean" => json!(false),
        "string" => json!(match schema["format"].as_str().unwrap_or_default() {
            "date-time" => "2026-01-31T12:00:00.000Z",
            "uri" => "https://signalbox.example/test",
            "uuid" => "00000000-0000-4000-8000-000000000000",
            _ => "example",
        }),
        _ => Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_has_an_example_that_names_it() {
        for kind in KnownEvents.kinds() {
            let text = KnownEvents.example(&kind).expect("an example");
            let example: Value = serde_json::from_str(&text).expect("JSON");
            assert_eq!(example["type"], json!(kind), "{text}");
        }
        assert_eq!(KnownEvents.example("nonsense"), None);
    }

    #[test]
    fn an_example_has_the_required_fields_in_the_right_format() {
        let schema = json!({
            "type": "object", "required": ["a", "b", "c", "d", "e"],
            "properties": {
                "a": {"const": "x"}, "b": {"type": "string", "enum": ["y", "z"]},
                "c": {"type": "integer", "minimum": 0}, "d": {"type": ["string", "null"]},
                "e": {"type": "array", "items": {"type": "string", "format": "date-time"}},
                "f": {"type": "string"},
            },
        });
        let wanted = json!({
            "a": "x", "b": "y", "c": 1, "d": "example", "e": ["2026-01-31T12:00:00.000Z"],
        });
        assert_eq!(example(&schema), wanted);
    }
}
