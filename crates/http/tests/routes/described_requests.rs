//! What the server refuses as malformed, the description refuses, and the other way round: each
//! operation is sent its example with one value replaced.

use actix_web::test::{TestRequest, call_service, init_service, read_body};
use serde_json::{Map, Value, json};
use signalbox_http::app;

use crate::support::{DESCRIPTION, Server};

/// Rules that a schema cannot have, because they depend on several fields, on bytes, or on what the
/// server stores: the operation and the field, `*` for any.
const BEYOND_SCHEMAS: &[(&str, &str)] = &[
    // Bare repositories have letters of any script.
    ("*", "/repo/owner"),
    ("*", "/repo/name"),
    // A threshold depends on the other one, and a template has a name.
    ("createMonitor", "/activationThreshold"),
    ("createMonitor", "/name"),
    // 0, or from 2.
    ("updateFlakySettings", "/infrastructureSameFailureTests"),
    ("updateFlakySettings", "/quarantineEnabled"),
    ("updateFlakySettings", "/autoQuarantine"),
    // Tokens of pages and cursors are signed or have a form of their own.
    ("*", "/page_query/page_token"),
    ("*", "/pageToken"),
    ("*", "/cursor"),
    // Times within some days of each other, in the future, or not before another.
    ("*", "/since"),
    ("*", "/until"),
    ("*", "/start_time"),
    ("*", "/end_time"),
    ("*", "/run_start"),
    ("*", "/run_end"),
    ("*", "/expiresAt"),
];

fn values() -> Vec<Value> {
    let mut values = vec![
        json!(null),
        json!(true),
        json!(0),
        json!(1),
        json!(-1),
        json!(1.5),
        json!(4_294_967_295_u32),
        json!(4_294_967_296_u64),
        json!(""),
        json!("x"),
        json!("7"),
        json!("00042"),
        json!("4294967296"),
        json!("a b"),
        json!(".x"),
        json!("x/y"),
        json!("x//y"),
        json!("x.lock"),
        json!("a\u{0}b"),
        json!("a\nb"),
        json!("a\u{85}b"),
        json!("übung"),
        json!([]),
        json!([null]),
        json!([1]),
        json!([""]),
        json!({}),
        json!("0b7d6f5e-6f0e-4f2a-9d58-1d3f6f0f8a11"),
        json!("2026-09-17T10:16:02Z"),
        json!("tomorrow"),
        json!("https://a.test/b"),
    ];
    for length in [101, 257, 501, 1_001, 2_049] {
        values.push(json!("x".repeat(length)));
    }
    values
}

/// The schema of a property behind references and choices.
fn resolved<'a>(document: &'a Value, schema: &'a Value) -> &'a Value {
    if let Some(target) = schema["$ref"].as_str() {
        let target = document.pointer(target.trim_start_matches('#')).expect("a schema");
        return resolved(document, target);
    }
    let choices = schema["oneOf"].as_array().into_iter().flatten();
    let object = choices.map(|it| resolved(document, it)).find(|it| it["properties"].is_object());
    object.unwrap_or(schema)
}

/// The pointers of all fields of a schema, two levels deep.
fn fields(document: &Value, schema: &Value, at: &str, depth: u8) -> Vec<String> {
    let properties = resolved(document, schema)["properties"].as_object();
    let mut found = Vec::new();
    for (name, schema) in properties.into_iter().flatten() {
        let pointer = format!("{at}/{name}");
        if depth > 0 {
            found.extend(fields(document, schema, &pointer, depth - 1));
        }
        found.push(pointer);
    }
    found
}

/// The body with a value at a pointer, or without what is there.
fn with(body: &Value, pointer: &str, value: Option<Value>) -> Option<Value> {
    let mut body = body.clone();
    let (parent, name) = pointer.rsplit_once('/')?;
    let parent: &mut Map<String, Value> = body.pointer_mut(parent)?.as_object_mut()?;
    match value {
        Some(value) => parent.insert(name.to_owned(), value),
        None => parent.remove(name),
    };
    Some(body)
}

/// The body itself if no field is named, otherwise the body without the field and with each value.
fn variants(body: &Value, field: &str) -> Vec<Value> {
    if field.is_empty() {
        return vec![body.clone()];
    }
    let values = std::iter::once(None).chain(values().into_iter().map(Some));
    values.filter_map(|value| with(body, field, value)).collect()
}

/// Whether a test, an incident, a monitor or an endpoint is missing, which may be found out first. The
/// repository is there.
fn is_missing(status: u16, reply: &[u8]) -> bool {
    let problem: Value = serde_json::from_slice(reply).unwrap_or_default();
    status == 404 && problem["code"] != "repository_not_found"
}

fn is_beyond(operation: &str, field: &str) -> bool {
    BEYOND_SCHEMAS.iter().any(|(known, at)| {
        (*known == "*" || *known == operation) && (*at == "*" || field.starts_with(at))
    })
}

#[actix_web::test]
async fn the_server_and_the_description_refuse_the_same_requests() {
    let document = DESCRIPTION.document();
    let (mut tried, mut wrong) = (0, Vec::new());
    for (path, item) in document["paths"].as_object().expect("paths") {
        let operation = &item["post"];
        let id = operation["operationId"].as_str().unwrap_or_default();
        let body = "requestBody/content/application~1json/schema";
        let Some(schema) = operation.pointer(&format!("/{body}")) else { continue };
        let mut example = resolved(document, schema)["example"].clone();
        assert!(example.is_object(), "{id} has an example request");
        if example["repo"].is_object() {
            // One that the server has, so that its rules are reached.
            example["repo"]["host"] = json!("git.test");
        }
        let pointer = format!("/paths/{}/post/{body}", path.replace('/', "~1"));
        for field in std::iter::once(String::new()).chain(fields(document, schema, "", 1)) {
            // A server for each field: commands fill it up.
            let server = Server::new().await;
            let service = init_service(app(server.api.clone())).await;
            for body in variants(&example, &field) {
                let request = TestRequest::post()
                    .uri(path)
                    .insert_header(("x-api-token", server.token.as_str()))
                    .set_json(&body);
                let response = call_service(&service, request.to_request()).await;
                let status = response.status().as_u16();
                let reply = read_body(response).await;
                let described = DESCRIPTION.check(&pointer, &body);
                tried += 1;
                let differs = match &described {
                    // Whatever else is wrong with it, it is not malformed.
                    Ok(()) => status == 400,
                    Err(_) => status != 400 && !is_missing(status, &reply),
                };
                if differs && !is_beyond(id, &field) {
                    let reply: String = String::from_utf8_lossy(&reply).chars().take(200).collect();
                    let value = body.pointer(&field).map(ToString::to_string);
                    let value: String = value.unwrap_or_default().chars().take(60).collect();
                    wrong.push(format!("{id} {field} = {value}: {status} {reply}; {described:?}"));
                }
            }
        }
    }
    assert!(tried > 5_000, "{tried}");
    assert!(wrong.is_empty(), "{} of {tried}:\n{}", wrong.len(), wrong.join("\n"));
}

/// Every reference in a description.
fn references<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
    match value {
        Value::Object(object) => {
            found.extend(object.get("$ref").and_then(Value::as_str));
            object.values().for_each(|it| references(it, found));
        }
        Value::Array(items) => items.iter().for_each(|it| references(it, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[test]
fn every_reference_of_the_description_leads_to_a_schema() {
    let document = DESCRIPTION.document();
    let mut found = Vec::new();
    references(document, &mut found);
    assert!(found.len() > 100, "{}", found.len());
    let lost = found.into_iter().filter(|it| document.pointer(&it[1..]).is_none());
    assert_eq!(lost.collect::<Vec<_>>(), Vec::<&str>::new());
}
