//! Requests are checked against GitHub's published description.

use std::panic::catch_unwind;

use serde_json::{Value, json};
use signalbox_testkit::double::Logged;
use signalbox_testkit::github_double::{check_requests, fetched};

fn request(method: &str, path: &str, query: &str, body: Value) -> Logged {
    Logged { method: method.into(), path: path.into(), query: query.into(), body, status: 200 }
}

#[test]
fn invalid_requests_are_detected() {
    if fetched("requests.json").is_none() {
        return;
    }
    let wrong = |request: Logged| catch_unwind(|| check_requests(&[request])).is_err();
    let merge =
        |body: Value| Logged { status: 201, ..request("POST", "/repos/a/b/merges", "", body) };
    assert!(!wrong(merge(json!({"base": "x", "head": "y"}))));
    assert!(wrong(merge(json!({"base": "x"}))), "a field is missing");
    assert!(wrong(merge(json!({"base": "x", "head": 1}))), "of another type");
    assert!(wrong(merge(json!({"base": "x", "head": "y", "z": 1}))), "not known");
    assert!(wrong(request("GET", "/repos/a/b/nothing", "", Value::Null)), "no such operation");
    assert!(wrong(request("GET", "/repos/a/b/pulls", "colour=red", Value::Null)), "no parameter");
    assert!(!wrong(request("GET", "/repos/a/b/pulls", "state=all&per_page=100", Value::Null)));
}
