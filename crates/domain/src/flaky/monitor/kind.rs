//! What monitors are called, and can say.

use std::fmt;

use uuid::Uuid;

use crate::words::words;

use super::super::TestStatus;

/// The id of a monitor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(transparent))]
pub struct MonitorId(pub Uuid);

impl fmt::Display for MonitorId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

words!(
    /// The status of a monitor for one test.
    MonitorStatus {
        /// The pattern is there.
        Active = "active",
        /// The pattern is gone, or never was there.
        Resolved = "resolved",
    }
);

words!(
    /// What a monitor may classify a test as.
    Classification {
        /// It passes and fails on the same code.
        Flaky = "flaky",
        /// It fails consistently.
        Broken = "broken",
    }
);

impl From<Classification> for TestStatus {
    fn from(classification: Classification) -> Self {
        match classification {
            Classification::Flaky => Self::Flaky,
            Classification::Broken => Self::Broken,
        }
    }
}
