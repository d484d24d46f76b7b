//! Names that pages use: configuration, API paths, metrics, reasons.

use std::collections::BTreeSet;

use serde_json::Value;
use signalbox_domain::queue::WaitReason;
use signalbox_git::RepositoryConfig;
use signalbox_metrics::{queue_metrics, server_metrics};

use crate::page::{Block, Page, none, pages, root};

/// The error in a TOML snippet: a repository's configuration if its comment or its tables show that,
/// else the server's.
fn wrong_toml(block: &Block) -> Option<String> {
    let text = &block.text;
    let of_repository = ["# .signalbox.toml", "[[checks]]", "[merge]"];
    if of_repository.iter().any(|mark| text.contains(mark)) {
        return RepositoryConfig::parse(text).err();
    }
    if text.starts_with("[package]") {
        return text.parse::<toml::Table>().err().map(|error| error.to_string());
    }
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), text).expect("written");
    signalbox::read_configuration(file.path()).err().map(|error| error.to_string())
}

#[test]
fn every_configuration_is_valid() {
    let mut found = Vec::new();
    for page in pages() {
        for block in page.blocks.iter().filter(|block| block.language == "toml") {
            found.extend(wrong_toml(block).map(|why| format!("{}: {why}", page.at(block.line))));
        }
    }
    none(&found);
}

#[test]
fn a_wrong_configuration_is_found() {
    let block = |text: &str| Block { line: 1, language: "toml".into(), text: text.into() };
    assert!(wrong_toml(&block("[server]\nlisten_on = \"127.0.0.1:1\"")).is_some());
    assert!(wrong_toml(&block("[[checks]]\nname = \"a\"\nrun = []")).is_some());
    assert!(wrong_toml(&block("[server]\nlisten = \"127.0.0.1:1\"")).is_none());
}

/// The keys of a table, with dots, without the tables of organizations.
fn keys(table: &toml::Table, prefix: &str, into: &mut BTreeSet<String>) {
    for (key, value) in table.iter().filter(|(key, _)| *key != "organizations") {
        match value {
            toml::Value::Table(inner) => keys(inner, &format!("{prefix}{key}."), into),
            _ => drop(into.insert(format!("{prefix}{key}"))),
        }
    }
}

#[test]
fn the_page_of_configuration_has_every_setting() {
    let example: toml::Table = signalbox::example().parse().expect("TOML");
    let mut wanted = BTreeSet::new();
    keys(&example, "", &mut wanted);
    let page = std::fs::read_to_string(root().join("docs/reference/configuration.md"));
    let page = Page::parse("docs/reference/configuration.md", &page.expect("the page"));
    let text: BTreeSet<&str> = page.spans.iter().map(|(_, span)| span.as_str()).collect();
    none(&wanted.into_iter().filter(|key| !text.contains(key.as_str())).collect::<Vec<_>>());
}

/// The paths of the API, as lists of segments.
fn api() -> Vec<Vec<String>> {
    let document: Value = serde_json::from_str(&signalbox::openapi_document()).expect("JSON");
    let paths = document["paths"].as_object().expect("paths").keys();
    paths.map(|path| path.split('/').map(str::to_owned).collect()).collect()
}

/// Whether an operation has this path; a slash at the end stands for every path that begins so.
fn is_path(api: &[Vec<String>], path: &str) -> bool {
    let wanted: Vec<&str> = path.trim_end_matches('/').split('/').collect();
    api.iter().any(|known| {
        let length =
            known.len() == wanted.len() || (path.ends_with('/') && known.len() > wanted.len());
        length && known.iter().zip(&wanted).all(|(a, b)| a == b || a.starts_with('{'))
    })
}

/// The path of the API in a word of code, if there is one.
fn path_in(code: &str) -> impl Iterator<Item = &str> {
    // Files of the crate are in a folder of that name.
    let paths = code.match_indices("/v1").filter(|(at, _)| !code[..*at].ends_with("routes"));
    paths.map(|(at, _)| &code[at..]).map(|rest| {
        let end = |char: char| !(char.is_ascii_alphanumeric() || "/_-{}.".contains(char));
        rest[..rest.find(end).unwrap_or(rest.len())].trim_end_matches('.')
    })
}

#[test]
fn every_api_path_exists() {
    let api = api();
    // Of a trace collector; of bundles, to which the server sends the uploader.
    let foreign = ["/v1/traces", "/v1/uploads/"];
    let mut found = Vec::new();
    for page in pages().iter().filter(|page| !page.path.starts_with("docs/adr")) {
        let blocks = page.blocks.iter().map(|block| (block.line, &block.text));
        for (line, code) in page.spans.iter().map(|(line, code)| (*line, code)).chain(blocks) {
            for path in path_in(code).filter(|path| path.starts_with("/v1/")) {
                if path.len() > 4 && !foreign.contains(&path) && !is_path(&api, path) {
                    found.push(format!("{}: {path} does not exist", page.at(line)));
                }
            }
        }
    }
    none(&found);
}

#[test]
fn a_wrong_api_path_is_found() {
    let api = api();
    assert!(is_path(&api, "/v1/getQueue"));
    assert!(is_path(&api, "/v1/flaky-tests/"));
    assert!(is_path(&api, "/v1/flaky-tests/uploads/{upload}"));
    assert!(!is_path(&api, "/v1/getQueues"));
    assert!(!is_path(&api, "/v1/flaky-tests"));
    assert_eq!(
        path_in("curl http://h/v1/getQueue?x=/v1").collect::<Vec<_>>(),
        ["/v1/getQueue", "/v1"]
    );
}

#[test]
fn every_metric_exists() {
    let rows: Vec<_> = server_metrics().into_iter().chain(queue_metrics()).collect();
    let known: BTreeSet<String> =
        rows.iter().flat_map(|row| row.samples().into_iter().chain([row.name.clone()])).collect();
    let is_name = |span: &str| {
        ["signalbox_", "mq_"].iter().any(|start| span.starts_with(start))
            && span
                .chars()
                .all(|char| char.is_ascii_lowercase() || char.is_ascii_digit() || char == '_')
    };
    let mut found = Vec::new();
    for page in pages() {
        for (line, span) in page.spans.iter().filter(|(_, span)| is_name(span)) {
            if !known.contains(span) {
                found.push(format!("{}: there is no metric {span}", page.at(*line)));
            }
        }
    }
    none(&found);
}

#[test]
fn the_page_of_waits_has_every_reason() {
    let page =
        std::fs::read_to_string(root().join("docs/how-to/why-waiting.md")).expect("the page");
    let page = Page::parse("docs/how-to/why-waiting.md", &page);
    let named: BTreeSet<&str> = page.spans.iter().map(|(_, span)| span.as_str()).collect();
    let samples = WaitReason::samples();
    let kinds = samples.iter().map(|(_, reason)| reason.kind());
    none(&kinds.filter(|kind| !named.contains(kind)).map(str::to_owned).collect::<Vec<_>>());
}

#[test]
fn the_readme_is_short() {
    let readme = std::fs::read_to_string(root().join("README.md")).expect("the README");
    assert!(readme.lines().count() < 150, "the README has {} lines", readme.lines().count());
}
