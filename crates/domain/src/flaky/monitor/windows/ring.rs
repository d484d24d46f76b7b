//! Counts of runs by time, kept as a short text.

use std::fmt::{self, Write as _};

use super::super::Period;
use crate::time::{Span, Timestamp};

/// The bytes of the shortest bucket in a text: a space and a number.
const SHORTEST: usize = 2;
/// The most bytes of a text before its first count, as long as times have usual lengths.
const MOST_BEFORE: usize = 24;
/// The bytes of a bucket with a number of usual length.
const USUAL: usize = 3;

/// Runs of one bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Count {
    /// Its start, in lengths since 1970.
    at: i64,
    passed: u32,
    failed: u32,
}

/// Runs by time in buckets of one length, the oldest first. Buckets without runs are not kept.
///
/// Its text has the length in minutes, then the buckets: how many lengths after the one before a
/// bucket begins, its passing runs and, if there are any, its failing runs. A bucket that directly
/// follows the one before, in which no run failed, is only the number of its passing runs.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(into = "String", try_from = "String"))]
pub(super) struct Ring {
    length: Span,
    counts: Vec<Count>,
}

impl Ring {
    pub(super) const fn new(length: Span) -> Self {
        Self { length, counts: Vec::new() }
    }

    pub(super) const fn length(&self) -> Span {
        self.length
    }

    fn index(&self, at: Timestamp) -> i64 {
        at.unix_micros().div_euclid(self.length.micros().max(1))
    }

    fn start(&self, index: i64) -> Timestamp {
        Timestamp::from_unix_micros(index.saturating_mul(self.length.micros()))
    }

    /// Counts runs that started in the bucket of that time.
    pub(super) fn add(&mut self, start: Timestamp, passed: u32, failed: u32) {
        let at = self.index(start);
        match self.counts.binary_search_by_key(&at, |count| count.at) {
            Ok(found) => {
                if let Some(count) = self.counts.get_mut(found) {
                    count.passed = count.passed.saturating_add(passed);
                    count.failed = count.failed.saturating_add(failed);
                }
            }
            Err(place) => self.counts.insert(place, Count { at, passed, failed }),
        }
    }

    /// Takes failing runs back that were counted in the bucket of that time.
    pub(super) fn take(&mut self, start: Timestamp, failed: u32) {
        let at = self.index(start);
        if let Some(count) = self.counts.iter_mut().find(|count| count.at == at) {
            count.failed = count.failed.saturating_sub(failed);
        }
        self.counts.retain(|count| count.passed > 0 || count.failed > 0);
    }

    /// The start of the last bucket with a failing run.
    pub(super) fn last_failing(&self) -> Option<Timestamp> {
        let last = self.counts.iter().rev().find(|count| count.failed > 0);
        last.map(|count| self.start(count.at))
    }

    /// Drops the buckets that began at that time or before it.
    pub(super) fn forget_until(&mut self, until: Timestamp) {
        let gone = self.counts.partition_point(|count| self.start(count.at) <= until);
        self.counts.drain(..gone);
    }

    /// Runs by bucket, of buckets that began after `from`, and not after `until`.
    pub(super) fn periods(&self, from: Timestamp, until: Timestamp) -> Vec<Period> {
        let periods = self.counts.iter().map(|count| {
            let (start, passed, failed) = (self.start(count.at), count.passed, count.failed);
            Period { start, passed, failed }
        });
        periods.filter(|period| period.start > from && period.start <= until).collect()
    }

    /// The passing and failing runs of buckets that began after `from`, and not after `until`.
    pub(super) fn sum(&self, from: Timestamp, until: Timestamp) -> (u32, u32) {
        let within = |count: &&Count| {
            let start = self.start(count.at);
            start > from && start <= until
        };
        self.counts.iter().filter(within).fold((0, 0), |(passed, failed), count| {
            (count.passed.saturating_add(passed), count.failed.saturating_add(failed))
        })
    }
}

impl From<Ring> for String {
    fn from(ring: Ring) -> Self {
        let mut text = Self::with_capacity(MOST_BEFORE + ring.counts.len() * USUAL);
        push(&mut text, ring.length.micros() / Span::minutes(1).micros());
        let mut last = 0;
        for count in &ring.counts {
            let gap = count.at.saturating_sub(last);
            last = count.at;
            text.push(' ');
            if gap != 1 || count.failed > 0 {
                push(&mut text, gap);
                text.push(':');
            }
            push(&mut text, count.passed.into());
            if count.failed > 0 {
                text.push(':');
                push(&mut text, count.failed.into());
            }
        }
        text
    }
}

/// Adds a number. Each upload writes about fifty for each of its tests, nearly all with one or two
/// digits, and formatting takes several times as long for these.
fn push(text: &mut String, number: i64) {
    match u8::try_from(number) {
        Ok(digit @ 0..=9) => text.push(char::from(b'0' + digit)),
        Ok(digits @ 10..=99) => {
            text.push(char::from(b'0' + digits / 10));
            text.push(char::from(b'0' + digits % 10));
        }
        _ => {
            // Writing to a string never fails.
            let _ = write!(text, "{number}");
        }
    }
}

/// A text that is no ring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NoRing(String);

impl fmt::Display for NoRing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "invalid counts of a window: {:?}", self.0)
    }
}

impl TryFrom<String> for Ring {
    type Error = NoRing;

    fn try_from(text: String) -> Result<Self, NoRing> {
        parse(&text).ok_or(NoRing(text))
    }
}

fn parse(text: &str) -> Option<Ring> {
    let mut words = text.split(' ');
    let minutes: u32 = words.next()?.parse().ok().filter(|it| *it > 0)?;
    let mut ring = Ring::new(Span::minutes(minutes));
    ring.counts.reserve(text.len() / SHORTEST);
    let mut at = 0_i64;
    for word in words {
        let (gap, passed, failed) = match word.as_bytes() {
            [digit @ b'0'..=b'9'] => (1, u32::from(digit - b'0'), 0),
            [tens @ b'0'..=b'9', digit @ b'0'..=b'9'] => {
                (1, u32::from(tens - b'0') * 10 + u32::from(digit - b'0'), 0)
            }
            _ => bucket(word)?,
        };
        at = at.checked_add(gap)?;
        ring.counts.push(Count { at, passed, failed });
    }
    Some(ring)
}

/// Reads the gap, the passing runs and the failing runs of a bucket.
fn bucket(word: &str) -> Option<(i64, u32, u32)> {
    let Some((gap, counts)) = word.split_once(':') else {
        return Some((1, word.parse().ok()?, 0));
    };
    let (passed, failed) = counts.split_once(':').unwrap_or((counts, "0"));
    Some((gap.parse().ok()?, passed.parse().ok()?, failed.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_is_read_as_it_was_written() {
        let mut ring = Ring::new(Span::minutes(30));
        let at =
            |minutes: u32| Timestamp::from_unix_seconds(1_764_000_000).plus(Span::minutes(minutes));
        ring.add(at(95), 2, 0);
        ring.add(at(1), 0, 3);
        ring.add(at(2), 1, 0);
        let text = String::from(ring.clone());
        assert_eq!(text, "30 980000:1:3 3:2");
        assert_eq!(Ring::try_from(text), Ok(ring.clone()));
        assert_eq!(ring.sum(at(0).minus(Span::MICROSECOND), at(95)), (3, 3));
        assert_eq!(ring.sum(at(0), at(95)), (2, 0));
        ring.forget_until(at(0));
        assert_eq!(String::from(ring.clone()), "30 980003:2");
        ring.add(at(125), 12, 0);
        let text = String::from(ring.clone());
        assert_eq!(text, "30 980003:2 12");
        for passed in [9, 10, 99, 100, 65_536] {
            let mut next = ring.clone();
            next.add(at(155), passed, 0);
            let text = String::from(next.clone());
            assert_eq!(text, format!("30 980003:2 12 {passed}"));
            assert_eq!(Ring::try_from(text), Ok(next));
        }
        assert_eq!(Ring::try_from(text), Ok(ring.clone()));
        assert_eq!(
            Ring::try_from("30 980003:2 1:12".to_owned()),
            Ok(ring),
            "as it was once written"
        );
        for text in ["", "0", "x", "5 ", "5 1  2", "5 x", "5 1:x", "5 1:2:x", "5 1:2:3:4"] {
            assert!(Ring::try_from(text.to_owned()).is_err(), "{text}");
        }
    }
}
