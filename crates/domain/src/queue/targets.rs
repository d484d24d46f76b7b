//! Impacted targets: which parts of the repository a pull request touches.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::ids::Sha;

use super::Refusal;

/// The most targets that one pull request may report.
pub const MAX_TARGETS: usize = 100_000;

/// How much longer one set must be than another before its places are searched instead of walked.
const SEARCH_FROM: usize = 16;

/// A set of targets that can quickly tell whether it shares one with another.
///
/// Names are kept in the order of their hashes, so that two sets are compared number by number;
/// names are looked at only where the numbers agree, and they decide. Two sets of n and m names
/// take n + m steps, or n·log m when m is far longer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(from = "BTreeSet<String>", into = "BTreeSet<String>"))]
pub struct TargetSet {
    hashes: Box<[u64]>,
    names: Box<[Box<str>]>,
}

impl From<BTreeSet<String>> for TargetSet {
    fn from(names: BTreeSet<String>) -> Self {
        let hash = |name: &str| {
            let mut hasher = DefaultHasher::new();
            name.hash(&mut hasher);
            hasher.finish()
        };
        let mut both: Vec<(u64, Box<str>)> =
            names.into_iter().map(|name| (hash(&name), name.into_boxed_str())).collect();
        both.sort_unstable();
        let (hashes, names): (Vec<u64>, Vec<Box<str>>) = both.into_iter().unzip();
        Self { hashes: hashes.into(), names: names.into() }
    }
}

impl From<TargetSet> for BTreeSet<String> {
    fn from(set: TargetSet) -> Self {
        set.iter().map(ToOwned::to_owned).collect()
    }
}

impl FromIterator<String> for TargetSet {
    fn from_iter<T: IntoIterator<Item = String>>(names: T) -> Self {
        names.into_iter().collect::<BTreeSet<String>>().into()
    }
}

impl TargetSet {
    /// How many targets there are.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// The names, in no order that means anything.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(AsRef::as_ref)
    }

    /// Whether the two sets have a target in common.
    pub fn meets(&self, other: &Self) -> bool {
        let (short, long) = if self.len() <= other.len() { (self, other) } else { (other, self) };
        if short.len() * SEARCH_FROM < long.len() {
            return short.searched_in(long);
        }
        let (mut at, mut of) = (0, 0);
        while let (Some(one), Some(two)) = (short.hashes.get(at), long.hashes.get(of)) {
            match one.cmp(two) {
                Ordering::Less => at += 1,
                Ordering::Greater => of += 1,
                Ordering::Equal => {
                    if short.has_at(at, long, of) {
                        return true;
                    }
                    at += 1;
                }
            }
        }
        false
    }

    fn searched_in(&self, long: &Self) -> bool {
        self.hashes.iter().enumerate().any(|(at, hash)| {
            let of = long.hashes.partition_point(|other| other < hash);
            long.hashes.get(of) == Some(hash) && self.has_at(at, long, of)
        })
    }

    /// Whether the name here is among the names there that have the same hash, of which `of` is
    /// the first.
    fn has_at(&self, at: usize, other: &Self, of: usize) -> bool {
        let hash = self.hashes.get(at);
        let same = other.hashes.iter().skip(of).take_while(|it| Some(*it) == hash).count();
        other.names.iter().skip(of).take(same).any(|name| Some(name) == self.names.get(at))
    }
}

/// The targets themselves.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Targets {
    /// Everything: the pull request meets all others.
    All,
    /// Exactly these, possibly none.
    Only(TargetSet),
}

impl Targets {
    /// Whether two pull requests with these targets depend on each other: everything meets all,
    /// nothing meets only everything.
    pub fn meets(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::All, _) | (_, Self::All) => true,
            (Self::Only(one), Self::Only(two)) => one.meets(two),
        }
    }
}

/// Targets and the head that they were computed for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ReportedTargets {
    /// The head that they hold for; `None` holds for any.
    pub sha: Option<Sha>,
    /// What is touched.
    pub targets: Targets,
}

impl ReportedTargets {
    /// Takes a reported list: empty strings are dropped, repeats count once.
    pub fn only(
        sha: Option<Sha>,
        names: impl IntoIterator<Item = String>,
    ) -> Result<Self, Refusal> {
        let names: BTreeSet<String> = names.into_iter().filter(|name| !name.is_empty()).collect();
        if names.len() > MAX_TARGETS {
            return Err(Refusal::TooManyTargets { given: names.len(), limit: MAX_TARGETS });
        }
        Ok(Self { sha, targets: Targets::Only(names.into()) })
    }

    /// Everything is touched.
    pub const fn all(sha: Option<Sha>) -> Self {
        Self { sha, targets: Targets::All }
    }

    /// Whether they say something about that head.
    pub fn hold_for(&self, head: &Sha) -> bool {
        self.sha.as_ref().is_none_or(|sha| sha == head)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn set(names: &[u16]) -> TargetSet {
        names.iter().map(|name| format!("target-{name}")).collect()
    }

    proptest! {
        #[test]
        fn sets_meet_when_they_share_a_name(
            one in prop::collection::vec(0..400_u16, 0..20),
            two in prop::collection::vec(0..400_u16, 0..600),
        ) {
            let shared = one.iter().any(|name| two.contains(name));
            prop_assert_eq!(set(&one).meets(&set(&two)), shared);
            prop_assert_eq!(set(&two).meets(&set(&one)), shared);
        }
    }

    #[test]
    fn equal_hashes_of_different_names_are_no_meeting() {
        let with = |names: &[&str]| TargetSet {
            hashes: names.iter().map(|_| 7).collect(),
            names: names.iter().map(|name| (*name).into()).collect(),
        };
        assert!(!with(&["a"]).meets(&with(&["b", "c"])));
        assert!(with(&["c"]).meets(&with(&["b", "c"])));
        let long = with(&["d"; 40]);
        assert!(!with(&["a"]).meets(&long));
        assert!(with(&["d"]).meets(&long));
    }

    #[test]
    fn everything_meets_nothing_and_nothing_meets_nothing_else() {
        let (all, none) = (Targets::All, Targets::Only(TargetSet::default()));
        let some = Targets::Only(set(&[1]));
        assert!(all.meets(&none) && none.meets(&all) && all.meets(&all));
        assert!(!none.meets(&none) && !none.meets(&some) && !some.meets(&none));
    }
}
