//! Random numbers that depend on a seed alone.

/// A splitmix64 generator: the same numbers on every platform.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    /// A generator whose numbers depend on all parts of the key.
    pub(crate) fn keyed(key: &[u64]) -> Self {
        Self(key.iter().fold(0, |state, part| mixed(state ^ mixed(part.wrapping_add(1)))))
    }

    pub(crate) const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mixed(self.0)
    }

    /// A number from 0 to below 1.
    pub(crate) fn share(&mut self) -> f64 {
        let bits = u32::try_from(self.next() >> 32).unwrap_or_default();
        f64::from(bits) / 4_294_967_296.0
    }

    pub(crate) fn is(&mut self, probability: f64) -> bool {
        self.share() < probability
    }

    /// A number from 0 to `bound - 1`; 0 for a bound of 0.
    pub(crate) fn below(&mut self, bound: u32) -> u32 {
        u32::try_from(self.next() % u64::from(bound.max(1))).unwrap_or_default()
    }

    /// Exponentially distributed, with this mean.
    pub(crate) fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.share()).ln()
    }

    /// Normally distributed, with mean 0 and standard deviation 1 (Box and Muller).
    pub(crate) fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.share()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.share()).cos()
    }
}

/// A number that depends on all bits of the input.
pub(crate) const fn mixed(number: u64) -> u64 {
    let once = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let twice = (once ^ (once >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    twice ^ (twice >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean_of(count: u32, mut draw: impl FnMut() -> f64) -> f64 {
        (0..count).map(|_| draw()).sum::<f64>() / f64::from(count)
    }

    #[test]
    fn distributions_have_their_means() {
        let mut random = Random::keyed(&[1]);
        assert!((mean_of(100_000, || random.share()) - 0.5).abs() < 0.005);
        assert!((mean_of(100_000, || random.exponential(3.0)) - 3.0).abs() < 0.05);
        assert!(mean_of(100_000, || random.normal()).abs() < 0.02);
        assert!((mean_of(100_000, || random.normal().powi(2)) - 1.0).abs() < 0.03);
    }

    #[test]
    fn every_part_of_a_key_counts() {
        let first = |key: &[u64]| Random::keyed(key).next();
        assert_eq!(first(&[1, 2]), first(&[1, 2]));
        assert_ne!(first(&[1, 2]), first(&[2, 1]));
        assert_ne!(first(&[0, 0]), first(&[0]));
    }
}
