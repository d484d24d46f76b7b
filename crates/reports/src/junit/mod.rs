//! Test cases out of JUnit XML, one by one, in memory that does not grow with the file.
//!
//! [`read`] takes any `Read` and calls a closure for each attempt at a case, in the order of the
//! file. Only the hashes of the cases seen are kept; they number the attempts of a case that
//! appears more than once.
//!
//! ```
//! use std::ops::ControlFlow;
//! use signalbox_reports::junit::{self, Limits, Status};
//!
//! let xml = r#"<testsuite name="s"><testcase name="a" time="1,234.5"/></testsuite>"#;
//! let mut failed = 0;
//! let summary = junit::read(xml.as_bytes(), &Limits::default(), |run| {
//!     failed += u64::from(run.status == Status::Failed);
//!     ControlFlow::Continue(())
//! })?;
//! assert_eq!((summary.cases, failed), (1, 0));
//! # Ok::<(), signalbox_reports::junit::JunitError>(())
//! ```

mod case;
mod decoding;
mod elements;
mod error;
pub mod limits;
mod lines;
mod reader;
mod source;
mod text;
pub mod values;

use std::fmt;
use std::io::Read;
use std::ops::ControlFlow;
use std::time::Duration;

use time::OffsetDateTime;

use crate::identity::TestKey;
pub use error::{JunitError, Position};
pub use limits::{Limit, Limits};

/// How an attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Status {
    /// Completed without a failure.
    Passed,
    /// A check of the test did not hold.
    Failed,
    /// Something else than a check went wrong.
    Errored,
    /// Did not run.
    Skipped,
}

impl Status {
    /// Whether it counts as a failure: failed or errored.
    pub fn is_failure(self) -> bool {
        match self {
            Self::Failed | Self::Errored => true,
            Self::Passed | Self::Skipped => false,
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Passed => "passed",
            Self::Failed => "failed",
            Self::Errored => "errored",
            Self::Skipped => "skipped",
        })
    }
}

/// The text of a failure, an error or a skip. Each text is trimmed and at most
/// [`Limits::detail_bytes`] long; an empty one is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Detail<'a> {
    /// The `message` attribute.
    pub message: Option<&'a str>,
    /// The `type` attribute, such as an exception's class.
    pub kind: Option<&'a str>,
    /// The text inside, a stack trace as a rule.
    pub text: Option<&'a str>,
}

/// One attempt at one test case. Names are trimmed and at most [`limits::FIELD_BYTES`] long; an
/// empty one is none, except for `name` and the suites.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CaseRun<'a> {
    /// Names of the suites around the case, the outermost first. Empty for a case without a suite.
    pub suites: &'a [String],
    /// The `name` attribute, empty when there is none.
    pub name: &'a str,
    /// The `classname` attribute. Part of the test's identity.
    pub classname: Option<&'a str>,
    /// The `class` attribute that some writers use instead. No part of the identity.
    pub class: Option<&'a str>,
    /// The first of: the case's `file` and `filepath`, the outermost suite's `file` and `filepath`.
    pub file: Option<&'a str>,
    /// The file by which the public uploader asks about the case: the outermost suite's `file`,
    /// else the same as `file`.
    pub asked_file: Option<&'a str>,
    /// The `line` attribute.
    pub line: Option<u32>,
    /// The `id` attribute.
    pub id: Option<&'a str>,
    /// How the attempt ended.
    pub status: Status,
    /// Its duration, when the report has one for this attempt.
    pub duration: Option<Duration>,
    /// When it started: the attempt's own timestamp, or the case's, or the innermost suite's that
    /// has one. UTC.
    pub timestamp: Option<OffsetDateTime>,
    /// Why it did not pass.
    pub detail: Option<Detail<'a>>,
    /// From 1, counted through the file for all attempts at a case with the same outermost suite,
    /// file, classname, name and id.
    pub attempt: u32,
    /// The how many-th `<testcase>` element of the file it is with that identity, from 1. A second
    /// one is a rerun, or another test that its framework does not distinguish.
    pub element: u32,
    /// Whether this attempt decides the result of its `<testcase>` element: the last one does.
    pub concludes: bool,
    /// Whether the element has both a failure and `<skipped/>`. The first one counts, as it does for
    /// the public uploader.
    pub contradicted: bool,
    /// The case's properties as written, [`limits::PROPERTIES`] at most. Properties of suites are
    /// omitted: they are the runner's settings and may contain secrets.
    pub properties: &'a [(String, String)],
}

impl<'a> CaseRun<'a> {
    /// The outermost suite's name, empty without one. Part of the test's identity.
    pub fn parent(&self) -> &'a str {
        self.suites.first().map_or("", String::as_str)
    }

    /// The identity of the test, in an organization and a repository (`host/owner/name`), with the
    /// variant or an empty text.
    pub fn key<'k>(&self, org: &'k str, repo: &'k str, variant: &'k str) -> TestKey<'k>
    where
        'a: 'k,
    {
        TestKey {
            org,
            repo,
            file: self.file.unwrap_or_default(),
            classname: self.classname.unwrap_or_default(),
            parent: self.parent(),
            name: self.name,
            info: self.id.unwrap_or_default(),
            variant,
        }
    }

    /// The same with the file by which the uploader asks. Its [`TestKey::asked_id`] is the id that
    /// comes with the question.
    pub fn asked_key<'k>(&self, org: &'k str, repo: &'k str, variant: &'k str) -> TestKey<'k>
    where
        'a: 'k,
    {
        TestKey { file: self.asked_file.unwrap_or_default(), ..self.key(org, repo, variant) }
    }
}

/// The totals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Summary {
    /// `<testsuite>` elements.
    pub suites: u64,
    /// `<testcase>` elements.
    pub cases: u64,
    /// Tests by the `tests` attributes of the outermost suites; 0 where one has none.
    pub declared: u64,
    /// Attempts that were delivered; at least one per case.
    pub attempts: u64,
    /// Whether pytest wrote it: by the name that it gives its suite or the root.
    pub pytest: bool,
    /// The encoding's standard name.
    pub encoding: &'static str,
    /// Whether something could not be decoded and was replaced by U+FFFD.
    pub replaced: bool,
    /// Whether `sink` asked to stop.
    pub stopped: bool,
}

/// Reads a report and gives every attempt to `sink`, until that answers `Break`.
///
/// Attempts come in the order in which they happened: those of `flakyFailure` and `flakyError`,
/// then the case's own result, then those of `rerunFailure` and `rerunError`. Cases before an
/// error have been delivered; a caller that needs all or nothing collects them first.
pub fn read(
    input: impl Read,
    limits: &Limits,
    sink: impl FnMut(&CaseRun<'_>) -> ControlFlow<()>,
) -> Result<Summary, JunitError> {
    reader::Reading::new(input, limits, sink).run()
}
