//! Documents: domain values as JSON objects, each with its format version.
//!
//! On both databases, the order of keys and the notation of numbers are not significant, and the
//! character U+0000, which `jsonb` cannot store, is written as U+FFFD.

use std::io;

use diesel::deserialize::FromSqlRow;
use diesel::expression::AsExpression;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::ser::{CharEscape, CompactFormatter, Formatter, Serializer};
use signalbox_domain::audit::AuditRecord;
use signalbox_domain::flaky;
use signalbox_domain::ids::RepoName;
use signalbox_domain::queue::{self, Effect, Entry, Header, ReportedTargets, TestRun};
use signalbox_domain::time::Timestamp;
use signalbox_domain::upload::UploadRecord;
use signalbox_domain::webhook::{Attempt, EndpointSettings, Secret};
use thiserror::Error;

use crate::error::DbError;

#[cfg(test)]
mod samples;
mod test;

pub(crate) use test::TestDocument;

/// A type that is stored as a document.
pub(crate) trait Document: Serialize + DeserializeOwned {
    /// The kind of document, for errors.
    const KIND: &'static str;
    /// The version that is written, from 1. An incompatible change gets the next number and a
    /// reader for the previous version.
    const VERSION: u32;
}

/// A serialized document.
#[derive(AsExpression, Clone, Debug, PartialEq, Eq, Serialize)]
#[diesel(sql_type = crate::sql_types::Document)]
#[serde(transparent)]
pub(crate) struct Json(String);

impl Json {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

/// A deserialized document.
#[derive(Debug, FromSqlRow)]
pub(crate) struct Kept<T>(pub(crate) T);

/// Unwraps the documents.
pub(crate) fn values<T>(kept: Vec<Kept<T>>) -> Vec<T> {
    kept.into_iter().map(|Kept(value)| value).collect()
}

/// Why a document could not be read.
#[derive(Debug, Error)]
pub(crate) enum Unreadable {
    /// A newer version wrote it.
    #[error(
        "{kind} document has version {found}, newer than {known}: \
        it was written by a newer version of Signalbox"
    )]
    Newer { kind: &'static str, found: u32, known: u32 },
    /// It is another kind of document, or damaged.
    #[error("{kind} document: {source}")]
    Damaged { kind: &'static str, source: serde_json::Error },
}

impl Unreadable {
    /// The kind of document.
    pub(crate) const fn kind(&self) -> &'static str {
        match self {
            Self::Newer { kind, .. } | Self::Damaged { kind, .. } => kind,
        }
    }
}

/// Compact JSON without U+0000.
struct WithoutNul;

impl Formatter for WithoutNul {
    fn write_char_escape<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        escape: CharEscape,
    ) -> io::Result<()> {
        match escape {
            CharEscape::AsciiControl(0) => writer.write_all(b"\\ufffd"),
            escape => CompactFormatter.write_char_escape(writer, escape),
        }
    }
}

/// Serializes a value as a document.
pub(crate) fn encode<T: Document>(value: &T) -> Result<Json, DbError> {
    let failed = |error: Box<dyn std::error::Error + Send + Sync>| DbError::corrupt(T::KIND, error);
    let mut object = Vec::new();
    let mut serializer = Serializer::with_formatter(&mut object, WithoutNul);
    value.serialize(&mut serializer).map_err(|error| failed(error.into()))?;
    let object = String::from_utf8(object).map_err(|error| failed(error.into()))?;
    let fields = object.strip_prefix('{').ok_or_else(|| failed("not a JSON object".into()))?;
    let separator = if fields == "}" { "" } else { "," };
    Ok(Json(format!("{{\"version\":{}{separator}{fields}", T::VERSION)))
}

/// Deserializes a document.
pub(crate) fn decode<T: Document>(text: &[u8]) -> Result<T, Unreadable> {
    let damaged = |source| Unreadable::Damaged { kind: T::KIND, source };
    let version = match plain_version(text) {
        Some(version) => version,
        None => serde_json::from_slice::<Versioned>(text).map_err(damaged)?.version,
    };
    if version > T::VERSION {
        return Err(Unreadable::Newer { kind: T::KIND, found: version, known: T::VERSION });
    }
    serde_json::from_slice(text).map_err(damaged)
}

/// The part of a document that is the same in every version.
#[derive(Deserialize)]
struct Versioned {
    version: u32,
}

/// The version of a document, found without parsing it, which takes as long as reading the rest:
/// `None` if `"version"` is not in it exactly once, followed by a number. Within a string, its quotes
/// would be escaped.
fn plain_version(text: &[u8]) -> Option<u32> {
    const KEY: &[u8] = b"\"version\"";
    let mut places = memchr::memmem::find_iter(text, KEY);
    let at = places.next().filter(|_| places.next().is_none())?;
    let value = text.get(at + KEY.len()..)?.trim_ascii_start().strip_prefix(b":")?;
    let value = value.trim_ascii_start();
    let digits = value.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(value.len());
    std::str::from_utf8(value.get(..digits)?).ok()?.parse().ok()
}

/// All kinds of documents, with the version that is written.
macro_rules! documents {
    ($($value:ty: $kind:literal version $version:literal),+ $(,)?) => {
        $(
            impl Document for $value {
                const KIND: &'static str = $kind;
                const VERSION: u32 = $version;
            }
        )+

        /// Each kind with its version, and a function that reads and rewrites its documents.
        #[cfg(test)]
        const KINDS: &[(&str, u32, samples::Again)] =
            &[$(($kind, $version, samples::again::<$value>)),+];
    };
}

documents! {
    Header: "queue" version 1,
    Entry: "entry" version 1,
    TestRun: "test run" version 1,
    ReportedTargets: "impacted targets" version 1,
    queue::JournalRecord: "queue journal" version 1,
    MoveDocument: "move" version 1,
    EffectDocument: "effect" version 1,
    AuditRecord: "audit record" version 1,
    TokenRepos: "repositories of a token" version 1,
    UploadRecord: "upload" version 1,
    flaky::Settings: "flaky settings" version 1,
    SettingsChange: "change of flaky settings" version 1,
    TestDocument: "test" version 3,
    flaky::Incident: "incident" version 1,
    flaky::FailureHistory: "failures of a repository" version 1,
    flaky::Windows: "windows of a test" version 3,
    flaky::Presence: "presence of a test" version 1,
    Owners: "owners" version 1,
    flaky::JournalRecord: "test journal" version 1,
    flaky::RunRecord: "result" version 1,
    flaky::Upload: "uploaded results" version 1,
    flaky::IngestOutcome: "counts of an upload" version 1,
    CiRunDocument: "CI run" version 1,
    EndpointDocument: "webhook endpoint" version 1,
    Attempt: "webhook attempt" version 1,
}

/// A move of an entry.
#[derive(Serialize, Deserialize)]
pub(crate) struct MoveDocument {
    pub(crate) decision: queue::Decision,
}

/// An effect in the outbox.
#[derive(Serialize, Deserialize)]
pub(crate) struct EffectDocument {
    pub(crate) effect: Effect,
}

/// The repositories that a token is limited to; empty for all of the organization.
#[derive(Serialize, Deserialize)]
pub(crate) struct TokenRepos {
    pub(crate) repos: Vec<RepoName>,
}

/// New settings and who set them.
#[derive(Serialize, Deserialize)]
pub(crate) struct SettingsChange {
    pub(crate) settings: flaky::Settings,
    pub(crate) by: flaky::Actor,
}

/// The owners of a test, from the last report that named any.
#[derive(Serialize, Deserialize)]
pub(crate) struct Owners {
    pub(crate) owners: Vec<String>,
}

/// The data that a CI run sent about itself.
#[derive(Serialize, Deserialize)]
pub(crate) struct CiRunDocument {
    pub(crate) sent: serde_json::Value,
}

/// The parts of an endpoint that no query filters by.
#[derive(Serialize, Deserialize)]
pub(crate) struct EndpointDocument {
    pub(crate) settings: EndpointSettings,
    pub(crate) secrets: Vec<Secret>,
    pub(crate) updated_at: Timestamp,
}

/// Converts a count or number from a signed column.
pub(crate) fn number<T: TryFrom<i64>>(what: &'static str, value: i64) -> Result<T, DbError> {
    T::try_from(value).map_err(|_| DbError::corrupt(what, format!("{value} is out of range")))
}

/// Converts a number for a signed column, saturating.
pub(crate) fn column(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
