//! The results of an upload, committed as a whole and collected in parts.

use std::collections::BTreeMap;

use async_trait::async_trait;

use crate::flaky::{IngestOutcome, Intake, Presence, TestId, Upload, Windows};
use crate::ports::{CommitError, StoreError, Version};
use crate::time::Timestamp;

use super::flaky_store::{FlakyCommit, RepoRef, TestStep};

/// An upload whose results are committed.
#[derive(Clone, Copy, Debug)]
pub struct NewIntake<'a> {
    /// The repository.
    pub repo: RepoRef,
    /// The version that the results were judged on.
    pub expected: Version,
    /// The upload.
    pub upload: &'a Upload,
    /// Its outcome.
    pub taken_in: IngestOutcome,
    /// As [`FlakyCommit::at`].
    pub at: Timestamp,
}

/// The results of some tests of an upload, and what follows for these tests.
#[derive(Clone, Copy, Debug)]
pub struct IntakePart<'a> {
    /// The results.
    pub intake: &'a Intake,
    /// As [`FlakyCommit::steps`].
    pub steps: &'a [TestStep],
    /// As [`FlakyCommit::windows`].
    pub windows: &'a BTreeMap<TestId, Windows>,
    /// As [`FlakyCommit::presences`].
    pub presences: &'a BTreeMap<TestId, Option<Presence>>,
}

/// A step with the results of an upload. They come in parts, so that even the largest upload needs
/// little memory, and are kept in a compact form until the commit, which writes everything or
/// nothing. Dropped before, it has written nothing.
#[async_trait]
pub trait FlakyDraft: Send {
    /// Adds the results of tests that no earlier part has.
    async fn add(&mut self, part: &IntakePart<'_>) -> Result<(), StoreError>;

    /// Writes all parts and a step, as [`FlakyStore::commit`](super::FlakyStore::commit) does. The
    /// step is of the same repository and version.
    async fn commit(self: Box<Self>, commit: &FlakyCommit<'_>) -> Result<Version, CommitError>;
}
