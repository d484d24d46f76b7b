//! When a run took place, and how old one may be.

use thiserror::Error;

use crate::time::{Span, Timestamp};

use super::FoundReport;

/// Minutes that a sender's clock may be ahead.
pub(super) const AHEAD_MINUTES: u32 = 5;
/// 2000-01-01. Writers without a time write zeros; what is earlier counts as not set.
const FIRST: Timestamp = Timestamp::from_unix_seconds(946_684_800);

/// Whether a report has a time at all.
pub(super) fn is_set(at: Timestamp) -> bool {
    at >= FIRST
}

/// Why a run is refused for its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum RefusedTime {
    /// Neither the sender nor the files say when it took place.
    #[error("no test has a start, so the time of the run is unknown: give it as `at`")]
    Unknown,
    /// It has not taken place yet.
    #[error("the run ended at {at}, in the future")]
    Future {
        /// When it ended.
        at: Timestamp,
    },
    /// Its results would already be deleted.
    #[error("the run ended at {at}, and results are kept for {days} days")]
    TooOld {
        /// When it ended.
        at: Timestamp,
        /// The days that results are kept: `flaky.history_days`.
        days: i64,
    },
    /// The results of an upload would already be deleted, each of them.
    #[error("all tests started before {before}, and results are kept for {days} days")]
    AllTooOld {
        /// The start of what is kept.
        before: Timestamp,
        /// The days that results are kept: `flaky.history_days`.
        days: i64,
    },
}

impl RefusedTime {
    /// A stable value for the rule.
    pub const fn rule(&self) -> &'static str {
        match self {
            Self::Unknown => "time_unknown",
            Self::Future { .. } => "in_future",
            Self::TooOld { .. } | Self::AllTooOld { .. } => "too_old",
        }
    }

    /// All tests of an upload started before `oldest`.
    pub fn all(oldest: Timestamp, history: Span) -> Self {
        Self::AllTooOld { before: oldest, days: days(history) }
    }
}

/// A span in whole days.
fn days(span: Span) -> i64 {
    span.micros() / Span::days(1).micros()
}

/// Checks the time at which a run ended. One that is a little ahead is `now`.
pub fn check_time(at: Timestamp, now: Timestamp, history: Span) -> Result<Timestamp, RefusedTime> {
    if at > now.plus(Span::minutes(AHEAD_MINUTES)) {
        Err(RefusedTime::Future { at })
    } else if at < now.minus(history) {
        Err(RefusedTime::TooOld { at, days: days(history) })
    } else {
        Ok(at.min(now))
    }
}

/// When an imported run ended: as its sender says, else as its files say.
pub fn time_of_import(
    claimed: Option<Timestamp>,
    found: &FoundReport,
    now: Timestamp,
    history: Span,
) -> Result<Timestamp, RefusedTime> {
    let at = claimed.or_else(|| time_of_report(found));
    check_time(at.ok_or(RefusedTime::Unknown)?, now, history)
}

/// When a run ended: when its bundle was made, else when its last test ended; `None` when no test has
/// a start.
pub fn time_of_report(found: &FoundReport) -> Option<Timestamp> {
    let bundled = found.meta.as_ref().and_then(|meta| meta.uploaded_at);
    bundled.or_else(|| {
        let started = found.runs.iter().filter_map(|run| Some((run.started_at?, run.took)));
        let started = started.filter(|(at, _)| is_set(*at));
        started.map(|(at, took)| at.plus(took.unwrap_or_default())).max()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::upload::{BundleMeta, ContentHash};

    const NOW: Timestamp = Timestamp::from_unix_seconds(1_767_225_600);

    fn report(uploaded_at: Option<Timestamp>) -> FoundReport {
        let meta =
            uploaded_at.map(|at| BundleMeta { uploaded_at: Some(at), ..BundleMeta::default() });
        FoundReport { meta, runs: Vec::new(), files: Vec::new(), digest: ContentHash([0; 32]) }
    }

    #[test]
    fn a_run_is_imported_within_the_time_that_results_are_kept() {
        let history = Span::days(45);
        let check = |at: Timestamp| check_time(at, NOW, history);
        let oldest = NOW.minus(history);
        assert_eq!(check(oldest), Ok(oldest));
        let at = oldest.minus(Span::MICROSECOND);
        assert_eq!(check(at), Err(RefusedTime::TooOld { at, days: 45 }));
        let ahead = NOW.plus(Span::minutes(5));
        assert_eq!(check(ahead), Ok(NOW));
        let at = ahead.plus(Span::MICROSECOND);
        assert_eq!(check(at), Err(RefusedTime::Future { at }));
    }

    #[test]
    fn the_sender_knows_the_time_better_than_the_bundle() {
        let (hour, day) = (NOW.minus(Span::hours(1)), NOW.minus(Span::days(1)));
        let time =
            |claimed, bundled| time_of_import(claimed, &report(bundled), NOW, Span::days(45));
        assert_eq!(time(Some(hour), Some(day)), Ok(hour));
        assert_eq!(time(None, Some(day)), Ok(day));
        assert_eq!(time(None, None), Err(RefusedTime::Unknown));
    }
}
