//! Parsers of untrusted input, on mutations of real inputs. `just fuzz` runs more of them.

use std::io::Cursor;
use std::path::PathBuf;

use futures_util::FutureExt;
use signalbox_domain::flaky::UploadSource;
use signalbox_domain::ids::{BranchName, RepoName, Sha};
use signalbox_domain::ports::{ReportFile, ReportReader};
use signalbox_domain::queue::SETTINGS;
use signalbox_domain::session::SessionText;
use signalbox_domain::time::Timestamp;
use signalbox_domain::token::TokenText;
use signalbox_git::{PushOptions, RepositoryConfig, read_push};
use signalbox_reports::Reports;
use signalbox_services::CommentCommand;
use signalbox_testkit::fuzz::{committed, corpus, fuzz};
use signalbox_webhooks::Guard;

/// The most runs of an upload.
const RUNS: usize = 1_000;
/// The most characters of a message about the problem.
const MESSAGE: usize = 4_000;

fn fixtures() -> Vec<Vec<u8>> {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let found = corpus(&here.join("../crates/reports/tests/junit/fixtures"));
    assert!(found.len() > 20, "the reports of real frameworks");
    found
}

/// Reads a report: it has no more runs than allowed, or a message of a bounded length.
fn read(source: UploadSource, name: &str, content: Vec<u8>) {
    let file = ReportFile { name: name.to_owned(), content: Box::new(Cursor::new(content)) };
    let read = Reports::default().read(source, vec![file], RUNS).now_or_never();
    match read.expect("it never waits") {
        Ok(found) => assert!(found.runs.len() <= RUNS),
        Err(error) => assert!(error.to_string().len() <= MESSAGE, "{error}"),
    }
}

fn archive(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut archive = tar::Builder::new(Vec::new());
    for (name, content) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        archive.append_data(&mut header, name, *content).expect("appended");
    }
    zstd::encode_all(&*archive.into_inner().expect("an archive"), 1).expect("compressed")
}

#[test]
fn reports_in_xml() {
    let words = [
        "<testcase name=\"a\">",
        "</testcase>",
        "<testsuite>",
        "<failure/>",
        "<skipped/>",
        "<rerunFailure>",
        "<![CDATA[",
        "]]>",
        "<!--",
        "-->",
        "<!DOCTYPE a [<!ENTITY b \"c\">]>",
        "&lt;",
        "&#0;",
        "&#x110000;",
        "time=\"1e999\"",
        "<?xml version=\"1.0\" encoding=\"utf-16\"?>",
    ];
    fuzz("junit", &fixtures(), &words, |input| read(UploadSource::JUnit, "a.xml", input.to_vec()));
}

#[test]
fn bundles_with_any_metadata() {
    let (metadata, report) = (committed("bundle-meta"), fixtures().swap_remove(0));
    let words =
        ["null", "true", "-1", "1e400", "{", "[", "\"\\ud800\"", "\"version\":", "\"file_sets\":"];
    fuzz("bundle-meta", &metadata, &words, |input| {
        read(
            UploadSource::Bundle,
            "b.tar.zst",
            archive(&[("meta.json", input), ("junit/0", &report)]),
        );
    });
}

#[test]
fn bundles_with_any_binary_part() {
    let metadata = committed("bundle-meta").swap_remove(0);
    let corpus = [vec![0x0a, 0x08, 0x0a, 0x06, 0x0a, 0x01, b'a', 0x12, 0x01, b's'], Vec::new()];
    fuzz("bundle-internal", &corpus, &["\u{7f}", "\n\n"], |input| {
        read(
            UploadSource::Bundle,
            "b.tar.zst",
            archive(&[("meta.json", &metadata), ("internal.bin", input)]),
        );
    });
}

#[test]
fn damaged_bundles() {
    let metadata = committed("bundle-meta").swap_remove(0);
    let whole = archive(&[("meta.json", &metadata), ("junit/0", &fixtures().swap_remove(0))]);
    let unpacked = zstd::decode_all(&*whole).expect("an archive");
    fuzz("bundle", &[whole], &[], |input| read(UploadSource::Bundle, "b.tar.zst", input.to_vec()));
    fuzz("bundle-tar", &[unpacked], &["../../a", "ustar"], |input| {
        let packed = zstd::encode_all(input, 1).expect("compressed");
        read(UploadSource::Bundle, "b.tar.zst", packed);
    });
}

#[test]
fn lines_of_imported_runs() {
    let words = ["\"at\":", "\"junit\":", "null", "1e400", "\"\\u0000\"", "9999-12-31T23:59:60Z"];
    let reports = Reports::default();
    fuzz("ndjson", &committed("ndjson"), &words, |input| {
        if let Err(message) = reports.line(input) {
            assert!(message.len() <= MESSAGE, "{message}");
        }
    });
}

#[test]
fn configurations_of_repositories() {
    let words = [
        "[[checks]]",
        "run = ",
        "\"\"\"",
        "name = \"a\"",
        "[merge]",
        "= 1e400",
        "{x",
        "[",
        "]",
        "}",
    ];
    fuzz("repository-config", &committed("repository-config"), &words, |input| {
        if let Ok(text) = std::str::from_utf8(input) {
            drop(RepositoryConfig::parse(text));
        }
    });
}

#[test]
fn pushes_and_their_options() {
    let words = ["0000", "ffff", "0004", "version=1\0push-options", "refs/for/main", "topic="];
    fuzz("push", &committed("push"), &words, |input| {
        let mut output = Vec::new();
        drop(read_push(&mut Cursor::new(input), &mut output));
        let options: Vec<String> =
            String::from_utf8_lossy(input).lines().map(ToOwned::to_owned).collect();
        drop(PushOptions::parse(&options));
    });
}

/// An accepted address is encrypted, has no credentials, and names no address that messages are not
/// sent to; read again from what is called, it is the same.
#[test]
fn addresses_of_webhooks() {
    let words = [
        "https://",
        "@",
        ":443",
        "127.0.0.1",
        "[::1]",
        "0x7f.1",
        "\\",
        "%2f",
        "#",
        ".",
        "\u{ff0e}",
    ];
    let guard = Guard::default();
    fuzz("webhook-url", &committed("webhook-url"), &words, |input| {
        for line in String::from_utf8_lossy(input).lines() {
            let Ok(url) = guard.check_url(line) else { continue };
            assert_eq!(url.scheme(), "https");
            assert!(url.username().is_empty() && url.password().is_none(), "{url}");
            let host = url.host_str().expect("a host");
            if let Ok(address) = host.trim_matches(['[', ']']).parse() {
                assert!(guard.check_address(address).is_ok(), "{url}");
            }
            assert_eq!(guard.check_url(url.as_str()), Ok(url));
        }
    });
}

#[test]
fn commands_and_values_of_people() {
    let words =
        ["/signalbox", "merge", "--priority", "urgent", "--no-batch", "-5", "\u{feff}", "\u{202e}"];
    fuzz("words", &committed("words"), &words, |input| {
        let text = String::from_utf8_lossy(input);
        let lines: Vec<String> = text.lines().map(ToOwned::to_owned).collect();
        drop(CommentCommand::parse("/signalbox", &lines));
        for line in text.lines() {
            for setting in SETTINGS {
                drop(setting.parse(line));
            }
            drop((Timestamp::parse(line), TokenText::parse(line), SessionText::parse(line)));
            drop((BranchName::new(line), Sha::new(line), RepoName::parse(line)));
        }
    });
}
