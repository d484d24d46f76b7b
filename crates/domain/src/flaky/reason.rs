//! Why a test has its status: a short vocabulary, with the evidence beside it.

use crate::words::words;

use super::monitor::kinds::monitors;
use super::{MonitorId, MonitorKind, MonitorStatus};

macro_rules! reasons {
    ($($(#[$doc:meta])* $kind:ident, $reading:ident = $word:literal;)+) => {
        words!(
            /// Why a test has its status.
            StatusReason {
                /// Nothing was ever found.
                NothingFound = "nothing_found",
                /// It failed and passed on one commit, but perhaps on different platforms or merged
                /// into different code.
                MaybePlatformOrBase = "maybe_platform_or_base",
                $($(#[$doc])* $kind = $word,)+
                /// A person flagged it.
                FlaggedByHand = "flagged_by_hand",
                /// Runs have shown that what was found is gone.
                Recovered = "recovered",
                /// It did not run for so long that what was found no longer counts.
                Stale = "stale",
                /// What was found belongs to an incident and no longer counts.
                Incident = "incident",
                /// The monitor that found something was muted for this test.
                MonitorMuted = "monitor_muted",
                /// The monitor that found something was deleted, disabled or given another action.
                MonitorChanged = "monitor_changed",
                /// The user's flag was removed.
                FlagRemoved = "flag_removed",
                /// Stable branches no longer contain it.
                Retired = "retired",
            }
        );

        impl StatusReason {
            /// Whether the reason is a finding about the test: of a monitor, or a user's flag.
            pub const fn is_finding(self) -> bool {
                match self {
                    $(Self::$kind)|+ | Self::FlaggedByHand => true,
                    Self::NothingFound
                    | Self::MaybePlatformOrBase
                    | Self::Recovered
                    | Self::Stale
                    | Self::Incident
                    | Self::MonitorMuted
                    | Self::MonitorChanged
                    | Self::FlagRemoved
                    | Self::Retired => false,
                }
            }
        }

        impl From<MonitorKind> for StatusReason {
            fn from(kind: MonitorKind) -> Self {
                match kind { $(MonitorKind::$kind => Self::$kind,)+ }
            }
        }

        words!(
            /// What can trigger a change of status.
            TriggerKind {
                $($(#[$doc])* $kind = $word,)+
                /// A person's flag.
                ManualFlag = "manual_flag",
            }
        );

        impl From<MonitorKind> for TriggerKind {
            fn from(kind: MonitorKind) -> Self {
                match kind { $(MonitorKind::$kind => Self::$kind,)+ }
            }
        }
    };
}

monitors!(reasons);

/// What triggered a change of status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Trigger {
    /// The monitor; `None` for a user's flag.
    pub monitor: Option<MonitorId>,
    /// What kind of thing it is.
    pub kind: TriggerKind,
    /// Whether its finding began or ended. The finding of a monitor that is muted or deleted has
    /// ended.
    pub status: MonitorStatus,
}
