//! How the queue's last pull requests ended, and the probability that others pass.

use std::collections::BTreeMap;
use std::sync::Arc;

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
pub(super) const CERTAIN: u64 = 1_000_000;

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

    /// The same for quarters of pull requests, if as many further pull requests as `weight` fail at this
    /// rate.
    fn failing_with(self, rate: u64, weight: u64) -> u64 {
        let further = weight * u64::from(QUARTERS);
        (u64::from(self.failed) * CERTAIN + further * rate) / (u64::from(self.total()) + further)
    }
}

/// How the last pull requests of each author or agent ended, in quarters of a pull request, so that an
/// author's only failure outlasts a halving.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(transparent))]
pub struct ShareOutcomes(Arc<BTreeMap<String, Outcomes>>);

/// The quarters of a pull request.
const QUARTERS: u32 = 4;

impl ShareOutcomes {
    /// Whether nothing has been counted.
    #[cfg(feature = "serde")]
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Each author or agent, with quarters of pull requests.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Outcomes)> {
        self.0.iter().map(|(share, outcomes)| (share.as_str(), *outcomes))
    }

    /// Counts whole pull requests.
    pub(crate) fn add(&mut self, share: &str, Outcomes { merged, failed }: Outcomes) {
        let of_share = Arc::make_mut(&mut self.0).entry(share.to_owned()).or_default();
        of_share.add(Outcomes { merged: QUARTERS * merged, failed: QUARTERS * failed });
    }

    fn halve(&mut self) {
        Arc::make_mut(&mut self.0).retain(|_, outcomes| {
            outcomes.halve();
            outcomes.total() > 0
        });
    }
}

/// Counts an entry that leaves the queue.
pub(super) fn record(header: &mut Header, entry: &Entry, exit: &Exit) {
    let Some(outcome) = Outcomes::of(exit) else { return };
    let Header { outcomes, share_outcomes, settings, .. } = header;
    outcomes.add(outcome);
    match settings.success_estimates {
        SuccessEstimates::Queue => *share_outcomes = ShareOutcomes::default(),
        SuccessEstimates::Authors => {
            share_outcomes.add(share::of(settings, &entry.pull_request), outcome);
        }
    }
    if outcomes.total() > MOST {
        outcomes.halve();
        share_outcomes.halve();
    }
}

/// The failure rates that estimates use.
pub(super) struct Rates<'a> {
    header: &'a Header,
    /// The failure rate of the queue, in millionths.
    of_queue: u64,
    /// With how many pull requests it counts for an author; `None`: alone.
    weight: Option<u64>,
}

impl<'a> Rates<'a> {
    pub(super) fn of(header: &'a Header) -> Self {
        let authors = || header.share_outcomes.iter().map(|(_, outcomes)| outcomes);
        let weight = match header.settings.success_estimates {
            SuccessEstimates::Queue => None,
            SuccessEstimates::Authors => weight(authors),
        };
        Self { header, of_queue: header.outcomes.failing(), weight }
    }

    /// The probability, in millionths, that a pull request fails.
    pub(super) fn failing(&self, entry: &Entry) -> u64 {
        let Some(weight) = self.weight else { return self.of_queue };
        let Header { share_outcomes, settings, .. } = self.header;
        let own = share_outcomes.0.get(share::of(settings, &entry.pull_request));
        own.copied().unwrap_or_default().failing_with(self.of_queue, weight)
    }
}

/// The probability, in percent and rounded down, that no pull request fails, from the probability of each
/// to fail.
pub(super) fn together(failing: impl Iterator<Item = u64>) -> u32 {
    let mut all = CERTAIN;
    for one in failing {
        if all == 0 {
            break;
        }
        all = all * (CERTAIN - one) / CERTAIN;
    }
    u32::try_from(all * 100 / CERTAIN).unwrap_or(100)
}

/// With how many pull requests the queue's failure rate counts beside the outcomes of an author: the fewer,
/// the more the rates of authors differ. `None` if they differ no more than chance explains on average.
///
/// If authors have rates with mean *p* and variance *v*, the best estimate of an author's rate gives *p* the
/// weight of *p* (1 − *p*) ÷ *v* − 1 pull requests. The variance follows from the sum of squared differences,
/// weighted by the number of pull requests, less what chance adds to it: the method of moments for
/// a beta-binomial distribution.
fn weight<I: Iterator<Item = Outcomes>>(authors: impl Fn() -> I) -> Option<u64> {
    let unit = u64::from(QUARTERS);
    let mut all = Outcomes::default();
    authors().for_each(|own| all.add(own));
    let (rate, total) = (all.failing(), u64::from(all.total()));
    let (mut spread, mut squares, mut count) = (0_u64, 0_u64, 0_u64);
    for own in authors() {
        let number = u64::from(own.total());
        let difference = own.failing().abs_diff(rate);
        spread += number * (difference * difference / CERTAIN);
        squares += number * number;
        count += 1;
    }
    let by_chance = rate * (CERTAIN - rate) / CERTAIN;
    let others = count.checked_sub(1)? * unit;
    let excess = spread.checked_sub(others * by_chance)?;
    let known = (total * total).checked_sub(squares)?.checked_sub(others * total)?;
    let variance = (excess * total).checked_div(known)?;
    let weight = by_chance.saturating_sub(variance).checked_div(variance)?;
    Some(weight.max(LEAST))
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
        let mut shares = ShareOutcomes::default();
        for (number, outcomes) in authors.iter().enumerate() {
            all.add(*outcomes);
            shares.add(&number.to_string(), *outcomes);
        }
        let rate = all.failing();
        let weight = weight(|| shares.iter().map(|(_, outcomes)| outcomes));
        let failing = |it: Outcomes| weight.map_or(rate, |weight| it.failing_with(rate, weight));
        shares.iter().map(|(_, outcomes)| failing(outcomes) / 10_000).collect()
    }

    #[test]
    fn authors_count_the_more_the_more_they_differ() {
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
        // f = 0.175, v = 80 (1.75 − 3 × 0.144) ÷ (6400 − 1600 − 240) = 0.0231, w = 0.144 ÷ v − 1 = 5.2.
        let some = [outcomes(18, 2), outcomes(16, 4), outcomes(20, 0), outcomes(12, 8)];
        assert_eq!(estimated(&some), [11, 19, 3, 35]);
        // One pull request of each shows nothing about authors.
        assert_eq!(estimated(&[outcomes(1, 0), outcomes(0, 1), outcomes(0, 1)]), [66; 3]);
    }
}
