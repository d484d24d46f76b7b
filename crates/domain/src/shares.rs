//! Shares of a limited amount, such as places or bytes: how much each holder may have of it, so
//! that no holder takes everything.

use std::collections::BTreeMap;

/// A limited amount, and how much of it each holder has.
#[derive(Clone, Debug)]
pub struct Shares<K> {
    most: u64,
    used: u64,
    held: BTreeMap<K, u64>,
}

/// Why nothing was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exhausted<K> {
    /// Too little is left of the whole amount.
    All,
    /// The share of this holder is too small.
    Share(K),
}

impl<K: Ord + Copy> Shares<K> {
    /// The whole amount, of which nothing is taken.
    pub const fn new(most: u64) -> Self {
        Self { most, used: 0, held: BTreeMap::new() }
    }

    /// The whole amount.
    pub const fn most(&self) -> u64 {
        self.most
    }

    /// The amount that is taken.
    pub const fn used(&self) -> u64 {
        self.used
    }

    /// The amount that a holder has.
    pub fn held(&self, holder: K) -> u64 {
        self.held.get(&holder).copied().unwrap_or(0)
    }

    /// Takes an amount on behalf of every listed holder; each may have at most what is listed with
    /// it. When the amount exceeds a share or the whole, nothing is taken.
    pub fn take(&mut self, amount: u64, holders: &[(K, u64)]) -> Result<(), Exhausted<K>> {
        for (holder, most) in holders {
            if self.held(*holder).saturating_add(amount) > *most {
                return Err(Exhausted::Share(*holder));
            }
        }
        if self.used.saturating_add(amount) > self.most {
            return Err(Exhausted::All);
        }
        self.add(amount, holders.iter().map(|(holder, _)| *holder));
        Ok(())
    }

    /// Counts an amount that is in use already, whether it fits or not.
    pub fn add(&mut self, amount: u64, holders: impl IntoIterator<Item = K>) {
        self.used = self.used.saturating_add(amount);
        for holder in holders {
            let held = self.held.entry(holder).or_insert(0);
            *held = held.saturating_add(amount);
        }
    }

    /// Returns an amount on behalf of these holders.
    pub fn give_back(&mut self, amount: u64, holders: impl IntoIterator<Item = K>) {
        self.used = self.used.saturating_sub(amount);
        for holder in holders {
            if let Some(held) = self.held.get_mut(&holder) {
                *held = held.saturating_sub(amount);
                if *held == 0 {
                    self.held.remove(&holder);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_holder_gets_no_more_than_its_share_and_leaves_the_rest_to_others() {
        let mut shares = Shares::new(10);
        assert_eq!(shares.take(4, &[("a", 5), ("public", 6)]), Ok(()));
        assert_eq!(shares.take(2, &[("a", 5)]), Err(Exhausted::Share("a")));
        assert_eq!(shares.take(3, &[("b", 5), ("public", 6)]), Err(Exhausted::Share("public")));
        assert_eq!((shares.used(), shares.held("b")), (4, 0), "a refusal takes nothing");
        assert_eq!(shares.take(6, &[("c", 9)]), Ok(()));
        assert_eq!(shares.take(1, &[("d", 1)]), Err(Exhausted::All));
        shares.give_back(4, ["a", "public"]);
        assert_eq!((shares.used(), shares.held("a"), shares.held("public")), (6, 0, 0));
        assert_eq!(shares.take(2, &[("a", 5)]), Ok(()));
    }

    #[test]
    fn what_is_found_in_use_counts_even_beyond_the_limit() {
        let mut shares = Shares::new(10);
        shares.add(25, ["a"]);
        assert_eq!(shares.take(1, &[("b", 10)]), Err(Exhausted::All));
        shares.give_back(100, ["a"]);
        assert_eq!((shares.used(), shares.held("a")), (0, 0));
    }
}
