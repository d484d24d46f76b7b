//! What is kept of an upload, from its announcement to its result.

use std::collections::BTreeSet;
use std::fmt;

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

use crate::flaky::{BranchClass, IngestOutcome, Trust, Upload, UploadId, UploadSource};
use crate::ids::{OrgId, PrNumber, RepoId};
use crate::time::Timestamp;
use crate::words::words;

use super::{FoundFile, UploadWarning};

/// The SHA-256 of some bytes, shown in hexadecimal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(transparent))]
pub struct ContentHash(pub [u8; 32]);

impl ContentHash {
    /// The hash of all these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// The hash of several texts; where one ends and the next begins makes a difference.
    pub fn of_parts<'a>(parts: impl IntoIterator<Item = &'a str>) -> Self {
        let mut hash = Sha256::new();
        for part in parts {
            hash.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
            hash.update(part.as_bytes());
        }
        Self(hash.finalize().into())
    }
}

impl fmt::Display for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&HEXLOWER.encode(&self.0))
    }
}

words!(
    /// How far an upload is.
    UploadState {
        /// Announced; its bytes have not come yet.
        Awaited = "awaited",
        /// Its bytes are there and wait to be read.
        Received = "received",
        /// It was read, and its results are stored.
        Read = "read",
        /// It could not be read.
        Failed = "failed",
    }
);

/// What the sender of a report says about it, before anything is read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default))]
pub struct Claims {
    /// The commit, as it was sent.
    pub sha: Option<String>,
    /// The branch, as it was sent.
    pub branch: Option<String>,
    /// The branch's class, where it is known for sure.
    pub class: Option<BranchClass>,
    /// The pull request.
    pub pr: Option<PrNumber>,
    /// The CI job's page.
    pub job_url: Option<String>,
    /// The CI job's name.
    pub job_name: Option<String>,
    /// The check that reports, where the name of the job is not the same in every run.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub check: Option<String>,
    /// The merge commit that was tested, or the commit that the tested one was merged into.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub base: Option<String>,
    /// Who wrote the commit.
    pub author: Option<String>,
    /// Which variant of the run it is; empty when it has none.
    pub variant: String,
    /// When the run ended; only of an imported run.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub at: Option<Timestamp>,
    /// Whether a CI system has proven the branch, the class and the pull request, so that variables of
    /// the job do not count for them.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "is_false"))]
    pub proven: bool,
    /// Ids of tests whose failure was excused because they were quarantined.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "BTreeSet::is_empty"))]
    pub excused: BTreeSet<String>,
}

#[cfg(feature = "serde")]
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_false(value: &bool) -> bool {
    !*value
}

/// One file of an upload.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Part {
    /// Where its bytes are kept.
    pub key: String,
    /// Its name.
    pub name: String,
    /// How many bytes it has.
    pub bytes: u64,
    /// Their hash.
    pub hash: ContentHash,
}

/// The bytes of an upload.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Received {
    /// When they came.
    pub at: Timestamp,
    /// The files; one for a bundle.
    pub parts: Vec<Part>,
}

impl Received {
    /// Bytes in all.
    pub fn bytes(&self) -> u64 {
        self.parts.iter().fold(0, |sum, part| sum.saturating_add(part.bytes))
    }
}

/// The record of an upload.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct UploadRecord {
    /// Its id.
    pub id: UploadId,
    /// Whose it is.
    pub org: OrgId,
    /// The repository.
    pub repo: RepoId,
    /// How it comes.
    pub source: UploadSource,
    /// Who vouches for it.
    pub trust: Trust,
    /// Its state.
    pub state: UploadState,
    /// When it was announced.
    pub created_at: Timestamp,
    /// What its sender says.
    pub claims: Claims,
    /// Its bytes, once they are there.
    pub received: Option<Received>,
    /// What its files say about the run as a whole, once they were read.
    pub upload: Option<Upload>,
    /// The outcome of storing its results.
    pub taken_in: Option<IngestOutcome>,
    /// The upload that reported the same before; then this one was not counted.
    pub repeats: Option<UploadId>,
    /// Why it could not be read.
    pub problem: Option<String>,
    /// Its files as they were read, those with a problem first; at most 100.
    pub files: Vec<FoundFile>,
    /// Why it looks bad.
    pub warnings: Vec<UploadWarning>,
}

impl UploadRecord {
    /// An upload that waits for its bytes.
    pub fn awaited(
        id: UploadId,
        (org, repo): (OrgId, RepoId),
        (source, trust): (UploadSource, Trust),
        claims: Claims,
        created_at: Timestamp,
    ) -> Self {
        Self {
            id,
            org,
            repo,
            source,
            trust,
            state: UploadState::Awaited,
            created_at,
            claims,
            received: None,
            upload: None,
            taken_in: None,
            repeats: None,
            problem: None,
            files: Vec::new(),
            warnings: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_texts_are_divided_makes_a_difference() {
        let hash = |parts: &[&str]| ContentHash::of_parts(parts.iter().copied()).to_string();
        assert_ne!(hash(&["ab", "c"]), hash(&["a", "bc"]));
        assert_ne!(hash(&["a"]), hash(&["a", ""]));
        assert_eq!(hash(&["a", "b"]).len(), 64);
    }
}
