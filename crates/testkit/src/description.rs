//! Requests and replies, checked against the description of the API.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use jsonschema::Validator;
use serde_json::{Map, Value, json};

/// The extension of enums that are in lower case for some tokens.
const LOWER_CASE: &str = "x-lower-case-for";

/// The description of the API, as clients read it.
pub struct Description {
    /// As it is, and with the enums in the lower case of some tokens.
    cases: [Value; 2],
    validators: Mutex<HashMap<(usize, String), Arc<Validator>>>,
}

impl std::fmt::Debug for Description {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Description")
    }
}

/// A reply of a server.
#[derive(Clone, Copy, Debug)]
pub struct Answer<'a> {
    /// The method of the request.
    pub method: &'a str,
    /// The path of the request, with or without a query.
    pub path: &'a str,
    /// The status.
    pub status: u16,
    /// The content type; empty for none.
    pub content_type: &'a str,
    /// The body.
    pub body: &'a [u8],
}

/// Writes the marked enums in lower case.
fn in_lower_case(value: &mut Value) {
    match value {
        Value::Object(object) => {
            if object.contains_key(LOWER_CASE)
                && let Some(Value::Array(words)) = object.get_mut("enum")
            {
                for word in words {
                    *word = json!(word.as_str().unwrap_or_default().to_lowercase());
                }
            }
            object.values_mut().for_each(in_lower_case);
        }
        Value::Array(items) => items.iter_mut().for_each(in_lower_case),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// A content type without its parameters.
fn essence(content_type: &str) -> &str {
    content_type.split(';').next().unwrap_or_default().trim()
}

/// Escapes a key for a JSON pointer.
fn key(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

impl Description {
    /// Reads a document.
    ///
    /// # Panics
    ///
    /// If it is not JSON.
    pub fn new(document: &str) -> Self {
        let document: Value = serde_json::from_str(document).expect("the description is JSON");
        let mut lower = document.clone();
        in_lower_case(&mut lower);
        Self { cases: [document, lower], validators: Mutex::default() }
    }

    /// The document.
    pub const fn document(&self) -> &Value {
        &self.cases[0]
    }

    /// The described path that an address belongs to.
    fn path(&self, address: &str) -> Option<&str> {
        let address = address.split('?').next().unwrap_or_default();
        let given: Vec<&str> = address.split('/').filter(|part| !part.is_empty()).collect();
        let paths = self.document()["paths"].as_object()?;
        let fits = |path: &str| {
            let wanted: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
            wanted.len() == given.len()
                && wanted.iter().zip(&given).all(|(wanted, given)| {
                    wanted.starts_with('{') && wanted.ends_with('}') || wanted == given
                })
        };
        // An address without parameters is meant before one with them.
        let exact = paths.keys().find(|path| !path.contains('{') && fits(path));
        exact.or_else(|| paths.keys().find(|path| fits(path))).map(String::as_str)
    }

    fn validator(&self, case: usize, pointer: &str) -> Arc<Validator> {
        let mut known = self.validators.lock().unwrap_or_else(PoisonError::into_inner);
        let made = known.entry((case, pointer.to_owned())).or_insert_with(|| {
            let document = &self.cases[case];
            let mut schema = document.pointer(pointer).cloned().unwrap_or(Value::Bool(true));
            if let Some(schema) = schema.as_object_mut() {
                schema.insert("components".to_owned(), document["components"].clone());
            }
            let options = jsonschema::draft202012::options().should_validate_formats(true);
            Arc::new(options.build(&schema).unwrap_or_else(|error| panic!("{pointer}: {error}")))
        });
        made.clone()
    }

    /// Checks a value against a schema of the document, in one of the cases as a whole.
    pub fn check(&self, pointer: &str, value: &Value) -> Result<(), String> {
        let errors = |case| {
            let validator = self.validator(case, pointer);
            let errors = validator.iter_errors(value);
            errors.map(|error| format!("{}: {error}", error.instance_path())).collect::<Vec<_>>()
        };
        let first = errors(0);
        if first.is_empty() || errors(1).is_empty() {
            return Ok(());
        }
        Err(first.join("; "))
    }

    /// Checks the status, the content type and the body of a reply. A reply to an address that is
    /// not described, or to another method, must refuse it.
    pub fn check_answer(&self, answer: Answer<'_>) -> Result<(), String> {
        let Answer { method, path: address, status, content_type, body } = answer;
        let wrong = |what: String| Err(format!("{method} {address}: {what}"));
        let Some(path) = self.path(address) else {
            let is_ours = address.trim_start_matches('/').starts_with("v1");
            return if is_ours && status < 400 {
                wrong(format!("answers {status}, but is not described"))
            } else {
                Ok(())
            };
        };
        let method = method.to_lowercase();
        let is_head = method == "head";
        let method = if is_head { "get".to_owned() } else { method };
        let pointer = format!("/paths/{}/{method}", key(path));
        if self.document().pointer(&pointer).is_none() {
            return if status == 405 {
                Ok(())
            } else {
                wrong(format!("answers {status}, not 405"))
            };
        }
        let pointer = format!("{pointer}/responses/{status}");
        let Some(reply) = self.document().pointer(&pointer) else {
            let text = String::from_utf8_lossy(body).chars().take(300).collect::<String>();
            return wrong(format!("the status {status} is not described: {text}"));
        };
        if is_head {
            return Ok(());
        }
        let contents = reply["content"].as_object().cloned().unwrap_or_else(Map::new);
        let found = contents.keys().find(|known| essence(known) == essence(content_type));
        let Some(found) = found else {
            return wrong(format!("{status} with the content type {content_type:?}"));
        };
        if !essence(content_type).ends_with("json") {
            return Ok(());
        }
        let value: Value = match serde_json::from_slice(body) {
            Ok(value) => value,
            Err(error) => return wrong(format!("{status} has no JSON: {error}")),
        };
        let schema = format!("{pointer}/content/{}/schema", key(found));
        self.check(&schema, &value).or_else(|errors| wrong(format!("{status}: {errors}\n{value}")))
    }
}
