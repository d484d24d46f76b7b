//! Commands to a test case. A command may be refused.

use crate::time::{Span, Timestamp};
use crate::words::words;

use super::{MonitorId, QuarantineOverride};

/// Who did something, as events and the audit log name users.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Actor {
    /// The name to show.
    pub full_name: String,
    /// The address; empty when there is none.
    pub email: String,
}

impl Actor {
    /// The server, on its own rules: something expired.
    pub fn system() -> Self {
        Self { full_name: "Signalbox".into(), email: String::new() }
    }
}

words!(
    /// How long a monitor is muted for a test.
    MuteLength {
        /// One hour.
        Hour = "1h",
        /// Four hours.
        FourHours = "4h",
        /// A day.
        Day = "24h",
        /// A week.
        Week = "7d",
        /// Thirty days.
        Month = "30d",
        /// Until a user ends it.
        Forever = "forever",
    }
);

impl MuteLength {
    /// The first moment at which it is over; `None` for never.
    pub fn end(self, from: Timestamp) -> Option<Timestamp> {
        let hours = match self {
            Self::Hour => 1,
            Self::FourHours => 4,
            Self::Day => 24,
            Self::Week => 7 * 24,
            Self::Month => 30 * 24,
            Self::Forever => return None,
        };
        Some(from.plus(Span::hours(hours)))
    }
}

/// The most characters of a reason.
pub const MAX_REASON: usize = 256;

/// A request about one test case. Reasons have at most [`MAX_REASON`] characters.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Command {
    /// Call the test flaky, whatever monitors say, until it is unflagged.
    Flag {
        /// Why.
        reason: Option<String>,
        /// Who.
        by: Actor,
    },
    /// Take that back.
    Unflag {
        /// Why.
        reason: Option<String>,
        /// Who.
        by: Actor,
    },
    /// Let a monitor not count for this test. It keeps watching. A new mute replaces the old one.
    Mute {
        /// Which monitor; it must have been active for this test once.
        monitor: MonitorId,
        /// For how long.
        length: MuteLength,
        /// Why.
        reason: Option<String>,
        /// Who.
        by: Actor,
    },
    /// Let a muted monitor count again.
    Unmute {
        /// Which monitor.
        monitor: MonitorId,
        /// Who.
        by: Actor,
    },
    /// Decide about the quarantine of this test.
    SetQuarantine {
        /// What is decided.
        setting: QuarantineOverride,
        /// Until when; only for `Always`, and after now.
        expires_at: Option<Timestamp>,
        /// Why.
        reason: Option<String>,
        /// Who.
        by: Actor,
    },
    /// Put a label on the test.
    AddLabel {
        /// 1 to 100 characters.
        label: String,
        /// Who.
        by: Actor,
    },
    /// Remove a label that a user set. It stays while a monitor has set it.
    RemoveLabel {
        /// Which.
        label: String,
        /// Who.
        by: Actor,
    },
}

impl Command {
    /// A short name for logs and metrics.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Flag { .. } => "flag",
            Self::Unflag { .. } => "unflag",
            Self::Mute { .. } => "mute",
            Self::Unmute { .. } => "unmute",
            Self::SetQuarantine { .. } => "set_quarantine",
            Self::AddLabel { .. } => "add_label",
            Self::RemoveLabel { .. } => "remove_label",
        }
    }

    /// The reason that was given.
    pub const fn reason(&self) -> Option<&String> {
        match self {
            Self::Flag { reason, .. }
            | Self::Unflag { reason, .. }
            | Self::Mute { reason, .. }
            | Self::SetQuarantine { reason, .. } => reason.as_ref(),
            Self::Unmute { .. } | Self::AddLabel { .. } | Self::RemoveLabel { .. } => None,
        }
    }
}
