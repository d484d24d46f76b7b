//! `internal.bin`: the uploader's own reading of the reports, as a protobuf message.
//!
//! The message stays as it came; test case runs are decoded one at a time.

use std::ops::ControlFlow;

use prost::Message;
use thiserror::Error;

pub use super::proto::{
    AttemptNumber, BazelBuild, BazelRun, BuildStatus, CodeOwner, LineNumber, RunStatus,
    TestCaseRun, TestOutput, Timestamp, Uploader,
};
pub use super::wire::WireError;
use super::wire::each_bytes;

/// Test results of one message: one per Bazel target, or one in all.
pub const RESULTS: usize = 100_000;
/// Test case runs of one message.
pub const RUNS: usize = 1_000_000;
/// Bytes of one test case run.
pub const RUN_BYTES: usize = 1024 * 1024;

/// Why `internal.bin` cannot be read. The XML files of the bundle still can.
#[derive(Debug, Error)]
pub enum InternalError {
    /// Not of the wire format.
    #[error("internal.bin is malformed: {0}")]
    Wire(#[from] WireError),
    /// A field does not have the type that it should.
    #[error("internal.bin is malformed: {0}")]
    Field(#[from] prost::DecodeError),
    /// More than a limit allows.
    #[error("internal.bin has more {what} than {most}")]
    Limit {
        /// What there is too much of.
        what: &'static str,
        /// The limit's value.
        most: usize,
    },
}

/// The results of one target.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TestResult {
    start: usize,
    end: usize,
    /// The Bazel target that the runs belong to.
    pub bazel: Option<BazelBuild>,
    /// Who wrote the result, as older writers put it.
    pub uploader: Option<Uploader>,
}

/// A message that was checked whole.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    bytes: Vec<u8>,
    checked: Checked,
}

impl Report {
    /// Checks a message: a `TestReport`, or the bare `TestResult` of older writers.
    pub fn parse(bytes: Vec<u8>) -> Result<Self, InternalError> {
        let report = check_report(&bytes);
        // The bytes of a bare result can be valid as a report too, but not with names in it.
        if !report.as_ref().is_ok_and(|it| it.named > 0)
            && let Ok(bare) = check_result(&bytes, 0)
            && (bare.named > 0 || report.is_err())
        {
            return Ok(Self { bytes, checked: bare });
        }
        Ok(Self { bytes, checked: report? })
    }

    /// How many runs there are.
    pub fn runs(&self) -> usize {
        self.checked.runs
    }

    /// Who wrote the message.
    pub fn uploader(&self) -> Option<&Uploader> {
        let first = || self.checked.results.first()?.uploader.as_ref();
        self.checked.uploader.as_ref().or_else(first)
    }

    /// Calls `sink` with each run and the result it belongs to, until that answers `Break`.
    pub fn each(
        &self,
        mut sink: impl FnMut(&TestResult, TestCaseRun) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, InternalError> {
        for result in &self.checked.results {
            let message = self.bytes.get(result.start..result.end).unwrap_or_default();
            let mut answer = ControlFlow::Continue(());
            each_bytes(message, |number, _, field| {
                if number == 1 && answer.is_continue() {
                    answer = sink(result, TestCaseRun::decode(field)?);
                }
                Ok::<(), InternalError>(())
            })?;
            if answer.is_break() {
                return Ok(answer);
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
struct Checked {
    uploader: Option<Uploader>,
    results: Vec<TestResult>,
    runs: usize,
    named: usize,
}

fn check_report(message: &[u8]) -> Result<Checked, InternalError> {
    let mut all = Checked::default();
    each_bytes(message, |number, start, field| {
        match number {
            1 => {
                let one = check_result(field, start)?;
                all.results.extend(one.results);
                all.runs += one.runs;
                all.named += one.named;
            }
            2 => all.uploader = Some(Uploader::decode(field)?),
            _ => {}
        }
        limited("results", all.results.len(), RESULTS)?;
        limited("test case runs", all.runs, RUNS)
    })?;
    Ok(all)
}

/// `start` is where the message lies in the whole.
fn check_result(message: &[u8], start: usize) -> Result<Checked, InternalError> {
    let mut result = TestResult { start, end: start + message.len(), ..TestResult::default() };
    let (mut runs, mut named) = (0, 0);
    each_bytes(message, |number, _, field| {
        match number {
            1 => {
                limited("bytes of a test case run", field.len(), RUN_BYTES)?;
                runs += 1;
                limited("test case runs", runs, RUNS)?;
                named += usize::from(!TestCaseRun::decode(field)?.name.is_empty());
            }
            2 => result.uploader = Some(Uploader::decode(field)?),
            3 => result.bazel = Some(BazelBuild::decode(field)?),
            _ => {}
        }
        Ok::<(), InternalError>(())
    })?;
    Ok(Checked { uploader: None, results: vec![result], runs, named })
}

fn limited(what: &'static str, found: usize, most: usize) -> Result<(), InternalError> {
    if found > most { Err(InternalError::Limit { what, most }) } else { Ok(()) }
}
