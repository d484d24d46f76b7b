//! What happened to a test case. A fact is never refused; a stale or repeated one changes nothing.

use crate::time::Timestamp;

use super::{IncidentId, Inheritance, MonitorId, Reading, Retirement};

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Fact {
    /// Monitors were measured: after an upload, or by the clock.
    Measured {
        /// The time for which the readings hold. It must grow from measurement to measurement of a
        /// test; a measurement that is not later than the last one is ignored.
        as_of: Timestamp,
        /// The reading of each monitor. An omitted monitor is unchanged.
        readings: Vec<(MonitorId, Reading)>,
    },
    /// The status of an incident changed, so that its failures count again or no longer count; the
    /// monitors were measured after that.
    Recounted {
        /// As of [`Fact::Measured`].
        as_of: Timestamp,
        /// As of [`Fact::Measured`].
        readings: Vec<(MonitorId, Reading)>,
        /// The incident.
        incident: IncidentId,
        /// When it began.
        since: Timestamp,
        /// Whether the failures count.
        counts: bool,
    },
    /// The repository's settings are other than before: monitors may be gone, disabled, or do
    /// something else.
    SettingsChanged,
    /// A mute or an override may be over. See [`super::next_deadline`].
    TimePassed,
    /// Stable branches no longer contain the test.
    Retired(Retirement),
    /// A run of a stable branch contains it.
    Returned {
        /// When its commit was made; a commit that is not later than the last one without the test
        /// changes nothing.
        code_at: Timestamp,
    },
    /// Another test was renamed to this one.
    Inherited(Inheritance),
}

impl Fact {
    /// A short name for logs and metrics.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Measured { .. } => "measured",
            Self::Recounted { .. } => "recounted",
            Self::SettingsChanged => "settings_changed",
            Self::TimePassed => "time_passed",
            Self::Retired(_) => "retired",
            Self::Returned { .. } => "returned",
            Self::Inherited(_) => "inherited",
        }
    }
}
