//! Runs that did not fail, as a short text: nearly all runs pass, so this decides what a result costs.
//!
//! A row has the runs of a test that came within [`PERIOD_HOURS`]. Each run is some hexadecimal
//! numbers with points between them and a semicolon at the end, so that texts can be joined:
//! `number.age.took.flags.attempt;`. The number is that of its upload, the age is the microseconds
//! from its start to the end of the row's period, `took` is in microseconds, and flags are a sum of 1
//! (skipped), 2 (counts) and 4 (quarantined). An empty duration is unknown; a missing attempt is 0.

use std::fmt::Write as _;

use signalbox_domain::flaky::{RunOutcome, RunRecord};
use signalbox_domain::time::{Span, Timestamp};

/// How long the period of a row is. It divides a day, by which rows are dropped.
const PERIOD_HOURS: u32 = 6;

const SKIPPED: u8 = 1;
const COUNTS: u8 = 2;
const QUARANTINED: u8 = 4;

/// The start of the period of an upload that came at that time.
pub(crate) fn period(received_at: Timestamp) -> Timestamp {
    received_at.floor(Span::hours(PERIOD_HOURS))
}

/// A run that did not fail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PackedRun {
    /// The number of its upload.
    pub(crate) upload: i64,
    pub(crate) at: Timestamp,
    pub(crate) outcome: RunOutcome,
    pub(crate) attempt: u32,
    pub(crate) counts: bool,
    pub(crate) took: Option<Span>,
    pub(crate) quarantined: bool,
}

impl PackedRun {
    /// A run that did not fail, of the upload with that number.
    pub(crate) fn of(upload: i64, run: &RunRecord) -> Option<Self> {
        (run.outcome != RunOutcome::Failed).then_some(Self {
            upload,
            at: run.at,
            outcome: run.outcome,
            attempt: run.attempt,
            counts: run.counts,
            took: run.took,
            quarantined: run.quarantined,
        })
    }

    /// Whether it passed and counts.
    pub(crate) fn is_counted_pass(&self) -> bool {
        self.counts && self.outcome == RunOutcome::Passed
    }

    /// Adds it to the text of the period that begins at `start`.
    pub(crate) fn write(&self, start: Timestamp, text: &mut String) {
        let age = end(start).since(self.at).micros();
        let flag = |is_set: bool, flag| if is_set { flag } else { 0 };
        let flags = flag(self.outcome == RunOutcome::Skipped, SKIPPED)
            + flag(self.counts, COUNTS)
            + flag(self.quarantined, QUARANTINED);
        // Writing to a string never fails.
        let _ = write!(text, "{:x}.{age:x}.", self.upload);
        if let Some(took) = self.took {
            let _ = write!(text, "{:x}", took.micros());
        }
        let _ = write!(text, ".{flags:x}");
        if self.attempt > 0 {
            let _ = write!(text, ".{:x}", self.attempt);
        }
        text.push(';');
    }
}

/// Reads the text of the period that begins at `start`; `None` if it is damaged.
pub(crate) fn unpack(start: Timestamp, text: &str) -> Option<Vec<PackedRun>> {
    text.split_terminator(';').map(|run| read(end(start), run)).collect()
}

fn read(end: Timestamp, text: &str) -> Option<PackedRun> {
    let mut numbers = text.split('.');
    let upload = i64::from_str_radix(numbers.next()?, 16).ok()?;
    let age = i64::from_str_radix(numbers.next()?, 16).ok()?;
    let took = match numbers.next()? {
        "" => None,
        took => Some(Span::from_micros(i64::from_str_radix(took, 16).ok()?)),
    };
    let flags = u8::from_str_radix(numbers.next()?, 16).ok()?;
    let attempt = numbers.next().map_or(Some(0), |it| u32::from_str_radix(it, 16).ok())?;
    let skipped = flags & SKIPPED != 0;
    Some(PackedRun {
        upload,
        at: end.minus(Span::from_micros(age)),
        outcome: if skipped { RunOutcome::Skipped } else { RunOutcome::Passed },
        attempt,
        counts: flags & COUNTS != 0,
        took,
        quarantined: flags & QUARANTINED != 0,
    })
}

fn end(start: Timestamp) -> Timestamp {
    start.plus(Span::hours(PERIOD_HOURS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_read_as_they_were_written() {
        let came = Timestamp::from_unix_seconds(1_764_000_000);
        let start = period(came);
        let plain = PackedRun {
            upload: 300,
            at: came,
            outcome: RunOutcome::Passed,
            attempt: 0,
            counts: true,
            took: Some(Span::from_micros(1_500_000)),
            quarantined: false,
        };
        let days_before = came.minus(Span::days(3)).plus(Span::MICROSECOND);
        let runs = [
            plain.clone(),
            PackedRun { at: days_before, attempt: 17, quarantined: true, ..plain.clone() },
            PackedRun { outcome: RunOutcome::Skipped, counts: false, took: None, ..plain.clone() },
            PackedRun { upload: i64::MAX, attempt: u32::MAX, took: Some(Span::ZERO), ..plain },
        ];
        let mut text = String::new();
        for run in &runs {
            let mut own = String::new();
            run.write(start, &mut own);
            assert_eq!(unpack(start, &own).as_deref(), Some(std::slice::from_ref(run)));
            text += &own;
        }
        assert_eq!(unpack(start, &text).as_deref(), Some(&runs[..]));
        assert_eq!(unpack(start, ""), Some(Vec::new()));
        for damaged in ["x", "1.2", "1.2.;", "1.2.3.1000;", "1.2.3.0.-1;"] {
            assert_eq!(unpack(start, damaged), None, "{damaged}");
        }
    }

    #[test]
    fn a_usual_run_takes_few_bytes() {
        let start = Timestamp::from_unix_seconds(1_763_985_600);
        let run = PackedRun {
            upload: 9_000,
            at: start.plus(Span::minutes(100)),
            outcome: RunOutcome::Passed,
            attempt: 0,
            counts: true,
            took: Some(Span::from_micros(25_000)),
            quarantined: false,
        };
        let mut text = String::new();
        run.write(start, &mut text);
        assert_eq!(text, "2328.3a1d51c00.61a8.2;");
    }
}
