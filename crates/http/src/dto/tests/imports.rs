//! Imports on the wire.

use serde::Serialize;
use signalbox_domain::flaky::{ImportSummary, Imported};
use utoipa::ToSchema;

/// Results of the past that were imported.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ImportedResultsReply {
    /// Runs of jobs.
    uploads: u32,
    /// Attempts of tests.
    test_runs: u64,
    /// When the first run ended, RFC 3339.
    from: String,
    /// When the last run ended, RFC 3339.
    until: String,
}

impl ImportedResultsReply {
    fn of(imported: Imported) -> Self {
        let Imported { uploads, runs, from, until } = imported;
        Self { uploads, test_runs: runs, from: from.to_string(), until: until.to_string() }
    }
}

/// A finished import.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({
    "imported": {
        "uploads": 840, "testRuns": 840, "from": "2026-09-17T10:16:02.000Z",
        "until": "2026-10-31T17:02:41.000Z"
    },
    "flaky": 12, "broken": 1
}))]
pub(crate) struct FinishedImportReply {
    /// What was imported since the last summary; `null` when nothing was, and then no event is sent.
    imported: Option<ImportedResultsReply>,
    /// The flaky tests of the repository.
    flaky: u64,
    /// The broken tests of the repository.
    broken: u64,
}

impl FinishedImportReply {
    pub(crate) fn of(summary: &ImportSummary) -> Self {
        Self {
            imported: summary.imported.map(ImportedResultsReply::of),
            flaky: summary.flaky,
            broken: summary.broken,
        }
    }
}
