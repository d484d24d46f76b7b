//! The description of the API is whole: names, examples, errors, both cases.

use serde_json::Value;

fn document() -> Value {
    serde_json::from_str(&signalbox_http::openapi_document()).expect("JSON")
}

/// Every value under a key, anywhere in the document.
fn all<'a>(value: &'a Value, key: &str, found: &mut Vec<&'a Value>) {
    match value {
        Value::Object(object) => {
            for (name, value) in object {
                if name == key {
                    found.push(value);
                }
                all(value, key, found);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| all(item, key, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[test]
fn every_schema_that_is_named_is_there() {
    let document = document();
    let mut named = Vec::new();
    all(&document, "$ref", &mut named);
    assert!(named.len() > 50, "{}", named.len());
    for name in named {
        let pointer = name.as_str().expect("text").trim_start_matches('#');
        assert!(document.pointer(pointer).is_some(), "{name}");
    }
}

#[test]
fn every_operation_has_a_name_examples_and_errors() {
    let document = document();
    assert_eq!(document["openapi"], "3.1.0");
    for (path, item) in document["paths"].as_object().expect("paths") {
        for (method, operation) in item.as_object().expect("operations") {
            let id = operation["operationId"].as_str().expect("a name");
            let is_json = operation["requestBody"]["content"]["application/json"].is_object();
            // Operations on tests have the addresses and keys of that part of the specification.
            let of_tests =
                matches!(operation["tags"][0].as_str(), Some("flaky tests" | "webhooks"));
            let of_webhooks = operation["tags"][0] == "webhooks";
            if method == "post" && (is_json || !of_tests) {
                assert!(of_tests || *path == format!("/v1/{id}"), "{path} {id}");
                let body =
                    operation["requestBody"]["content"]["application/json"]["schema"]["$ref"]
                        .as_str()
                        .expect("a named schema");
                let schema = document.pointer(body.trim_start_matches('#')).expect("a schema");
                assert!(schema.get("example").is_some(), "{id} has no example request");
                let names = if of_webhooks {
                    &[][..]
                } else if of_tests {
                    &["repo"][..]
                } else {
                    &["repo", "targetBranch"]
                };
                for name in names {
                    let required = schema["required"].as_array().expect("required keys");
                    assert!(required.contains(&(*name).into()), "{id} requires {name}");
                }
            }
            let replies = operation["responses"].as_object().expect("replies");
            if operation["security"] == serde_json::json!([{"ApiKeyAuth": []}]) {
                for status in ["401", "403", "405", "500", "503"] {
                    assert!(replies.contains_key(status), "{id} may answer {status}");
                }
                assert!(replies["401"]["content"]["text/plain"].is_object());
            }
            for (status, reply) in replies {
                if status.starts_with(['4', '5']) && status != "401" {
                    let content = &reply["content"]["application/problem+json"];
                    assert!(content["examples"].is_object(), "{id} {status}");
                }
            }
        }
    }
}

#[test]
fn words_are_described_in_both_cases() {
    let document = document();
    let words = &document["components"]["schemas"]["PrStateWord"]["enum"];
    let words = words.as_array().expect("words");
    assert_eq!(words.len(), 16);
    assert!(words.contains(&"NOT_READY".into()) && words.contains(&"not_ready".into()));
}
