//! What is usual in a repository: how many tests fail in an upload that do not often fail.

use crate::time::{Span, Timestamp};

use super::super::{TestId, UploadId};
use super::Failing;

/// The most uploads of a day that say what is usual, the newest ones.
const MAX_UPLOADS: usize = 100;
/// The fewest uploads that do.
const MIN_UPLOADS: usize = 5;
/// The most days that do, the newest ones.
const MAX_DAYS: usize = 28;
/// The most recent failures that are remembered, the newest ones.
const MAX_RECENT: usize = 500;
/// Minutes for which failures are remembered.
pub(super) const RECENT_MINUTES: u32 = 60;

/// An upload, as far as it says what is usual.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
struct Usual(
    /// Tests that were known before.
    u32,
    /// Those of them that failed though they rarely do.
    u32,
);

/// A failure of a test that rarely fails, which is counted so far.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct Recent {
    pub(super) test: TestId,
    pub(super) upload: UploadId,
    pub(super) at: Timestamp,
    pub(super) never_failed: bool,
    pub(super) keys: Vec<String>,
}

/// What was usual on a day.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
struct Day {
    /// The median number of rarely failing tests that failed in an upload.
    count: f64,
    /// The median share of them in the tests of an upload.
    share: f64,
    /// The median deviation from that share.
    deviation: f64,
}

/// The failures of a repository lately, in bounded form.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct FailureHistory {
    /// The day of `uploads`, in days since 1970.
    today: i64,
    /// The uploads of today, the oldest first.
    uploads: Vec<Usual>,
    /// The days before with enough uploads, the oldest first.
    days: Vec<Day>,
    /// The oldest first.
    pub(super) recent: Vec<Recent>,
}

/// What is usual: the median over uploads, and how far they are from it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Baseline {
    /// The median number of rarely failing tests that fail in an upload.
    pub(super) count: f64,
    /// Above that share of the tests of an upload there is a jump.
    pub(super) jump: f64,
    /// Whether there were enough uploads to compute the values.
    pub(super) is_known: bool,
}

/// How many times the usual deviation from the median is a jump. For failures that are independent,
/// one upload in many millions is that far away.
const DEVIATIONS: f64 = 8.0;
/// Makes the median absolute deviation comparable to a standard deviation.
const MAD_SCALE: f64 = 1.4826;
/// The least share of tests that is a jump.
const LEAST_JUMP: f64 = 0.005;
/// The share that is a jump while nothing is known to be usual.
const FIRST_JUMP: f64 = 0.1;

impl FailureHistory {
    /// What is usual: the median of the days, so that a bad day among them changes little.
    pub(super) fn baseline(&self) -> Baseline {
        let days: Vec<Day> = self.days.iter().copied().chain(day_of(&self.uploads)).collect();
        if days.is_empty() {
            return Baseline { count: 0.0, jump: FIRST_JUMP, is_known: false };
        }
        let over = |value: fn(&Day) -> f64| median(days.iter().map(value).collect());
        let (count, share) = (over(|it| it.count), over(|it| it.share));
        let far = (DEVIATIONS * MAD_SCALE * over(|it| it.deviation)).max(2.0 * share);
        Baseline { count, jump: share + far.max(LEAST_JUMP), is_known: true }
    }

    /// Forgets failures that are too long ago.
    pub(super) fn forget(&mut self, at: Timestamp) {
        let from = at.minus(Span::minutes(RECENT_MINUTES));
        self.recent.retain(|it| it.at > from);
    }

    /// Notes how many tests failed in an upload that rarely fail, be it part of an incident or not:
    /// what happens every day is usual.
    pub(super) fn note(&mut self, known: u32, failed: u32, at: Timestamp) {
        let day = at.unix_micros().div_euclid(Span::days(1).micros());
        if day < self.today {
            // An imported run of an earlier day says nothing about today.
            return;
        }
        if day > self.today {
            self.days.extend(day_of(&self.uploads));
            let surplus = self.days.len().saturating_sub(MAX_DAYS);
            self.days.drain(..surplus);
            (self.today, self.uploads) = (day, Vec::new());
        }
        if known > 0 {
            self.uploads.push(Usual(known, failed));
            let surplus = self.uploads.len().saturating_sub(MAX_UPLOADS);
            self.uploads.drain(..surplus);
        }
    }

    /// Remembers failures that are counted.
    pub(super) fn remember(&mut self, surprising: &[&Failing], upload: UploadId, at: Timestamp) {
        self.recent.extend(surprising.iter().map(|it| Recent {
            test: it.test,
            upload,
            at,
            never_failed: it.never_failed,
            keys: it.keys.iter().map(|key| key.digest.clone()).collect(),
        }));
        let surplus = self.recent.len().saturating_sub(MAX_RECENT);
        self.recent.drain(..surplus);
    }
}

/// What the uploads of a day say; nothing when they are too few.
fn day_of(uploads: &[Usual]) -> Option<Day> {
    if uploads.len() < MIN_UPLOADS {
        return None;
    }
    let counts = uploads.iter().map(|it| f64::from(it.1)).collect();
    let shares: Vec<f64> =
        uploads.iter().map(|it| f64::from(it.1) / f64::from(it.0.max(1))).collect();
    let share = median(shares.clone());
    let deviation = median(shares.iter().map(|it| (it - share).abs()).collect());
    Some(Day { count: median(counts), share, deviation })
}

/// The value in the middle; of two the lower one.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len().saturating_sub(1) / 2).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noted(counts: &[u32]) -> FailureHistory {
        let mut history = FailureHistory::default();
        for (day, count) in counts.iter().enumerate() {
            for upload in 0..10 {
                let at = Timestamp::from_unix_seconds(i64::try_from(day).expect("small") * 86_400);
                history.note(1_000, count + upload % 3, at);
            }
        }
        history
    }

    #[test]
    fn a_bad_day_is_not_usual_and_a_new_usual_is_learnt() {
        assert!(!FailureHistory::default().baseline().is_known);
        let before = noted(&[4, 4, 4, 4]).baseline();
        assert_eq!(noted(&[4, 4, 4, 4, 600]).baseline(), before);
        assert!((before.count - 5.0).abs() < 1e-9, "{before:?}");
        assert!(before.jump > 0.015 && before.jump < 0.03, "{before:?}");
        assert_eq!(noted(&[4, 600]).baseline(), noted(&[4]).baseline());
        assert!(noted(&[4, 4, 60, 60, 60, 60, 60]).baseline().count > 50.0);
    }
}
