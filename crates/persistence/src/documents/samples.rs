//! Sample documents: every version that was ever written can be read, and every document that is
//! written now has a sample. `tests/documents` has a file per kind and version.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use diesel::prelude::*;
use diesel::sql_types::Text;
use serde_json::Value;
use signalbox_conformance::stores::{
    accounts, audit, flaky, flaky_incidents, flaky_lists, flaky_names, flaky_runs, history, jobs,
    outbox, queues, reads, uploads, webhook_audit, webhooks,
};
use signalbox_domain::ports::Stores;
use signalbox_testkit::simulation::simulate;
use tempfile::TempDir;

use super::{Document, KINDS, Unreadable, decode, encode};

/// Reads and rewrites a document.
pub(super) type Again = fn(&[u8]) -> Result<String, Unreadable>;

pub(super) fn again<T: Document>(text: &[u8]) -> Result<String, Unreadable> {
    let value: T = decode(text)?;
    Ok(encode(&value).expect("a document").as_str().to_owned())
}

/// The columns with documents: table, column and kind.
const COLUMNS: [(&str, &str, &str); 25] = [
    ("queues", "document", "queue"),
    ("entries", "document", "entry"),
    ("runs", "document", "test run"),
    ("impacted_targets", "document", "impacted targets"),
    ("journal", "document", "queue journal"),
    ("entry_moves", "document", "move"),
    ("outbox", "document", "effect"),
    ("audit", "document", "audit record"),
    ("tokens", "repos", "repositories of a token"),
    ("uploads", "document", "upload"),
    ("flaky_repos", "document", "flaky settings"),
    ("flaky_settings_log", "document", "change of flaky settings"),
    ("test_cases", "document", "test"),
    ("test_cases", "owners", "owners"),
    ("test_cases", "windows", "windows of a test"),
    ("test_presences", "document", "presence of a test"),
    ("test_incidents", "document", "incident"),
    ("flaky_repos", "failures", "failures of a repository"),
    ("test_journal", "document", "test journal"),
    ("test_runs", "document", "result"),
    ("result_uploads", "upload", "uploaded results"),
    ("result_uploads", "taken_in", "counts of an upload"),
    ("ci_runs", "document", "CI run"),
    ("webhook_endpoints", "document", "webhook endpoint"),
    ("webhook_attempts", "document", "webhook attempt"),
];

fn file(kind: &str, version: u32) -> PathBuf {
    let name = format!("{}.{version}.json", kind.replace(' ', "-").to_lowercase());
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/documents").join(name)
}

fn committed(kind: &str, version: u32) -> Vec<Value> {
    let Ok(text) = fs::read_to_string(file(kind, version)) else { return Vec::new() };
    serde_json::from_str(&text).expect("an array of documents")
}

/// Describes where the rewritten document lacks a part of the original.
fn lost(old: &Value, new: &Value, at: &str) -> Option<String> {
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => old.iter().find_map(|(key, value)| {
            let at = format!("{at}.{key}");
            match new.get(key) {
                Some(new) => lost(value, new, &at),
                None => Some(at),
            }
        }),
        (Value::Array(old), Value::Array(new)) if old.len() == new.len() => {
            old.iter().zip(new).find_map(|(old, new)| lost(old, new, &format!("{at}[]")))
        }
        (old, new) => (old != new).then(|| format!("{at}: {old} is {new} now")),
    }
}

#[test]
fn documents_of_every_version_can_be_read() {
    for (kind, newest, again) in KINDS {
        for version in 1..=*newest {
            let documents = committed(kind, version);
            assert!(!documents.is_empty(), "there is no sample of {kind}, version {version}");
            for document in documents {
                let read = again(document.to_string().as_bytes());
                let written = read.unwrap_or_else(|error| panic!("{error}: {document}"));
                let written: Value = serde_json::from_str(&written).expect("JSON");
                if version == *newest
                    && let Some(lost) = lost(&document, &written, kind)
                {
                    panic!("{lost} is lost: give the kind a new version and a reader for this one");
                }
            }
        }
    }
}

#[test]
fn a_document_of_a_newer_version_is_rejected() {
    for (kind, version, again) in KINDS {
        let document = format!("{{\"version\": {}, \"unknown\": []}}", version + 1);
        let refused = again(document.as_bytes()).expect_err("newer");
        let words = format!("{kind} document has version {}, newer than {version}", version + 1);
        assert!(refused.to_string().starts_with(&words), "{refused}");
        assert!(again(b"{}").is_err(), "a document without a version");
    }
}

#[test]
fn the_version_is_that_of_the_document_itself() {
    let newer = |text: &str| {
        let read = decode::<super::Owners>(text.as_bytes());
        matches!(read, Err(Unreadable::Newer { found: 7, .. }))
    };
    for text in [
        r#"{"version":7,"owners":[]}"#,
        r#"{"owners": [], "version" : 7}"#,
        r#"{"owners":["version"],"version":7}"#,
        r#"{"owners":["a \"version\":1"],"version":7}"#,
        r#"{"inner":{"version":1},"owners":[],"version":7}"#,
    ] {
        assert!(newer(text), "{text}");
        assert!(
            !newer(&text.replace("version\":7", "version\":1").replace(": 7", ": 1")),
            "{text}"
        );
    }
    for text in [r#"{"owners":[]}"#, r#"{"version":"7","owners":[]}"#, r#"{"version":7"#, ""] {
        assert!(decode::<super::Owners>(text.as_bytes()).is_err(), "{text}");
    }
    assert!(!newer(r#"{"version":77777777777,"owners":[]}"#));
}

#[test]
fn a_document_contains_no_nul() {
    let owners = super::Owners { owners: vec!["a\0b".into(), "\\u0000".into()] };
    let written = encode(&owners).expect("a document");
    assert_eq!(written.as_str(), r#"{"version":1,"owners":["a\ufffdb","\\u0000"]}"#);
    let read: super::Owners = decode(written.as_str().as_bytes()).expect("read");
    assert_eq!(read.owners, ["a\u{fffd}b", "\\u0000"]);
}

/// The parts of a document: the path and type of each value, and the value itself if it looks like
/// the name of a variant. Keys that are ids or numbers count as equal.
fn parts(value: &Value, at: &str, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                let id = key.chars().any(|c| c.is_ascii_digit());
                let key = if id { "*" } else { key };
                parts(value, &format!("{at}.{key}"), found);
            }
        }
        Value::Array(items) => {
            for item in items {
                parts(item, &format!("{at}[]"), found);
            }
        }
        Value::String(word) if is_variant(word) => {
            found.insert(format!("{at} = {word}"));
        }
        Value::String(_) => drop(found.insert(format!("{at}: text"))),
        Value::Number(_) => drop(found.insert(format!("{at}: number"))),
        Value::Bool(_) => drop(found.insert(format!("{at}: bool"))),
        Value::Null => drop(found.insert(format!("{at}: null"))),
    }
}

/// Samples have at most this many bytes where possible.
const LONG: usize = 8_000;

fn is_variant(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_uppercase())
        && word.chars().all(|c| c.is_ascii_alphabetic())
}

#[derive(QueryableByName)]
struct Row {
    #[diesel(sql_type = Text)]
    text: String,
}

/// Adds the documents of a database, by kind.
fn gather(path: &str, documents: &mut BTreeMap<&'static str, Vec<Value>>) {
    let mut conn = SqliteConnection::establish(path).expect("a connection");
    for (table, column, kind) in COLUMNS {
        let sql = format!("SELECT {column} AS text FROM {table} WHERE {column} IS NOT NULL");
        let rows: Vec<Row> = diesel::sql_query(sql).load(&mut conn).expect("documents");
        let read = |row: Row| serde_json::from_str(&row.text).expect("JSON");
        documents.entry(kind).or_default().extend(rows.into_iter().map(read));
    }
}

/// Runs the suites that write documents of every kind, each on a database of its own.
fn written() -> BTreeMap<&'static str, Vec<Value>> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.expect("a runtime");
    let folder = TempDir::new().expect("a folder");
    let mut documents = BTreeMap::new();
    let mut number = 0;
    let mut on_fresh = |write: &dyn Fn(&Stores)| {
        number += 1;
        let path = folder.path().join(format!("{number}.db")).display().to_string();
        let stores = runtime.block_on(async {
            let database = crate::connect(&format!("sqlite://{path}")).await.expect("a database");
            database.migrate().await.expect("migrated");
            database.stores()
        });
        write(&stores);
        gather(&path, &mut documents);
    };
    for seed in 0..3 {
        on_fresh(&|stores| {
            let _around = runtime.enter();
            drop(simulate(seed, stores.clone()).unwrap_or_else(|failure| panic!("{failure}")));
        });
    }
    macro_rules! conformance {
        ($($suite:ident::$property:ident),+ $(,)?) => {
            $(on_fresh(&|stores| runtime.block_on($suite::$property(stores)));)+
        };
    }
    conformance![
        accounts::a_token_is_found_by_its_hash_unchanged,
        audit::records_are_filtered,
        audit::a_commit_writes_its_record_or_nothing,
        flaky::a_disagreement_changes_status_list_and_events_in_one_commit,
        flaky::quarantine_follows_settings_overrides_and_time,
        flaky::time_resolves_a_monitor,
        flaky::a_deleted_monitor_resolves_for_every_test,
        flaky_incidents::a_bad_upload_is_an_incident,
        flaky_incidents::failures_are_recounted,
        flaky_incidents::an_incident_is_recognized_late,
        flaky_lists::numbers_are_counted_over_their_time,
        flaky_names::a_retired_test_returns_as_it_was,
        flaky_names::a_renamed_test_keeps_everything,
        flaky_runs::a_check_is_excused_by_quarantined_tests_only,
        history::entries_are_filtered_by_state_and_by_when_they_left,
        jobs::the_agenda_names_what_is_due,
        outbox::failing_effects_are_listed_longest_first,
        queues::external_checks_are_stored_with_their_run,
        queues::targets_are_stored_apart_and_before_a_submission,
        queues::the_policy_of_a_queue_is_stored,
        reads::depths_count_live_entries_by_state,
        uploads::an_upload_is_finished_or_retried,
        uploads::bytes_are_received_once,
        webhook_audit::endpoints_are_changed_with_their_record_or_not_at_all,
        webhooks::an_endpoint_is_stored_unchanged_and_belongs_to_its_organization,
        webhooks::an_attempt_is_recorded_and_updates_its_message,
    ];
    on_fresh(&|stores| runtime.block_on(add_ci_run(stores)));
    documents
}

async fn add_ci_run(stores: &Stores) {
    use signalbox_domain::ports::{CiRun, RepoRef};
    use signalbox_domain::time::Timestamp;
    let sample = signalbox_conformance::stores::Sample::new(stores).await;
    let repo = RepoRef { org: sample.queue.org, id: sample.repository.id };
    let document = r#"{"ci": "none", "runs": [1]}"#.to_owned();
    let at = Timestamp::from_unix_seconds(1_767_225_600);
    let run = CiRun { id: uuid::Uuid::nil(), document, at };
    stores.flaky.tests.add_ci_run(repo, &run).await.expect("kept");
}

/// With `SIGNALBOX_UPDATE`, samples are added for parts without one; no sample is ever removed.
#[test]
fn every_written_document_has_a_sample() {
    let update = std::env::var_os("SIGNALBOX_UPDATE").is_some();
    let mut written = written();
    for (kind, version, _) in KINDS {
        let mut samples = committed(kind, *version);
        let mut known = BTreeSet::new();
        for sample in &samples {
            parts(sample, "", &mut known);
        }
        let mut documents = written.remove(kind).unwrap_or_default();
        assert!(!documents.is_empty(), "nothing writes documents of the kind {kind}");
        // Informative documents first; very long ones only if no other is left.
        documents.sort_by_cached_key(|document| {
            let length = document.to_string().len();
            (length > LONG, std::cmp::Reverse(length))
        });
        for document in documents {
            let mut found = BTreeSet::new();
            parts(&document, "", &mut found);
            let Some(new) = found.iter().find(|part| !known.contains(*part)) else { continue };
            assert!(
                update,
                "{kind}: no sample has {new}. Give a new field a default, or the kind a new \
                 version; then add samples with `just gen`"
            );
            known.extend(found);
            samples.push(document);
        }
        if update {
            let text = serde_json::to_string_pretty(&samples).expect("JSON") + "\n";
            fs::write(file(kind, *version), text).expect("written");
        }
    }
}
