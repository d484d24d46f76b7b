//! The retry schedule of webhook messages.

use crate::time::{Span, Timestamp};

/// The number of attempts per message, including the first.
pub const ATTEMPTS: u32 = 8;

/// The longest delay that a receiver can request: 10 hours, the longest of the schedule.
pub const LONGEST_WAIT: Span = Span::from_micros(10 * 3_600 * 1_000_000);

/// The largest jitter, in thousandths of the delay.
const MOST_ADDED: i64 = 100;
const WHOLE: i64 = 1_000;

/// A random addition to a delay, so that messages that failed together are not retried together: 0
/// adds nothing, 1000 adds a tenth of the delay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Jitter(u16);

impl Jitter {
    /// No jitter.
    pub const NONE: Self = Self(0);

    /// Jitter from any random number, reduced to 0 to 1000.
    pub const fn new(random: u16) -> Self {
        Self(random % 1_001)
    }
}

/// The delay after this many failures; `None` after the last attempt.
fn pause(failures: u32) -> Option<Span> {
    Some(match failures {
        0 => Span::ZERO,
        1 => Span::seconds(5),
        2 => Span::minutes(5),
        3 => Span::minutes(30),
        4 => Span::hours(2),
        5 => Span::hours(5),
        6 | 7 => Span::hours(10),
        _ => return None,
    })
}

/// When a message is attempted again that has failed this many times, last at `failed_at`; `None`
/// after the last attempt. `not_before`, the receiver's request, delays the attempt by at most
/// [`LONGEST_WAIT`]; it never makes it earlier and adds no attempt.
pub fn next_attempt(
    failures: u32,
    failed_at: Timestamp,
    jitter: Jitter,
    not_before: Option<Timestamp>,
) -> Option<Timestamp> {
    let pause = pause(failures)?;
    let asked = not_before.map_or(Span::ZERO, |at| at.since(failed_at).min(LONGEST_WAIT));
    let pause = pause.max(asked);
    let added = pause.micros() / WHOLE * i64::from(jitter.0) / WHOLE * MOST_ADDED;
    Some(failed_at.plus(pause).plus(Span::from_micros(added)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const START: Timestamp = Timestamp::from_unix_seconds(1_767_225_600);

    #[test]
    fn eight_attempts_take_a_day_three_hours_thirty_five_minutes_and_five_seconds() {
        let (mut at, mut failures) = (START, 0);
        while let Some(next) = next_attempt(failures, at, Jitter::NONE, None) {
            (at, failures) = (next, failures + 1);
        }
        assert_eq!(failures, ATTEMPTS);
        assert_eq!(at.since(START), Span::seconds(27 * 3_600 + 35 * 60 + 5));
    }

    proptest! {
        #[test]
        fn jitter_delays_an_attempt_by_at_most_a_tenth(failures in 0_u32..12, random: u16) {
            let plain = next_attempt(failures, START, Jitter::NONE, None);
            let moved = next_attempt(failures, START, Jitter::new(random), None);
            prop_assert_eq!(plain.is_some(), moved.is_some());
            prop_assert_eq!(plain.is_some(), failures < ATTEMPTS);
            if let (Some(plain), Some(moved)) = (plain, moved) {
                let pause = plain.since(START).micros();
                prop_assert!(moved >= plain);
                prop_assert!(moved.since(plain).micros() <= pause / 10);
            }
        }

        #[test]
        fn a_requested_delay_is_respected_up_to_the_limit(
            failures in 0_u32..12, random: u16, asked in -100_000_i64..1_000_000
        ) {
            let jitter = Jitter::new(random);
            let until = START.plus(Span::from_micros(asked * 1_000_000));
            let plain = next_attempt(failures, START, jitter, None);
            let moved = next_attempt(failures, START, jitter, Some(until));
            prop_assert_eq!(plain.is_some(), moved.is_some());
            if let (Some(plain), Some(moved)) = (plain, moved) {
                prop_assert!(moved >= plain);
                prop_assert!(moved >= until.min(START.plus(LONGEST_WAIT)));
                prop_assert!(moved <= START.plus(Span::hours(11)));
            }
        }

        #[test]
        fn pauses_never_shrink(failures in 0_u32..7) {
            let at = |failures| next_attempt(failures, START, Jitter::NONE, None);
            prop_assert!(at(failures) <= at(failures + 1));
        }
    }
}
