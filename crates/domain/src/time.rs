//! Points in time and spans. Callers pass them in; this crate never reads a clock.

use std::fmt;

use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// A point in time in UTC with microseconds, the precision of both databases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(transparent))]
pub struct Timestamp(i64);

impl Timestamp {
    /// The time this many microseconds after 1970-01-01T00:00:00Z.
    pub const fn from_unix_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// Microseconds since 1970-01-01T00:00:00Z.
    pub const fn unix_micros(self) -> i64 {
        self.0
    }

    /// The time this many seconds after 1970-01-01T00:00:00Z.
    pub const fn from_unix_seconds(seconds: i64) -> Self {
        Self(seconds.saturating_mul(1_000_000))
    }

    /// Parses RFC 3339 with any offset; `None` for any other text.
    pub fn parse(text: &str) -> Option<Self> {
        OffsetDateTime::parse(text, &Rfc3339).ok().map(Self::from)
    }

    /// This time moved later by `span`.
    #[must_use]
    pub const fn plus(self, span: Span) -> Self {
        Self(self.0.saturating_add(span.0))
    }

    /// This time moved earlier by `span`.
    #[must_use]
    pub const fn minus(self, span: Span) -> Self {
        Self(self.0.saturating_sub(span.0))
    }

    /// Rounds down to a multiple of `step` since 1970; returns the time itself for an empty step.
    #[must_use]
    pub const fn floor(self, step: Span) -> Self {
        match self.0.checked_rem_euclid(step.0) {
            Some(rest) => Self(self.0.saturating_sub(rest)),
            None => self,
        }
    }

    /// The span from `earlier` to this time; zero if `earlier` is later.
    pub fn since(self, earlier: Self) -> Span {
        Span(self.0.saturating_sub(earlier.0).max(0))
    }
}

impl From<OffsetDateTime> for Timestamp {
    fn from(value: OffsetDateTime) -> Self {
        Self(i64::try_from(value.unix_timestamp_nanos() / 1_000).unwrap_or(i64::MAX))
    }
}

impl From<Timestamp> for OffsetDateTime {
    fn from(value: Timestamp) -> Self {
        Self::from_unix_timestamp_nanos(i128::from(value.0) * 1_000).unwrap_or(Self::UNIX_EPOCH)
    }
}

/// RFC 3339 in UTC with milliseconds and `Z`: `2026-09-17T10:16:02.000Z`.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = OffsetDateTime::from(*self);
        write!(
            f,
            "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z",
            at.year(),
            u8::from(at.month()),
            at.day(),
            at.hour(),
            at.minute(),
            at.second(),
            at.millisecond()
        )
    }
}

/// A duration in microseconds, never negative.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(transparent))]
pub struct Span(i64);

impl Span {
    /// The empty span.
    pub const ZERO: Self = Self(0);

    /// The shortest non-empty span.
    pub const MICROSECOND: Self = Self(1);

    /// A span in microseconds; zero for a negative number.
    pub const fn from_micros(micros: i64) -> Self {
        Self(if micros < 0 { 0 } else { micros })
    }

    /// A span in seconds.
    pub fn seconds(seconds: u32) -> Self {
        Self(i64::from(seconds) * 1_000_000)
    }

    /// A span in minutes.
    pub fn minutes(minutes: u32) -> Self {
        Self(i64::from(minutes) * 60_000_000)
    }

    /// A span in hours, saturating.
    pub fn hours(hours: u32) -> Self {
        Self(i64::from(hours).saturating_mul(3_600_000_000))
    }

    /// A span in days of 24 hours, saturating.
    pub fn days(days: u32) -> Self {
        Self(i64::from(days).saturating_mul(86_400_000_000))
    }

    /// The span in microseconds.
    pub const fn micros(self) -> i64 {
        self.0
    }

    /// The span in whole milliseconds.
    pub const fn millis(self) -> i64 {
        self.0 / 1_000
    }

    /// The span as a [`std::time::Duration`].
    pub fn to_std(self) -> std::time::Duration {
        std::time::Duration::from_micros(u64::try_from(self.0).unwrap_or(0))
    }
}

/// A window of time, including both ends. A missing end is open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Window {
    /// The first moment; `None` is unbounded.
    pub since: Option<Timestamp>,
    /// The last moment; `None` is unbounded.
    pub until: Option<Timestamp>,
}

impl Window {
    /// The window from `since` to `until`. Times are displayed in milliseconds, so an end on a
    /// whole millisecond includes all of it: an event displayed at `until` is inside.
    pub fn inclusive(since: Option<Timestamp>, until: Option<Timestamp>) -> Self {
        let whole = |at: Timestamp| if at.0 % 1_000 == 0 { at.plus(Span(999)) } else { at };
        Self { since, until: until.map(whole) }
    }

    /// Whether the window contains this moment.
    pub fn contains(&self, at: Timestamp) -> bool {
        self.since.is_none_or(|since| since <= at) && self.until.is_none_or(|until| at <= until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_formatted_with_milliseconds_and_parsed_with_any_offset() {
        let at = Timestamp::parse("2026-09-17T12:16:02.5+02:00").expect("valid");
        assert_eq!(at.to_string(), "2026-09-17T10:16:02.500Z");
        assert_eq!(Timestamp::parse(&at.to_string()), Some(at));
        assert_eq!(Timestamp::parse("yesterday"), None);
    }

    #[test]
    fn a_displayed_time_is_inside_the_window_that_it_ends() {
        let happened = Timestamp::from_unix_micros(1_767_225_600_123_456);
        let shown = Timestamp::parse(&happened.to_string());
        assert!(Window::inclusive(shown, shown).contains(happened));
        let earlier = shown.map(|at| at.minus(Span(1)));
        assert!(!Window::inclusive(None, earlier).contains(happened));
        assert!(Window::default().contains(happened));
    }
}
