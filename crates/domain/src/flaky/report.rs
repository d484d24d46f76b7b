//! Results as they come in: an upload and the runs of tests that it reports.

use std::fmt;

use uuid::Uuid;

use crate::ids::{OrgId, PrNumber, RepoId, Sha};
use crate::time::{Span, Timestamp};
use crate::words::words;

use super::{Admission, BranchClass, Origin, SameCode, TestKey, Trust};

/// The id of an upload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(transparent))]
pub struct UploadId(pub Uuid);

impl fmt::Display for UploadId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

words!(
    /// How results came in.
    UploadSource {
        /// A bundle of the public uploader.
        Bundle = "bundle",
        /// JUnit XML, posted as it is.
        JUnit = "junit",
        /// Reports that a check of the plain git host wrote.
        Checks = "checks",
        /// A run of the past: a bundle, JUnit XML or a line of NDJSON.
        Import = "import",
    }
);

words!(
    /// How one attempt of a test ended.
    RunOutcome {
        /// It passed.
        Passed = "passed",
        /// It failed, or ended with an error.
        Failed = "failed",
        /// It did not run.
        Skipped = "skipped",
    }
);

/// The metadata of an upload before its results are read.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Upload {
    /// Its id; the same upload again has the same one.
    pub id: UploadId,
    /// Whose it is.
    pub org: OrgId,
    /// The repository.
    pub repo: RepoId,
    /// How it came.
    pub source: UploadSource,
    /// Who vouches for it.
    pub trust: Trust,
    /// When it was received; of an imported run, when it ended.
    pub received_at: Timestamp,
    /// The commit that was tested.
    pub sha: Option<Sha>,
    /// When that commit was made.
    pub committed_at: Option<Timestamp>,
    /// The branch, without `refs/heads/`; empty when none is known.
    pub branch: String,
    /// The branch's class by the repository's rules when it came in.
    pub class: BranchClass,
    /// The pull request.
    pub pr: Option<PrNumber>,
    /// The CI job's page.
    pub job_url: Option<String>,
    /// The CI job's name.
    pub job_name: Option<String>,
    /// The job and the base that its results are compared by.
    #[cfg_attr(feature = "serde", serde(default))]
    pub origin: Origin,
    /// Who wrote the commit.
    pub author: Option<String>,
    /// Which variant of the run it is; empty when it has none.
    pub variant: String,
}

impl Upload {
    /// The time of its commit, of an upload that shows which tests stable branches contain: one with a
    /// token, of a stable branch. Its receipt where the time of the commit is unknown.
    pub fn stable_at(&self) -> Option<Timestamp> {
        let is_stable = self.class == BranchClass::Stable && self.trust == Trust::Token;
        is_stable.then(|| self.committed_at.unwrap_or(self.received_at))
    }

    /// When its tests were seen, to the hour: the next upload need not change all of them.
    pub fn seen_at(&self) -> Timestamp {
        self.received_at.floor(Span::hours(1))
    }

    /// The code that was tested.
    pub fn code(&self) -> SameCode {
        let upload = || SameCode::Upload(self.id.to_string());
        self.sha.clone().map_or_else(upload, SameCode::Commit)
    }
}

/// Why a test failed, as its report says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ReportedFailure {
    /// The message, at most 8,000 bytes.
    pub message: String,
    /// The text that follows, usually a trace, at most 8,000 bytes.
    pub text: String,
}

/// One attempt of one test.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ReportedRun {
    /// The test.
    pub key: TestKey,
    /// Other files that the report names for it, for ids that clients make from them.
    pub other_files: Vec<String>,
    /// Its outcome.
    pub outcome: RunOutcome,
    /// Which attempt it was within the upload, from 0.
    pub attempt: u32,
    /// When it started, if the report has a plausible time; otherwise the time of the upload
    /// counts.
    pub started_at: Option<Timestamp>,
    /// How long it took.
    pub took: Option<Span>,
    /// Why it failed.
    pub failure: Option<ReportedFailure>,
    /// Its code owners as the uploader found them.
    pub owners: Vec<String>,
    /// Whether the uploader excused its failure because it was quarantined.
    pub quarantined: bool,
}

/// The outcome of an upload's results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct IngestOutcome {
    /// Distinct tests that ran.
    pub tests: u32,
    /// How many tests failed, after retries.
    pub failed: u32,
    /// Attempts in all, skipped ones among them.
    pub runs: u32,
    /// Attempts that are not kept, because the id of their test is that of another one.
    #[cfg_attr(feature = "serde", serde(default))]
    pub ignored: u32,
    /// Whether it feeds monitors and rates.
    pub admission: Admission,
    /// Whether it was stored before; then nothing was counted again.
    pub repeated: bool,
}
