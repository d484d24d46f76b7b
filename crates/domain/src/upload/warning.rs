//! Warnings about an upload: problems that its sender can fix.

use crate::flaky::{BranchClass, Upload};
use crate::time::{Span, Timestamp};
use crate::words::words;

use super::FoundRun;
use super::time::{AHEAD_MINUTES, is_set};

/// The most characters of a name, a class or a file.
const MAX_CHARS: usize = 1_000;
/// Hours after which a start is old.
const OLD_HOURS: u32 = 24;
/// Hours after which a start is stale.
const STALE_HOURS: u32 = 1;

words!(
    /// How bad it is.
    Severity {
        /// Something that matters is missing, or some results are not kept.
        Invalid = "invalid",
        /// Results are kept, and could say more.
        Suboptimal = "suboptimal",
    }
);

words!(
    /// The kind of problem.
    WarningKind {
        /// Tests are in a suite without a name.
        SuiteNameMissing = "suite_name_missing",
        /// Tests have no name.
        CaseNameMissing = "case_name_missing",
        /// The commit is not known.
        ShaMissing = "sha_missing",
        /// The branch is not known.
        BranchMissing = "branch_missing",
        /// It looks like a run of a pull request, but its number is not known.
        PrNumberMissing = "pr_number_missing",
        /// A number of a pull request comes with a branch that is the stable one.
        PrOnStableBranch = "pr_on_stable_branch",
        /// There was nothing in it.
        NoTests = "no_tests",
        /// A file could not be read completely.
        FileUnreadable = "file_unreadable",
        /// The names of tests, classes or files are too long.
        NameTooLong = "name_too_long",
        /// Tests have no class.
        ClassnameMissing = "classname_missing",
        /// Tests have no file.
        FileMissing = "file_missing",
        /// Tests have no duration.
        DurationMissing = "duration_missing",
        /// Tests started before the time for which results are kept; those results are not stored.
        TimestampTooOld = "timestamp_too_old",
        /// Tests have no start, or one before 2000.
        TimestampMissing = "timestamp_missing",
        /// Tests start in the future.
        TimestampInFuture = "timestamp_in_future",
        /// Tests started more than a day ago.
        TimestampOld = "timestamp_old",
        /// Tests started more than an hour ago.
        TimestampStale = "timestamp_stale",
        /// Tests have the id of another test; these results are not stored.
        IdOfAnotherTest = "id_of_another_test",
        /// Several cases of a file are indistinguishable; they count as attempts of one test.
        SameTestTwice = "same_test_twice",
        /// A case has both `<skipped>` and a failure; the first element counts.
        SkippedAndFailed = "skipped_and_failed",
        /// The page of the CI job is not known.
        JobUrlMissing = "job_url_missing",
    }
);

impl WarningKind {
    /// How bad it is.
    pub const fn severity(self) -> Severity {
        match self {
            Self::SuiteNameMissing
            | Self::CaseNameMissing
            | Self::ShaMissing
            | Self::BranchMissing
            | Self::PrNumberMissing
            | Self::PrOnStableBranch
            | Self::FileUnreadable
            | Self::TimestampTooOld
            | Self::IdOfAnotherTest => Severity::Invalid,
            Self::NoTests
            | Self::NameTooLong
            | Self::ClassnameMissing
            | Self::FileMissing
            | Self::DurationMissing
            | Self::TimestampMissing
            | Self::TimestampInFuture
            | Self::TimestampOld
            | Self::TimestampStale
            | Self::SameTestTwice
            | Self::SkippedAndFailed
            | Self::JobUrlMissing => Severity::Suboptimal,
        }
    }
}

/// Something that is wrong with an upload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct UploadWarning {
    /// What.
    pub kind: WarningKind,
    /// With how many attempts or files; 0 when it is about the upload itself.
    pub count: u32,
}

/// The warnings about an upload, the worst first. Results from before `oldest` are not kept.
pub(super) fn warnings(
    upload: &Upload,
    runs: &[FoundRun],
    unreadable_files: usize,
    oldest: Timestamp,
) -> Vec<UploadWarning> {
    let mut found = Vec::new();
    let mut whole = |kind, wrong: bool| {
        if wrong {
            found.push(UploadWarning { kind, count: 0 });
        }
    };
    let looks_like_pr = upload.class == BranchClass::PullRequest;
    let stable = ["main", "master"].contains(&upload.branch.as_str());
    whole(WarningKind::ShaMissing, upload.sha.is_none());
    whole(WarningKind::BranchMissing, upload.branch.is_empty());
    whole(WarningKind::PrNumberMissing, looks_like_pr && upload.pr.is_none());
    whole(WarningKind::PrOnStableBranch, upload.pr.is_some() && stable);
    whole(WarningKind::NoTests, runs.is_empty());
    whole(WarningKind::JobUrlMissing, upload.job_url.is_none());
    let mut some = |kind, count: usize| {
        if let Ok(count @ 1..) = u32::try_from(count) {
            found.push(UploadWarning { kind, count });
        }
    };
    some(WarningKind::FileUnreadable, unreadable_files);
    for kind in WarningKind::ALL {
        let times = (upload.received_at, oldest);
        some(*kind, runs.iter().filter(|run| has(run, *kind, times)).count());
    }
    found.sort_by_key(|it| (it.kind.severity(), it.kind));
    found
}

/// Whether an attempt is to blame.
fn has(run: &FoundRun, kind: WarningKind, (received, oldest): (Timestamp, Timestamp)) -> bool {
    let long = |text: &str| text.len() > MAX_CHARS && text.chars().count() > MAX_CHARS;
    let before = |hours| received.minus(Span::hours(hours));
    let set = run.started_at.filter(|at| is_set(*at));
    match kind {
        WarningKind::SuiteNameMissing => run.parent.trim().is_empty(),
        WarningKind::CaseNameMissing => run.name.is_empty(),
        WarningKind::NameTooLong => long(&run.name) || long(&run.classname) || long(&run.file),
        WarningKind::ClassnameMissing => run.classname.is_empty(),
        WarningKind::FileMissing => run.file.is_empty(),
        WarningKind::DurationMissing => run.took.is_none(),
        WarningKind::TimestampMissing => set.is_none(),
        WarningKind::TimestampInFuture => {
            set.is_some_and(|at| at > received.plus(Span::minutes(AHEAD_MINUTES)))
        }
        WarningKind::TimestampTooOld => set.is_some_and(|at| at < oldest),
        WarningKind::TimestampOld => set.is_some_and(|at| at >= oldest && at < before(OLD_HOURS)),
        WarningKind::TimestampStale => {
            set.is_some_and(|at| at >= before(OLD_HOURS) && at < before(STALE_HOURS))
        }
        WarningKind::SameTestTwice => run.told_again,
        WarningKind::SkippedAndFailed => run.contradicted,
        WarningKind::ShaMissing
        | WarningKind::BranchMissing
        | WarningKind::PrNumberMissing
        | WarningKind::PrOnStableBranch
        | WarningKind::NoTests
        | WarningKind::FileUnreadable
        | WarningKind::IdOfAnotherTest
        | WarningKind::JobUrlMissing => false,
    }
}
