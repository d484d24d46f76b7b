//! When a message that could not be delivered is tried again.

use crate::time::{Span, Timestamp};

/// How often a message is tried, the first time included.
pub const ATTEMPTS: u32 = 8;

/// The longest pause that a receiver may ask for: as long as the longest of the schedule.
pub const LONGEST_WAIT: Span = Span::from_micros(10 * 3_600 * 1_000_000);

/// The part of a pause, in thousandths, that the largest jitter adds.
const MOST_ADDED: i64 = 100;
const WHOLE: i64 = 1_000;

/// How much later than the schedule says a try is made, so that messages which failed together are
/// not tried together: 0 adds nothing, 1000 adds a tenth of the pause. Never earlier.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Jitter(u16);

impl Jitter {
    /// Nothing is added.
    pub const NONE: Self = Self(0);

    /// From any number; what is over 1000 is brought into the range.
    pub const fn new(random: u16) -> Self {
        Self(random % 1_001)
    }
}

/// The pause after that many failures of a message; `None` after the last.
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

/// When a message is tried next that has failed that often, the last time at `failed_at`. `None`:
/// never. A receiver that asked to be left alone until `not_before` is, but for [`LONGEST_WAIT`] at
/// most; it cannot have a try earlier than the schedule says, nor one more.
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
        fn jitter_makes_a_try_later_by_a_tenth_at_most(failures in 0_u32..12, random: u16) {
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
        fn who_asks_to_be_left_alone_is_but_not_for_ever(
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
