//! The uploader's routes, in its order: announce and send. The bundles are built as the uploader
//! builds them; its program is not needed.

use actix_web::test::TestRequest;
use serde_json::{Value, json};
use signalbox_domain::flaky::{BranchClass, Trust};
use signalbox_domain::time::Span;

use crate::support::{Grant, Reply, Server, calc};

pub(crate) const FLAKY: &str = r#"<testsuites><testsuite name="s"><testcase name="a" classname="c"
    file="a.rs" time="0.1"><flakyFailure message="once"/></testcase><testcase name="b"
    classname="c" file="a.rs" time="0.1"><failure message="m"/></testcase></testsuite></testsuites>"#;

fn meta(id: &str, variables: &Value) -> Value {
    json!({
        "version": "1", "cli_version": "cargo=0.7.8 git=abc rustc=1.80", "org": "acme",
        "repo": {"repo": {"host": "git.test", "owner": "acme", "name": "calc"},
            "repo_root": "/w", "repo_url": "https://git.test/acme/calc.git",
            "repo_head_sha": "a".repeat(40), "repo_head_branch": "refs/heads/main",
            "repo_head_commit_epoch": 1_700_000_000, "repo_head_commit_message": "Fix it\n",
            "repo_head_author_name": "Ada", "repo_head_author_email": "ada@acme.test"},
        "bundle_upload_id": id, "bundle_upload_id_v2": id, "tags": [],
        "file_sets": [], "envs": variables, "upload_time_epoch": 1_700_000_100,
        "quarantined_tests": []
    })
}

pub(crate) fn archive(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut archive = tar::Builder::new(Vec::new());
    for (name, content) in members {
        let mut header = tar::Header::new_gnu();
        header.set_size(u64::try_from(content.len()).expect("a length"));
        header.set_mode(0o644);
        archive.append_data(&mut header, name, *content).expect("memory");
    }
    let archive = archive.into_inner().expect("memory");
    zstd::encode_all(&archive[..], 3).expect("memory")
}

fn bundle(id: &str, variables: &Value, xml: &str) -> Vec<u8> {
    let meta = meta(id, variables).to_string();
    archive(&[("meta.json", meta.as_bytes()), ("junit/0", xml.as_bytes())])
}

/// A bundle that was made at a time, in seconds since 1970.
pub(crate) fn bundle_made_at(seconds: i64) -> Vec<u8> {
    let mut meta = meta("id", &json!({}));
    meta["upload_time_epoch"] = seconds.into();
    meta["repo"]["repo_head_commit_epoch"] = (seconds - 600).into();
    archive(&[("meta.json", meta.to_string().as_bytes()), ("junit/0", FLAKY.as_bytes())])
}

fn announcement() -> Value {
    json!({
        "repo": {"host": "git.test", "owner": "acme", "name": "calc"}, "orgUrlSlug": "acme",
        "clientVersion": "trunk-analytics-cli cargo=0.7.8", "externalId": null,
        "remoteUrls": ["https://git.test/acme/calc.git"], "testCollectionShortId": null
    })
}

async fn announce_with(server: &Server, header: (&str, &str), body: &Value) -> Reply {
    let request = TestRequest::post().uri("/v1/metrics/createBundleUpload");
    server.call(request.insert_header(header).set_json(body)).await
}

async fn announce(server: &Server) -> Value {
    announce_with(server, ("x-api-token", &server.token), &announcement()).await.json()
}

/// Sends bytes to an address, as a client that knows nothing else.
async fn put(server: &Server, address: &str, bytes: Vec<u8>) -> Reply {
    let path = address.split_once("://").and_then(|(_, rest)| rest.split_once('/'));
    let (_, path) = path.expect("an absolute address");
    let request = TestRequest::put().uri(&format!("/{path}"));
    let request = request.insert_header(("content-type", "application/octet-stream"));
    server.call(request.set_payload(bytes)).await
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_else(|| panic!("{key} of {value}"))
}

async fn status(server: &Server, id: &str) -> Value {
    server.get(&format!("/v1/flaky-tests/uploads/{id}")).await.json()
}

#[actix_web::test]
async fn a_bundle_is_announced_sent_and_read() {
    let server = Server::without_queue().await;
    let announced = announce(&server).await;
    let id = text(&announced, "id").to_owned();
    assert_eq!(announced["idV2"], id);
    assert_eq!(announced["testCollectionBundleMetaId"], Value::Null);
    assert!(text(&announced, "url").starts_with("http://localhost:8080/v1/uploads/"));
    assert_eq!(status(&server, &id).await["state"], "awaited");
    let variables = json!({"GITHUB_ACTIONS": "true", "GITHUB_REF": "refs/heads/main"});
    let reply = put(&server, text(&announced, "url"), bundle(&id, &variables, FLAKY)).await;
    assert_eq!(reply.status, 200, "{}", reply.body);
    assert_eq!(status(&server, &id).await["state"], "received", "answered before it is read");
    server.read_uploads().await;
    let read = status(&server, &id).await;
    assert_eq!(read["state"], "read", "{read}");
    assert_eq!(
        (&read["tests"], &read["failed_tests"], &read["runs"]),
        (&2.into(), &1.into(), &3.into())
    );
    assert_eq!((&read["branch"], &read["branch_class"]), (&"main".into(), &"stable".into()));
    let taken = server.results.taken();
    let (upload, runs) = &taken[0];
    assert_eq!((upload.class, upload.trust), (BranchClass::Stable, Trust::Token));
    assert_eq!(runs[0].key.repo, "git.test/acme/calc");
    assert_eq!((runs[0].attempt, runs[1].attempt), (0, 1));
}

#[actix_web::test]
async fn the_origin_of_the_address_is_the_requests_own_or_the_configured_one() {
    let mut server = Server::without_queue().await;
    let request = TestRequest::post().uri("//v1//metrics/createBundleUpload");
    let request = request.insert_header(("host", "ci.acme.test:8443"));
    let request = request.insert_header(("x-forwarded-proto", "https"));
    let request = request.insert_header(("x-api-token", server.token.as_str()));
    let reply = server.call(request.set_json(announcement())).await.json();
    assert!(text(&reply, "url").starts_with("https://ci.acme.test:8443/v1/uploads/"), "{reply}");
    server.api.public_url = Some("https://box.test/signalbox".to_owned());
    let reply = announce(&server).await;
    assert!(text(&reply, "url").starts_with("https://box.test/signalbox/v1/uploads/"));
}

#[actix_web::test]
async fn an_upload_that_is_sent_again_is_not_counted_again() {
    let server = Server::without_queue().await;
    let first = announce(&server).await;
    let bytes = bundle(text(&first, "id"), &json!({}), FLAKY);
    for _ in 0..3 {
        // The answer was lost, so the client sends the same bytes again.
        assert_eq!(put(&server, text(&first, "url"), bytes.clone()).await.status, 200);
    }
    server.read_uploads().await;
    assert_eq!(put(&server, text(&first, "url"), bytes).await.status, 200);
    server.read_uploads().await;
    assert_eq!(server.results.taken().len(), 1);
    // The whole step is run again: another upload of the same files.
    let second = announce(&server).await;
    let bytes = bundle(text(&second, "id"), &json!({}), FLAKY);
    assert_eq!(put(&server, text(&second, "url"), bytes).await.status, 200);
    server.read_uploads().await;
    let read = status(&server, text(&second, "id")).await;
    assert_eq!((&read["state"], &read["repeats"]), (&"read".into(), &first["id"]));
    assert_eq!(server.results.taken().len(), 1);
    // Another job with the same files is another run.
    let third = announce(&server).await;
    let job = json!({"CUSTOM": "true", "JOB_URL": "https://ci/2"});
    let bytes = bundle(text(&third, "id"), &job, FLAKY);
    assert_eq!(put(&server, text(&third, "url"), bytes).await.status, 200);
    server.read_uploads().await;
    assert_eq!(server.results.taken().len(), 2);
}

#[actix_web::test]
async fn a_server_that_dies_while_reading_leaves_the_upload_to_the_next() {
    let server = Server::without_queue().await;
    let announced = announce(&server).await;
    let bytes = bundle(text(&announced, "id"), &json!({}), FLAKY);
    put(&server, text(&announced, "url"), bytes).await;
    let lost = server.api.uploads.lease(1).await.expect("a lease").remove(0);
    assert!(server.api.uploads.lease(1).await.expect("a lease").is_empty());
    server.clock.advance(Span::seconds(31));
    server.read_uploads().await;
    assert_eq!(status(&server, text(&announced, "id")).await["state"], "read");
    // The first one was only slow. Its results are not counted twice.
    server.api.uploads.read(lost).await.expect("nothing happens");
    assert_eq!(server.results.taken().len(), 1);
}

#[actix_web::test]
async fn a_failing_store_is_retried_and_then_the_upload_fails() {
    let server = Server::without_queue().await;
    let send = async || {
        let announced = announce(&server).await;
        let bytes = bundle(text(&announced, "id"), &json!({}), FLAKY);
        put(&server, text(&announced, "url"), bytes).await;
        text(&announced, "id").to_owned()
    };
    server.results.fail(2);
    let first = send().await;
    server.read_uploads().await;
    assert_eq!(status(&server, &first).await["state"], "received");
    for _ in 0..2 {
        server.clock.advance(Span::seconds(3));
        server.read_uploads().await;
    }
    assert_eq!(status(&server, &first).await["state"], "read");
    server.results.fail(1_000);
    let announced = announce(&server).await;
    let job = json!({"CUSTOM": "true", "JOB_URL": "https://ci/9"});
    let second = text(&announced, "id").to_owned();
    put(&server, text(&announced, "url"), bundle(&second, &job, FLAKY)).await;
    for _ in 0..20 {
        server.read_uploads().await;
        server.clock.advance(Span::minutes(10));
    }
    let read = status(&server, &second).await;
    assert_eq!(read["state"], "failed");
    assert!(text(&read, "problem").starts_with("failed after 10 attempts"), "{read}");
}

#[actix_web::test]
async fn an_address_is_for_one_upload_and_for_a_day() {
    let server = Server::without_queue().await;
    let (first, second) = (announce(&server).await, announce(&server).await);
    let (one, other) = (text(&first, "url"), text(&second, "url"));
    let swapped = one.replace(
        one.split_once('=').expect("a signature").1,
        other.split_once('=').expect("a signature").1,
    );
    let unsigned = one.split_once('?').expect("a query").0.to_owned();
    let elsewhere = one.replace(text(&first, "id"), "nonsense");
    for address in [&swapped, &unsigned, &format!("{one}0"), &elsewhere] {
        put(&server, address, b"x".to_vec()).await.problem(403, "wrong_signature");
    }
    let reply = server.get(one.split_once("8080").expect("a port").1).await;
    reply.problem(405, "method_not_allowed");
    server.clock.advance(Span::hours(25));
    put(&server, one, b"x".to_vec()).await.problem(422, "upload_refused");
    assert!(server.blobs.keys().is_empty());
}

#[actix_web::test]
async fn an_oversized_bundle_is_refused_and_leaves_nothing_behind() {
    let server = Server::without_queue().await;
    let announced = announce(&server).await;
    put(&server, text(&announced, "url"), vec![0; 1_000_001]).await.problem(413, "body_too_large");
    assert!(server.blobs.keys().is_empty());
    let bytes = bundle(text(&announced, "id"), &json!({}), FLAKY);
    assert_eq!(put(&server, text(&announced, "url"), bytes).await.status, 200, "a smaller one");
}

#[actix_web::test]
async fn what_cannot_be_read_is_shown_with_its_reason() {
    let server = Server::without_queue().await;
    let meta = meta("x", &json!({})).to_string();
    let bomb = archive(&[("meta.json", meta.as_bytes()), ("junit/0", &vec![b' '; 64 << 20])]);
    let cut = "<testsuite name=\"s\">\n  <testcase name=\"a\">\n  </testsuite>";
    for (bytes, words) in [
        (b"nonsense".to_vec(), "not a zstd-compressed tar archive"),
        (bomb, "unpacked bytes per compressed byte"),
        (archive(&[("meta.json", meta.as_bytes()), ("etc", b"x")]), "unexpected member"),
        (archive(&[("junit/0", FLAKY.as_bytes())]), "not meta.json"),
        (bundle("x", &json!({}), cut), "junit/0: line 3"),
    ] {
        let announced = announce(&server).await;
        assert_eq!(put(&server, text(&announced, "url"), bytes).await.status, 200);
        server.read_uploads().await;
        let read = status(&server, text(&announced, "id")).await;
        assert_eq!(read["state"], "failed", "{words}: {read}");
        assert!(text(&read, "problem").contains(words), "{words}: {read}");
    }
    assert!(server.results.taken().is_empty());
}

#[actix_web::test]
async fn a_ci_job_turns_red_for_a_bad_token_only() {
    let server = Server::without_queue().await;
    announce_with(&server, ("x-api-token", "wrong"), &announcement()).await.is_unauthorized();
    announce_with(&server, ("x-other", "1"), &announcement()).await.is_unauthorized();
    let mut other = announcement();
    other["orgUrlSlug"] = json!("other");
    let token = ("x-api-token", server.token.as_str());
    announce_with(&server, token, &other).await.problem(422, "upload_refused");
    let mut unheard = announcement();
    unheard["repo"]["name"] = json!("unheard-of");
    unheard["repo"]["host"] = json!("github.com");
    assert_eq!(announce_with(&server, token, &unheard).await.status, 200, "it is registered");
    let repos = server.stores.account.repos.list(None).await.expect("a list");
    assert!(repos.iter().any(|it| it.name.to_string() == "github.com/acme/unheard-of"));
    let limited = server.grant(Grant { repos: vec![calc()], ..Grant::default() }).await;
    let refused = announce_with(&server, ("x-api-token", &limited), &unheard).await;
    refused.problem(422, "upload_refused");
}

#[actix_web::test]
async fn a_public_id_sends_for_its_repository_only_and_is_not_believed() {
    let server = Server::without_queue().await;
    announce(&server).await;
    let repository = server.stores.account.repos.list(None).await.expect("a list").remove(0);
    let id = server.api.uploads.public_id(&repository).await.expect("an id").to_string();
    let header = ("x-trunk-public-repo-id", id.as_str());
    let mut fork = announcement();
    fork["repo"]["owner"] = json!("fork");
    let announced = announce_with(&server, header, &fork).await.json();
    let bytes = bundle(text(&announced, "id"), &json!({}), FLAKY);
    assert_eq!(put(&server, text(&announced, "url"), bytes).await.status, 200);
    server.read_uploads().await;
    let (upload, _) = server.results.taken().remove(0);
    assert_eq!((upload.repo, upload.trust), (repository.id, Trust::Public));
    for _ in 0..4 {
        assert_eq!(announce_with(&server, header, &fork).await.status, 200);
    }
    for _ in 0..9 {
        announce_with(&server, header, &fork).await.problem(422, "upload_refused");
    }
    // What was refused took nothing from another address, which gets what is left for all.
    let from_another = async || {
        let request = TestRequest::post().uri("/v1/metrics/createBundleUpload");
        let peer = "198.51.100.7:9".parse().expect("an address");
        server.call(request.peer_addr(peer).insert_header(header).set_json(&fork)).await
    };
    for _ in 0..3 {
        assert_eq!(from_another().await.status, 200);
    }
    from_another().await.problem(422, "upload_refused");
    server.clock.advance(Span::minutes(11));
    assert_eq!(announce_with(&server, header, &fork).await.status, 200);
    let unknown = ("x-trunk-public-repo-id", "00000000-0000-0000-0000-000000000009");
    announce_with(&server, unknown, &fork).await.is_unauthorized();
    // It is for sending: everything else wants a token.
    let list = TestRequest::post().uri("/v1/flaky-tests/list-uploads").insert_header(header);
    server.call(list.set_json(json!({}))).await.is_unauthorized();
    let upload = TestRequest::post().uri("/v1/flaky-tests/upload?repo=git.test/acme/calc");
    server.call(upload.insert_header(header).set_payload(FLAKY)).await.is_unauthorized();
}

#[actix_web::test]
async fn telemetry_is_always_welcome() {
    let server = Server::without_queue().await;
    for payload in [vec![], vec![8, 1], vec![0; 200_000]] {
        let request = TestRequest::post().uri("/v1/flakytests-cli/upload-metrics");
        let request = request.insert_header(("content-type", "application/x-protobuf"));
        assert_eq!(server.call(request.set_payload(payload)).await.status, 200);
    }
}

/// An archive with a raw member of any name and kind.
fn raw_archive(kind: tar::EntryType, name: &[u8], size: u64, content: &[u8]) -> Vec<u8> {
    let meta = meta("x", &json!({})).to_string();
    let mut header = tar::Header::new_gnu();
    header.set_size(u64::try_from(meta.len()).expect("a length"));
    let mut archive = tar::Builder::new(Vec::new());
    archive.append_data(&mut header, "meta.json", meta.as_bytes()).expect("memory");
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(kind);
    header.as_mut_bytes()[..name.len()].copy_from_slice(name);
    header.set_size(size);
    header.set_cksum();
    archive.append(&header, content).expect("memory");
    let archive = archive.into_inner().expect("memory");
    zstd::encode_all(&archive[..], 3).expect("memory")
}

#[actix_web::test]
async fn a_hostile_archive_fails_with_a_reason_and_counts_nothing() {
    let server = Server::without_queue().await;
    let whole = bundle("x", &json!({}), FLAKY);
    let deep = format!("{}{}", "<testsuite>".repeat(10_000), "</testsuite>".repeat(10_000));
    let wide = format!("<testsuite><testcase {}/></testsuite>", "a=\"1\" ".repeat(10_000));
    let entity = "<!DOCTYPE s [<!ENTITY a \"b\">]><testsuite name=\"&a;\"/>";
    let file = tar::EntryType::Regular;
    for (what, bytes) in [
        ("cut off", whole[..whole.len() / 2].to_vec()),
        ("out of the archive", raw_archive(file, b"../../etc/passwd", 1, b"x")),
        ("from the root", raw_archive(file, b"/etc/passwd", 1, b"x")),
        ("a link", raw_archive(tar::EntryType::Symlink, b"junit/0", 0, b"")),
        ("a device", raw_archive(tar::EntryType::Char, b"junit/0", 0, b"")),
        ("longer than the archive", raw_archive(file, b"junit/0", 1 << 40, b"x")),
        ("meta twice", raw_archive(file, b"meta.json", 2, b"{}")),
        ("a DTD", bundle("x", &json!({}), entity)),
        ("too deep", bundle("x", &json!({}), &deep)),
        ("too wide", bundle("x", &json!({}), &wide)),
    ] {
        let announced = announce(&server).await;
        assert_eq!(put(&server, text(&announced, "url"), bytes).await.status, 200, "{what}");
        server.read_uploads().await;
        let read = status(&server, text(&announced, "id")).await;
        assert_eq!(read["state"], "failed", "{what}: {read}");
        assert!(text(&read, "problem").len() > 10, "{what}: {read}");
    }
    assert!(server.results.taken().is_empty());
}

#[actix_web::test]
async fn an_upload_counts_when_the_first_with_the_same_results_could_not_be_read() {
    let server = Server::without_queue().await;
    let mut ids = Vec::new();
    for _ in 0..2 {
        let announced = announce(&server).await;
        let id = text(&announced, "id").to_owned();
        put(&server, text(&announced, "url"), bundle(&id, &json!({}), FLAKY)).await;
        ids.push(id);
        server.clock.advance(Span::seconds(1));
    }
    // As often as one upload is tried.
    server.results.fail(10);
    server.read_uploads().await;
    let waiting = status(&server, &ids[1]).await;
    assert_eq!(waiting["state"], "received", "the first may still be read: {waiting}");
    for _ in 0..20 {
        server.clock.advance(Span::minutes(10));
        server.read_uploads().await;
    }
    assert_eq!(status(&server, &ids[0]).await["state"], "failed");
    let second = status(&server, &ids[1]).await;
    assert_eq!((&second["state"], &second["repeats"]), (&"read".into(), &Value::Null), "{second}");
    assert_eq!(server.results.taken().len(), 1);
}
