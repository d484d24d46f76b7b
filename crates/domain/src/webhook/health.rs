//! Whether an endpoint is sent anything.

use crate::time::{Span, Timestamp};
use crate::words::words;

use super::Verdict;

/// Days of nothing but failures after which an endpoint is switched off.
pub const FAILING_DAYS: u32 = 5;

words! {
    /// Why an endpoint is switched off.
    OffReason {
        /// Somebody asked for it.
        Requested = "requested",
        /// Every try failed for [`FAILING_DAYS`] days.
        Failing = "failing",
        /// The receiver said that it is gone.
        Gone = "gone",
    }
}

/// That an endpoint is switched off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Off {
    /// Why.
    pub reason: OffReason,
    /// Since when.
    pub at: Timestamp,
}

/// Whether an endpoint is sent anything, and how it has been.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// When the first of the failures was that no success has followed.
    pub failing_since: Option<Timestamp>,
    /// Why it is sent nothing; `None`: it is.
    pub off: Option<Off>,
}

impl Health {
    /// Whether it is sent messages.
    pub const fn is_on(&self) -> bool {
        self.off.is_none()
    }

    /// Switched on anew: what failed before does not count.
    #[must_use]
    pub const fn switched_on() -> Self {
        Self { failing_since: None, off: None }
    }

    /// Switched off because somebody asked for it; one that is off stays off as it was.
    #[must_use]
    pub const fn switched_off(self, at: Timestamp) -> Self {
        match self.off {
            Some(_) => self,
            None => Self { off: Some(Off { reason: OffReason::Requested, at }), ..self },
        }
    }

    /// After a try that ended at that time. One that is off stays off.
    #[must_use]
    pub fn after(self, verdict: Verdict, at: Timestamp) -> Self {
        let off = |reason| self.off.or(Some(Off { reason, at }));
        match verdict {
            // Saying no to one message is an answer of a receiver that works.
            Verdict::Delivered | Verdict::Abort => Self { failing_since: None, ..self },
            Verdict::Gone => Self { off: off(OffReason::Gone), ..self },
            Verdict::Retry => {
                let since = self.failing_since.unwrap_or(at);
                let too_long = at.since(since) >= Span::days(FAILING_DAYS);
                let off = if too_long { off(OffReason::Failing) } else { self.off };
                Self { failing_since: Some(since), off }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const START: Timestamp = Timestamp::from_unix_seconds(1_767_225_600);

    fn verdict() -> impl Strategy<Value = Verdict> {
        prop_oneof![
            6 => Just(Verdict::Retry),
            1 => Just(Verdict::Delivered),
            1 => Just(Verdict::Abort),
        ]
    }

    proptest! {
        #[test]
        fn it_is_off_exactly_when_five_days_had_failures_only(
            tries in prop::collection::vec((verdict(), 0_u32..200_000), 1..60)
        ) {
            let (mut health, mut at, mut first) = (Health::default(), START, None);
            for (verdict, pause) in tries {
                at = at.plus(Span::seconds(pause));
                let was_on = health.is_on();
                health = health.after(verdict, at);
                first = if verdict == Verdict::Retry { first.or(Some(at)) } else { None };
                let too_long = first.is_some_and(|it| at.since(it) >= Span::days(5));
                prop_assert_eq!(health.is_on(), was_on && !too_long);
                prop_assert_eq!(health.failing_since, first);
            }
        }
    }

    #[test]
    fn a_receiver_that_is_gone_is_off_at_once_and_stays_off() {
        let off = Health::default().after(Verdict::Gone, START);
        assert_eq!(off.off, Some(Off { reason: OffReason::Gone, at: START }));
        let later = START.plus(Span::days(9));
        assert_eq!(off.after(Verdict::Delivered, later).off, off.off);
        assert_eq!(off.after(Verdict::Retry, later).off, off.off);
        assert_eq!(off.switched_off(later).off, off.off);
        assert!(Health::switched_on().is_on());
    }
}
