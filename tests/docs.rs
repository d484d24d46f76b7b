//! Generated documents are not stale, and documents name files that exist. `SIGNALBOX_UPDATE=1` writes them anew.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use signalbox_domain::queue::ANSWERS;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace")
}

fn check(path: &str, fresh: &str) {
    let path = root().join(path);
    if std::env::var_os("SIGNALBOX_UPDATE").is_some() {
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        std::fs::write(&path, fresh).expect("written");
        return;
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(kept == fresh, "{} is stale: run `just gen`", path.display());
}

#[test]
fn the_description_of_the_api_is_not_stale() {
    check("docs/api/openapi.json", &signalbox_http::openapi_document());
}

#[test]
fn the_page_of_errors_is_not_stale() {
    check("docs/api/errors.md", &signalbox_http::error_page());
}

#[test]
fn the_page_of_events_is_not_stale() {
    check("docs/api/events.md", &signalbox_webhooks::catalogue::page());
}

#[test]
fn the_example_configuration_is_not_stale() {
    check("docs/operations/config.example.toml", &signalbox::example());
}

#[test]
fn the_page_of_metrics_is_not_stale() {
    check("docs/operations/metrics.md", &signalbox_metrics::document());
}

/// The part of a page between two comments is made from the program.
fn check_part(path: &str, name: &str, fresh: &str) {
    let (start, end) = (format!("<!-- {name} -->\n"), format!("<!-- end of {name} -->"));
    let page = std::fs::read_to_string(root().join(path)).expect("the page is there");
    let (before, rest) = page.split_once(&start).expect("it says where the part starts");
    let (_, after) = rest.split_once(&end).expect("it says where the part ends");
    check(path, &format!("{before}{start}{fresh}{end}{after}"));
}

#[test]
fn the_table_of_states_and_inputs_is_not_stale() {
    check_part("docs/domain/queue.md", "table", &signalbox_domain::testing::matrix());
}

#[test]
fn the_table_of_effects_is_not_stale() {
    let rows = ANSWERS.iter().map(|answer| {
        let facts: Vec<String> = answer.facts.iter().map(|fact| format!("`{fact}`")).collect();
        let facts = if facts.is_empty() { "–".to_owned() } else { facts.join(", ") };
        format!("| `{}` | {facts} |\n", answer.effect)
    });
    let head = "| effect | facts that answer it |\n|---|---|\n";
    check_part("docs/domain/queue.md", "effects", &(head.to_owned() + &rows.collect::<String>()));
}

#[test]
fn the_code_map_is_not_stale() {
    check_part("docs/architecture.md", "code map", &code_map());
}

/// The crates of the workspace: what each is for and where to start reading, from its manifest.
fn code_map() -> String {
    let args = ["metadata", "--format-version", "1", "--no-deps", "--offline"];
    let done = Command::new(env!("CARGO")).args(args).current_dir(root()).output();
    let metadata: Value = serde_json::from_slice(&done.expect("cargo runs").stdout).expect("JSON");
    let mut map = String::from("| crate | what | start reading at |\n|---|---|---|\n");
    let mut rows = BTreeSet::new();
    for package in metadata["packages"].as_array().expect("packages") {
        let manifest = Path::new(package["manifest_path"].as_str().expect("a path"));
        let folder = manifest.parent().expect("a folder");
        let shown = folder.strip_prefix(root()).expect("inside the root").display().to_string();
        if !shown.starts_with("crates/") {
            continue;
        }
        let start = package["metadata"]["signalbox"]["start"].as_array();
        let start = start.unwrap_or_else(|| panic!("{shown}/Cargo.toml: add `start`"));
        let start: Vec<String> = start
            .iter()
            .map(|file| {
                let file = file.as_str().expect("a path");
                assert!(folder.join(file).exists(), "{shown}/Cargo.toml: there is no {file}");
                format!("`{file}`")
            })
            .collect();
        let what = package["description"].as_str().expect("a description");
        rows.insert(format!("| `{shown}` | {what} | {} |\n", start.join(", ")));
    }
    map.extend(rows);
    map
}

/// A file that a page names: a path with a known ending, from the root or from a crate's `src`.
fn named_files(page: &str) -> BTreeSet<String> {
    const ENDINGS: [&str; 7] = ["rs", "md", "toml", "sql", "json", "yml", "service"];
    let spans = page.split('`').skip(1).step_by(2);
    let is_path = |span: &&str| {
        let starts = ["crates/", "tests/", "docs/", "migrations/"];
        let ending = Path::new(span).extension().and_then(|it| it.to_str());
        starts.iter().any(|start| span.starts_with(start))
            && !span.contains(['<', '*', ' ', '\n', '{', 'N'])
            && (ending.is_none_or(|it| ENDINGS.contains(&it)))
    };
    spans.filter(is_path).map(str::to_owned).collect()
}

#[test]
fn files_that_the_docs_name_exist() {
    let mut pages = vec![root().join("README.md"), root().join("CONTRIBUTING.md")];
    let mut folders = vec![root().join("docs")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
            let path = entry.path();
            match path.extension() {
                _ if path.is_dir() => folders.push(path),
                Some(it) if it == "md" => pages.push(path),
                _ => {}
            }
        }
    }
    let mut missing = Vec::new();
    for page in pages {
        let text = std::fs::read_to_string(&page).expect("a page");
        let gone = named_files(&text).into_iter().filter(|file| !root().join(file).exists());
        missing.extend(gone.map(|file| format!("{}: there is no {file}", page.display())));
    }
    assert!(missing.is_empty(), "\n{}\n", missing.join("\n"));
}

#[test]
fn a_file_that_is_gone_is_found() {
    let page = "See `crates/domain/src/gone.rs`, `cargo test` and `docs/README.md`.";
    let named = named_files(page);
    assert_eq!(
        named.into_iter().collect::<Vec<_>>(),
        ["crates/domain/src/gone.rs", "docs/README.md"]
    );
}

#[test]
fn the_page_of_settings_is_not_stale() {
    check("docs/domain/settings.md", &signalbox_wording::settings_page());
}

#[test]
fn the_page_of_words_is_not_stale() {
    check("docs/domain/vocabulary.md", &signalbox_wording::table());
}
