//! Labels for tests, their quarantine, and uploads.

use signalbox_domain::flaky::{QuarantineOverride, StatusReason, TestStatus};
use signalbox_domain::upload::{UploadState, WarningKind};

use super::{Named, Tone, Word, word};

impl Named for TestStatus {
    fn named(&self) -> Word {
        match self {
            Self::Healthy => word("Healthy", "check", Tone::Good, "no monitor reports a problem"),
            Self::Flaky => {
                word("Flaky", "wave", Tone::Warning, "it passes and fails on the same code")
            }
            Self::Broken => word("Broken", "cross", Tone::Bad, "it fails persistently"),
        }
    }
}

impl Named for QuarantineOverride {
    fn named(&self) -> Word {
        match self {
            Self::Always => word(
                "Always quarantined",
                "shield",
                Tone::Warning,
                "its failures count as passed, whatever its status",
            ),
            Self::Never => word(
                "Never quarantined",
                "minus",
                Tone::Quiet,
                "its failures count, whatever its status",
            ),
            Self::Follow => word(
                "Follows the repository",
                "half",
                Tone::Quiet,
                "the settings of the repository decide",
            ),
        }
    }
}

impl Named for UploadState {
    fn named(&self) -> Word {
        match self {
            Self::Awaited => word(
                "Awaited",
                "clock",
                Tone::Waiting,
                "it was announced; its data has not arrived",
            ),
            Self::Received => word("Received", "play", Tone::Active, "its results are being read"),
            Self::Read => word("Read", "check", Tone::Good, "its results are stored"),
            Self::Failed => word("Failed", "cross", Tone::Bad, "it could not be read"),
        }
    }
}

impl Named for StatusReason {
    fn named(&self) -> Word {
        match self {
            Self::NothingFound => {
                word("Nothing found", "check", Tone::Good, "no monitor has found anything")
            }
            Self::MaybePlatformOrBase => word(
                "Maybe: platform or base",
                "clock",
                Tone::Quiet,
                "it failed and passed on one commit, maybe on another platform or merged into other code; a second such commit, with passing runs in between, makes it flaky",
            ),
            Self::PassOnRetry => word(
                "Passed on retry",
                "wave",
                Tone::Warning,
                "it failed and passed on the same code",
            ),
            Self::FailureRate => word(
                "Fails often",
                "cross",
                Tone::Bad,
                "the share of failing runs is above the limit",
            ),
            Self::FailureCount => word(
                "Failed too often",
                "cross",
                Tone::Bad,
                "the number of failing runs is above the limit",
            ),
            Self::FailureStreak => {
                word("Keeps failing", "cross", Tone::Bad, "all of its last runs failed")
            }
            Self::FlaggedByHand => {
                word("Flagged manually", "flag", Tone::Warning, "a user flagged it")
            }
            Self::Recovered => {
                word("Recovered", "check", Tone::Good, "later runs show that the problem is fixed")
            }
            Self::Stale => {
                word("No recent runs", "clock", Tone::Quiet, "it has not run for a long time")
            }
            Self::Incident => word(
                "Incident",
                "shield",
                Tone::Quiet,
                "its failures belong to an incident and no longer count",
            ),
            Self::MonitorMuted => word(
                "Monitor muted",
                "minus",
                Tone::Quiet,
                "the monitor that found it is muted for this test",
            ),
            Self::MonitorChanged => word(
                "Monitor changed",
                "switch",
                Tone::Quiet,
                "the monitor that found it was changed",
            ),
            Self::FlagRemoved => {
                word("Flag removed", "flag", Tone::Quiet, "a user removed the flag")
            }
            Self::Retired => {
                word("Retired", "minus", Tone::Quiet, "stable branches no longer contain it")
            }
        }
    }
}

/// The problem of an upload, as a sentence without a full stop.
pub const fn upload_warning(kind: WarningKind) -> &'static str {
    match kind {
        WarningKind::SuiteNameMissing => "tests are in a suite without a name",
        WarningKind::CaseNameMissing => "tests have no name",
        WarningKind::ShaMissing => "the commit is unknown, so retries cannot be recognized",
        WarningKind::BranchMissing => "the branch is unknown",
        WarningKind::PrNumberMissing => "the pull request has no number",
        WarningKind::PrOnStableBranch => "a pull request's number comes with a stable branch",
        WarningKind::NoTests => "it contains no tests",
        WarningKind::FileUnreadable => "files are truncated or malformed",
        WarningKind::NameTooLong => "names have more than 1,000 characters",
        WarningKind::ClassnameMissing => "tests have no class",
        WarningKind::FileMissing => "tests have no file",
        WarningKind::DurationMissing => "tests have no duration",
        WarningKind::TimestampTooOld => {
            "tests started before the time for which results are kept; they are not stored"
        }
        WarningKind::TimestampMissing => "tests have no start, or one before 2000",
        WarningKind::TimestampInFuture => "tests start in the future",
        WarningKind::TimestampOld => "tests started more than a day before the upload",
        WarningKind::TimestampStale => "tests started more than an hour before the upload",
        WarningKind::IdOfAnotherTest => {
            "tests have the id of another test; their results are not stored"
        }
        WarningKind::SameTestTwice => {
            "cases are indistinguishable and count as attempts of one test"
        }
        WarningKind::SkippedAndFailed => {
            "tests are both skipped and failed; the first result counts"
        }
        WarningKind::JobUrlMissing => "the URL of the CI job is unknown",
    }
}
