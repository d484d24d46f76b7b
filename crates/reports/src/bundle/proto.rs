//! The messages of `internal.bin`, package `test_context.test_run`. An absent text is empty.

use std::time::Duration;

use prost::{Enumeration, Message};
use time::OffsetDateTime;

use crate::identity::TestKey;

/// One attempt at one test.
#[derive(Clone, PartialEq, Message)]
pub struct TestCaseRun {
    /// The `id` attribute of the XML. The test's id is for the server to compute.
    #[prost(string, tag = "1")]
    pub id: String,
    /// The test's name.
    #[prost(string, tag = "2")]
    pub name: String,
    /// The class.
    #[prost(string, tag = "3")]
    pub classname: String,
    /// The file.
    #[prost(string, tag = "4")]
    pub file: String,
    /// The outermost suite's name.
    #[prost(string, tag = "5")]
    pub parent_name: String,
    /// The line, as older writers put it.
    #[prost(int32, tag = "6")]
    pub old_line: i32,
    /// Its outcome.
    #[prost(enumeration = "RunStatus", tag = "7")]
    pub status: i32,
    /// The attempt's number, as older writers put it.
    #[prost(int32, tag = "8")]
    pub old_attempt: i32,
    /// When it started.
    #[prost(message, optional, tag = "9")]
    pub started_at: Option<Timestamp>,
    /// When it ended.
    #[prost(message, optional, tag = "10")]
    pub finished_at: Option<Timestamp>,
    /// Its message, as older writers send it.
    #[prost(string, tag = "11")]
    pub old_message: String,
    /// Whether its failure was excused.
    #[prost(bool, tag = "12")]
    pub is_quarantined: bool,
    /// The owners of its file.
    #[prost(message, repeated, tag = "13")]
    pub codeowners: Vec<CodeOwner>,
    /// The attempt's number.
    #[prost(message, optional, tag = "14")]
    pub attempt_index: Option<AttemptNumber>,
    /// The line.
    #[prost(message, optional, tag = "15")]
    pub line_number: Option<LineNumber>,
    /// Its message.
    #[prost(message, optional, tag = "16")]
    pub test_output: Option<TestOutput>,
    /// Its run under Bazel.
    #[prost(message, optional, tag = "17")]
    pub bazel: Option<BazelRun>,
}

impl TestCaseRun {
    /// The identity of the test, in an organization and a repository (`host/owner/name`), with the
    /// variant or an empty text.
    pub fn key<'k>(&'k self, org: &'k str, repo: &'k str, variant: &'k str) -> TestKey<'k> {
        TestKey {
            org,
            repo,
            file: &self.file,
            classname: &self.classname,
            parent: &self.parent_name,
            name: &self.name,
            info: &self.id,
            variant,
        }
    }

    /// When it started, in UTC. A start at 1970 itself stands for an unknown one.
    pub fn started(&self) -> Option<OffsetDateTime> {
        let nanos = self.started_at?.nanoseconds();
        (nanos != 0).then(|| OffsetDateTime::from_unix_timestamp_nanos(nanos).ok()).flatten()
    }

    /// How long it took. None without both times and for an end before the start.
    pub fn duration(&self) -> Option<Duration> {
        let nanos = self.finished_at?.nanoseconds() - self.started_at?.nanoseconds();
        let nanos = u128::try_from(nanos).ok()?;
        let seconds = u64::try_from(nanos / 1_000_000_000).ok()?;
        Some(Duration::new(seconds, u32::try_from(nanos % 1_000_000_000).ok()?))
    }
}

/// How a run ended. Errors are failures here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Enumeration)]
#[repr(i32)]
pub enum RunStatus {
    /// Unspecified.
    Unspecified = 0,
    /// It passed.
    Success = 1,
    /// It failed or went wrong.
    Failure = 2,
    /// It did not run.
    Skipped = 3,
}

/// A moment. `nanos` can be more than a second: writers add without a carry.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Message)]
pub struct Timestamp {
    /// Seconds since 1970.
    #[prost(int64, tag = "1")]
    pub seconds: i64,
    /// Nanoseconds on top.
    #[prost(int32, tag = "2")]
    pub nanos: i32,
}

impl Timestamp {
    fn nanoseconds(self) -> i128 {
        i128::from(self.seconds) * 1_000_000_000 + i128::from(self.nanos)
    }
}

/// An owner of a file.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct CodeOwner {
    /// The owner's name.
    #[prost(string, tag = "1")]
    pub name: String,
}

/// An attempt's number.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Message)]
pub struct AttemptNumber {
    /// From 0 under Bazel.
    #[prost(int32, tag = "1")]
    pub number: i32,
}

/// A line of a file.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Message)]
pub struct LineNumber {
    /// From 1.
    #[prost(int32, tag = "1")]
    pub number: i32,
}

/// The output of a test.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct TestOutput {
    /// The text of the failure, the error or the skip.
    #[prost(string, tag = "1")]
    pub text: String,
    /// Its message.
    #[prost(string, tag = "2")]
    pub message: String,
    /// The standard output.
    #[prost(string, tag = "3")]
    pub system_out: String,
    /// The standard error.
    #[prost(string, tag = "4")]
    pub system_err: String,
}

/// A run under Bazel.
#[derive(Clone, PartialEq, Message)]
pub struct BazelRun {
    /// The target.
    #[prost(string, tag = "1")]
    pub label: String,
    /// The attempt's number, from 0.
    #[prost(int32, tag = "2")]
    pub attempt_number: i32,
    /// When it started.
    #[prost(message, optional, tag = "3")]
    pub started_at: Option<Timestamp>,
    /// When it ended.
    #[prost(message, optional, tag = "4")]
    pub finished_at: Option<Timestamp>,
}

/// A target of Bazel.
#[derive(Clone, PartialEq, Message)]
pub struct BazelBuild {
    /// The target.
    #[prost(string, tag = "1")]
    pub label: String,
    /// Its outcome.
    #[prost(enumeration = "BuildStatus", tag = "2")]
    pub result: i32,
    /// The number of its last attempt.
    #[prost(message, optional, tag = "3")]
    pub max_attempt_number: Option<AttemptNumber>,
}

/// How a target ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Enumeration)]
#[repr(i32)]
pub enum BuildStatus {
    /// Unspecified.
    Unspecified = 0,
    /// All attempts passed.
    Success = 1,
    /// All attempts failed.
    Failure = 2,
    /// It did not run.
    Skipped = 3,
    /// Attempts disagree.
    Flaky = 4,
}

/// Who wrote a message.
#[derive(Clone, PartialEq, Message)]
pub struct Uploader {
    /// The writer's version.
    #[prost(string, tag = "1")]
    pub version: String,
    /// Which writer, such as `rspec`; empty for the command line.
    #[prost(string, tag = "2")]
    pub origin: String,
    /// When.
    #[prost(message, optional, tag = "3")]
    pub upload_time: Option<Timestamp>,
    /// The variant of the tests.
    #[prost(string, tag = "4")]
    pub variant: String,
}
