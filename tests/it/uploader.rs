//! The public uploader's protocol as it runs in a CI job: ask, announce, send, report; then the
//! tests in the API. The uploader's exit code is computed as it does.

use reqwest::Method;
use serde_json::{Value, json};
use signalbox_domain::time::{Span, Timestamp};

use crate::harness::{On, Reply, System};
use crate::uploader_bundle::{CASES, Case, REPORTS, meta, packed, telemetry};

const REPO: &str = "github.com/acme/shop";

fn repo() -> Value {
    json!({"host": "github.com", "owner": "acme", "name": "shop"})
}

async fn post(system: &System, path: &str, body: &Value) -> Reply {
    let headers = [("x-api-token", system.token()), ("content-type", "application/json")];
    system.send(Method::POST, path, &headers, body.to_string()).await
}

/// Calls an operation on tests that must succeed.
async fn call(system: &System, operation: &str, more: Value) -> Value {
    let mut body = json!({"repo": repo(), "org_url_slug": "acme"});
    for (key, value) in more.as_object().expect("an object") {
        body[key] = value.clone();
    }
    let reply = post(system, &format!("/v1/flaky-tests/{operation}"), &body).await;
    assert_eq!(reply.status, 200, "{operation}: {}", reply.text);
    reply.json()
}

fn failed() -> impl Iterator<Item = &'static Case> {
    CASES.iter().filter(|case| case.fails)
}

/// Which failures the server excuses, with the status as the uploader sees it.
async fn ask(system: &System, cases: &[&Case], variant: &str) -> Value {
    let tests: Vec<Value> = cases.iter().map(|case| case.asked(REPO, variant)).collect();
    let body = json!({
        "repo": repo(), "orgUrlSlug": "acme", "remoteUrls": ["git@github.com:acme/shop.git"],
        "testIdentifiers": tests
    });
    // An origin with a slash at its end doubles one.
    let reply = post(system, "//v1/metrics/getQuarantineConfig", &body).await;
    assert_eq!(reply.status, 200, "{}", reply.text);
    let answer = reply.json();
    assert!(answer["isDisabled"].is_boolean() && answer["testIds"].is_array(), "{answer}");
    answer
}

/// The exit code of a plain `upload` after a reply.
fn exit_code(answer: &Value, cases: &[&Case], variant: &str) -> i32 {
    let excused: Vec<&str> =
        answer["testIds"].as_array().expect("a list").iter().filter_map(Value::as_str).collect();
    let all = cases.iter().all(|case| excused.contains(&case.asked_id(REPO, variant).as_str()));
    i32::from(answer["isDisabled"] != true && !all)
}

async fn announce(system: &System) -> (String, String) {
    let body = json!({
        "repo": repo(), "orgUrlSlug": "acme",
        "clientVersion": "trunk-analytics-cli cargo=0.7.8 git=abc rustc=1.80.0",
        "remoteUrls": ["git@github.com:acme/shop.git"], "externalId": null,
        "testCollectionShortId": null
    });
    let reply = post(system, "/v1/metrics/createBundleUpload", &body).await;
    assert_eq!(reply.status, 200, "{}", reply.text);
    let answer = reply.json();
    let text = |key: &str| answer[key].as_str().unwrap_or_else(|| panic!("{key}: {answer}"));
    assert!(!text("key").is_empty() && uuid::Uuid::try_parse(text("idV2")).is_ok(), "{answer}");
    let path = text("url").strip_prefix(&system.url()).expect("the origin of the request");
    (text("id").to_owned(), path.to_owned())
}

/// Sends a bundle as the uploader does, and waits until it is read.
async fn upload(
    system: &System,
    variant: &str,
    more: &Value,
    reports: &[&str],
    cases: &[Case],
) -> Value {
    let (id, path) = announce(system).await;
    let bytes = packed(&meta(&id, variant, more), reports, cases);
    let kind = [("content-type", "application/octet-stream")];
    // The first answer was lost, so the same bytes come twice.
    for _ in 0..2 {
        let sent = system.send_bytes(Method::PUT, &path, &kind, bytes.clone().into()).await;
        assert!(sent.status < 400, "{}", sent.text);
    }
    let kind = [("content-type", "application/x-protobuf")];
    let told = system
        .send_bytes(Method::POST, "/v1/flakytests-cli/upload-metrics", &kind, telemetry().into())
        .await;
    assert_eq!(told.status, 200, "without any credential");
    let path = format!("/v1/flaky-tests/uploads/{id}");
    let read = async |system: &System| -> Value {
        serde_json::from_str(&system.get(&path).await).expect("JSON")
    };
    let over = async |system: &System| {
        let state = read(system).await["state"].clone();
        state == "read" || state == "failed"
    };
    system.until("the bundle is read", over).await;
    let upload = read(system).await;
    assert_eq!((&upload["state"], &upload["problem"]), (&json!("read"), &Value::Null), "{upload}");
    upload
}

fn sorted(mut texts: Vec<String>) -> Vec<String> {
    texts.sort();
    texts
}

fn ids(page: &Value, list: &str, key: &str) -> Vec<String> {
    let tests = page[list].as_array().unwrap_or_else(|| panic!("{list} of {page}"));
    let ids = tests.iter().map(|test| test[key].as_str().expect("an id").to_owned());
    sorted(ids.collect())
}

/// When the last upload came.
async fn last_upload(system: &System) -> Timestamp {
    let page = call(system, "list-uploads", json!({"page_query": {"page_size": 1}})).await;
    let at = page["uploads"][0]["received_at"].as_str().and_then(Timestamp::parse);
    at.unwrap_or_else(|| panic!("a time: {page}"))
}

async fn failing(system: &System) -> Vec<String> {
    let last = last_upload(system).await;
    let page = call(
        system,
        "list-failing-tests",
        json!({
            "start_time": last.minus(Span::hours(24)).to_string(),
            "end_time": last.plus(Span::hours(1)).to_string(),
            "page_query": {"page_size": 100, "page_token": ""}
        }),
    )
    .await;
    ids(&page, "tests", "id")
}

async fn quarantine(system: &System, case: &Case, variant: &str, setting: &str) {
    let body = json!({"testId": case.id(REPO, variant), "setting": setting, "reason": "KAN-1"});
    call(system, "override-quarantine", body).await;
}

fn of(names: &[&str], variant: &str) -> Vec<String> {
    let case_of = |name: &&str| CASES.iter().find(|case| case.name == *name).expect("a case");
    sorted(names.iter().map(|name| case_of(name).id(REPO, variant)).collect())
}

async fn the_uploaders_whole_way(on: On) {
    let system = System::new(on, "exit 0\n", 1).await;
    let failures: Vec<&Case> = failed().collect();
    // The server does not know the repository, and failures stay failures.
    let answer = ask(&system, &failures, "").await;
    assert_eq!(answer, json!({"isDisabled": false, "testIds": []}));
    assert_eq!(exit_code(&answer, &failures, ""), 1);

    let read = upload(&system, "", &json!({}), &REPORTS, CASES).await;
    let skipped_and_reruns = 1 + 3;
    assert_eq!(
        (&read["tests"], &read["failed_tests"], &read["runs"]),
        (&json!(CASES.len()), &json!(failures.len()), &json!(CASES.len() + skipped_and_reruns)),
        "{read}"
    );
    assert_eq!((&read["sha"], &read["branch"]), (&json!("b".repeat(40)), &json!("topic")));
    assert_eq!((&read["branch_class"], &read["pr_number"]), (&json!("pull_request"), &json!(7)));
    let job = "https://github.com/acme/shop/actions/runs/12?pr=7";
    assert_eq!((&read["job_url"], &read["admission"]), (&json!(job), &json!("counts")));
    assert!(read["files"].as_array().expect("files").iter().all(|it| it["problem"].is_null()));

    // Ids are those of the rule, also of tests that only failed on the way.
    let retried = ["wobbles", "retried"];
    let mut expected: Vec<String> = failures.iter().map(|case| case.id(REPO, "")).collect();
    expected.extend(of(&retried, ""));
    assert_eq!(failing(&system).await, sorted(expected));
    let page = json!({"status": "FLAKY", "page_query": {"page_size": 100}});
    let unhealthy = call(&system, "list-unhealthy-tests", page).await;
    assert_eq!(ids(&unhealthy, "tests", "id"), of(&retried, ""));
    for case in CASES {
        let details = json!({"test_id": case.id(REPO, "")});
        let test = call(&system, "get-test-details", details).await["test"].clone();
        assert_eq!((&test["name"], &test["variant"]), (&json!(case.name), &json!("")), "{test}");
        assert_eq!(test["parent"], case.parent, "{test}");
        let some = |text: &str| if text.is_empty() { Value::Null } else { json!(text) };
        assert_eq!(
            (&test["file_path"], &test["classname"]),
            (&some(case.file), &some(case.class)),
            "{test}"
        );
        assert_eq!(test["codeowners"], json!(["@acme/shop"]), "{test}");
        let rate = if case.fails { 1.0 } else { 0.0 };
        if !retried.contains(&case.name) {
            assert_eq!(test["failure_rate_last_24h"], json!(rate), "{test}");
        }
        let link = format!("/acme/flaky-tests/test/{}?repo=acme%2Fshop", case.id(REPO, ""));
        assert_eq!(test["html_url"], format!("{}{link}", system.url()));
        // The uploader prints the link with the id that it has sent.
        let sent = case.asked_id(REPO, "").replace('/', "%2F");
        let printed = format!("/acme/flaky-tests/test/{sent}?repo=acme%2Fshop");
        for link in [link, printed] {
            let headers = [("x-api-token", system.token())];
            let page = system.send(Method::GET, &link, &headers, String::new()).await;
            assert_eq!(page.status, 200, "{link}: {}", page.text);
        }
    }
    quarantine_is_answered_as_asked(&system, &failures).await;
    variants_are_tests_of_their_own(&system).await;
    a_disabled_quarantine_is_reported_or_not(&system, &failures).await;
}

/// Overrides, and the reply for the ids as they were sent.
async fn quarantine_is_answered_as_asked(system: &System, failures: &[&Case]) {
    call(system, "update-settings", json!({"quarantineEnabled": true})).await;
    assert_eq!(ask(system, failures, "").await, json!({"isDisabled": false, "testIds": []}));
    let (last, others) = failures.split_last().expect("failures");
    for case in others {
        quarantine(system, case, "", "ALWAYS_QUARANTINE").await;
    }
    let answer = ask(system, failures, "").await;
    let sent: Vec<String> = others.iter().map(|case| case.asked_id(REPO, "")).collect();
    assert_eq!(answer, json!({"isDisabled": false, "testIds": sent}));
    assert_eq!(exit_code(&answer, failures, ""), 1, "one is not quarantined");
    quarantine(system, last, "", "ALWAYS_QUARANTINE").await;
    let answer = ask(system, failures, "").await;
    assert_eq!(exit_code(&answer, failures, ""), 0, "{answer}");
    let page = json!({"page_query": {"page_size": 100}});
    let listed = call(system, "list-quarantined-tests", page.clone()).await;
    let all = sorted(failures.iter().map(|case| case.id(REPO, "")).collect());
    assert_eq!(ids(&listed, "quarantined_tests", "test_case_id"), all);
    // The empty question is that of the RSpec plug-in: everything that is quarantined, by every id.
    let answer = ask(system, &[], "").await;
    let known = answer["testIds"].as_array().expect("ids");
    for case in failures {
        for id in [case.id(REPO, ""), case.asked_id(REPO, "")] {
            assert!(known.contains(&json!(id)), "{id} in {answer}");
        }
    }
    quarantine(system, last, "", "NEVER_QUARANTINE").await;
    let answer = ask(system, &[last], "").await;
    assert_eq!((exit_code(&answer, &[last], ""), &answer["testIds"]), (1, &json!([])));
    let listed = call(system, "list-quarantined-tests", page).await;
    assert_eq!(listed["quarantined_tests"].as_array().map(Vec::len), Some(failures.len() - 1));
    quarantine(system, last, "", "ALWAYS_QUARANTINE").await;

    // Failures that the uploader has excused are sent as excused, and still are failures.
    let excused: Vec<Value> = failures.iter().map(|case| case.asked(REPO, "")).collect();
    let more = json!({"quarantined_tests": excused, "envs": {"CUSTOM": "true", "PR_NUMBER": "7",
        "JOB_URL": "https://ci.acme.test/2", "COMMIT_BRANCH": "topic"}});
    let read = upload(system, "", &more, &REPORTS, CASES).await;
    assert_eq!(read["failed_tests"], json!(failures.len()), "{read}");
    assert_eq!((&read["repeats"], &read["pr_number"]), (&Value::Null, &json!(7)), "{read}");
}

/// With a variant every test is a different one, which is not quarantined.
async fn variants_are_tests_of_their_own(system: &System) {
    let before = failing(system).await;
    let failures: Vec<&Case> = failed().collect();
    let answer = ask(system, &failures, "linux").await;
    assert_eq!(answer["testIds"], json!([]));
    let read = upload(system, "linux", &json!({}), &REPORTS, CASES).await;
    assert_eq!(read["variant"], "linux");
    let mut expected: Vec<String> = failures.iter().map(|case| case.id(REPO, "linux")).collect();
    expected.extend(of(&["wobbles", "retried"], "linux"));
    expected.extend(before);
    assert_eq!(failing(system).await, sorted(expected));
    quarantine(system, failures[0], "linux", "ALWAYS_QUARANTINE").await;
    let answer = ask(system, &failures, "linux").await;
    assert_eq!(answer["testIds"], json!([failures[0].asked_id(REPO, "linux")]));
    assert_eq!(ask(system, &failures, "mac").await["testIds"], json!([]));
}

/// Switched off, the uploader lets everything pass, unless the repository wants a gate.
async fn a_disabled_quarantine_is_reported_or_not(system: &System, failures: &[&Case]) {
    call(system, "update-settings", json!({"quarantineEnabled": false})).await;
    let off = json!({"isDisabled": true, "testIds": []});
    let on = json!({"isDisabled": false, "testIds": []});
    // Another server may reply with the state of a second ago; this one has the change immediately.
    assert_eq!(ask(system, failures, "").await, off);
    assert_eq!(exit_code(&off, failures, ""), 0);
    let settings = call(system, "update-settings", json!({"gateWhileOff": true})).await;
    assert_eq!(settings["gateWhileOff"], true);
    assert_eq!(ask(system, failures, "").await, on);
    assert_eq!(exit_code(&on, failures, ""), 1);
}

#[tokio::test]
async fn the_uploaders_whole_way_on_sqlite() {
    the_uploaders_whole_way(On::Sqlite).await;
}

#[tokio::test]
async fn the_uploaders_whole_way_on_postgres() {
    the_uploaders_whole_way(On::Postgres).await;
}

/// A refusal reaches a client that is still sending: it distinguishes a refusal from a broken
/// connection, after which it would wait and send again.
#[tokio::test]
async fn a_client_that_sends_too_much_gets_the_reason() {
    let mut system = System::new(On::Sqlite, "exit 0\n", 1).await;
    let config = "[flaky]\nupload_mib = 1\n";
    std::fs::write(system.path("signalbox.toml"), config).expect("written");
    system.kill();
    system.start().await;
    let large = vec![b' '; 40 << 20];
    let (_, path) = announce(&system).await;
    let unsigned = path.split_once('?').expect("a query").0.to_owned();
    for (path, status) in [(&path, 413), (&unsigned, 403)] {
        let reply = system.send_bytes(Method::PUT, path, &[], large.clone().into()).await;
        assert_eq!(reply.status, status, "{}", reply.text);
    }
    // Without a length the error comes when the limit is reached.
    let pieces = large.chunks(1 << 20).map(|it| Ok::<_, std::io::Error>(it.to_vec()));
    let pieces: Vec<_> = pieces.collect();
    let body = reqwest::Body::wrap_stream(futures_util::stream::iter(pieces));
    let reply = system.send_bytes(Method::PUT, &path, &[], body).await;
    assert_eq!(reply.status, 413, "{}", reply.text);
    for operation in ["metrics/getQuarantineConfig", "metrics/createBundleUpload"] {
        let headers = [("x-api-token", "wrong"), ("content-type", "application/json")];
        let path = format!("/v1/{operation}");
        let reply = system.send_bytes(Method::POST, &path, &headers, large.clone().into()).await;
        assert_eq!(reply.status, 401, "{operation}: {}", reply.text);
    }
    // A smaller one is still accepted.
    let reply = system.send_bytes(Method::PUT, &path, &[], b"small".to_vec().into()).await;
    assert_eq!(reply.status, 200, "{}", reply.text);
}

/// A job turns red (70) for 401, 403 and 404 only, and waits a minute for what may be tried again.
#[tokio::test]
async fn statuses_never_fail_a_ci_job() {
    let system = System::new(On::Sqlite, "exit 0\n", 1).await;
    let (_, limited) = system.token_with(&["--org", "acme", "--repo", "git.local/acme/calc"]);
    let owned = system.token().to_owned();
    let body = |change: Value| {
        let mut body = json!({"repo": repo(), "orgUrlSlug": "acme", "clientVersion": "x",
            "remoteUrls": [], "externalId": "7", "testCollectionShortId": "abcd1234"});
        for (key, value) in change.as_object().expect("an object") {
            body[key] = value.clone();
        }
        body
    };
    let nested = json!({"repo": {"host": "gitlab.acme.test:8443", "owner": "a/b/c", "name": "d"}});
    let nameless = json!({"repo": {"host": "github.com", "owner": "acme", "name": ""}});
    for (token, change, status) in [
        (&owned, json!({}), 200),
        (&owned, nested, 200),
        (&owned, json!({"orgUrlSlug": "other"}), 422),
        (&owned, nameless, 400),
        (&owned, json!({"repo": null}), 400),
        (&limited, json!({}), 422),
        (&"wrong".to_owned(), json!({}), 401),
        (&String::new(), json!({}), 401),
    ] {
        let headers = [("x-api-token", token.as_str()), ("content-type", "application/json")];
        let path = "/v1/metrics/createBundleUpload";
        let sent = body(change.clone()).to_string();
        let reply = system.send(Method::POST, path, &headers, sent.clone()).await;
        assert_eq!(reply.status, status, "announced with {change}: {}", reply.text);
        let path = "/v1/metrics/getQuarantineConfig";
        let reply = system.send(Method::POST, path, &headers, sent).await;
        let unclear = change == json!({"repo": null});
        let status = if status == 401 {
            401
        } else if unclear {
            400
        } else {
            200
        };
        assert_eq!(reply.status, status, "asked with {change}: {}", reply.text);
        if status == 200 {
            assert_eq!(reply.json(), json!({"isDisabled": false, "testIds": []}));
        }
    }
}
