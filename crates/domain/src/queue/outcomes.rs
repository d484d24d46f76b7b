//! How the queue's last pull requests ended, and the probability that others pass.

use super::{Exit, MergeReason};

/// How many of the queue's last pull requests were tested and merged, and how many failed their tests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Outcomes {
    /// The number of merged pull requests.
    pub merged: u32,
    /// The number of pull requests whose own tests failed.
    pub failed: u32,
}

/// When both numbers together exceed this, they are halved, so that the last 100 to 200 pull requests
/// count.
const MOST: u32 = 200;

/// From so many pull requests on their outcomes are an estimate: a few failures in a short history show
/// little.
const ENOUGH: u32 = 50;

/// A probability of 1.
const CERTAIN: u64 = 1_000_000;

impl Outcomes {
    /// Whether nothing has been counted.
    #[cfg(feature = "serde")]
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
    pub(super) const fn is_empty(&self) -> bool {
        self.merged == 0 && self.failed == 0
    }

    /// Counts a pull request that leaves the queue. What was cancelled, or merged outside the queue,
    /// or failed for another reason than its tests, does not count.
    pub(super) const fn record(&mut self, exit: &Exit) {
        match exit {
            Exit::Merged { reason: MergeReason::Queue | MergeReason::Direct, .. } => {
                self.merged += 1;
            }
            Exit::Failed { reason, .. } if reason.test_failure().is_some() => self.failed += 1,
            Exit::Merged { .. } | Exit::Failed { .. } | Exit::Cancelled { .. } => return,
        }
        if self.merged + self.failed > MOST {
            self.merged /= 2;
            self.failed /= 2;
        }
    }

    /// Whether an estimate follows from them that is not certain success.
    pub(super) const fn show_failures(self) -> bool {
        self.failed > 0 && self.merged + self.failed >= ENOUGH
    }

    /// The probability, in percent and rounded down, that this many pull requests pass together, if
    /// each fails independently of the others.
    pub fn all_pass(self, count: usize) -> u32 {
        let total = u64::from(self.merged + self.failed).max(1);
        let one = CERTAIN - u64::from(self.failed) * CERTAIN / total;
        let mut all = CERTAIN;
        for _ in 0..count {
            if one == CERTAIN || all == 0 {
                break;
            }
            all = all * one / CERTAIN;
        }
        u32::try_from(all * 100 / CERTAIN).unwrap_or(100)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_probability_follows_from_the_share_of_failures() {
        let outcomes = |merged, failed| Outcomes { merged, failed };
        for (known, count, percent) in [
            (outcomes(0, 0), 1_000, 100),
            (outcomes(90, 0), 1_000, 100),
            (outcomes(90, 10), 0, 100),
            (outcomes(90, 10), 1, 90),
            (outcomes(90, 10), 4, 65),
            (outcomes(90, 10), 8, 43),
            (outcomes(90, 10), 1_000, 0),
            (outcomes(0, 190), 1, 0),
        ] {
            assert_eq!(known.all_pass(count), percent, "{count} after {known:?}");
        }
    }

    #[test]
    fn a_short_history_is_no_estimate() {
        let outcomes = |merged, failed| Outcomes { merged, failed };
        assert!(!outcomes(0, 0).show_failures() && !outcomes(20, 29).show_failures());
        assert!(outcomes(20, 30).show_failures() && !outcomes(200, 0).show_failures());
    }

    #[test]
    fn old_outcomes_count_less() {
        let merged = Exit::Merged {
            reason: MergeReason::Queue,
            sha: None,
            tested_tree: None,
            landed_tree: None,
            proof: None,
        };
        let mut outcomes = Outcomes { merged: 100, failed: 100 };
        for _ in 0..1_000 {
            outcomes.record(&merged);
            assert!(outcomes.merged + outcomes.failed <= MOST, "{outcomes:?}");
        }
        assert_eq!(outcomes.failed, 0);
    }
}
