//! Generated documents are not stale. `SIGNALBOX_UPDATE=1` writes them anew.

use std::path::Path;

fn check(path: &str, fresh: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace").join(path);
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

#[test]
fn the_table_of_states_and_inputs_is_not_stale() {
    let (path, start, end) = ("docs/domain/queue.md", "<!-- table -->\n", "<!-- end of table -->");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace");
    let page = std::fs::read_to_string(root.join(path)).expect("the page is there");
    let (before, rest) = page.split_once(start).expect("it says where the table starts");
    let (_, after) = rest.split_once(end).expect("it says where the table ends");
    let table = signalbox_domain::testing::matrix();
    check(path, &format!("{before}{start}{table}{end}{after}"));
}

#[test]
fn the_page_of_words_is_not_stale() {
    check("docs/domain/vocabulary.md", &signalbox_domain::vocabulary::table());
}
