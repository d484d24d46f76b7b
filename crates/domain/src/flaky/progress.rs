//! How far a repository was judged, and what was imported into it.

use crate::time::Timestamp;

use super::{Upload, UploadSource};

/// The public name of the event that an import is finished.
pub const IMPORT_FINISHED: &str = "test_import.finished";

/// Results of the past that were imported since the last summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Imported {
    /// Uploads: runs of jobs.
    pub uploads: u32,
    /// Attempts of tests.
    pub runs: u64,
    /// When the first of them ended.
    pub from: Timestamp,
    /// When the last of them ended.
    pub until: Timestamp,
}

/// How far a repository was judged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// The latest time as of which results were judged; `None` before the first.
    pub judged_at: Option<Timestamp>,
    /// What was imported since the last summary.
    pub imported: Option<Imported>,
}

impl Progress {
    /// The time as of which an upload is judged: now, and of an imported run its own time. Time
    /// never runs backwards: a run that is older than what was judged is judged as of that.
    pub fn as_of(&self, upload: &Upload, now: Timestamp) -> Timestamp {
        if upload.source == UploadSource::Import {
            upload.received_at.max(self.judged_at.unwrap_or(upload.received_at)).min(now)
        } else {
            now
        }
    }

    /// The progress after an upload with so many attempts was judged as of a time.
    #[must_use]
    pub fn with(&self, upload: &Upload, runs: u32, as_of: Timestamp) -> Self {
        let judged_at = self.judged_at.max(Some(as_of));
        if upload.source != UploadSource::Import {
            return Self { judged_at, ..*self };
        }
        let at = upload.received_at;
        let before = self.imported.unwrap_or(Imported { uploads: 0, runs: 0, from: at, until: at });
        let imported = Imported {
            uploads: before.uploads.saturating_add(1),
            runs: before.runs.saturating_add(u64::from(runs)),
            from: before.from.min(at),
            until: before.until.max(at),
        };
        Self { judged_at, imported: Some(imported) }
    }
}

/// What there is after an import.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImportSummary {
    /// What was imported since the last summary; `None` when nothing was.
    pub imported: Option<Imported>,
    /// Flaky tests of the repository.
    pub flaky: u64,
    /// Broken tests of the repository.
    pub broken: u64,
}
