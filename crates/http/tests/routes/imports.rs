//! Results of the past: NDJSON, JUnit files and bundles, and their times.

use actix_web::test::TestRequest;
use serde_json::{Value, json};
use signalbox_domain::flaky::UploadSource;
use signalbox_domain::time::Span;
use signalbox_domain::token::Scope;

use crate::bundles::{FLAKY, bundle_made_at};
use crate::support::{Grant, Reply, Server};

const NDJSON: &str = "application/x-ndjson";
const XML: &str = "application/xml";

async fn import(server: &Server, query: &str, kind: &str, body: impl Into<Vec<u8>>) -> Reply {
    let path = format!("/v1/flaky-tests/import?repo=git.test/acme/calc{query}");
    let request = TestRequest::post().uri(&path);
    let request = request.insert_header(("x-api-token", server.token.as_str()));
    server.call(request.insert_header(("content-type", kind)).set_payload(body.into())).await
}

fn ago(server: &Server, days: u32) -> String {
    server.clock_now().minus(Span::days(days)).to_string()
}

fn line(at: &str, job: &str) -> String {
    let tests = json!([{"name": "adds", "outcome": "failed", "message": "m"},
        {"name": "adds", "outcome": "passed"}]);
    let sha = "b".repeat(40);
    json!({"at": at, "sha": sha, "branch": "main", "job": job, "tests": tests}).to_string()
}

/// The states of the uploads of a reply.
async fn states(server: &Server, reply: &Value) -> Vec<Value> {
    server.read_uploads().await;
    let mut states = Vec::new();
    for upload in reply["uploads"].as_array().expect("uploads") {
        states.push(server.get(upload["status_url"].as_str().expect("an address")).await.json());
    }
    states
}

#[actix_web::test]
async fn lines_are_imported_in_the_order_of_their_times() {
    let server = Server::without_queue().await;
    let lines = [line(&ago(&server, 10), "late"), line(&ago(&server, 20), "early")].join("\n\n");
    let reply = import(&server, "", NDJSON, lines.clone()).await.json();
    assert_eq!(reply["refused"], json!([]));
    let numbers: Vec<&Value> =
        reply["uploads"].as_array().expect("uploads").iter().map(|it| &it["line"]).collect();
    assert_eq!(numbers, [&json!(3), &json!(1)], "empty lines count as lines");
    let states = states(&server, &reply).await;
    assert_eq!((&states[0]["state"], &states[0]["source"]), (&json!("read"), &json!("import")));
    assert_eq!(states[0]["ran_at"], ago(&server, 20));
    let taken = server.results.taken();
    let jobs: Vec<Option<&str>> = taken.iter().map(|(it, _)| it.job_name.as_deref()).collect();
    assert_eq!(jobs, [Some("early"), Some("late")]);
    let (upload, runs) = &taken[0];
    assert_eq!(upload.source, UploadSource::Import);
    assert_eq!(upload.received_at.to_string(), ago(&server, 20));
    assert_eq!(runs.iter().map(|it| it.attempt).collect::<Vec<_>>(), [0, 1]);

    let again = import(&server, "", NDJSON, lines).await.json();
    let known = |reply: &Value| {
        let uploads = reply["uploads"].as_array().expect("uploads");
        uploads.iter().map(|it| it["known"].clone()).collect::<Vec<_>>()
    };
    assert_eq!((known(&reply), known(&again)), (vec![json!(false); 2], vec![json!(true); 2]));
    server.read_uploads().await;
    assert_eq!(server.results.taken().len(), 2, "nothing is read again");
}

#[actix_web::test]
async fn one_malformed_line_refuses_all() {
    let server = Server::without_queue().await;
    let good = line(&ago(&server, 10), "unit");
    let lines = format!("{good}\n{{\"at\": 1}}\n{good}\n{{}}");
    let problem = import(&server, "", NDJSON, lines).await.problem(400, "malformed_body");
    let detail = problem["detail"].as_str().expect("words");
    assert!(detail.starts_with("line 2: column 8: invalid type"), "{detail}");
    assert!(detail.contains("; line 4: column 2: missing field `at`"), "{detail}");
    assert!(server.blobs.keys().is_empty(), "nothing is half done");
    let large = vec![b' '; 16 * 1024 * 1024 + 1];
    import(&server, "", NDJSON, large).await.problem(413, "body_too_large");
}

#[actix_web::test]
async fn runs_outside_the_kept_time_are_refused_with_the_rule() {
    let server = Server::without_queue().await;
    let old = ago(&server, 46);
    let lines = [line(&old, "1"), line(&ago(&server, 44), "2"), line("2999-01-01T00:00:00Z", "3")];
    let reply = import(&server, "", NDJSON, lines.join("\n")).await.json();
    assert_eq!(reply["uploads"].as_array().map(Vec::len), Some(1));
    let reason = format!("the run ended at {old}, and results are kept for 45 days");
    let future = "the run ended at 2999-01-01T00:00:00.000Z, in the future";
    assert_eq!(
        reply["refused"],
        json!([{"line": 1, "rule": "too_old", "reason": reason},
            {"line": 3, "rule": "in_future", "reason": future}])
    );
    let reply = import(&server, &format!("&at={old}"), XML, FLAKY).await.json();
    assert_eq!(reply["refused"], json!([{"line": null, "rule": "too_old", "reason": reason}]));
    let wrong = import(&server, "&at=yesterday", XML, FLAKY).await;
    assert_eq!(wrong.pointers(), ["/at"]);
}

#[actix_web::test]
async fn a_report_counts_as_of_its_last_test() {
    let server = Server::without_queue().await;
    let start = ago(&server, 20);
    let xml = FLAKY.replace("<testsuite ", &format!("<testsuite timestamp=\"{start}\" "));
    let reply = import(&server, "&branch=main&job=unit", XML, xml).await.json();
    let state = states(&server, &reply).await.remove(0);
    let ran_at = state["ran_at"].as_str().expect("a time");
    assert!(ran_at.starts_with(&start[..16]), "{ran_at} {start}");
    let unknown = import(&server, "&job=2", XML, FLAKY).await.json();
    let state = states(&server, &unknown).await.remove(0);
    assert_eq!(state["state"], "failed");
    let problem = "no test has a start, so the time of the run is unknown: give it as `at`";
    assert_eq!(state["problem"], problem);
    let given = ago(&server, 7);
    let reply = import(&server, &format!("&job=3&at={given}"), XML, FLAKY).await.json();
    assert_eq!(states(&server, &reply).await[0]["ran_at"], given);
}

#[actix_web::test]
async fn a_bundle_counts_as_of_when_it_was_made() {
    let server = Server::without_queue().await;
    let made = server.clock_now().minus(Span::days(20));
    let bundle = bundle_made_at(made.unix_micros() / 1_000_000);
    let reply = import(&server, "", "application/octet-stream", bundle).await.json();
    let state = states(&server, &reply).await.remove(0);
    assert_eq!((&state["state"], &state["ran_at"]), (&json!("read"), &json!(made.to_string())));
    assert_eq!(state["branch"], "main");
}

/// An ordinary upload with an old report: stored at its time, or refused with the rule.
#[actix_web::test]
async fn an_old_report_is_never_taken_as_of_today() {
    let server = Server::without_queue().await;
    let upload = async |days: u32| {
        let start = ago(&server, days);
        let xml = FLAKY.replace("<testsuite ", &format!("<testsuite timestamp=\"{start}\" "));
        let path = format!("/v1/flaky-tests/upload?repo=git.test/acme/calc&job={days}");
        let request = TestRequest::post().uri(&path).set_payload(xml);
        let request = request.insert_header(("x-api-token", server.token.as_str()));
        let reply = server.call(request.insert_header(("content-type", XML))).await.json();
        server.read_uploads().await;
        server.get(reply["status_url"].as_str().expect("an address")).await.json()
    };
    let kept = upload(40).await;
    assert_eq!((&kept["state"], &kept["runs"]), (&json!("read"), &json!(3)), "{kept}");
    let (_, runs) = server.results.taken().remove(0);
    let start = ago(&server, 40);
    assert!(runs.iter().all(|run| run.started_at.is_some_and(|at| at.to_string() == start)));
    let refused = upload(60).await;
    assert_eq!(refused["state"], "failed", "{refused}");
    let rule =
        format!("all tests started before {}, and results are kept for 45 days", ago(&server, 45));
    assert_eq!(refused["problem"], rule);
    let kinds: Vec<&Value> =
        refused["warnings"].as_array().expect("warnings").iter().map(|it| &it["kind"]).collect();
    assert!(kinds.contains(&&json!("timestamp_too_old")), "{kinds:?}");
    assert_eq!(server.results.taken().len(), 1);
}

#[actix_web::test]
async fn an_import_needs_the_scope_of_uploads() {
    let server = Server::without_queue().await;
    let token = server.grant(Grant { scopes: vec![Scope::TestsRead], ..Grant::default() }).await;
    let path = "/v1/flaky-tests/import?repo=git.test/acme/calc";
    let request = TestRequest::post().uri(path).insert_header(("x-api-token", token));
    let request = request.insert_header(("content-type", NDJSON));
    let reply = server.call(request.set_payload(line(&ago(&server, 1), "unit"))).await;
    reply.problem(403, "missing_scope");
    let reply = import(&server, "", "application/json", "{}").await;
    reply.problem(415, "unsupported_content_type");
}

#[actix_web::test]
async fn an_import_is_finished_once() {
    let server = Server::without_queue().await;
    // The first import registers the repository.
    import(&server, "", NDJSON, line(&ago(&server, 1), "unit")).await.json();
    let repo = json!({"repo": {"host": "git.test", "owner": "acme", "name": "calc"}});
    let reply = server.post("flaky-tests/finish-import", repo).await.json();
    assert_eq!(reply, json!({"imported": null, "flaky": 0, "broken": 0}));
}
