//! The order of the line.
//!
//! Urgent entries come first; then entries that were tested before, which keep their place through
//! restarts and when an entry with a better priority arrives; then entries that wait for their
//! first run, by priority, turn and time; then entries that are not ready, longest wait first.

use crate::ids::PrNumber;
use crate::time::Timestamp;

use super::{Entry, Priority};

/// An entry's position in the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum LinePosition {
    /// Not in the line.
    Outside,
    /// At the front of the line, because it is or was urgent.
    Front {
        /// The rank among entries of its kind; lower is further ahead.
        number: u64,
    },
    /// Waiting for its first run, ordered by priority, turn and time.
    Waiting {
        /// When it entered the line.
        since: Timestamp,
        /// Breaks ties of entries that entered at the same time; lower is further ahead.
        number: u64,
        /// Lower ones go first within a priority; 0 without fair share.
        #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "is_zero"))]
        turn: u32,
    },
    /// At the place that its first run gave it.
    Anchored {
        /// The rank among entries of its kind; lower is further ahead.
        number: u64,
    },
}

#[cfg(feature = "serde")]
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_zero(turn: &u32) -> bool {
    *turn == 0
}

/// The key that sorts the line. Two entries never have equal keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct OrderKey {
    class: u8,
    major: u64,
    turn: u32,
    minor: Timestamp,
    tie: u64,
    pr: PrNumber,
}

impl OrderKey {
    /// The key ahead of all others.
    pub(super) const FIRST: Self = Self {
        class: 0,
        major: 0,
        turn: 0,
        minor: Timestamp::from_unix_micros(i64::MIN),
        tie: 0,
        pr: PrNumber(0),
    };

    pub(super) fn of(entry: &Entry) -> Self {
        let key =
            |class, major, minor, tie| Self { class, major, turn: 0, minor, tie, pr: entry.pr };
        let zero = Timestamp::from_unix_micros(0);
        match entry.place {
            LinePosition::Front { number } => key(0, number, zero, 0),
            LinePosition::Anchored { number } => key(1, number, zero, 0),
            LinePosition::Waiting { since, number, turn } => {
                Self { turn, ..key(2, u64::from(entry.priority.value), since, number) }
            }
            // Entries that left the line together keep the order in which they were submitted.
            LinePosition::Outside => {
                let submitted = u64::try_from(entry.submitted_at.unix_micros()).unwrap_or_default();
                key(3, 0, entry.state_changed_at, submitted)
            }
        }
    }

    /// The key between the line and the entries outside it: it sorts behind every entry in the
    /// line.
    pub(super) const fn first_outside() -> Self {
        Self { class: 3, ..Self::FIRST }
    }

    /// The key ahead of the entries that wait with this priority.
    pub(super) fn first_waiting(priority: Priority) -> Self {
        Self { class: 2, major: u64::from(priority.value), ..Self::first_outside() }
    }

    /// Whether this is the key of an entry that waits for its first run with this priority.
    pub(super) fn waits_with(&self, priority: u32) -> bool {
        self.class == 2 && self.major == u64::from(priority)
    }

    /// Whether this is the key of an entry that keeps its place in the line.
    pub(super) const fn keeps_its_place(&self) -> bool {
        self.class < 2
    }

    /// Whether its entry is at the front, and its number there, if this is the key of one that keeps its
    /// place in the line.
    pub(super) fn place(&self) -> Option<(bool, u64)> {
        self.keeps_its_place().then_some((self.class == 0, self.major))
    }

    pub(super) const fn pr(&self) -> PrNumber {
        self.pr
    }
}
