//! The character U+0000, which PostgreSQL cannot keep: refused by every route in every field, on
//! both databases alike.

use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{On, System};

/// Where the strings of a body are.
fn strings(value: &Value, at: &str, found: &mut Vec<String>) {
    match value {
        Value::String(_) => found.push(at.to_owned()),
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                strings(item, &format!("{at}/{index}"), found);
            }
        }
        Value::Object(fields) => {
            for (name, field) in fields {
                strings(field, &format!("{at}/{name}"), found);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The example of an operation's body, from the description of the API.
fn example(document: &Value, operation: &Value) -> Option<Value> {
    let content = &operation["requestBody"]["content"]["application/json"];
    let named = content["schema"]["$ref"].as_str().map(|it| it.trim_start_matches('#'));
    let schema = named.and_then(|it| document.pointer(it)).unwrap_or(&content["schema"]);
    let examples = [&content["example"], &schema["example"], &schema["examples"][0]];
    examples.into_iter().find(|it| it.is_object()).cloned()
}

/// The uploader counts every failure when this look-up is refused, so it is answered: no test with
/// such a name is quarantined.
const LOOKUP: &str = "/v1/metrics/getQuarantineConfig";

async fn is_refused_everywhere(on: On) {
    let system = System::new(on, "exit 0\n", 1).await;
    let document: Value =
        serde_json::from_str(&system.get("/v1/openapi.json").await).expect("JSON");
    let headers = [("x-api-token", system.token()), ("content-type", "application/json")];
    let mut bodies = Vec::new();
    let mut addresses = Vec::new();
    for (path, operations) in document["paths"].as_object().expect("paths") {
        let post = &operations["post"];
        bodies.extend(example(&document, post).map(|body| (path.clone(), body)));
        let operation = if post.is_object() { post } else { &operations["get"] };
        for parameter in operation["parameters"].as_array().into_iter().flatten() {
            let name = parameter["name"].as_str().expect("a name");
            addresses.push(if parameter["in"] == "path" {
                (post.is_object(), path.replace(&format!("{{{name}}}"), "a%00b"))
            } else {
                (post.is_object(), format!("{path}?{name}=a%00b"))
            });
        }
    }
    assert!(bodies.len() > 30 && addresses.len() > 10, "{} {}", bodies.len(), addresses.len());
    for (path, body) in bodies {
        let mut places = Vec::new();
        strings(&body, "", &mut places);
        for place in places {
            let mut body = body.clone();
            *body.pointer_mut(&place).expect("it is there") = json!("a\0b");
            let reply = system.send(Method::POST, &path, &headers, body.to_string()).await;
            if path == LOOKUP {
                assert_eq!(reply.json()["testIds"], json!([]), "{place}: {}", reply.text);
            } else {
                assert_eq!(reply.status, 400, "{path} {place}: {}", reply.text);
            }
        }
    }
    let pages = ["", "/flaky-tests?repo=%00", "/audit?object=%00", "/queue?branch=%00", "/%00"];
    addresses.extend(pages.map(|page| (false, format!("/acme{page}"))).into_iter().skip(1));
    for (post, path) in addresses {
        let method = if post { Method::POST } else { Method::GET };
        let reply = system.send(method, &path, &headers, String::new()).await;
        assert_eq!(reply.status, 400, "{path}: {}", reply.text);
    }
    // A file name in a form is no reply to a client: the character is dropped.
    let report = "--s\r\ncontent-disposition: form-data; name=\"f\"; filename*=UTF-8''a%00b.xml\r\n\r\n\
                  <testsuite name=\"a&#0;b\"><testcase name=\"c\0d\"/></testsuite>\r\n--s--\r\n";
    let headers =
        [("x-api-token", system.token()), ("content-type", "multipart/form-data; boundary=s")];
    let path = "/v1/flaky-tests/upload?repo=git.local/acme/calc&branch=main";
    let reply = system.send(Method::POST, path, &headers, report.to_owned()).await;
    assert_eq!(reply.status, 200, "{}", reply.text);
    let address = reply.json()["status_url"].as_str().expect("an address").to_owned();
    let read = async |system: &System| {
        let state: Value = serde_json::from_str(&system.get(&address).await).expect("JSON");
        ["read", "failed"].contains(&state["state"].as_str().expect("a state"))
    };
    system.until("the upload is read or refused", read).await;
}

#[tokio::test]
async fn nul_is_refused_everywhere_on_sqlite() {
    is_refused_everywhere(On::Sqlite).await;
}

#[tokio::test]
async fn nul_is_refused_everywhere_on_postgres() {
    is_refused_everywhere(On::Postgres).await;
}
