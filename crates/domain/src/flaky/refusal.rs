//! Why a command was not carried out.

use thiserror::Error;

use super::{MonitorId, TestId};

/// A command that is refused, with the rule that it breaks. Nothing has changed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Refusal {
    /// A setting is out of its bounds.
    #[error("{field} {rule}")]
    InvalidSetting {
        /// The setting, by its name on the wire.
        field: String,
        /// The rule that it breaks.
        rule: String,
    },
    /// There is no monitor with that id in the repository.
    #[error("monitor {monitor} not found")]
    NoSuchMonitor {
        /// The id that was named.
        monitor: MonitorId,
    },
    /// A monitor is of another kind than the one that it would replace.
    #[error("the kind of monitor {monitor} cannot be changed; create a new monitor")]
    MonitorKindFixed {
        /// The monitor.
        monitor: MonitorId,
    },
    /// The monitor has never been active for this test, so there is nothing to mute.
    #[error("monitor {monitor} has never been active for this test")]
    MonitorNeverFired {
        /// The monitor.
        monitor: MonitorId,
    },
    /// The monitor is not muted for this test.
    #[error("monitor {monitor} is not muted for this test")]
    NotMuted {
        /// The monitor.
        monitor: MonitorId,
    },
    /// The test is flagged by hand already.
    #[error("the test is already flagged as flaky")]
    AlreadyFlagged,
    /// The test has another name now; what is decided about it belongs to the new one.
    #[error("the test was renamed; use test {to}")]
    Renamed {
        /// The test that it was renamed to.
        to: TestId,
    },
    /// The test is not flagged by hand.
    #[error("the test is not flagged as flaky")]
    NotFlagged,
}

impl Refusal {
    /// A setting or field that is out of its bounds.
    pub(super) fn setting(field: &str, rule: impl Into<String>) -> Self {
        Self::InvalidSetting { field: field.into(), rule: rule.into() }
    }
}
