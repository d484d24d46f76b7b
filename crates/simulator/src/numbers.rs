//! Statistics: samples, percentiles and confidence intervals.

use crate::random::Random;

/// How often a sample is drawn again for a confidence interval.
const RESAMPLES: u32 = 2_000;
/// The seed of those draws.
const SEED: u64 = 20;

/// A sorted sample.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sample(Vec<f64>);

impl FromIterator<f64> for Sample {
    fn from_iter<T: IntoIterator<Item = f64>>(values: T) -> Self {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_unstable_by(f64::total_cmp);
        Self(values)
    }
}

impl Sample {
    /// The number of values.
    pub const fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are no values.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The mean; 0 of an empty sample.
    pub fn mean(&self) -> f64 {
        ratio(self.0.iter().sum(), self.len())
    }

    /// The least value that at least this many percent of the values do not exceed; 0 of an empty
    /// sample.
    pub fn percentile(&self, percent: u32) -> f64 {
        let hundred = usize::try_from(percent.min(100)).unwrap_or(100);
        let rank = (self.len() * hundred).div_ceil(100).max(1);
        self.0.get(rank - 1).copied().unwrap_or_default()
    }

    /// The median.
    pub fn median(&self) -> f64 {
        self.percentile(50)
    }

    /// The mean with its 95 % bootstrap interval: the values are drawn again with replacement, and
    /// the middle 95 % of the means count.
    pub fn interval(&self) -> Interval {
        self.bootstrap(|values| ratio(values.iter().sum(), values.len()))
    }

    /// The median with its 95 % bootstrap interval.
    pub fn median_interval(&self) -> Interval {
        self.bootstrap(|values| {
            if values.is_empty() {
                return 0.0;
            }
            *values.select_nth_unstable_by(values.len().div_ceil(2) - 1, f64::total_cmp).1
        })
    }

    fn bootstrap(&self, of: impl Fn(&mut [f64]) -> f64) -> Interval {
        let count = u32::try_from(self.len()).unwrap_or(u32::MAX);
        let mut random = Random::keyed(&[SEED]);
        let mut redraw = |_| {
            let drawn = (0..count).map(|_| {
                let at = usize::try_from(random.below(count)).unwrap_or_default();
                self.0.get(at).copied().unwrap_or_default()
            });
            of(&mut drawn.collect::<Vec<f64>>())
        };
        let mut found: Vec<f64> = (0..RESAMPLES).map(&mut redraw).collect();
        found.sort_unstable_by(f64::total_cmp);
        let rank = |per_mille: usize| {
            let at = (found.len() * per_mille).div_ceil(1_000).max(1) - 1;
            found.get(at).copied().unwrap_or_default()
        };
        Interval { mean: of(&mut self.0.clone()), low: rank(25), high: rank(975) }
    }
}

/// A mean or a median with its 95 % interval.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "json", derive(serde::Serialize))]
pub struct Interval {
    /// The mean, or the median.
    pub mean: f64,
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

/// A count as a number for arithmetic.
pub(crate) fn float(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

/// A sum per item; 0 without items.
pub(crate) fn ratio(sum: f64, items: usize) -> f64 {
    if items == 0 { 0.0 } else { sum / float(items) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_of_the_sample() {
        let sample: Sample = [4.0, 1.0, 3.0, 2.0].into_iter().collect();
        let found = [0, 25, 26, 50, 95, 100].map(|percent| sample.percentile(percent).to_string());
        assert_eq!(found, ["1", "1", "2", "2", "4", "4"]);
        assert_eq!(Sample::default().percentile(50).to_string(), "0");
    }

    #[test]
    fn an_interval_contains_the_true_mean_about_as_often_as_it_says() {
        let mut random = Random::keyed(&[7]);
        let mut draw = || (0..20).map(|_| random.normal()).collect::<Sample>().interval();
        let intervals: Vec<Interval> = (0..200).map(|_| draw()).collect();
        let holds = intervals.iter().filter(|it| it.low <= 0.0 && 0.0 <= it.high).count();
        // A bootstrap over 20 values is slightly too narrow.
        assert!((176..=196).contains(&holds), "{holds} of 200");
    }
}
