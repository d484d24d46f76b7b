//! A deterministic random number generator.

/// A splitmix64 generator: small, sufficient for choices, and the same on every platform.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mixed(self.0)
    }

    /// A number from 0 to `bound - 1`; 0 for a bound of 0.
    pub(crate) fn below(&mut self, bound: u32) -> u32 {
        let drawn = self.next() % u64::from(bound.max(1));
        u32::try_from(drawn).unwrap_or(0)
    }

    /// A number from `low` to `high`, both included.
    pub(crate) fn between(&mut self, low: u32, high: u32) -> u32 {
        low + self.below(high - low + 1)
    }

    /// True in this many of a thousand cases.
    pub(crate) fn per_mille(&mut self, cases: u32) -> bool {
        self.below(1_000) < cases
    }

    /// A random element; `None` of an empty slice.
    pub(crate) fn pick<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        let at = self.below(u32::try_from(from.len()).ok()?);
        from.get(usize::try_from(at).ok()?)
    }
}

/// A number that depends on all bits of the input.
pub(crate) const fn mixed(number: u64) -> u64 {
    let once = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let twice = (once ^ (once >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    twice ^ (twice >> 31)
}
