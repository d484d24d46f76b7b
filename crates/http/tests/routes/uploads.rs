//! Uploads without the uploader, and the state of uploads.

use std::io::Write;

use actix_web::test::TestRequest;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use signalbox_domain::time::Span;

use crate::bundles::FLAKY;
use crate::support::{Grant, Reply, Server};

const BROKEN: &str = "<testsuite name=\"s\">\n<testcase name=\"a\"/>\n<testcase></wrong>";

async fn upload(server: &Server, query: &str, kind: &str, body: impl Into<Vec<u8>>) -> Reply {
    let path = format!("/v1/flaky-tests/upload?repo=git.test/acme/calc{query}");
    let request = TestRequest::post().uri(&path);
    let request = request.insert_header(("x-api-token", server.token.as_str()));
    server.call(request.insert_header(("content-type", kind)).set_payload(body.into())).await
}

fn form(files: &[(&str, &str)]) -> String {
    let part = |(name, content): &(&str, &str)| {
        format!(
            "--sep\r\ncontent-disposition: form-data; name=\"file\"; filename=\"{name}\"\r\n\
             content-type: application/xml\r\n\r\n{content}\r\n"
        )
    };
    let form: String = files.iter().map(part).collect();
    form + "--sep--\r\n"
}

async fn read(server: &Server, reply: &Reply) -> Value {
    server.read_uploads().await;
    server.get(reply.json()["status_url"].as_str().expect("an address")).await.json()
}

#[actix_web::test]
async fn one_report_is_the_body_itself() {
    let server = Server::without_queue().await;
    let sha = "b".repeat(40);
    let query = format!("&sha={sha}&branch=topic&pr=7&job=unit&variant=linux&job_url=https://ci/1");
    let reply = upload(&server, &query, "application/xml", FLAKY).await;
    let read = read(&server, &reply).await;
    assert_eq!(read["state"], "read", "{read}");
    assert_eq!((&read["sha"], &read["pr_number"]), (&sha.into(), &7.into()));
    assert_eq!((&read["branch_class"], &read["source"]), (&"pull_request".into(), &"junit".into()));
    let (upload, runs) = server.results.taken().remove(0);
    assert_eq!((upload.variant.as_str(), runs[0].key.variant.as_str()), ("linux", "linux"));
    assert_eq!(
        (upload.job_name.as_deref(), upload.job_url.as_deref()),
        (Some("unit"), Some("https://ci/1"))
    );
}

async fn encoded(server: &Server, encoding: &str, kind: &str, body: Vec<u8>) -> Reply {
    let request = TestRequest::post().uri("/v1/flaky-tests/upload?repo=git.test/acme/calc");
    let request = request.insert_header(("x-api-token", server.token.as_str()));
    let request = request.insert_header(("content-encoding", encoding));
    server.call(request.insert_header(("content-type", kind)).set_payload(body)).await
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text).expect("written");
    encoder.finish().expect("encoded")
}

#[actix_web::test]
async fn a_report_may_be_encoded() {
    let zstd = zstd::encode_all(FLAKY.as_bytes(), 19).expect("encoded");
    for (encoding, body) in [("gzip", gzip(FLAKY.as_bytes())), ("zstd", zstd)] {
        let server = Server::without_queue().await;
        let reply = encoded(&server, encoding, "application/xml", body).await;
        let read = read(&server, &reply).await;
        assert_eq!(
            (&read["state"], &read["runs"]),
            (&"read".into(), &3.into()),
            "{encoding}: {read}"
        );
    }
}

#[actix_web::test]
async fn other_encodings_are_refused() {
    let server = Server::without_queue().await;
    let reply = encoded(&server, "br", "application/xml", FLAKY.into()).await;
    let problem = reply.problem(415, "unsupported_content_type");
    assert_eq!(problem["detail"], "the content encoding must be gzip or zstd, but is \"br\"");
    let form = form(&[("good.xml", FLAKY)]).into_bytes();
    let reply = encoded(&server, "gzip", "multipart/form-data; boundary=sep", gzip(&form)).await;
    assert_eq!(reply.status, 415);
}

#[actix_web::test]
async fn a_body_that_is_not_whole_is_refused() {
    let server = Server::without_queue().await;
    let zstd = zstd::encode_all(FLAKY.as_bytes(), 3).expect("encoded");
    for (encoding, whole) in [("gzip", gzip(FLAKY.as_bytes())), ("zstd", zstd)] {
        for length in [whole.len() - 1, whole.len() / 2, 40] {
            let cut = whole[..length].to_vec();
            let reply = encoded(&server, encoding, "application/xml", cut).await;
            assert_eq!(reply.status, 400, "{encoding}, {length} bytes");
        }
        let plain = FLAKY.as_bytes().to_vec();
        assert_eq!(encoded(&server, encoding, "application/xml", plain).await.status, 400);
    }
}

#[actix_web::test]
async fn decoded_bytes_count_for_the_limit() {
    let server = Server::without_queue().await;
    // The server of these tests takes a million bytes.
    let decoded = vec![b' '; 1_000_001];
    let zstd = zstd::encode_all(&decoded[..], 3).expect("encoded");
    for (encoding, body) in [("gzip", gzip(&decoded)), ("zstd", zstd)] {
        assert!(body.len() < 10_000);
        assert_eq!(encoded(&server, encoding, "application/xml", body).await.status, 413);
    }
}

#[actix_web::test]
async fn several_reports_are_a_form_and_a_bad_one_does_not_hide_the_others() {
    let server = Server::without_queue().await;
    let form = form(&[("bad.xml", BROKEN), ("good.xml", FLAKY)]);
    let reply = upload(&server, "", "multipart/form-data; boundary=sep", form).await;
    let read = read(&server, &reply).await;
    assert_eq!((&read["state"], &read["runs"]), (&"read".into(), &4.into()), "{read}");
    let bad = &read["files"][0];
    assert_eq!(
        (&bad["name"], &bad["line"], &bad["runs"]),
        (&"bad.xml".into(), &3.into(), &1.into())
    );
    assert!(bad["column"].as_u64().is_some_and(|column| column > 0), "{bad}");
    let kinds: Vec<&str> = read["warnings"]
        .as_array()
        .expect("warnings")
        .iter()
        .map(|it| it["kind"].as_str().expect("a word"))
        .collect();
    assert!(kinds.starts_with(&["sha_missing", "branch_missing", "file_unreadable"]), "{kinds:?}");
    assert!(kinds.contains(&"timestamp_missing"));
}

#[actix_web::test]
async fn the_same_again_is_the_same_upload() {
    let server = Server::without_queue().await;
    let first = upload(&server, "&branch=main", "text/xml", FLAKY).await.json();
    let kept = server.blobs.keys();
    let again = upload(&server, "&branch=main", "text/xml", FLAKY).await.json();
    assert_eq!(first, again);
    assert_eq!(server.blobs.keys(), kept);
    server.read_uploads().await;
    assert_eq!(upload(&server, "&branch=main", "text/xml", FLAKY).await.json(), first);
    server.read_uploads().await;
    assert_eq!(server.results.taken().len(), 1);
    let other = upload(&server, "&branch=main&job=other", "text/xml", FLAKY).await.json();
    assert_ne!(other, first);
}

#[actix_web::test]
async fn invalid_requests_are_explained() {
    let server = Server::without_queue().await;
    let reply = upload(&server, "&sha=x&pr=0", "application/xml", FLAKY).await;
    assert_eq!(reply.pointers(), ["/sha", "/pr"]);
    let request = TestRequest::post().uri("/v1/flaky-tests/upload");
    let request = request.insert_header(("x-api-token", server.token.as_str()));
    assert_eq!(server.call(request.set_payload(FLAKY)).await.pointers(), ["/repo"]);
    let reply = upload(&server, "", "application/json", "{}").await;
    reply.problem(415, "unsupported_content_type");
    let empty = upload(&server, "", "multipart/form-data; boundary=sep", form(&[])).await;
    assert!(matches!(empty.status, 400 | 422), "{empty:?}");
    let many = form(&[("1", FLAKY), ("2", FLAKY), ("3", FLAKY), ("4", FLAKY)]);
    let reply = upload(&server, "", "multipart/form-data; boundary=sep", many).await;
    reply.problem(422, "upload_refused");
    let large = upload(&server, "", "application/xml", vec![b' '; 1_000_001]).await;
    large.problem(413, "body_too_large");
    let broken = upload(&server, "", "multipart/form-data; boundary=sep", "--sep\r\nx").await;
    broken.problem(400, "malformed_body");
    assert!(server.blobs.keys().len() <= 3, "{:?}", server.blobs.keys());
}

#[actix_web::test]
async fn uploads_are_listed_newest_first_in_pages() {
    let server = Server::without_queue().await;
    let mut ids = Vec::new();
    for job in ["1", "2", "3"] {
        let reply = upload(&server, &format!("&job={job}"), "application/xml", FLAKY).await;
        ids.insert(0, reply.json()["upload_id"].clone());
        server.clock.advance(Span::seconds(1));
    }
    let list = async |query: Value| {
        let body = json!({"page_query": query, "org_url_slug": "acme"});
        server.post("flaky-tests/list-uploads", body).await
    };
    let page = list(json!({"page_size": 2})).await.json();
    let listed = |page: &Value| {
        let uploads = page["uploads"].as_array().expect("uploads");
        uploads.iter().map(|it| it["id"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(listed(&page), ids[..2]);
    let token = page["page"]["next_page_token"].clone();
    let last = list(json!({"page_size": 2, "page_token": token})).await.json();
    assert_eq!(listed(&last), ids[2..]);
    assert_eq!(last["page"]["next_page_token"], "");
    for wrong in [json!({"page_size": 0}), json!({"page_size": 101})] {
        assert_eq!(list(wrong).await.pointers(), ["/page_query/page_size"]);
    }
    let wrong = list(json!({"page_size": 1, "page_token": "x"})).await;
    assert_eq!(wrong.pointers(), ["/page_query/page_token"]);
    let body = json!({"page_query": {"page_size": 2}, "org_url_slug": "other"});
    let other = server.post("flaky-tests/list-uploads", body).await;
    other.problem(404, "repository_not_found");
}

#[actix_web::test]
async fn an_upload_is_its_organizations_own() {
    let server = Server::without_queue().await;
    let reply = upload(&server, "", "application/xml", FLAKY).await.json();
    let path = reply["status_url"].as_str().expect("an address");
    let elsewhere = signalbox_domain::ids::RepoName::parse("git.test/acme/x").expect("a name");
    for grant in [
        Grant { org: "other", ..Grant::default() },
        Grant { repos: vec![elsewhere], ..Grant::default() },
    ] {
        let token = server.grant(grant).await;
        let request = TestRequest::get().uri(path).insert_header(("x-api-token", token));
        server.call(request).await.problem(404, "upload_not_found");
    }
    server.get("/v1/flaky-tests/uploads/nonsense").await.problem(404, "upload_not_found");
}

#[actix_web::test]
async fn a_repositorys_own_branches_decide_the_class_of_an_upload() {
    let server = Server::without_queue().await;
    let class = async |job: &str, branch: &str| {
        let query = format!("&branch={branch}&job={job}");
        let reply = upload(&server, &query, "application/xml", FLAKY).await;
        read(&server, &reply).await["branch_class"].clone()
    };
    assert_eq!(class("1", "trunk").await, "other");
    let rules = json!({"stableBranches": ["trunk"], "mergeBranches": ["line/*"]});
    server.ok("flaky-tests/update-settings", rules).await;
    assert_eq!(class("2", "trunk").await, "stable");
    assert_eq!(class("3", "main").await, "other");
    assert_eq!(class("4", "line/7").await, "merge");
}

/// Unconnected hosts do not distinguish upper and lower case, and host names never do.
#[actix_web::test]
async fn one_repository_is_uploaded_to_under_every_spelling() {
    let server = Server::without_queue().await;
    let spellings =
        ["github.com/Acme/Widgets", "GitHub.com/acme/widgets", "GITHUB.com/ACME/WIDGETS"];
    for (job, repo) in spellings.into_iter().enumerate() {
        let path = format!("/v1/flaky-tests/upload?repo={repo}&job={job}");
        let request = TestRequest::post().uri(&path).set_payload(FLAKY);
        let request = request.insert_header(("x-api-token", server.token.as_str()));
        let reply = server.call(request.insert_header(("content-type", "text/xml"))).await;
        assert_eq!(reply.status, 200, "{reply:?}");
    }
    let all = server.stores.account.repos.list(None).await.expect("a list");
    let names: Vec<String> = all.iter().map(|it| it.name.to_string()).collect();
    assert_eq!(names, ["github.com/Acme/Widgets"], "shown as first registered");
    for repo in ["Github.Com/acme/WIDGETS", "github.com/Acme/Widgets"] {
        let parts: Vec<&str> = repo.split('/').collect();
        let repo = json!({"host": parts[0], "owner": parts[1], "name": parts[2]});
        let list = json!({"repo": repo, "page_query": {"page_size": 10}});
        let list = server.ok("flaky-tests/list-uploads", list).await;
        assert_eq!(list["uploads"].as_array().map(Vec::len), Some(3), "{list}");
        let settings = json!({"repo": repo, "org_url_slug": "acme"});
        server.ok("flaky-tests/get-settings", settings).await;
    }
}

/// A connected host that distinguishes upper and lower case has two repositories, and a token for
/// one does not see the other.
#[actix_web::test]
async fn a_case_sensitive_host_has_a_repository_for_each_spelling() {
    let server = Server::without_queue().await;
    for repo in ["git.test/acme/widgets", "Git.Test/acme/Widgets"] {
        let path = format!("/v1/flaky-tests/upload?repo={repo}");
        let request = TestRequest::post().uri(&path).set_payload(FLAKY);
        let request = request.insert_header(("x-api-token", server.token.as_str()));
        let reply = server.call(request.insert_header(("content-type", "text/xml"))).await;
        assert_eq!(reply.status, 200, "{reply:?}");
    }
    let all = server.stores.account.repos.list(None).await.expect("a list");
    assert_eq!(all.len(), 2, "{all:?}");
    let limited = Grant { repos: vec![all[0].name.clone()], ..Grant::default() };
    let limited = server.grant(limited).await;
    for (at, status) in [(0, 200), (1, 404)] {
        let name = &all[at].name;
        let repo = json!({"host": "GIT.test", "owner": name.owner, "name": name.name});
        let body = json!({"repo": repo, "page_query": {"page_size": 10}});
        let reply = server.post_as(&limited, "flaky-tests/list-uploads", body).await;
        assert_eq!(reply.status, status, "{reply:?}");
    }
}
