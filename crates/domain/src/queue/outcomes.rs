//! How the queue's last pull requests ended, and the probability that others pass.

use super::{Entry, Exit, Header, MergeReason, SuccessEstimates, share};

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

/// The outcomes of an author count together with at least so many pull requests of the queue's failure
/// rate, however much authors differ.
const LEAST: u64 = 3;

/// A probability of 1, in the unit of estimates.
const CERTAIN: u64 = 1_000_000;

impl Outcomes {
    /// Whether nothing has been counted.
    #[cfg(feature = "serde")]
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
    pub(super) const fn is_empty(&self) -> bool {
        self.total() == 0
    }

    const fn total(self) -> u32 {
        self.merged + self.failed
    }

    /// The outcome of a pull request that leaves the queue. What was cancelled, or merged outside the
    /// queue, or failed for another reason than its tests, does not count.
    const fn of(exit: &Exit) -> Option<Self> {
        match exit {
            Exit::Merged { reason: MergeReason::Queue | MergeReason::Direct, .. } => {
                Some(Self { merged: 1, failed: 0 })
            }
            Exit::Failed { reason, .. } if reason.test_failure().is_some() => {
                Some(Self { merged: 0, failed: 1 })
            }
            Exit::Merged { .. } | Exit::Failed { .. } | Exit::Cancelled { .. } => None,
        }
    }

    const fn add(&mut self, other: Self) {
        self.merged += other.merged;
        self.failed += other.failed;
    }

    const fn halve(&mut self) {
        self.merged /= 2;
        self.failed /= 2;
    }

    /// Whether an estimate follows from them that is not certain success.
    pub(super) const fn show_failures(self) -> bool {
        self.failed > 0 && self.total() >= ENOUGH
    }

    /// The probability, in millionths, that a pull request fails, if each fails independently of the
    /// others.
    fn failing(self) -> u64 {
        u64::from(self.failed) * CERTAIN / u64::from(self.total()).max(1)
    }

    /// The same, if as many further pull requests as `weight` fail at this rate.
    fn failing_with(self, rate: u64, weight: u64) -> u64 {
        (u64::from(self.failed) * CERTAIN + weight * rate) / (u64::from(self.total()) + weight)
    }
}

/// Counts an entry that leaves the queue.
pub(super) fn record(header: &mut Header, entry: &Entry, exit: &Exit) {
    let Some(outcome) = Outcomes::of(exit) else { return };
    let Header { outcomes, share_outcomes, settings, .. } = header;
    outcomes.add(outcome);
    match settings.success_estimates {
        SuccessEstimates::Queue => share_outcomes.clear(),
        SuccessEstimates::Authors => {
            let share = share::of(settings, &entry.pull_request).to_owned();
            share_outcomes.entry(share).or_default().add(outcome);
        }
    }
    if outcomes.total() > MOST {
        outcomes.halve();
        share_outcomes.retain(|_, outcomes| {
            outcomes.halve();
            outcomes.total() > 0
        });
    }
}

/// The probability, in percent and rounded down, that all these pass together.
pub(super) fn all_pass<'a>(header: &Header, entries: impl IntoIterator<Item = &'a Entry>) -> u32 {
    let Header { outcomes, share_outcomes, settings, .. } = header;
    let of_queue = outcomes.failing();
    let weight = match settings.success_estimates {
        SuccessEstimates::Queue => None,
        SuccessEstimates::Authors => weight(of_queue, share_outcomes.values().copied()),
    };
    let failing = |entry: &Entry| match weight {
        None => of_queue,
        Some(weight) => {
            let own = share_outcomes.get(share::of(settings, &entry.pull_request));
            own.copied().unwrap_or_default().failing_with(of_queue, weight)
        }
    };
    together(entries.into_iter().map(failing))
}

/// The probability, in percent and rounded down, that no pull request fails, from the probability of each
/// to fail.
fn together(failing: impl Iterator<Item = u64>) -> u32 {
    let mut all = CERTAIN;
    for one in failing {
        if all == 0 {
            break;
        }
        all = all * (CERTAIN - one) / CERTAIN;
    }
    u32::try_from(all * 100 / CERTAIN).unwrap_or(100)
}

/// As how many pull requests the queue's failure rate counts beside the outcomes of an author: the fewer,
/// the more the rates of authors differ. `None` if they differ no more than by chance.
///
/// If authors have rates with mean *p* and variance *v*, the best estimate of an author's rate gives *p* the
/// weight of *p* (1 − *p*) ÷ *v* pull requests. The variance follows from the sum of squared differences,
/// weighted by the number of pull requests, less what chance adds to it: the method of moments for
/// a beta-binomial distribution.
fn weight(rate: u64, authors: impl Iterator<Item = Outcomes>) -> Option<u64> {
    let (mut spread, mut total, mut squares, mut count) = (0_u64, 0_u64, 0_u64, 0_u64);
    for own in authors {
        let number = u64::from(own.total());
        let difference = own.failing().abs_diff(rate);
        spread += number * (difference * difference / CERTAIN);
        total += number;
        squares += number * number;
        count += 1;
    }
    let by_chance = rate * (CERTAIN - rate) / CERTAIN;
    let excess = spread.checked_sub(count.saturating_sub(1) * by_chance)?;
    let variance = (excess * total).checked_div(total * total - squares)?;
    Some(by_chance.checked_div(variance)?.max(LEAST))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcomes(merged: u32, failed: u32) -> Outcomes {
        Outcomes { merged, failed }
    }

    #[test]
    fn the_probability_follows_from_the_share_of_failures() {
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
            let all = std::iter::repeat_n(known.failing(), count);
            assert_eq!(together(all), percent, "{count} after {known:?}");
        }
    }

    #[test]
    fn a_short_history_is_no_estimate() {
        assert!(!outcomes(0, 0).show_failures() && !outcomes(20, 29).show_failures());
        assert!(outcomes(20, 30).show_failures() && !outcomes(200, 0).show_failures());
    }

    /// The failure rates of authors in percent, estimated from what each has merged and failed.
    fn estimated(authors: &[Outcomes]) -> Vec<u64> {
        let mut all = Outcomes::default();
        authors.iter().for_each(|it| all.add(*it));
        let rate = all.failing();
        let weight = weight(rate, authors.iter().copied());
        let failing =
            |it: &Outcomes| weight.map_or(rate, |weight| it.failing_with(rate, weight)) / 10_000;
        authors.iter().map(failing).collect()
    }

    #[test]
    fn authors_count_as_far_as_they_differ_by_more_than_chance() {
        // Ten pull requests of each: none, one or two failed, as chance has it.
        let alike = [outcomes(10, 0), outcomes(9, 1), outcomes(8, 2), outcomes(9, 1)];
        assert_eq!(estimated(&alike), [10; 4]);
        assert_eq!(estimated(&[outcomes(40, 60)]), [60], "there is no other to differ from");
        assert!(estimated(&[]).is_empty());
        assert_eq!(estimated(&[outcomes(50, 0), outcomes(50, 0)]), [0, 0]);
        // 3 % fail of most, and 30 % of an agent.
        let agent = [outcomes(97, 3), outcomes(35, 15), outcomes(2, 0), outcomes(1, 1)];
        assert_eq!(estimated(&agent), [3, 29, 7, 27]);
        assert_eq!(estimated(&[outcomes(100, 0), outcomes(0, 100)]), [1, 98], "never certain");
    }
}
