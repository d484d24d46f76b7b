//! The description of the API is whole: names, examples, errors, numbers, enums, routes and events.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;
use signalbox_http::EventDescription;
use signalbox_testkit::description::Description;

fn text() -> String {
    let events = signalbox_webhooks::catalog::all().map(|event| EventDescription {
        kind: event.name.to_owned(),
        description: event.description.to_owned(),
        schema: event.schema().to_string(),
    });
    signalbox_http::openapi_document(&events.collect::<Vec<_>>())
}

fn document() -> Value {
    serde_json::from_str(&text()).expect("JSON")
}

/// Every source file under a folder.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

fn source_of(folder: &str) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join(folder), &mut found);
    let read = |path: PathBuf| {
        let text = std::fs::read_to_string(&path).expect("a source file");
        (path, text)
    };
    found.into_iter().map(read).collect()
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
                // It lists the queues of all repositories, unless one is named.
                let names = if of_webhooks || id == "listQueues" {
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
            let keys = operation["security"].as_array().into_iter().flatten();
            if keys.filter(|key| key["ApiKeyAuth"].is_array()).count() > 0 {
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
fn every_schema_has_a_name_of_its_own() {
    let mut known: BTreeMap<String, PathBuf> = BTreeMap::new();
    for (path, text) in source_of("src") {
        let mut derives = false;
        let mut renamed = None;
        for line in text.lines() {
            derives |= line.starts_with("#[derive(") && line.contains("ToSchema");
            if let Some((_, name)) = line.split_once("#[schema(as = ") {
                renamed = name.split([',', ')']).next().map(ToOwned::to_owned);
            }
            let words: Vec<&str> = line.split([' ', '<', '(', '{', ';']).collect();
            let declared = words.iter().position(|word| matches!(*word, "struct" | "enum"));
            if let Some(at) = declared
                && !line.starts_with([' ', '/'])
            {
                let name = renamed.take().unwrap_or_else(|| words[at + 1].to_owned());
                if std::mem::take(&mut derives)
                    && let Some(other) = known.insert(name.clone(), path.clone())
                {
                    panic!("{name} is declared in {} and in {}", other.display(), path.display());
                }
            }
        }
    }
    assert!(known.len() > 120, "{}", known.len());
    let document = document();
    let schemas = document["components"]["schemas"].as_object().expect("schemas");
    let missing = known.keys().filter(|name| !schemas.contains_key(*name));
    let missing: Vec<&String> = missing.filter(|name| name.ends_with("Reply")).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn every_operation_is_described() {
    let document = document();
    let mut ids = Vec::new();
    all(&document["paths"], "operationId", &mut ids);
    for (path, text) in source_of("src/routes/v1") {
        if !text.contains("async fn handle(") {
            continue;
        }
        let (_, rest) = text.split_once("operation_id = \"").unwrap_or_else(|| {
            panic!("{} has no description of its operation", path.display());
        });
        let id = rest.split('"').next().expect("an id");
        assert!(ids.iter().any(|known| *known == id), "{id} is not in the document");
    }
    // The other addresses are not of the API.
    let other = ["/{org}/flaky-tests/test/{id}", "/healthz", "/readyz"];
    for (path, text) in source_of("src/routes") {
        for (_, rest) in text
            .match_indices("web::resource(\"")
            .map(|(at, found)| text.split_at(at + found.len()))
        {
            let address = rest.split('"').next().expect("an address");
            assert!(other.contains(&address), "{address} in {}", path.display());
        }
    }
    assert_eq!(document["servers"][0]["url"], "/");
}

#[test]
fn examples_are_there_and_fit_their_schemas() {
    let description = Description::new(&text());
    let document = description.document();
    let mut wrong = Vec::new();
    for (name, schema) in document["components"]["schemas"].as_object().expect("schemas") {
        if let Some(example) = schema.get("example") {
            let pointer = format!("/components/schemas/{name}");
            wrong.extend(
                description.check(&pointer, example).err().map(|it| format!("{name}: {it}")),
            );
        }
    }
    for (path, item) in document["paths"].as_object().expect("paths") {
        for (method, operation) in item.as_object().expect("operations") {
            let id = operation["operationId"].as_str().expect("a name");
            let replies = operation["responses"].as_object().expect("replies");
            for (status, reply) in replies.iter().filter(|(status, _)| status.starts_with('2')) {
                let contents = reply["content"].as_object().expect("a successful reply has a body");
                for (kind, content) in contents {
                    let Some(example) = content.get("example") else {
                        wrong.push(format!("{id} has no example of {kind}"));
                        continue;
                    };
                    let key = |key: &str| key.replace('~', "~0").replace('/', "~1");
                    let (path, kind) = (key(path), key(kind));
                    let pointer =
                        format!("/paths/{path}/{method}/responses/{status}/content/{kind}/schema");
                    wrong.extend(
                        description.check(&pointer, example).err().map(|it| format!("{id}: {it}")),
                    );
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn enums_are_described_in_one_case() {
    let document = document();
    let words = &document["components"]["schemas"]["PrStateWord"];
    assert_eq!(words["enum"].as_array().expect("words").len(), 8);
    assert_eq!(words["x-lower-case-for"], "v1-live");
    let mut enums = Vec::new();
    all(&document, "enum", &mut enums);
    for words in enums {
        let mut lower: Vec<String> = words
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .map(str::to_lowercase)
            .collect();
        let count = lower.len();
        lower.sort();
        lower.dedup();
        assert_eq!(lower.len(), count, "{words}");
    }
}

#[test]
fn numbers_of_32_bits_without_a_sign_are_of_64() {
    fn check(value: &Value) {
        match value {
            Value::Object(schema) => {
                if schema.get("format").is_some_and(|format| format == "int32") {
                    let most = schema.get("maximum").and_then(Value::as_u64);
                    let fits = most.is_some_and(|most| i32::try_from(most).is_ok());
                    assert!(fits, "{value}");
                }
                schema.values().for_each(check);
            }
            Value::Array(items) => items.iter().for_each(check),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    let document = document();
    check(&document);
    let number = &document["components"]["schemas"]["PrNumberChoice"]["oneOf"][0];
    assert_eq!(number["format"], "int64");
    assert_eq!(number["maximum"], u32::MAX);
}

#[test]
fn every_event_is_described_with_its_payload() {
    let document = document();
    let messages = document["webhooks"].as_object().expect("webhooks");
    assert_eq!(messages.len(), signalbox_webhooks::catalog::all().count());
    for event in signalbox_webhooks::catalog::all() {
        let content = &messages[event.name]["post"]["requestBody"]["content"]["application/json"];
        let payload = &content["schema"];
        assert_eq!(payload["properties"]["type"]["const"], event.name);
        assert_eq!(payload["required"], event.schema()["required"]);
    }
}
