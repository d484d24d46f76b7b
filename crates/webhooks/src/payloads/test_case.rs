//! A test case in the two shapes in which events carry it.

use std::fmt::Write;

use serde_json::{Map, Value, json};
use signalbox_domain::flaky::{Event, Reading};
use signalbox_domain::ids::RepoName;
use signalbox_domain::ports::TestSnapshot;

use super::Links;

/// The whole test, as lists of the API show it, with the deprecated `test_suite`.
pub(super) fn whole(links: &Links, snapshot: &TestSnapshot, event: &Event) -> Value {
    let (record, numbers) = (&snapshot.record, &snapshot.numbers);
    let (key, standing) = (&record.test.key, &record.test.standing);
    let failures: Vec<Value> = numbers
        .failures
        .iter()
        .map(|failure| {
            json!({
                "summary": failure.summary,
                "occurrence_count": failure.occurrence_count,
                "last_occurrence": failure.last_occurrence.to_string(),
            })
        })
        .collect();
    let mut fields = Map::new();
    let mut put = |key: &str, value: Value| {
        fields.insert(key.to_owned(), value);
    };
    put("id", json!(record.test.id.to_string()));
    put("repository", json!({"html_url": repository_url(&snapshot.repo)}));
    put("html_url", json!(links.test(snapshot)));
    put("name", json!(key.name));
    put("variant", json!(key.variant));
    put(
        "status",
        json!({
            "value": standing.value.word(),
            "reason": standing.reason_text(),
            "timestamp": standing.since.to_string(),
        }),
    );
    put("most_common_failures", Value::Array(failures));
    put("failure_rate_last_7d", json!(numbers.failure_rate_7d()));
    put("failure_rate_last_24h", json!(numbers.failure_rate_24h()));
    put("codeowners", json!(record.owners));
    put("pull_requests_impacted_last_7d", json!(numbers.pull_requests_7d.len()));
    put("quarantined", json!(event.quarantined));
    let some = [
        ("file_path", &key.file),
        ("parent", &key.parent),
        ("test_suite", &key.parent),
        ("classname", &key.classname),
    ];
    for (field, text) in some.into_iter().filter(|(_, text)| !text.is_empty()) {
        put(field, json!(text));
    }
    if let Some(id) = &record.ticket {
        // Where tickets have no pages, the test's own shows the id.
        let url = links.ticket(id);
        let url = url.unwrap_or_else(|| format!("{}#{}", links.test(snapshot), encoded(id)));
        put("ticket", json!({"html_url": url}));
    }
    Value::Object(fields)
}

/// The slim test of the newer events.
pub(super) fn slim(links: &Links, snapshot: &TestSnapshot, event: &Event) -> Value {
    let (record, key) = (&snapshot.record, &snapshot.record.test.key);
    json!({
        "id": record.test.id.to_string(),
        "name": key.name,
        "classname": key.classname,
        "file_path": key.file,
        "html_url": links.test(snapshot),
        "codeowners": record.owners,
        "quarantined": event.quarantined,
        "variant": key.variant,
    })
}

/// What a monitor saw.
pub(super) fn evidence(reading: &Reading) -> Value {
    let summary = reading.to_string();
    match reading {
        Reading::PassOnRetry(reading) => json!({
            "summary": summary,
            "last_disagreement_at": reading.last.as_ref().map(|it| it.at.to_string()),
            "runs": reading.runs,
        }),
        Reading::FailureRate(reading) => json!({
            "summary": summary,
            "runs": reading.runs,
            "failures": reading.failures,
        }),
        Reading::FailureCount(reading) => json!({
            "summary": summary,
            "failures": reading.failures,
            "last_failure_at": reading.last_failure_at.map(|at| at.to_string()),
        }),
    }
}

impl Links {
    /// The page of a test.
    fn test(&self, snapshot: &TestSnapshot) -> String {
        let RepoName { owner, name, .. } = &snapshot.repo;
        format!(
            "{}/{}/flaky-tests/test/{}?repo={}",
            self.public_url,
            encoded(&snapshot.record.test.key.org),
            snapshot.record.test.id,
            encoded(&format!("{owner}/{name}"))
        )
    }

    /// The page of a ticket: by the pattern, or the id itself when it is an address.
    fn ticket(&self, id: &str) -> Option<String> {
        if id.starts_with("https://") || id.starts_with("http://") {
            return Some(id.to_owned());
        }
        self.ticket_url.as_ref().map(|pattern| pattern.replace("{id}", &encoded(id)))
    }
}

/// The page of a repository on its host.
pub(super) fn repository_url(repo: &RepoName) -> String {
    format!("https://{}/{}/{}", repo.host, repo.owner, repo.name)
}

/// A text as a part of an address.
fn encoded(text: &str) -> String {
    text.bytes().fold(String::with_capacity(text.len()), |mut encoded, byte| {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~') {
            encoded.push(char::from(byte));
        } else {
            // Writing to a string does not fail.
            write!(encoded, "%{byte:02X}").ok();
        }
        encoded
    })
}
