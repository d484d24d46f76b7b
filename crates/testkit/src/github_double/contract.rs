//! Checks of our requests against GitHub's published OpenAPI description, which
//! `tests/github/fetch` downloads. Without it the checks are skipped with a message.

use std::path::PathBuf;

use serde_json::Value;

use crate::double::Logged;

/// Reads a file of `tests/github/fetch`; if it is missing, prints a message and returns `None`.
pub fn fetched(name: &str) -> Option<Value> {
    let text = std::fs::read_to_string(fetched_path(name)?).expect("text");
    Some(serde_json::from_str(&text).expect("JSON"))
}

/// The path of a file of `tests/github/fetch`; if it is missing, prints a message and returns
/// `None`.
pub fn fetched_path(name: &str) -> Option<PathBuf> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), Into::into);
    let path: PathBuf = target.join("github-contract").join(name);
    if !path.exists() {
        say_skipped(&path);
        return None;
    }
    Some(path.canonicalize().expect("a path"))
}

#[expect(clippy::print_stdout, reason = "a skipped test is reported to the user")]
fn say_skipped(path: &std::path::Path) {
    println!("SKIPPED: {} is missing, run tests/github/fetch", path.display());
}

/// Panics if neither edition of the description allows a request.
pub fn check_requests(log: &[Logged]) {
    let Some(contract) = fetched("requests.json") else { return };
    let mut complaints = Vec::new();
    for (edition, operations) in contract.as_object().expect("editions") {
        for request in log {
            // Rejected credentials and planned faults are not part of the contract.
            complaints.extend(complaint(operations, request).map(|it| format!("{edition}: {it}")));
        }
    }
    complaints.sort();
    complaints.dedup();
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
}

fn complaint(operations: &Value, request: &Logged) -> Option<String> {
    let here = format!("{} {}?{}", request.method, request.path, request.query);
    let found = operations.as_object()?.iter().filter_map(|(key, operation)| {
        let (method, template) = key.split_once(' ')?;
        let score = (method == request.method).then(|| matches(template, &request.path))??;
        Some((score, operation))
    });
    // `/git/ref/{ref}` matches slashes; the template with the most literal parts wins.
    let Some((_, operation)) = found.max_by_key(|(score, _)| *score) else {
        return Some(format!("{here}: unknown operation"));
    };
    let parameters = operation["parameters"].as_array().cloned().unwrap_or_default();
    let query: Vec<&str> = request.query.split('&').filter(|it| !it.is_empty()).collect();
    for pair in &query {
        let name = pair.split('=').next().unwrap_or_default();
        if !parameters.iter().any(|it| it["in"] == "query" && it["name"] == name) {
            return Some(format!("{here}: unknown parameter {name}"));
        }
    }
    for parameter in parameters.iter().filter(|it| it["in"] == "query" && it["required"] == true) {
        let name = parameter["name"].as_str().unwrap_or_default();
        if !query.iter().any(|it| it.starts_with(&format!("{name}="))) {
            return Some(format!("{here}: the parameter {name} is missing"));
        }
    }
    let known = request.status == 304
        || request.status >= 400
        || operation["statuses"].as_array()?.iter().any(|it| it == &request.status.to_string());
    if !known {
        return Some(format!("{here}: the double answers {}, the host never", request.status));
    }
    let (schema, body) = (&operation["body"], &request.body);
    if schema.is_null() || body.is_null() {
        let missing = operation["bodyRequired"] == true && body.is_null();
        return missing.then(|| format!("{here}: the body is missing"));
    }
    violation(schema, body, "").map(|it| format!("{here}: {it}: {body}"))
}

/// The number of literal parts of a template; `None` if it does not match.
fn matches(template: &str, path: &str) -> Option<usize> {
    let wanted: Vec<&str> = template.trim_matches('/').split('/').collect();
    let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
    let long = template.ends_with("/{ref}") || template.ends_with("/{path}");
    if parts.len() < wanted.len() || (parts.len() > wanted.len() && !long) {
        return None;
    }
    let mut literal = 0;
    for (wanted, part) in wanted.iter().zip(&parts) {
        if !wanted.contains('{') {
            if wanted != part {
                return None;
            }
            literal += 1;
        }
    }
    Some(literal)
}

/// The first violation of a schema by a value. Supports the parts of JSON Schema that the
/// description uses for request bodies.
fn violation(schema: &Value, value: &Value, at: &str) -> Option<String> {
    if value.is_null() {
        let nullable = schema["nullable"] == true || schema["type"].is_null();
        return (!nullable).then(|| format!("{at} must not be null"));
    }
    for key in ["oneOf", "anyOf"] {
        if let Some(options) = schema[key].as_array() {
            let broken: Vec<_> = options.iter().map(|it| violation(it, value, at)).collect();
            if broken.iter().all(Option::is_some) {
                return Some(format!("{at} fits none of {} forms: {broken:?}", options.len()));
            }
        }
    }
    if let Some(all) = schema["allOf"].as_array()
        && let Some(broken) = all.iter().find_map(|it| violation(it, value, at))
    {
        return Some(broken);
    }
    if let Some(allowed) = schema["enum"].as_array()
        && !allowed.contains(value)
    {
        return Some(format!("{at} must be one of {allowed:?}"));
    }
    let fits = match schema["type"].as_str() {
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("string") => value.is_string(),
        Some("boolean") => value.is_boolean(),
        Some("integer") => value.is_i64() || value.is_u64(),
        Some("number") => value.is_number(),
        Some(_) | None => true,
    };
    if !fits {
        return Some(format!("{at} must be {}", schema["type"]));
    }
    if let Some(fields) = value.as_object() {
        for name in schema["required"].as_array().into_iter().flatten() {
            if !fields.contains_key(name.as_str().unwrap_or_default()) {
                return Some(format!("{at}/{} is missing", name.as_str().unwrap_or_default()));
            }
        }
        for (name, value) in fields {
            let place = format!("{at}/{name}");
            match &schema["properties"][name] {
                // The description often omits `additionalProperties: false`; we send no unknown
                // fields.
                Value::Null if schema["properties"].is_object() => {
                    return Some(format!("{place} is not known"));
                }
                known => {
                    if let Some(broken) = violation(known, value, &place) {
                        return Some(broken);
                    }
                }
            }
        }
    }
    let items = value.as_array().into_iter().flatten();
    items.clone().find_map(|item| violation(&schema["items"], item, &format!("{at}/…")))
}
