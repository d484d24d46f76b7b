//! Public events of a test case, written in the same commit as the state.

use crate::time::Timestamp;

use super::{
    Actor, IMPORT_FINISHED, INCIDENT_CHANGED, Judgement, MonitorId, MonitorKind, MonitorStatus,
    QuarantineOverride, Reading, Retirement, TestId, TestStatus, Trigger,
};

/// A public event. Its payload also has the metadata of the test.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Event {
    /// Its number within the test case.
    pub number: u64,
    /// When.
    pub at: Timestamp,
    /// The test.
    pub test: TestId,
    /// Whether the test is quarantined after what happened.
    pub quarantined: bool,
    /// What happened.
    pub kind: EventKind,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum EventKind {
    /// The status of the test changed.
    StatusChanged {
        /// Before.
        previous: TestStatus,
        /// After, with reason and time.
        current: Judgement,
    },
    /// The same change, in the second form of the event.
    StatusChangedV2 {
        /// Before.
        previous: TestStatus,
        /// After.
        new: TestStatus,
        /// What triggered it.
        triggered_by: Trigger,
    },
    /// A monitor became active or resolved.
    MonitorStatusChanged {
        /// Which.
        monitor: MonitorId,
        /// Its kind.
        kind: MonitorKind,
        /// Its status now.
        status: MonitorStatus,
        /// What it saw; `None` when it is gone.
        evidence: Option<Reading>,
    },
    /// The override changed.
    QuarantiningSettingChanged {
        /// Who; the system when it expired.
        actor: Actor,
        /// Why.
        reason: Option<String>,
        /// Before.
        previous: QuarantineOverride,
        /// After.
        updated: QuarantineOverride,
    },
    /// Stable branches no longer contain the test.
    Retired(Retirement),
    /// A stable branch contains it again.
    Returned,
    /// Another test was renamed to this one.
    Renamed {
        /// The other test.
        from: TestId,
    },
}

impl EventKind {
    /// The public names, those of incidents and imports among them, which are not about one test.
    pub const NAMES: [&'static str; 9] = [
        "test_case.status_changed",
        "v2.test_case.status_changed",
        "test_case.monitor_status_changed",
        "test_case.quarantining_setting_changed",
        "test_case.retired",
        "test_case.returned",
        "test_case.renamed",
        INCIDENT_CHANGED,
        IMPORT_FINISHED,
    ];

    /// The public name.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::StatusChanged { .. } => "test_case.status_changed",
            Self::StatusChangedV2 { .. } => "v2.test_case.status_changed",
            Self::MonitorStatusChanged { .. } => "test_case.monitor_status_changed",
            Self::QuarantiningSettingChanged { .. } => "test_case.quarantining_setting_changed",
            Self::Retired(_) => "test_case.retired",
            Self::Returned => "test_case.returned",
            Self::Renamed { .. } => "test_case.renamed",
        }
    }
}
