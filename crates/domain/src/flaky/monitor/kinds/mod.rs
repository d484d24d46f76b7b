//! The one declaration of every kind of monitor.

mod failure_count;
mod failure_rate;
mod failure_streak;
mod pass_on_retry;

pub use failure_count::{FailureCount, FailureCountReading};
pub use failure_rate::{FailureRate, FailureRateReading};
pub use failure_streak::{FailureStreak, FailureStreakReading};
pub use pass_on_retry::{Disagreement, PassOnRetry, PassOnRetryReading, Uncertainty};

/// Passes the rows of all kinds to a macro: documentation, the type of the parameters, the type of
/// the reading, and the word on the wire.
macro_rules! monitors {
    ($make:ident) => {
        $make! {
            /// A failure and a success on the same code.
            PassOnRetry, PassOnRetryReading = "pass_on_retry";
            /// Too large a share of failing runs.
            FailureRate, FailureRateReading = "failure_rate";
            /// Too many failing runs.
            FailureCount, FailureCountReading = "failure_count";
            /// Only failing runs lately.
            FailureStreak, FailureStreakReading = "failure_streak";
        }
    };
}
pub(in crate::flaky) use monitors;
