//! The health of webhook endpoints.

use crate::time::{Span, Timestamp};
use crate::words::words;

use super::Verdict;

/// An endpoint is disabled after this many days without a success.
pub const FAILING_DAYS: u32 = 5;

words! {
    /// Why an endpoint is disabled.
    OffReason {
        /// A client disabled it.
        Requested = "requested",
        /// Every attempt failed for [`FAILING_DAYS`] days.
        Failing = "failing",
        /// The receiver answered 410 Gone.
        Gone = "gone",
    }
}

/// The disabled state of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Off {
    /// Why it is disabled.
    pub reason: OffReason,
    /// When it was disabled.
    pub at: Timestamp,
}

/// Whether an endpoint is on, and its recent failures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// When the present series of failures began; `None` after a success.
    pub failing_since: Option<Timestamp>,
    /// Why it is disabled; `None` if it is on.
    pub off: Option<Off>,
}

impl Health {
    /// Whether it receives messages.
    pub const fn is_on(&self) -> bool {
        self.off.is_none()
    }

    /// Enables an endpoint; earlier failures no longer count.
    #[must_use]
    pub const fn switched_on() -> Self {
        Self { failing_since: None, off: None }
    }

    /// Disables an endpoint on request; one that is already off keeps its reason.
    #[must_use]
    pub const fn switched_off(self, at: Timestamp) -> Self {
        match self.off {
            Some(_) => self,
            None => Self { off: Some(Off { reason: OffReason::Requested, at }), ..self },
        }
    }

    /// The health after an attempt that ended at this time. A disabled endpoint stays disabled.
    #[must_use]
    pub fn after(self, verdict: Verdict, at: Timestamp) -> Self {
        let off = |reason| self.off.or(Some(Off { reason, at }));
        match verdict {
            // A receiver that refuses one message is working.
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
        fn an_endpoint_is_disabled_exactly_after_five_days_of_failures(
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
    fn an_endpoint_that_is_gone_is_disabled_immediately_and_stays_disabled() {
        let off = Health::default().after(Verdict::Gone, START);
        assert_eq!(off.off, Some(Off { reason: OffReason::Gone, at: START }));
        let later = START.plus(Span::days(9));
        assert_eq!(off.after(Verdict::Delivered, later).off, off.off);
        assert_eq!(off.after(Verdict::Retry, later).off, off.off);
        assert_eq!(off.switched_off(later).off, off.off);
        assert!(Health::switched_on().is_on());
    }
}
