//! What failures of different tests can have in common: the masked message, the innermost frame of
//! the trace, the host that could not be reached.

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

use super::super::cluster::{is_frame, telling_lines};
use super::super::{ReportedFailure, mask};

/// The most characters of a label.
const MAX_LABEL: usize = 160;

/// Something that failures have in common.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FailureKey {
    /// The digest of the key: 16 hexadecimal digits.
    pub digest: String,
    /// The masked message, frame or host, as shown to users.
    pub label: String,
}

impl FailureKey {
    fn of(kind: &str, text: &str) -> Self {
        let mut hash = Sha256::new();
        hash.update(kind.as_bytes());
        hash.update([0]);
        hash.update(text.as_bytes());
        let digest = HEXLOWER.encode(hash.finalize().get(..8).unwrap_or_default());
        let label = format!("{kind} {text}");
        Self { digest, label: label.chars().take(MAX_LABEL).collect() }
    }
}

/// What a failure may have in common with others; nothing when its report says nothing.
pub fn failure_keys(failure: &ReportedFailure) -> Vec<FailureKey> {
    let said = if failure.message.trim().is_empty() { &failure.text } else { &failure.message };
    let masked = mask(&telling_lines(said));
    let message = masked.lines().next().filter(|line| !line.is_empty());
    let message = message.map(|line| FailureKey::of("message", line));
    let frame = innermost(&failure.text).or_else(|| innermost(&failure.message));
    let frame = frame.map(|frame| FailureKey::of("at", &frame));
    let host = host_in(said).or_else(|| host_in(&failure.text));
    let host = host.map(|host| FailureKey::of("host", &host));
    message.into_iter().chain(frame).chain(host).collect()
}

/// The innermost frame of a trace, masked: the first one, or the last one of Python.
fn innermost(trace: &str) -> Option<String> {
    let lines = || trace.lines().map(str::trim).filter(|line| is_frame(line));
    let python = || lines().rfind(|line| line.starts_with("File \""));
    let first = lines().find(|line| line.starts_with("at ") || line.starts_with('#'));
    let frame = python().or(first)?;
    let place = frame.trim_start_matches("at ").trim_start_matches("File ");
    // The line number may differ between versions of one file.
    let place: String = place.chars().filter(|it| !it.is_ascii_digit()).collect();
    Some(place).filter(|it| !it.trim().is_empty())
}

/// The first host that a text names: of an address, or before a port.
fn host_in(text: &str) -> Option<String> {
    let text: String = text.chars().take(2_000).collect();
    let words = text.split(|it: char| it.is_whitespace() || "\"'`(),;<>[]".contains(it));
    for word in words {
        let (address, is_url) = match word.split_once("://") {
            Some((_, rest)) => (rest, true),
            None => (word, false),
        };
        let address = address.split(['/', '?']).next().unwrap_or_default();
        let address = address.trim_end_matches(['.', ':', '!']);
        let (host, port) = address.rsplit_once(':').unwrap_or((address, ""));
        let is_port = (2..=5).contains(&port.len()) && port.chars().all(|it| it.is_ascii_digit());
        let is_name = !host.is_empty()
            && host.chars().all(|it| it.is_ascii_alphanumeric() || matches!(it, '.' | '-' | '_'))
            && host.chars().any(|it| it.is_ascii_alphanumeric());
        // A file and a line look like a host and a port.
        let is_file = host.rsplit_once('.').is_some_and(|(_, end)| FILE_ENDINGS.contains(&end));
        if is_name && (is_url || (is_port && !is_file)) {
            return Some(host.to_ascii_lowercase());
        }
    }
    None
}

/// Endings of files that reports name with a line.
const FILE_ENDINGS: [&str; 22] = [
    "rs", "py", "rb", "js", "jsx", "ts", "tsx", "mjs", "java", "kt", "scala", "go", "c", "cc",
    "cpp", "h", "cs", "php", "swift", "ex", "exs", "dart",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(message: &str, text: &str) -> Vec<String> {
        let failure = ReportedFailure { message: message.into(), text: text.into() };
        failure_keys(&failure).into_iter().map(|key| key.label).collect()
    }

    #[test]
    fn failures_have_a_message_a_place_and_a_host_in_common() {
        assert_eq!(
            labels(
                "could not connect to db.internal:5432",
                "Error: x\n  at Db.open(Db.java:31)\n  at CalcTest.adds(CalcTest.java:9)"
            ),
            [
                "message could not connect to db.internal:<num>",
                "at Db.open(Db.java:)",
                "host db.internal"
            ]
        );
        assert_eq!(
            labels(
                "",
                "Traceback (most recent call last):\n  File \"test_a.py\", line 3, in a\n  File \"conf.py\", line 8, in db\nOSError: no route"
            )[1..],
            ["at \"conf.py\", line , in db"]
        );
        assert_eq!(labels("GET https://api.test/v1?a=1 failed", "")[1..], ["host api.test"]);
        assert_eq!(labels("calc.rs:12 panicked", "").len(), 1, "a file is no host");
        for (text, host) in [
            ("cannot reach cache.internal:6379!", Some("host cache.internal")),
            ("cannot reach localhost:80 in time", Some("host localhost")),
            ("port :8080 is taken", None),
            ("a--:8080 --:8080", Some("host a--")),
            ("--:8080", None),
            ("x:1 y:123456 z:12a", None),
            ("see http://API.test.", Some("host api.test")),
        ] {
            let hosts = labels(text, "").into_iter().find(|it| it.starts_with("host "));
            assert_eq!(hosts.as_deref(), host, "{text}");
        }
        assert_eq!(labels("", ""), Vec::<String>::new());
    }
}
