//! `POST /v1/flaky-tests/list-…` and `get-test-details`.

use serde_json::{Value, json};
use signalbox_domain::flaky::{
    Base, BranchClass, Origin, ReportedFailure, ReportedRun, RunOutcome, TestKey, Trust, Upload,
    UploadId, UploadSource,
};
use signalbox_domain::ids::{PrNumber, RepoId, Sha};
use signalbox_domain::ports::RepoRef;
use signalbox_domain::time::Span;
use signalbox_services::ResultsSink;
use uuid::Uuid;

use crate::support::{Grant, Server, calc};

pub(crate) const FAILING: &str = "flaky-tests/list-failing-tests";
pub(crate) const UNHEALTHY: &str = "flaky-tests/list-unhealthy-tests";
pub(crate) const QUARANTINED: &str = "flaky-tests/list-quarantined-tests";
pub(crate) const DETAILS: &str = "flaky-tests/get-test-details";

pub(crate) fn key(name: &str) -> TestKey {
    TestKey {
        org: "acme".into(),
        repo: calc().to_string(),
        file: "tests/calc.rs".into(),
        classname: "Calc".into(),
        name: name.into(),
        ..TestKey::default()
    }
}

fn run(name: &str, passed: bool) -> ReportedRun {
    let failure = ReportedFailure { message: "lost 3 of 4".into(), text: String::new() };
    ReportedRun {
        key: key(name),
        other_files: Vec::new(),
        outcome: if passed { RunOutcome::Passed } else { RunOutcome::Failed },
        attempt: 0,
        started_at: None,
        took: None,
        failure: (!passed).then_some(failure),
        owners: vec!["@acme/calc".into()],
        quarantined: false,
    }
}

/// Takes runs in on a commit, in a pull request.
pub(crate) async fn report(server: &Server, commit: u32, runs: &[(&str, bool)]) {
    let pr = Some(PrNumber(commit));
    report_of(server, commit, ("topic", BranchClass::PullRequest, pr), runs).await;
}

/// Takes runs in on a commit of `main`.
pub(crate) async fn report_main(server: &Server, commit: u32, runs: &[(&str, bool)]) {
    report_of(server, commit, ("main", BranchClass::Stable, None), runs).await;
}

async fn report_of(
    server: &Server,
    commit: u32,
    (branch, class, pr): (&str, BranchClass, Option<PrNumber>),
    runs: &[(&str, bool)],
) {
    let repo = repo(server).await;
    let now = server.api.clock.now();
    let upload = Upload {
        id: UploadId(Uuid::from_u128(
            u128::from(commit) * 1_000_000 + u128::from(now.unix_micros().unsigned_abs()),
        )),
        org: repo.org,
        repo: repo.id,
        source: UploadSource::JUnit,
        trust: Trust::Token,
        received_at: now,
        sha: Some(Sha::new(format!("{commit:040x}")).expect("a commit")),
        committed_at: None,
        branch: branch.into(),
        class,
        pr,
        job_url: None,
        job_name: None,
        origin: Origin::new(Some(&["unit"]), Base::Itself),
        author: None,
        variant: String::new(),
    };
    let runs = runs.iter().map(|(name, passed)| run(name, *passed)).collect();
    server.api.flaky.service.take_in(&upload, runs).await.expect("stored");
    server.clock.advance(Span::seconds(1));
}

async fn repo(server: &Server) -> RepoRef {
    let repos = server.stores.account.repos.list(None).await.expect("a list");
    let found = repos.iter().find(|it| it.name == calc()).expect("the repository");
    RepoRef { org: found.org, id: RepoId(found.id.0) }
}

/// Makes tests flaky on one commit.
pub(crate) async fn make_flaky(server: &Server, commit: u32, names: &[&str]) {
    for passed in [false, true] {
        let runs: Vec<(&str, bool)> = names.iter().map(|name| (*name, passed)).collect();
        report(server, commit, &runs).await;
    }
}

/// A page of 100 of the organization `acme`, with more in it.
pub(crate) fn query(more: Value) -> Value {
    let mut body = json!({"org_url_slug": "acme", "page_query": {"page_size": 100}});
    if let (Some(body), Value::Object(more)) = (body.as_object_mut(), more) {
        body.extend(more);
    }
    body
}

fn range(server: &Server) -> Value {
    let now = server.api.clock.now();
    json!({
        "start_time": now.minus(Span::hours(167)).to_string(),
        "end_time": now.plus(Span::hours(1)).to_string(),
    })
}

#[actix_web::test]
async fn a_flaky_test_is_in_every_list_with_everything_that_is_known() {
    let server = Server::new().await;
    make_flaky(&server, 7, &["adds"]).await;
    report(&server, 8, &[("adds", false), ("subtracts", true)]).await;
    server.clock.advance(Span::hours(1));
    let (id, flaky_since) = (key("adds").id().to_string(), "2026-01-01T00:00:0");
    let enabled = server.api.clock.now().to_string();
    let settings = json!({"quarantineEnabled": true, "autoQuarantine": "flaky"});
    server.ok("flaky-tests/update-settings", settings).await;
    let ticket = json!({"test_case_id": id, "external_ticket_id": "KAN-1"});
    assert_eq!(server.ok("flaky-tests/link-ticket-to-test-case", ticket).await, json!({}));
    let failing = server.ok(FAILING, query(range(&server))).await;
    let test = &failing["tests"][0];
    assert_eq!(failing["tests"].as_array().map(Vec::len), Some(1));
    assert_eq!(test["id"], id.as_str());
    assert_eq!(test["repository"], json!({"html_url": "https://git.test/acme/calc"}));
    let page = format!("https://ci.test/acme/flaky-tests/test/{id}?repo=acme%2Fcalc");
    assert_eq!(test["html_url"], page);
    assert_eq!((&test["name"], &test["variant"]), (&json!("adds"), &json!("")));
    assert_eq!(test["status"]["value"], "flaky");
    let reason = test["status"]["reason"].as_str().expect("a reason");
    assert!(reason.starts_with("pass_on_retry: failed and passed on commit 0000"), "{reason}");
    let since = test["status"]["timestamp"].as_str().expect("a time");
    assert!(since.starts_with(flaky_since), "{since}");
    assert_eq!(test["failure_rate_last_24h"], json!(2.0 / 3.0));
    assert_eq!(test["failure_rate_last_7d"], json!(2.0 / 3.0));
    assert_eq!(test["pull_requests_impacted_last_7d"], 2);
    let failure = &test["most_common_failures"][0];
    assert_eq!(failure["summary"], "lost <num> of <num>");
    assert_eq!(failure["occurrence_count"], 2);
    assert!(failure["last_occurrence"].is_string());
    assert_eq!(test["codeowners"], json!(["@acme/calc"]));
    assert_eq!(test["file_path"], "tests/calc.rs");
    assert_eq!(test["classname"], "Calc");
    assert!(test.get("parent").is_none(), "unknown values are omitted");
    assert_eq!(test["quarantined"], true);
    assert_eq!(test["ticket"], json!({"html_url": "https://tickets.test/KAN-1"}));
    let details = server.ok(DETAILS, json!({"org_url_slug": "acme", "test_id": id})).await;
    assert_eq!(&details["test"], test);
    let unhealthy = server.ok(UNHEALTHY, query(json!({"status": "FLAKY"}))).await;
    let short = &unhealthy["tests"][0];
    for (name, value) in short.as_object().expect("an object") {
        assert_eq!(value, &test[name], "{name}");
    }
    assert!(short.get("failure_rate_last_7d").is_none());
    assert!(short.get("most_common_failures").is_none());
    let quarantined = server.ok(QUARANTINED, query(json!({}))).await;
    assert_eq!(
        quarantined["quarantined_tests"][0],
        json!({
            "test_case_id": id, "name": "adds", "parent": null, "file": "tests/calc.rs",
            "classname": "Calc", "variant": "", "status": "FLAKY", "codeowners": ["@acme/calc"],
            "quarantine_setting": "AUTO_QUARANTINE", "quarantined_at": enabled,
            "status_last_updated_at": since,
        })
    );
    let page = &quarantined["page"];
    assert_eq!((&page["total_rows"], &page["total_pages"]), (&json!(1), &json!(1)));
    assert_eq!((&page["next_page_token"], &page["prev_page_token"]), (&json!(""), &json!("")));
    assert_eq!(server.ok(UNHEALTHY, query(json!({"status": "broken"}))).await["tests"], json!([]));
}

#[actix_web::test]
async fn a_list_is_walked_in_both_directions_while_it_changes() {
    let server = Server::new().await;
    let names: Vec<String> = (0..7).map(|number| format!("test {number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    make_flaky(&server, 1, &names).await;
    let page = async |token: &str| {
        let body = json!({
            "org_url_slug": "acme", "status": "FLAKY",
            "page_query": {"page_size": 3, "page_token": token},
        });
        server.ok(UNHEALTHY, body).await
    };
    let ids = |page: &Value| {
        let tests = page["tests"].as_array().expect("tests").iter();
        tests.map(|it| it["id"].as_str().expect("an id").to_owned()).collect::<Vec<_>>()
    };
    let token =
        |page: &Value, which: &str| page["page"][which].as_str().expect("a token").to_owned();
    let first = page("").await;
    let second = page(&token(&first, "next_page_token")).await;
    let third = page(&token(&second, "next_page_token")).await;
    let sizes: Vec<usize> = [&first, &second, &third].map(|it| ids(it).len()).to_vec();
    assert_eq!(sizes, [3, 3, 1]);
    for (at, it) in [&first, &second, &third].into_iter().enumerate() {
        assert_eq!(it["page"]["page_index"], at);
        assert_eq!((&it["page"]["total_rows"], &it["page"]["total_pages"]), (&json!(7), &json!(3)));
    }
    assert_eq!(token(&first, "prev_page_token"), "");
    assert_eq!(token(&third, "next_page_token"), "");
    let last = page(&token(&first, "last_page_token")).await;
    assert_eq!(ids(&last), ids(&third));
    assert_eq!(last["page"]["page_index"], 2);
    let back = page(&token(&last, "prev_page_token")).await;
    assert_eq!(ids(&back), ids(&second));
    let start = page(&token(&back, "prev_page_token")).await;
    assert_eq!(ids(&start), ids(&first));
    assert_eq!(token(&start, "prev_page_token"), "");
    // A test becomes healthy between two pages: the others are still listed once.
    let gone = ids(&second)[0].clone();
    let command = json!({"testId": gone, "monitorId": monitor(&server).await, "length": "forever"});
    server.ok("flaky-tests/mute-monitor", command).await;
    let rest = page(&token(&first, "next_page_token")).await;
    assert_eq!(ids(&rest), [&ids(&second)[1..], &ids(&third)].concat());
}

pub(crate) async fn monitor(server: &Server) -> Value {
    server.ok("flaky-tests/list-monitors", json!({})).await["monitors"][0]["id"].clone()
}

#[actix_web::test]
async fn a_foreign_page_token_is_refused_before_anything_is_read() {
    let server = Server::new().await;
    make_flaky(&server, 1, &["a", "b", "c"]).await;
    let body = |size: u32, token: &str, more: Value| {
        let mut body = query(json!({"page_query": {"page_size": size, "page_token": token}}));
        body.as_object_mut().expect("an object").extend(more.as_object().expect("one").clone());
        body
    };
    let flaky = json!({"status": "FLAKY"});
    let first = server.ok(UNHEALTHY, body(2, "", flaky.clone())).await;
    let token = first["page"]["next_page_token"].as_str().expect("a token").to_owned();
    assert_eq!(server.post(UNHEALTHY, body(2, &token, flaky.clone())).await.status, 200);
    let foreign = [
        (UNHEALTHY, body(3, &token, flaky.clone())),
        (UNHEALTHY, body(2, &token, json!({"status": "BROKEN"}))),
        (UNHEALTHY, body(2, &format!("{token}00"), flaky.clone())),
        (UNHEALTHY, body(2, "nonsense", flaky.clone())),
        (QUARANTINED, body(2, &token, json!({}))),
        (FAILING, body(2, &token, range(&server))),
    ];
    for (operation, body) in foreign {
        let seen = server.seen.0.lock().expect("not poisoned").len();
        server.post(operation, body).await.problem(500, "invalid_page_token");
        let counted = server.seen.0.lock().expect("not poisoned")[seen].1;
        assert_eq!(counted, 400, "it is not counted as a fault of the server");
    }
    let token_of_other = server.grant(Grant { org: "other", ..Grant::default() }).await;
    let theirs = json!({"org_url_slug": "other"});
    let mut asked = body(2, &token, flaky);
    asked.as_object_mut().expect("an object").extend(theirs.as_object().expect("one").clone());
    let reply = server.post_as(&token_of_other, UNHEALTHY, asked).await;
    reply.problem(500, "invalid_page_token");
}

#[actix_web::test]
async fn the_time_of_failing_tests_has_at_most_seven_days() {
    let server = Server::new().await;
    let range = |start: &str, end: &str| query(json!({"start_time": start, "end_time": end}));
    let week = range("2026-01-01T00:00:00Z", "2026-01-08T02:00:00+02:00");
    assert_eq!(server.post(FAILING, week).await.status, 200);
    for (start, end, pointer) in [
        ("2026-01-01T00:00:00Z", "2026-01-08T00:00:00.000001Z", "/end_time"),
        ("2026-01-02T00:00:00Z", "2026-01-01T00:00:00Z", "/end_time"),
        ("yesterday", "2026-01-01T00:00:00Z", "/start_time"),
    ] {
        assert_eq!(server.post(FAILING, range(start, end)).await.pointers(), [pointer]);
    }
    let nothing = json!({"page_query": {"page_size": 101}, "status": "HEALTHY"});
    let pointers = server.post(UNHEALTHY, nothing).await.pointers();
    assert_eq!(pointers, ["/status", "/org_url_slug", "/page_query/page_size"]);
}

#[actix_web::test]
async fn the_organization_must_be_the_token_s_own() {
    let server = Server::new().await;
    make_flaky(&server, 1, &["adds"]).await;
    for slug in ["other", "ACME", "not a slug"] {
        let body = query(json!({"status": "FLAKY", "org_url_slug": slug}));
        server.post(UNHEALTHY, body).await.problem(404, "repository_not_found");
        let body = json!({"org_url_slug": slug, "test_id": key("adds").id().to_string()});
        server.post(DETAILS, body).await.problem(404, "repository_not_found");
    }
    let unknown = json!({"org_url_slug": "acme", "test_id": key("unknown").id().to_string()});
    server.post(DETAILS, unknown).await.problem(404, "test_not_found");
}

#[actix_web::test]
async fn totals_follow_every_change() {
    let server = Server::new().await;
    report(&server, 1, &[("one", true)]).await;
    let from = server.api.clock.now().minus(Span::hours(1));
    let until = from.plus(Span::hours(48));
    let totals = async || {
        let failing = json!({
            "org_url_slug": "acme", "page_query": {"page_size": 10},
            "start_time": from.to_string(), "end_time": until.to_string(),
        });
        let status = |status: &str| json!({"org_url_slug": "acme", "page_query": {"page_size": 10}, "status": status});
        let mut counted = Vec::new();
        for (list, body) in
            [(FAILING, failing), (UNHEALTHY, status("FLAKY")), (UNHEALTHY, status("BROKEN"))]
        {
            // The second reply is of a remembered count.
            let first = server.ok(list, body.clone()).await["page"]["total_rows"].clone();
            assert_eq!(server.ok(list, body).await["page"]["total_rows"], first, "{list}");
            counted.push(first.as_u64().expect("a number"));
        }
        <[u64; 3]>::try_from(counted).expect("three")
    };
    assert_eq!(totals().await, [0, 0, 0]);
    report(&server, 2, &[("one", false)]).await;
    assert_eq!(totals().await, [1, 0, 0], "a failure of a healthy test");
    report(&server, 3, &[("one", false), ("two", true)]).await;
    assert_eq!(totals().await, [1, 0, 0], "a further failure of the same test");
    make_flaky(&server, 4, &["two", "three"]).await;
    assert_eq!(totals().await, [3, 2, 0]);
    let three = key("three").id().to_string();
    let mute = json!({"testId": three, "monitorId": monitor(&server).await, "length": "forever"});
    server.ok("flaky-tests/mute-monitor", mute).await;
    assert_eq!(totals().await, [3, 1, 0], "a change without an upload");
    // A failure after the window is not in the list.
    server.clock.advance(Span::hours(50));
    report(&server, 5, &[("four", false)]).await;
    assert_eq!(totals().await, [3, 1, 0]);
}
