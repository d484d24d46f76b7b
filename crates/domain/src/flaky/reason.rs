//! Why a test has its status: a short vocabulary, with the evidence beside it.

use std::fmt;

use crate::words::words;

use super::{MonitorId, MonitorKind, MonitorStatus, Reading, SameCode};

words!(
    /// Why a test has its status.
    StatusReason {
        /// Nothing was ever found.
        NothingFound = "nothing_found",
        /// It failed and passed on the same code.
        PassOnRetry = "pass_on_retry",
        /// Too large a share of its runs failed.
        FailureRate = "failure_rate",
        /// It failed too often.
        FailureCount = "failure_count",
        /// A person flagged it.
        FlaggedByHand = "flagged_by_hand",
        /// Runs have shown that what was found is gone.
        Recovered = "recovered",
        /// It did not run for so long that what was found no longer counts.
        Stale = "stale",
        /// The monitor that found something was muted for this test.
        MonitorMuted = "monitor_muted",
        /// The monitor that found something was deleted, disabled or given another action.
        MonitorChanged = "monitor_changed",
        /// The person's flag was taken back.
        FlagRemoved = "flag_removed",
    }
);

impl From<MonitorKind> for StatusReason {
    fn from(kind: MonitorKind) -> Self {
        match kind {
            MonitorKind::PassOnRetry => Self::PassOnRetry,
            MonitorKind::FailureRate => Self::FailureRate,
            MonitorKind::FailureCount => Self::FailureCount,
        }
    }
}

words!(
    /// What can trigger a change of status.
    TriggerKind {
        /// A monitor of that kind.
        PassOnRetry = "pass_on_retry",
        /// A monitor of that kind.
        FailureRate = "failure_rate",
        /// A monitor of that kind.
        FailureCount = "failure_count",
        /// A person's flag.
        ManualFlag = "manual_flag",
    }
);

impl From<MonitorKind> for TriggerKind {
    fn from(kind: MonitorKind) -> Self {
        match kind {
            MonitorKind::PassOnRetry => Self::PassOnRetry,
            MonitorKind::FailureRate => Self::FailureRate,
            MonitorKind::FailureCount => Self::FailureCount,
        }
    }
}

/// What triggered a change of status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Trigger {
    /// The monitor; `None` for a person's flag.
    pub monitor: Option<MonitorId>,
    /// What kind of thing it is.
    pub kind: TriggerKind,
    /// Whether it began or ended to speak against the test. A monitor that is muted or gone has
    /// ended.
    pub status: MonitorStatus,
}

/// The reading in a few words, for people.
impl fmt::Display for Reading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PassOnRetry(reading) => match reading.last.as_ref().map(|it| &it.code) {
                Some(SameCode::Commit(sha)) => write!(f, "failed and passed on commit {sha}"),
                Some(SameCode::Tree(tree)) => write!(f, "failed and passed on tree {tree}"),
                Some(SameCode::Upload(id)) => write!(f, "failed and passed in upload {id}"),
                None => write!(f, "{} runs without disagreement", reading.runs),
            },
            Self::FailureRate(reading) => {
                write!(f, "{} of {} runs failed", reading.failures, reading.runs)
            }
            Self::FailureCount(reading) => write!(f, "{} runs failed", reading.failures),
        }
    }
}
