//! Parts of schemas.

use serde_json::{Map, Value, json};

/// A string.
pub(super) fn string() -> Value {
    json!({"type": "string"})
}

/// A string of a format.
pub(super) fn format(format: &str) -> Value {
    json!({"type": "string", "format": format})
}

/// A whole number that is not negative.
pub(super) fn count() -> Value {
    json!({"type": "integer", "minimum": 0})
}

/// A share, 0 to 1.
pub(super) fn share() -> Value {
    json!({"type": "number", "minimum": 0, "maximum": 1})
}

/// Yes or no.
pub(super) fn boolean() -> Value {
    json!({"type": "boolean"})
}

/// One of these words.
pub(super) fn one_of<'a>(words: impl IntoIterator<Item = &'a str>) -> Value {
    let mut values: Vec<&str> = Vec::new();
    for word in words {
        if !values.contains(&word) {
            values.push(word);
        }
    }
    json!({"type": "string", "enum": values})
}

/// Several.
pub(super) fn array(items: &Value) -> Value {
    json!({"type": "array", "items": items})
}

/// A string, or nothing.
pub(super) fn string_or_null() -> Value {
    json!({"type": ["string", "null"]})
}

/// An object with just these fields; those with `true` are required.
pub(super) fn object<'a>(fields: impl IntoIterator<Item = (&'a str, bool, Value)>) -> Value {
    let (mut properties, mut required) = (Map::new(), Vec::new());
    for (name, is_required, shape) in fields {
        properties.insert(name.to_owned(), shape);
        if is_required {
            required.push(name.to_owned());
        }
    }
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}
