//! NDJSON: results of the past, one run of a job per line.
//!
//! `docs/how-to/import-history.md` describes the fields.

use std::time::Duration;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use signalbox_domain::flaky::{ReportedFailure, RunOutcome};
use signalbox_domain::ids::{PrNumber, Sha};
use signalbox_domain::time::Timestamp;
use signalbox_domain::upload::{Claims, FoundRun};

use crate::convert;
use crate::reader::without_mark;

/// The most bytes of a line.
pub const LINE_BYTES: usize = 16 * 1024 * 1024;
/// The most tests of a line.
const TESTS: usize = 250_000;

/// A run of a job.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// When it ended.
    #[serde(deserialize_with = "time")]
    at: Timestamp,
    #[serde(default)]
    sha: Option<String>,
    #[serde(default)]
    base: Option<String>,
    #[serde(default)]
    branch: Option<String>,
    #[serde(default)]
    pr: Option<u32>,
    #[serde(default)]
    job: Option<String>,
    #[serde(default)]
    job_url: Option<String>,
    #[serde(default)]
    author: Option<String>,
    #[serde(default)]
    variant: Option<String>,
    tests: Vec<Test>,
}

/// An attempt of a test.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Test {
    name: String,
    #[serde(default)]
    suite: Option<String>,
    #[serde(default)]
    classname: Option<String>,
    #[serde(default)]
    file: Option<String>,
    #[serde(default)]
    id: Option<String>,
    outcome: Outcome,
    #[serde(default, deserialize_with = "some_time")]
    started_at: Option<Timestamp>,
    #[serde(default, deserialize_with = "milliseconds")]
    duration_ms: Option<Duration>,
    #[serde(default)]
    message: Option<String>,
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    owners: Vec<String>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Outcome {
    Passed,
    Failed,
    Skipped,
}

fn time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Timestamp, D::Error> {
    let text = String::deserialize(deserializer)?;
    Timestamp::parse(&text).ok_or_else(|| {
        let shown: String = text.chars().take(100).collect();
        D::Error::custom(format!(
            "invalid time {shown:?}: expected RFC 3339, such as 2026-11-21T04:50:22Z"
        ))
    })
}

fn some_time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Timestamp>, D::Error> {
    /// A time that may be `null`.
    #[derive(Deserialize)]
    struct Given(#[serde(deserialize_with = "time")] Timestamp);

    Ok(Option::<Given>::deserialize(deserializer)?.map(|Given(at)| at))
}

fn milliseconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    let given = Option::<f64>::deserialize(deserializer)?;
    let duration = |millis: f64| {
        Duration::try_from_secs_f64(millis / 1_000.0).map_err(|_| {
            D::Error::custom(format!("invalid duration_ms {millis}: expected milliseconds from 0"))
        })
    };
    given.map(duration).transpose()
}

impl Run {
    /// Reads and checks a line. The error is a fragment that names the column, in bytes from 1, or the
    /// field, and the rule.
    pub fn parse(line: &[u8]) -> Result<Self, String> {
        if line.len() > LINE_BYTES {
            return Err(format!("has {} bytes; at most {LINE_BYTES} are allowed", line.len()));
        }
        let run: Self = serde_json::from_slice(without_mark(line)).map_err(|error| {
            let text = error.to_string();
            let words = text.rsplit_once(" at line ").map_or(text.as_str(), |(words, _)| words);
            format!("column {}: {}", error.column(), crate::shortened(words))
        })?;
        for (name, sha) in [("sha", &run.sha), ("base", &run.base)] {
            let Some(sha) = sha else { continue };
            let sha = Sha::new(sha.trim().to_ascii_lowercase());
            sha.map_err(|error| format!("invalid {name}: {error}"))?;
        }
        if run.pr == Some(0) {
            return Err("invalid pr 0: expected the number of a pull request, from 1".to_owned());
        }
        if run.tests.is_empty() || run.tests.len() > TESTS {
            return Err(format!("has {} tests; 1 to {TESTS} are allowed", run.tests.len()));
        }
        match run.tests.iter().position(|test| test.name.trim().is_empty()) {
            Some(at) => Err(format!("tests[{at}].name is empty")),
            None => Ok(run),
        }
    }

    /// When it ended.
    pub const fn at(&self) -> Timestamp {
        self.at
    }

    /// The metadata of the run.
    pub fn claims(&self) -> Claims {
        let given = |it: &Option<String>| it.clone().filter(|it| !it.trim().is_empty());
        Claims {
            sha: given(&self.sha),
            base: given(&self.base),
            branch: given(&self.branch),
            pr: self.pr.map(PrNumber),
            job_url: given(&self.job_url),
            job_name: given(&self.job),
            author: given(&self.author),
            variant: given(&self.variant).unwrap_or_default(),
            at: Some(self.at),
            ..Claims::default()
        }
    }

    /// The attempts of its tests, in their order.
    pub fn into_runs(self) -> impl Iterator<Item = FoundRun> {
        self.tests.into_iter().map(found)
    }
}

fn found(test: Test) -> FoundRun {
    let name = |it: Option<String>| convert::name(it.unwrap_or_default());
    let detail = |it: Option<String>| convert::cut(it.unwrap_or_default());
    let outcome = match test.outcome {
        Outcome::Passed => RunOutcome::Passed,
        Outcome::Failed => RunOutcome::Failed,
        Outcome::Skipped => RunOutcome::Skipped,
    };
    let failure = ReportedFailure { message: detail(test.message), text: detail(test.text) };
    FoundRun {
        parent: name(test.suite),
        classname: name(test.classname),
        file: name(test.file),
        name: name(Some(test.name)),
        info: name(test.id),
        other_files: Vec::new(),
        outcome,
        started_at: test.started_at,
        took: test.duration_ms.map(convert::span),
        failure: Some(failure).filter(|_| outcome == RunOutcome::Failed),
        owners: test.owners,
        quarantined: false,
        told_again: false,
        contradicted: false,
    }
}

#[cfg(test)]
mod tests {
    use signalbox_domain::time::Span;

    use super::*;

    const LINE: &str = r#"{"at": "2026-09-17T12:16:02+02:00", "sha": "1f0c1b9d2f3f4e5a6b7c8d9e0f1a2b3c4d5e6f70",
        "base": "2f0c1b9d2f3f4e5a6b7c8d9e0f1a2b3c4d5e6f70", "branch": "main", "job": "unit", "tests": [
        {"name": "adds", "suite": "calc", "file": "calc.rs", "outcome": "failed", "duration_ms": 12.5,
         "message": "expected 1, got 2", "started_at": null},
        {"name": "adds", "suite": "calc", "file": "calc.rs", "outcome": "passed"},
        {"name": "divides", "outcome": "skipped", "owners": ["@acme/calc"]}]}"#;

    #[test]
    fn a_refusal_does_not_repeat_all_that_was_read() {
        let line = format!(r#"{{"{}": 1}}"#, "r".repeat(10_000));
        let refusal = Run::parse(line.as_bytes()).map(|_| ()).expect_err("no such field");
        assert!(refusal.starts_with("column 10003: unknown field `rrr"), "{refusal}");
        assert!(refusal.len() < 300, "{refusal}");
    }

    #[test]
    fn a_line_is_a_run_of_a_job() {
        let run = Run::parse(LINE.as_bytes()).expect("valid");
        let claims = run.claims();
        assert_eq!(claims.at.map(|at| at.to_string()).as_deref(), Some("2026-09-17T10:16:02.000Z"));
        assert_eq!(
            (claims.branch.as_deref(), claims.job_name.as_deref()),
            (Some("main"), Some("unit"))
        );
        assert_eq!(claims.base.as_deref(), Some("2f0c1b9d2f3f4e5a6b7c8d9e0f1a2b3c4d5e6f70"));
        let runs: Vec<FoundRun> = run.into_runs().collect();
        let outcomes: Vec<RunOutcome> = runs.iter().map(|it| it.outcome).collect();
        assert_eq!(outcomes, [RunOutcome::Failed, RunOutcome::Passed, RunOutcome::Skipped]);
        let mut each = runs.iter();
        let (first, second) = each.next().zip(each.next()).expect("two attempts");
        assert_eq!((first.parent.as_str(), first.file.as_str()), ("calc", "calc.rs"));
        assert_eq!(first.took.map(Span::micros), Some(12_500));
        let message = first.failure.as_ref().map(|it| it.message.as_str());
        assert_eq!((message, &second.failure), (Some("expected 1, got 2"), &None));
    }

    #[test]
    fn an_error_names_the_column_and_the_rule() {
        let at = r#""at": "2026-09-17T10:16:02Z""#;
        let test = r#"{"name": "a", "outcome": "passed"}"#;
        for (line, error) in [
            ("{".to_owned(), "column 1: EOF while parsing an object"),
            (format!("{{{at}}}"), "column 30: missing field `tests`"),
            (format!("{{{at}, \"tests\": []}}"), "has 0 tests; 1 to 250000 are allowed"),
            (format!("{{{at}, \"shaa\": 1}}"), "column 37: unknown field `shaa`"),
            (format!("{{{at}, \"sha\": \"x\", \"tests\": [{test}]}}"), "invalid sha: "),
            (format!("{{{at}, \"pr\": 0, \"tests\": [{test}]}}"), "invalid pr 0: expected"),
            (
                format!("{{\"at\": \"today\", \"tests\": [{test}]}}"),
                "column 14: invalid time \"today\"",
            ),
            (
                format!(
                    "{{{at}, \"tests\": [{test}, {{\"name\": \" \", \"outcome\": \"passed\"}}]}}"
                ),
                "tests[1].name is empty",
            ),
            (
                format!("{{{at}, \"tests\": [{{\"name\": \"a\", \"outcome\": \"green\"}}]}}"),
                "unknown variant `green`, expected one of `passed`, `failed`, `skipped`",
            ),
            (
                format!(
                    "{{{at}, \"tests\": [{{\"name\": \"a\", \"outcome\": \"passed\", \"duration_ms\": -1}}]}}"
                ),
                "invalid duration_ms -1: expected milliseconds from 0",
            ),
        ] {
            let found = Run::parse(line.as_bytes()).expect_err(&line);
            let rule = found.split_once(": ").map_or("", |(_, rule)| rule);
            assert!(found.starts_with(error) || rule.starts_with(error), "{line}: {found}");
        }
    }
}
