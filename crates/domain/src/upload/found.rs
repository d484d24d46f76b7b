//! What a reader finds in an upload's files, before it is judged.

use std::collections::{BTreeMap, BTreeSet};

use crate::flaky::{ReportedFailure, RunOutcome};
use crate::time::{Span, Timestamp};

use super::ContentHash;

/// What a bundle says about itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BundleMeta {
    /// The commit.
    pub sha: String,
    /// The branch as git names it.
    pub branch: String,
    /// When the commit was made.
    pub committed_at: Option<Timestamp>,
    /// Who wrote it.
    pub author: String,
    /// When the bundle was made.
    pub uploaded_at: Option<Timestamp>,
    /// Whether the sender has no clone, so that its explicit values take precedence over its
    /// environment.
    pub uncloned: bool,
    /// The variant.
    pub variant: String,
    /// Variables of the CI system and of the uploader.
    pub variables: BTreeMap<String, String>,
    /// Ids of tests whose failure was excused, as in the uploader's request.
    pub excused: BTreeSet<String>,
}

/// A file of an upload as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct FoundFile {
    /// Its name.
    pub name: String,
    /// Attempts of tests in it.
    pub runs: u32,
    /// Why it could not be read completely.
    pub problem: Option<String>,
    /// The line of the problem, from 1.
    pub line: Option<u64>,
    /// The column of the problem in bytes, from 1.
    pub column: Option<u64>,
}

/// An attempt of a test as a file reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundRun {
    /// The name of the outermost suite.
    pub parent: String,
    /// The class.
    pub classname: String,
    /// The file of the test.
    pub file: String,
    /// The name of the case.
    pub name: String,
    /// The `id` attribute of the case.
    pub info: String,
    /// Other files that the report names for it.
    pub other_files: Vec<String>,
    /// Its outcome.
    pub outcome: RunOutcome,
    /// When it started, as the report says.
    pub started_at: Option<Timestamp>,
    /// How long it took.
    pub took: Option<Span>,
    /// Why it failed.
    pub failure: Option<ReportedFailure>,
    /// Its code owners.
    pub owners: Vec<String>,
    /// Whether its failure was excused.
    pub quarantined: bool,
    /// Whether the report has another case element before it that says it is the same test.
    pub told_again: bool,
    /// Whether the report says both that it was skipped and that it failed; the first one counts.
    pub contradicted: bool,
}

/// All that an upload's files report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundReport {
    /// What a bundle says about itself; `None` for plain files.
    pub meta: Option<BundleMeta>,
    /// The attempts, in the order of the files.
    pub runs: Vec<FoundRun>,
    /// The files.
    pub files: Vec<FoundFile>,
    /// A hash of the files' contents. It does not change when the same files are packed again.
    pub digest: ContentHash,
}
