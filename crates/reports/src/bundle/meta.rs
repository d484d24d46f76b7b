//! `meta.json`: the uploader's metadata about itself, the commit and the files.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Deserializer};
use thiserror::Error;

use super::bounded;
use crate::identity::RepoName;

/// Sets of files, and files of one set: as many as an archive may have members.
const FILES: usize = 10_000;
/// Tests in each list: as many as an upload may have runs.
const TESTS: usize = 250_000;
/// Variables. The uploader sends 263 at most.
const VARIABLES: usize = 10_000;
/// Owners of one file.
const OWNERS: usize = 1_000;

/// Which fields a `meta.json` may have, by the uploader's version that brought them. A later
/// generation has all fields of those before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Generation {
    /// What every version writes.
    First,
    /// With `num_files` and `num_tests`.
    V0_5_34,
    /// With `command_line`.
    V0_6_2,
    /// With `variant`.
    V0_7_6,
    /// With `internal_bundled_file`.
    V0_7_7,
    /// With `failed_tests`.
    V0_7_8,
}

/// The content of `meta.json`. Fields that are not known are ignored; a field of a later generation
/// is absent in an earlier one, and may be null in its own.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Meta {
    /// The format's version, `1`.
    pub version: String,
    /// The uploader's version.
    #[serde(default)]
    pub cli_version: String,
    /// The organization's slug.
    pub org: String,
    /// The repository and the commit.
    pub repo: Repo,
    /// The upload's id.
    pub bundle_upload_id: String,
    /// The upload's second id.
    #[serde(default)]
    pub bundle_upload_id_v2: Option<String>,
    /// Files by the patterns that found them.
    #[serde(deserialize_with = "bounded::list::<_, _, FILES>")]
    pub file_sets: Vec<FileSet>,
    /// Variables of the CI system.
    #[serde(default, deserialize_with = "bounded::texts::<_, VARIABLES>")]
    pub envs: BTreeMap<String, String>,
    /// When the upload was made, in seconds since 1970 by the uploader's clock.
    pub upload_time_epoch: i64,
    /// The command that ran the tests, when the uploader ran it.
    #[serde(default)]
    pub test_command: Option<String>,
    /// The operating system, such as `linux`.
    #[serde(default)]
    pub os_info: Option<String>,
    /// Tests whose failure was excused in this run.
    #[serde(default, deserialize_with = "bounded::list::<_, _, TESTS>")]
    pub quarantined_tests: Vec<MetaTest>,
    /// Where the code owners are.
    #[serde(default)]
    pub codeowners: Option<Codeowners>,
    /// Whether there is no clone of the repository.
    #[serde(default)]
    pub use_uncloned_repo: Option<bool>,
    /// Files in the bundle.
    #[serde(default)]
    pub num_files: Option<u64>,
    /// Test cases in the bundle.
    #[serde(default)]
    pub num_tests: Option<u64>,
    /// The uploader's command line without its token.
    #[serde(default)]
    pub command_line: Option<String>,
    /// The uploader's own variables without its token.
    #[serde(default, deserialize_with = "bounded::some_texts::<_, VARIABLES>")]
    pub trunk_envs: Option<BTreeMap<String, String>>,
    /// The variant of the tests; part of their identity. Empty and absent are the same.
    #[serde(default)]
    pub variant: Option<String>,
    /// The file that `internal.bin` is.
    #[serde(default)]
    pub internal_bundled_file: Option<BundledFile>,
    /// Failed tests that were not excused; absent before generation 0.7.8.
    #[serde(default, deserialize_with = "bounded::some_list::<_, _, TESTS>")]
    pub failed_tests: Option<Vec<MetaTest>>,
    /// The test collection's short id.
    #[serde(default)]
    pub test_collection_short_id: Option<String>,
    /// The id of this upload in the collection.
    #[serde(default)]
    pub test_collection_bundle_meta_id: Option<String>,
    /// When that was made.
    #[serde(default)]
    pub test_collection_bundle_meta_created_at: Option<String>,
}

impl Meta {
    /// The newest generation of which this has a field.
    pub fn generation(&self) -> Generation {
        let newest = [
            (self.failed_tests.is_some(), Generation::V0_7_8),
            (self.internal_bundled_file.is_some(), Generation::V0_7_7),
            (self.variant.is_some(), Generation::V0_7_6),
            (self.command_line.is_some(), Generation::V0_6_2),
            (self.num_files.or(self.num_tests).is_some(), Generation::V0_5_34),
        ];
        newest.iter().find(|(has, _)| *has).map_or(Generation::First, |(_, it)| *it)
    }

    pub(super) fn parse(bytes: &[u8]) -> Result<Self, InvalidMeta> {
        let json = &mut serde_json::Deserializer::from_slice(bytes);
        let read: Result<Self, _> = serde_path_to_error::deserialize(&mut *json);
        let meta = read.map_err(|error| InvalidMeta {
            path: crate::shortened(&error.path().to_string()),
            rule: crate::shortened(&error.inner().to_string()),
        })?;
        json.end().map_err(|error| InvalidMeta { path: ".".into(), rule: error.to_string() })?;
        Ok(meta)
    }
}

/// Why `meta.json` cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("field {path}: {rule}")]
pub struct InvalidMeta {
    /// The field, such as `repo.repo.host`, or `.` for the whole; cut to 200 characters.
    pub path: String,
    /// The problem; cut to 200 characters.
    pub rule: String,
}

/// The commit that was tested.
#[derive(Clone, PartialEq, Eq, Deserialize)]
pub struct Repo {
    /// The repository's place.
    pub repo: RepoName,
    /// The folder of the clone on the uploader's machine.
    #[serde(default)]
    pub repo_root: String,
    /// The remote's URL. A user and password in it are removed on reading.
    #[serde(default, deserialize_with = "without_user")]
    pub repo_url: String,
    /// The commit.
    pub repo_head_sha: String,
    /// Its first characters.
    #[serde(default)]
    pub repo_head_sha_short: Option<String>,
    /// The branch as a full ref, or as the user gave it.
    #[serde(default)]
    pub repo_head_branch: String,
    /// When the commit was made, in seconds since 1970.
    #[serde(default)]
    pub repo_head_commit_epoch: i64,
    /// The commit message's first line.
    #[serde(default)]
    pub repo_head_commit_message: String,
    /// The author's name.
    #[serde(default)]
    pub repo_head_author_name: String,
    /// The author's mail address.
    #[serde(default)]
    pub repo_head_author_email: String,
    /// Whether there is no clone of the repository.
    #[serde(default)]
    pub use_uncloned_repo: Option<bool>,
}

/// Omits the author, who does not belong in a log.
impl fmt::Debug for Repo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Repo")
            .field("repo", &self.repo)
            .field("repo_head_sha", &self.repo_head_sha)
            .field("repo_head_branch", &self.repo_head_branch)
            .finish_non_exhaustive()
    }
}

fn without_user<'de, D: Deserializer<'de>>(input: D) -> Result<String, D::Error> {
    let url = String::deserialize(input)?;
    let Some((scheme, rest)) = url.split_once("://") else { return Ok(url) };
    let authority = rest.split('/').next().unwrap_or_default();
    Ok(match authority.rsplit_once('@') {
        Some((user, _)) => {
            format!("{scheme}://{}", rest.get(user.len() + 1..).unwrap_or_default())
        }
        None => url,
    })
}

/// Files that one pattern found.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct FileSet {
    /// The kind of files.
    pub file_set_type: FileSetType,
    /// The files.
    #[serde(default, deserialize_with = "bounded::list::<_, _, FILES>")]
    pub files: Vec<BundledFile>,
    /// The pattern.
    #[serde(default)]
    pub glob: String,
    /// Bazel's result of all of them: `Passed`, `Failed` or `Flaky`.
    #[serde(default)]
    pub resolved_status: Option<String>,
    /// Bazel's start time, in milliseconds since 1970.
    #[serde(default)]
    pub resolved_start_time_epoch_ms: Option<i64>,
    /// Bazel's end time, in milliseconds since 1970.
    #[serde(default)]
    pub resolved_end_time_epoch_ms: Option<i64>,
    /// The Bazel target, in older generations.
    #[serde(default)]
    pub resolved_label: Option<String>,
}

/// The kind of a set's files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
pub enum FileSetType {
    /// JUnit XML.
    Junit,
    /// The uploader's protobuf.
    Internal,
    /// Something that only later uploaders know.
    #[serde(other)]
    Other,
}

/// A file in the bundle.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct BundledFile {
    /// Where it was on the uploader's machine.
    #[serde(default)]
    pub original_path: String,
    /// The same from the repository's root.
    #[serde(default)]
    pub original_path_rel: Option<String>,
    /// Its name in the bundle, such as `junit/0`.
    pub path: String,
    /// When it was written, in nanoseconds since 1970.
    #[serde(default)]
    pub last_modified_epoch_ns: Option<u128>,
    /// Its owners by CODEOWNERS.
    #[serde(default, deserialize_with = "bounded::list::<_, _, OWNERS>")]
    pub owners: Vec<String>,
}

/// Where the code owners are.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Codeowners {
    /// The file on the uploader's machine.
    pub path: String,
}

/// A test as the uploader knows it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct MetaTest {
    /// The test's name.
    pub name: String,
    /// The outermost suite's name.
    #[serde(rename = "parentName", alias = "parent_name", default)]
    pub parent_name: String,
    /// The class.
    #[serde(rename = "className", alias = "class_name", default)]
    pub class_name: Option<String>,
    /// The file.
    #[serde(default)]
    pub file: Option<String>,
    /// The id that the uploader used in its request.
    pub id: String,
    /// When it ran, in milliseconds since 1970.
    #[serde(default)]
    pub timestamp_millis: Option<i64>,
    /// Whether its failure was excused.
    #[serde(default)]
    pub is_quarantined: bool,
    /// The message of the failure.
    #[serde(default)]
    pub failure_message: Option<String>,
    /// The variant.
    #[serde(default)]
    pub variant: Option<String>,
}
