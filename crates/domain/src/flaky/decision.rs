//! What the planner decided, and why: the audit of a test case. It is only ever added to.

use crate::time::Timestamp;
use crate::words::words;

use super::{
    Actor, LabelSource, MonitorId, MonitorKind, MonitorStatus, Quarantining, Reading, Retirement,
    StatusReason, TestId, TestStatus,
};

words!(
    /// Why a fact or command changed nothing.
    IgnoredBecause {
        /// It says what is known already.
        Known = "KNOWN",
        /// A later measurement was already absorbed.
        Superseded = "SUPERSEDED",
        /// It is about a monitor that is gone, disabled or of another kind.
        NoSuchMonitor = "NO_SUCH_MONITOR",
    }
);

words!(
    /// Why a monitor became active or resolved.
    MonitorCause {
        /// The pattern appeared.
        Detected = "detected",
        /// Runs have shown that the pattern is gone.
        Recovered = "recovered",
        /// There was no run for its stale timeout.
        Stale = "stale",
        /// It was deleted or disabled.
        Removed = "removed",
        /// What it found belongs to an incident and no longer counts.
        Excluded = "incident",
    }
);

/// One thing that was decided.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Decision {
    /// The test has another status.
    StatusChanged {
        /// Before.
        from: TestStatus,
        /// After.
        to: TestStatus,
        /// Why.
        reason: StatusReason,
        /// The monitor that the reason is about.
        monitor: Option<MonitorId>,
    },
    /// The test has the same status for another reason.
    ReasonChanged {
        /// The reason now.
        reason: StatusReason,
        /// The monitor that it is about.
        monitor: Option<MonitorId>,
    },
    /// A monitor became active or resolved.
    MonitorMoved {
        /// Which.
        monitor: MonitorId,
        /// Its kind.
        kind: MonitorKind,
        /// Its status now.
        to: MonitorStatus,
        /// Why.
        cause: MonitorCause,
        /// What it saw; `None` when it is gone.
        evidence: Option<Reading>,
    },
    /// An active monitor saw its pattern again.
    MonitorRenewed {
        /// Which.
        monitor: MonitorId,
        /// What it saw.
        evidence: Reading,
    },
    /// A monitor was muted.
    Muted {
        /// Which.
        monitor: MonitorId,
        /// Until when; `None` forever.
        until: Option<Timestamp>,
        /// Why.
        reason: Option<String>,
        /// Who.
        by: Actor,
    },
    /// A monitor counts again.
    Unmuted {
        /// Which.
        monitor: MonitorId,
        /// Who; the system when the time was over.
        by: Actor,
    },
    /// A person flagged the test.
    Flagged {
        /// Why.
        reason: Option<String>,
        /// Who.
        by: Actor,
    },
    /// A person took the flag back.
    Unflagged {
        /// Why.
        reason: Option<String>,
        /// Who.
        by: Actor,
    },
    /// The override changed.
    QuarantineSet {
        /// Before.
        previous: Quarantining,
        /// After.
        updated: Quarantining,
        /// Why.
        reason: Option<String>,
        /// Who; the system when it expired.
        by: Actor,
    },
    /// A source adds a label.
    Labelled {
        /// Which.
        label: String,
        /// Who holds it.
        source: LabelSource,
        /// Who did it; the system for a monitor.
        by: Actor,
    },
    /// A source releases a label.
    Unlabelled {
        /// Which.
        label: String,
        /// Who held it.
        source: LabelSource,
        /// Who did it; the system for a monitor.
        by: Actor,
    },
    /// Stable branches no longer contain the test.
    Retired(Retirement),
    /// A stable branch contains it again.
    Returned,
    /// Another test was renamed to this one, which takes over what was found and decided.
    Inherited {
        /// The other test.
        from: TestId,
    },
    /// Nothing changed.
    Ignored {
        /// Why.
        because: IgnoredBecause,
    },
}
