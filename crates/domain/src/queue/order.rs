//! The order of the line.
//!
//! Urgent entries come first, then those that have been tested before (they keep their place when
//! a later one with a better priority arrives, and when they are restarted), then those that wait
//! for their first run by priority and time, then those that are not ready, the longest first.

use crate::ids::EntryId;
use crate::time::Timestamp;

use super::Entry;

/// Where an entry stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum LinePosition {
    /// Not in the line.
    Outside,
    /// In the line before all others, because it is urgent; it stays there when it is no longer.
    Front {
        /// Lower is further ahead.
        number: u64,
    },
    /// In the line, by priority and time.
    Waiting {
        /// Since when.
        since: Timestamp,
        /// Tells apart those that entered at the same time; lower is further ahead.
        number: u64,
    },
    /// In the line at the place that its first run gave it.
    Anchored {
        /// Lower is further ahead.
        number: u64,
    },
}

/// The key that sorts the line. Two entries never have equal keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct OrderKey {
    class: u8,
    major: u64,
    minor: Timestamp,
    tie: u64,
    entry: EntryId,
}

impl OrderKey {
    pub(super) fn of(entry: &Entry) -> Self {
        let key = |class, major, minor, tie| Self { class, major, minor, tie, entry: entry.id };
        let zero = Timestamp::from_unix_micros(0);
        match entry.place {
            LinePosition::Front { number } => key(0, number, zero, 0),
            LinePosition::Anchored { number } => key(1, number, zero, 0),
            LinePosition::Waiting { since, number } => {
                key(2, u64::from(entry.priority.value), since, number)
            }
            LinePosition::Outside => key(3, 0, entry.state_changed_at, 0),
        }
    }

    /// A key that no entry in the line sorts behind, and no entry outside it sorts before.
    pub(super) const fn first_outside() -> Self {
        let entry = EntryId(uuid::Uuid::nil());
        Self { class: 3, major: 0, minor: Timestamp::from_unix_micros(i64::MIN), tie: 0, entry }
    }

    pub(super) const fn entry(&self) -> EntryId {
        self.entry
    }
}
