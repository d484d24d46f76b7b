//! Impacted targets: which parts of the repository a pull request touches.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use sha2::{Digest, Sha256};

use crate::ids::Sha;

/// How much longer one set must be than another before its places are searched instead of walked.
const SEARCH_FROM: usize = 16;
/// How many names two sets must have together before the result of comparing them is remembered.
const REMEMBER_FROM: usize = 2_048;
/// The most results that a set remembers.
const REMEMBERED: usize = 4_096;

/// A set of targets that can quickly tell whether it shares one with another.
///
/// Names are kept in the order of their hashes, so that two sets are compared number by number;
/// names are looked at only where the numbers agree, and they decide. Two sets of n and m names
/// take n + m steps, or n·log m when m is far longer; large sets that are compared again take none,
/// because both remember the result. A set takes 16 bytes for each name besides the name.
#[derive(Clone, Default)]
pub struct TargetSet {
    hashes: Box<[u64]>,
    /// Where each name ends in the text; it starts where the one before ends.
    ends: Box<[usize]>,
    text: Box<str>,
    compared: Arc<Compared>,
}

/// What a set knows of others. Clones share it; it is no part of the value.
#[derive(Default)]
struct Compared {
    fingerprint: OnceLock<Fingerprint>,
    /// Whether the sets with these fingerprints have a target in common with this one.
    known: Mutex<BTreeMap<Fingerprint, bool>>,
}

/// The SHA-256 of all names of a set.
type Fingerprint = [u8; 32];

impl PartialEq for TargetSet {
    fn eq(&self, other: &Self) -> bool {
        self.ends == other.ends && self.text == other.text
    }
}

impl Eq for TargetSet {}

impl fmt::Debug for TargetSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

/// A set of targets that names are added to.
#[derive(Clone, Debug, Default)]
pub struct TargetSetBuilder {
    text: String,
    /// The hash of each name, and where it starts and ends in the text.
    names: Vec<(u64, usize, usize)>,
}

impl TargetSetBuilder {
    /// Adds a name; one that is there already counts once.
    pub fn add(&mut self, name: &str) {
        let mut hasher = DefaultHasher::new();
        name.hash(&mut hasher);
        let start = self.text.len();
        self.text.push_str(name);
        self.names.push((hasher.finish(), start, self.text.len()));
    }

    /// The set.
    pub fn build(self) -> TargetSet {
        let Self { text, mut names } = self;
        let name = |start: usize, end: usize| text.get(start..end).unwrap_or_default();
        names.sort_unstable_by(|one, other| {
            let by_name = || name(one.1, one.2).cmp(name(other.1, other.2));
            one.0.cmp(&other.0).then_with(by_name)
        });
        names.dedup_by(|one, other| {
            one.0 == other.0 && name(one.1, one.2) == name(other.1, other.2)
        });
        TargetSet::sorted(names.iter().map(|(hash, start, end)| (*hash, name(*start, *end))))
    }
}

impl<S: AsRef<str>> FromIterator<S> for TargetSet {
    fn from_iter<T: IntoIterator<Item = S>>(names: T) -> Self {
        let mut builder = TargetSetBuilder::default();
        for name in names {
            builder.add(name.as_ref());
        }
        builder.build()
    }
}

impl TargetSet {
    /// Takes names in the order of their hashes, each once.
    fn sorted<'a>(names: impl ExactSizeIterator<Item = (u64, &'a str)>) -> Self {
        let (mut hashes, mut ends) =
            (Vec::with_capacity(names.len()), Vec::with_capacity(names.len()));
        let mut text = String::new();
        for (hash, name) in names {
            text.push_str(name);
            hashes.push(hash);
            ends.push(text.len());
        }
        let (hashes, ends) = (hashes.into(), ends.into());
        Self { hashes, ends, text: text.into(), compared: Arc::default() }
    }

    /// How many targets there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The names, in no order that means anything.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &str> {
        (0..self.len()).map(|at| self.name(at))
    }

    fn name(&self, at: usize) -> &str {
        let end_of = |at: usize| self.ends.get(at).copied().unwrap_or_default();
        let start = at.checked_sub(1).map_or(0, end_of);
        self.text.get(start..end_of(at)).unwrap_or_default()
    }

    /// Whether the two sets have a target in common.
    pub fn meets(&self, other: &Self) -> bool {
        if self.len() + other.len() < REMEMBER_FROM {
            return self.shares_one_with(other);
        }
        let (own, theirs) = (self.fingerprint(), other.fingerprint());
        if let Some(known) = self.compared.recall(theirs).or_else(|| other.compared.recall(own)) {
            return known;
        }
        let met = self.shares_one_with(other);
        self.compared.remember(theirs, met);
        other.compared.remember(own, met);
        met
    }

    fn shares_one_with(&self, other: &Self) -> bool {
        let (short, long) = if self.len() <= other.len() { (self, other) } else { (other, self) };
        if short.len() * SEARCH_FROM < long.len() {
            return short.searched_in(long);
        }
        let (mut at, mut of) = (0, 0);
        while let (Some(one), Some(two)) = (short.hashes.get(at), long.hashes.get(of)) {
            if one == two && short.has_at(at, long, of) {
                return true;
            }
            // Without branches, which a processor could not foresee.
            let order = one.cmp(two);
            at += usize::from(order != Ordering::Greater);
            of += usize::from(order == Ordering::Greater);
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
        (of..of + same).any(|of| other.name(of) == self.name(at))
    }

    fn fingerprint(&self) -> &Fingerprint {
        self.compared.fingerprint.get_or_init(|| {
            let mut hash = Sha256::new();
            for end in &self.ends {
                hash.update(end.to_le_bytes());
            }
            hash.update(self.text.as_bytes());
            hash.finalize().into()
        })
    }
}

impl Compared {
    fn recall(&self, other: &Fingerprint) -> Option<bool> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).get(other).copied()
    }

    fn remember(&self, other: &Fingerprint, met: bool) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= REMEMBERED {
            known.clear();
        }
        known.insert(*other, met);
    }
}

#[cfg(feature = "serde")]
mod documents {
    use std::fmt;

    use serde::de::{Deserialize, Deserializer, SeqAccess, Visitor};
    use serde::ser::{Serialize, Serializer};

    use super::{TargetSet, TargetSetBuilder};

    impl Serialize for TargetSet {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.collect_seq(self.iter())
        }
    }

    impl<'de> Deserialize<'de> for TargetSet {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            struct Names;

            impl<'de> Visitor<'de> for Names {
                type Value = TargetSet;

                fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    f.write_str("an array of names")
                }

                fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<TargetSet, A::Error> {
                    let mut builder = TargetSetBuilder::default();
                    while let Some(name) = list.next_element::<String>()? {
                        builder.add(&name);
                    }
                    Ok(builder.build())
                }
            }

            deserializer.deserialize_seq(Names)
        }
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
    pub fn only<S: AsRef<str>>(sha: Option<Sha>, names: impl IntoIterator<Item = S>) -> Self {
        let names = names.into_iter().filter(|name| !name.as_ref().is_empty());
        Self { sha, targets: Targets::Only(names.collect()) }
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
        let with = |names: &[&'static str]| TargetSet::sorted(names.iter().map(|name| (7, *name)));
        assert!(!with(&["a"]).meets(&with(&["b", "c"])));
        assert!(with(&["c"]).meets(&with(&["b", "c"])));
        let long = with(&["d"; 40]);
        assert!(!with(&["a"]).meets(&long));
        assert!(with(&["d"]).meets(&long));
    }

    #[test]
    fn names_count_once_and_come_back_whole() {
        let names = ["//b", "//ü", "//a", "//b", ""];
        let set: TargetSet = names.into_iter().collect();
        let kept: std::collections::BTreeSet<&str> = set.iter().collect();
        assert_eq!(
            (set.len(), kept.into_iter().collect::<Vec<_>>()),
            (4, vec!["", "//a", "//b", "//ü"])
        );
        assert_eq!(set, ["//ü", "", "//a", "//b"].into_iter().collect());
        assert_ne!(set, ["//ü", "//", "a//b"].into_iter().collect());
        let document = serde_json::to_string(&set).expect("written");
        assert_eq!(serde_json::from_str::<TargetSet>(&document).expect("read"), set);
    }

    #[test]
    fn what_large_sets_remember_is_right() {
        let many =
            |from: u16| (from..from + 1_500).map(|it| format!("t{it}")).collect::<TargetSet>();
        let (low, high, between) = (many(0), many(1_500), many(750));
        for _ in 0..2 {
            assert!(!low.meets(&high) && !high.meets(&low));
            assert!(between.meets(&low) && low.clone().meets(&between) && high.meets(&between));
        }
        assert_eq!(low.compared.known.lock().expect("not poisoned").len(), 2);
        let again = many(0);
        assert!(!high.meets(&again), "remembered by what is in a set");
    }

    #[test]
    fn everything_meets_nothing_and_nothing_meets_nothing_else() {
        let (all, none) = (Targets::All, Targets::Only(TargetSet::default()));
        let some = Targets::Only(set(&[1]));
        assert!(all.meets(&none) && none.meets(&all) && all.meets(&all));
        assert!(!none.meets(&none) && !none.meets(&some) && !some.meets(&none));
    }
}
