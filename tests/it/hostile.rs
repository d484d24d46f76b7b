//! Uploads and questions that mean harm: each fails with a reason, and the server's memory stays as
//! it was.

use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{On, System};

/// How much the server's memory may grow by while it reads all of them, in MiB: what 250,000 tests
/// in a list take, which is the limit. The unpacked uploads would be 10 GiB and more.
const GROWTH: u64 = 96;
const GIB: u64 = 1024 * 1024 * 1024;

fn meta(more: &str) -> String {
    let meta = json!({
        "version": "1", "org": "acme", "bundle_upload_id": "x", "file_sets": [],
        "repo": {"repo": {"host": "git.local", "owner": "acme", "name": "calc"},
            "repo_head_sha": "a".repeat(40), "repo_head_branch": "refs/heads/main"},
        "upload_time_epoch": 1_700_000_000
    });
    meta.to_string().replacen('{', &format!("{{{more}"), 1)
}

/// An archive under way, with a description.
fn archive(meta: &str) -> tar::Builder<Vec<u8>> {
    let mut archive = tar::Builder::new(Vec::new());
    add(&mut archive, tar::EntryType::Regular, b"meta.json", meta.as_bytes());
    archive
}

/// Adds a raw member of any name and kind.
fn add(archive: &mut tar::Builder<Vec<u8>>, kind: tar::EntryType, name: &[u8], content: &[u8]) {
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(kind);
    header.as_mut_bytes()[..name.len()].copy_from_slice(name);
    header.set_size(u64::try_from(content.len()).expect("a length"));
    header.set_cksum();
    archive.append(&header, content).expect("memory");
}

fn packed(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 1).expect("memory")
}

fn with_member(kind: tar::EntryType, name: &[u8], content: &[u8]) -> Vec<u8> {
    let mut archive = archive(&meta(""));
    add(&mut archive, kind, name, content);
    packed(&archive.into_inner().expect("memory"))
}

fn report(xml: &[u8]) -> Vec<u8> {
    with_member(tar::EntryType::Regular, b"junit/0", xml)
}

/// A member of 10 GiB in a few kilobytes: one frame of zeros after another.
fn bomb() -> Vec<u8> {
    let mut archive = archive(&meta(""));
    let mut header = tar::Header::new_gnu();
    header.as_mut_bytes()[..7].copy_from_slice(b"junit/0");
    header.set_size(GIB);
    header.set_cksum();
    archive.get_mut().extend_from_slice(header.as_bytes());
    let mut bytes = packed(archive.get_ref());
    let frame = packed(&vec![0; 16 << 20]);
    for _ in 0..10 * 64 {
        bytes.extend_from_slice(&frame);
    }
    bytes
}

fn repeated(start: &str, part: &str, times: usize, end: &str) -> Vec<u8> {
    format!("{start}{}{end}", part.repeat(times)).into_bytes()
}

/// The hostile uploads, and a part of the reason for each refusal.
fn attacks() -> Vec<(&'static str, Vec<u8>, &'static str)> {
    use tar::EntryType as Kind;
    let laughs = "<!DOCTYPE l [<!ENTITY a \"ha\"><!ENTITY b \"&a;&a;&a;&a;&a;&a;&a;&a;\">]>\
                  <testsuite name=\"&b;\"/>";
    let nested = repeated("", "<testsuite name=\"s\">", 200_000, "");
    let wide = repeated("<testsuite><testcase ", "a=\"1\" ", 150_000, "/></testsuite>");
    let attribute = repeated("<testsuite name=\"", "x", 2_000_000, "\"/>");
    let cases = repeated("<testsuite>", "<testcase/>", 260_000, "</testsuite>");
    let good = b"<testsuite name=\"s\"><testcase name=\"a\"/></testsuite>";
    let whole = report(good);
    let items = "{\"name\":\"\",\"id\":\"\"},".repeat(260_000);
    let listed = archive(&meta(&format!("\"failed_tests\":[{items}{{}}],")));
    let mut twice = archive(&meta(""));
    add(&mut twice, Kind::Regular, b"junit/0", good);
    add(&mut twice, Kind::Regular, b"junit/0", good);
    let not_first = packed(&{
        let mut archive = tar::Builder::new(Vec::new());
        add(&mut archive, Kind::Regular, b"junit/0", good);
        archive.into_inner().expect("memory")
    });
    vec![
        ("billion laughs", report(laughs.as_bytes()), "declarations such as DOCTYPE"),
        ("nested elements", report(&nested), "more nested elements than"),
        ("many attributes", report(&wide), "of an element than"),
        ("a huge attribute", report(&attribute), "more bytes of a"),
        ("too many cases", report(&cases), "more than 250000 test runs"),
        ("no element", report(b""), "no XML element"),
        ("10 GiB of zeros", bomb(), "than 200"),
        (
            "out of the archive",
            with_member(Kind::Regular, b"../../etc/passwd", b"x"),
            "unexpected member",
        ),
        ("from the root", with_member(Kind::Regular, b"/etc/passwd", b"x"), "unexpected member"),
        ("a symbolic link", with_member(Kind::Symlink, b"junit/0", b""), "not a regular file"),
        ("a hard link", with_member(Kind::Link, b"junit/0", b""), "not a regular file"),
        ("a device", with_member(Kind::Char, b"junit/0", b""), "not a regular file"),
        ("a pipe", with_member(Kind::Fifo, b"junit/0", b""), "not a regular file"),
        ("a folder", with_member(Kind::Directory, b"junit/0", b""), "not a regular file"),
        (
            "a huge extension",
            with_member(Kind::XHeader, b"pax", &vec![b'x'; 3_000_000]),
            "not a regular file",
        ),
        (
            "a long name",
            with_member(Kind::GNULongName, b"long", &[b'j'; 5_000]),
            "not a regular file",
        ),
        ("one name twice", packed(&twice.into_inner().expect("memory")), "duplicate member"),
        ("no description first", not_first, "not meta.json"),
        ("an endless list", packed(&listed.into_inner().expect("memory")), "at most 250000"),
        ("half of it", whole[..whole.len() / 2].to_vec(), "truncated"),
        ("nothing", Vec::new(), "truncated"),
        ("no archive", b"PK\x03\x04 something else".to_vec(), "not a zstd-compressed tar archive"),
        (
            "a message that is none",
            with_member(Kind::Regular, b"internal.bin", &[0xff; 5_000]),
            "internal.bin is malformed",
        ),
    ]
}

/// Sends a bundle; returns its final state.
async fn sent(system: &System, bytes: Vec<u8>) -> Value {
    let headers = [("x-api-token", system.token()), ("content-type", "application/json")];
    let body = json!({
        "repo": {"host": "git.local", "owner": "acme", "name": "calc"}, "orgUrlSlug": "acme",
        "clientVersion": "x", "remoteUrls": []
    });
    let path = "/v1/metrics/createBundleUpload";
    let announced = system.send(Method::POST, path, &headers, body.to_string()).await.json();
    let (_, path) = announced["url"].as_str().and_then(|it| it.split_once("/v1/")).expect("a URL");
    let path = format!("/v1/{path}");
    let reply = system.send_bytes(Method::PUT, &path, &[], bytes.into()).await;
    assert_eq!(reply.status, 200, "{}", reply.text);
    let status = format!("/v1/flaky-tests/uploads/{}", announced["id"].as_str().expect("an id"));
    let read = async |system: &System| -> Value {
        serde_json::from_str(&system.get(&status).await).expect("JSON")
    };
    let over = async |system: &System| {
        let state = read(system).await["state"].clone();
        state == "read" || state == "failed"
    };
    system.until("the upload is read or refused", over).await;
    read(system).await
}

async fn hostile_uploads_fail_with_a_reason_and_take_no_memory(on: On) {
    let system = System::new(on, "exit 0\n", 1).await;
    // Text in other encodings, and bytes that are none, are read as well as can be.
    let name =
        |name: &str| format!("<testsuite name=\"s\"><testcase name=\"{name}\"/></testsuite>");
    let wide = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
    for bytes in [
        wide(&format!("\u{feff}{}", name("ü with a mark"))),
        wide(&name("ü without a mark")),
        name("a\0b").into_bytes(),
        [b"<testsuite name=\"s\"><testcase name=\"".as_slice(), b"\xff\xc3\"/></testsuite>"]
            .concat(),
    ] {
        let read = sent(&system, report(&bytes)).await;
        assert_eq!((&read["state"], &read["tests"]), (&json!("read"), &json!(1)), "{read}");
    }
    let before = system.peak_memory();
    for (what, bytes, reason) in attacks() {
        let refused = sent(&system, bytes).await;
        assert_eq!(refused["state"], "failed", "{what}: {refused}");
        let problem = refused["problem"].as_str().unwrap_or_default();
        assert!(problem.contains(reason), "{what}: {problem}");
    }
    questions_are_refused(&system).await;
    let grown = system.peak_memory() - before;
    assert!(grown <= GROWTH, "{grown} MiB more");
    // Harm of that kind is no reason to fail the next one.
    let read = sent(&system, report(name("sound").as_bytes())).await;
    assert_eq!(read["state"], "read", "{read}");
}

/// Questions which failures are excused: bodies that would be many times larger in memory.
async fn questions_are_refused(system: &System) {
    let start =
        "{\"repo\":{\"host\":\"h\",\"owner\":\"o\",\"name\":\"n\"},\"orgUrlSlug\":\"acme\",";
    for (reason, body) in [
        (
            "more than 250000 tests",
            format!("{start}\"testIdentifiers\":[{}", "{},".repeat(10 << 20)),
        ),
        ("nested more than", format!("{start}\"x\":{}", "[".repeat(30 << 20))),
        ("a string has more than", format!("{start}\"x\":\"{}", "x".repeat(30 << 20))),
    ] {
        let headers = [("x-api-token", system.token())];
        let path = "/v1/metrics/getQuarantineConfig";
        let reply = system.send(Method::POST, path, &headers, body).await;
        assert_eq!(reply.status, 400, "{reason}: {}", reply.text);
        assert!(reply.text.contains(reason), "{reason}: {}", reply.text);
    }
}

#[tokio::test]
async fn hostile_uploads_fail_with_a_reason_and_take_no_memory_on_sqlite() {
    hostile_uploads_fail_with_a_reason_and_take_no_memory(On::Sqlite).await;
}

#[tokio::test]
async fn hostile_uploads_fail_with_a_reason_and_take_no_memory_on_postgres() {
    hostile_uploads_fail_with_a_reason_and_take_no_memory(On::Postgres).await;
}

/// The places of all strings in an example.
fn texts(value: &Value, place: &str, found: &mut Vec<String>) {
    match value {
        Value::String(_) => found.push(place.to_owned()),
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                texts(item, &format!("{place}/{at}"), found);
            }
        }
        Value::Object(fields) => {
            for (name, field) in fields {
                texts(field, &format!("{place}/{name}"), found);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// PostgreSQL refuses a NUL in any text, which JSON may hold: no operation may fail of it.
#[tokio::test]
async fn a_nul_in_any_text_is_refused_or_taken() {
    let system = System::new(On::Postgres, "exit 0\n", 1).await;
    let report = b"<testsuite name=\"s\"><testcase name=\"a\"><failure/></testcase></testsuite>";
    let path = "/v1/flaky-tests/upload?repo=git.local/acme/calc&branch=ab";
    let headers = [("x-api-token", system.token()), ("content-type", "application/xml")];
    for more in ["&job=a%00b", "&variant=%00", "&a%00b=c"] {
        let path = format!("{path}{more}");
        let reply = system.send_bytes(Method::POST, &path, &headers, report.to_vec().into()).await;
        assert_eq!(reply.status, 400, "{}", reply.text);
    }
    let reply = system.send_bytes(Method::POST, path, &headers, report.to_vec().into()).await;
    assert_eq!(reply.status, 200, "{}", reply.text);
    let status = reply.json()["status_url"].as_str().expect("an address").to_owned();
    let read = async |system: &System| {
        let upload: Value = serde_json::from_str(&system.get(&status).await).expect("JSON");
        assert_ne!(upload["state"], "failed", "{upload}");
        upload["state"] == "read"
    };
    system.until("it is read", read).await;
    let meta = meta(
        "\"variant\":\"a\\u0000b\",\"envs\":{\"CUSTOM\":\"1\",\"JOB_URL\":\"https://a\\u0000b\"},",
    );
    let mut bundle = archive(&meta.replace("refs/heads/main", "a\\u0000b"));
    add(&mut bundle, tar::EntryType::Regular, b"junit/0", report);
    let read = sent(&system, packed(&bundle.into_inner().expect("memory"))).await;
    assert_eq!(read["state"], "read", "{read}");

    let description: Value =
        serde_json::from_str(&system.get("/v1/openapi.json").await).expect("JSON");
    let headers = [("x-api-token", system.token()), ("content-type", "application/json")];
    let mut asked = 0;
    for (path, methods) in description["paths"].as_object().expect("paths") {
        let body = &methods["post"]["requestBody"]["content"]["application/json"]["schema"];
        let Some(schema) = body["$ref"].as_str() else { continue };
        let mut example = description.pointer(&schema[1..]).expect("a schema")["example"].clone();
        example["repo"] = json!({"host": "git.local", "owner": "acme", "name": "calc"});
        let mut places = Vec::new();
        texts(&example, "", &mut places);
        for place in places {
            let mut body = example.clone();
            *body.pointer_mut(&place).expect("a text") = json!("a\0b");
            let reply = system.send(Method::POST, path, &headers, body.to_string()).await;
            // A token of a page that was never given is answered so by the specification.
            let by_rule = place.ends_with("/page_token") && reply.status == 500;
            assert!(
                reply.status < 500 || by_rule,
                "{path} {place}: {} {}",
                reply.status,
                reply.text
            );
            asked += 1;
        }
    }
    assert!(asked > 100, "{asked}");
}
