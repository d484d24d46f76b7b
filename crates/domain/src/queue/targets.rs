//! Impacted targets: the parts of the repository that a pull request changes.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use sha2::{Digest, Sha256};

use crate::ids::Sha;

use super::{ComputedTargets, WhyAll};

/// The ratio of lengths from which the longer set is searched instead of scanned.
const SEARCH_FROM: usize = 16;
/// The lengths of the shorter set for which hashes are filtered by some of their bits.
const FILTERED: std::ops::Range<usize> = 16..256;
/// The bits by which they are filtered, in words.
const FILTER_WORDS: usize = 64;
/// The total number of names from which the result of a comparison is cached.
const REMEMBER_FROM: usize = 2_048;
/// The most results that a set caches.
const REMEMBERED: usize = 4_096;

/// A set of targets, optimized for [`meets`](Self::meets).
///
/// Names are sorted by hash, so that two sets are compared hash by hash; names are compared only
/// where hashes are equal, and decide. Comparing n and m names takes O(n + m), or O(n log m) if m
/// is far larger. Results for large sets are cached by both sets. A set needs 16 bytes per name
/// besides the name.
#[derive(Clone, Default)]
pub struct TargetSet {
    hashes: Box<[u64]>,
    /// Where each name ends in the text; it starts where the previous one ends.
    ends: Box<[usize]>,
    text: Box<str>,
    compared: Arc<Compared>,
}

/// Cached comparisons with other sets. Clones share the cache; equality ignores it.
#[derive(Default)]
struct Compared {
    fingerprint: OnceLock<Fingerprint>,
    /// For each fingerprint, whether the set shares a target with this one.
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

/// Builder of a [`TargetSet`].
#[derive(Clone, Debug, Default)]
pub struct TargetSetBuilder {
    text: String,
    /// The hash of each name, and where it starts and ends in the text.
    names: Vec<(u64, usize, usize)>,
}

impl TargetSetBuilder {
    /// Adds a name; repeats count once.
    pub fn add(&mut self, name: &str) {
        let mut hasher = DefaultHasher::new();
        name.hash(&mut hasher);
        let start = self.text.len();
        self.text.push_str(name);
        self.names.push((hasher.finish(), start, self.text.len()));
    }

    /// Returns the set.
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
    /// Builds a set from distinct names in the order of their hashes.
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

    /// The number of targets.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The names, in an unspecified order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &str> {
        (0..self.len()).map(|at| self.name(at))
    }

    /// The hashes of the names, in order.
    pub(super) const fn hashes(&self) -> &[u64] {
        &self.hashes
    }

    fn name(&self, at: usize) -> &str {
        let end_of = |at: usize| self.ends.get(at).copied().unwrap_or_default();
        let start = at.checked_sub(1).map_or(0, end_of);
        self.text.get(start..end_of(at)).unwrap_or_default()
    }

    /// Whether the two sets share a target.
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
        if FILTERED.contains(&short.len()) {
            return short.filtered_out_of(long);
        }
        let (mut at, mut of) = (0, 0);
        while let (Some(one), Some(two)) = (short.hashes.get(at), long.hashes.get(of)) {
            if one == two && short.has_at(at, long, of) {
                return true;
            }
            // Branch-free, because the branches would be unpredictable.
            let order = one.cmp(two);
            at += usize::from(order != Ordering::Greater);
            of += usize::from(order == Ordering::Greater);
        }
        false
    }

    /// The same for sets of similar size: only names of the other set with the right bits in their
    /// hashes are searched. Unlike in a merge of the lists, no step waits for the one before it.
    fn filtered_out_of(&self, long: &Self) -> bool {
        let place = |hash: u64| {
            let [low, high, ..] = hash.to_le_bytes();
            (usize::from(high) % FILTER_WORDS, 1_u64 << (low % 64))
        };
        let mut filter = [0_u64; FILTER_WORDS];
        for hash in &*self.hashes {
            let (word, bit) = place(*hash);
            if let Some(word) = filter.get_mut(word) {
                *word |= bit;
            }
        }
        long.hashes.iter().enumerate().any(|(of, hash)| {
            let (word, bit) = place(*hash);
            let may_be_here = filter.get(word).is_some_and(|word| word & bit != 0);
            may_be_here && long.has_searched(of, self)
        })
    }

    fn searched_in(&self, long: &Self) -> bool {
        (0..self.len()).any(|at| self.has_searched(at, long))
    }

    /// Whether the name at `at` is among those of the other set, which is searched.
    fn has_searched(&self, at: usize, other: &Self) -> bool {
        let Some(hash) = self.hashes.get(at) else { return false };
        let of = other.hashes.partition_point(|it| it < hash);
        other.hashes.get(of) == Some(hash) && self.has_at(at, other, of)
    }

    /// Whether the name at `at` is among the names of `other` with the same hash, of which `of` is
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

/// The targets of a pull request.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Targets {
    /// All targets: the pull request depends on all others.
    All,
    /// These targets, possibly none.
    Only(TargetSet),
}

impl Targets {
    /// Whether two pull requests with these targets depend on each other. `All` meets everything,
    /// an empty set meets only `All`.
    pub fn meets(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::All, _) | (_, Self::All) => true,
            (Self::Only(one), Self::Only(two)) => one.meets(two),
        }
    }
}

/// The targets of a pull request, and the head to which they apply.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ReportedTargets {
    /// The head to which they apply; `None` for every head.
    pub sha: Option<Sha>,
    /// The targets.
    pub targets: Targets,
    /// Where they come from.
    #[cfg_attr(
        feature = "serde",
        serde(default, skip_serializing_if = "TargetsOrigin::is_reported")
    )]
    pub origin: TargetsOrigin,
}

/// Where impacted targets come from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum TargetsOrigin {
    /// They were reported through the API.
    #[default]
    Reported,
    /// The queue's rules computed them from the changed paths.
    Computed {
        /// The [revision](super::Header::rules_revision) of the rules.
        revision: u64,
        /// Why they are all targets; `None` if they are not.
        why_all: Option<WhyAll>,
    },
}

impl TargetsOrigin {
    /// Whether they were reported. Reported targets take precedence over computed ones.
    pub const fn is_reported(&self) -> bool {
        matches!(self, Self::Reported)
    }
}

impl ReportedTargets {
    /// Reported targets.
    pub const fn new(sha: Option<Sha>, targets: Targets) -> Self {
        Self { sha, targets, origin: TargetsOrigin::Reported }
    }

    /// Targets from a reported list; empty strings are dropped, repeats count once.
    pub fn only<S: AsRef<str>>(sha: Option<Sha>, names: impl IntoIterator<Item = S>) -> Self {
        let names = names.into_iter().filter(|name| !name.as_ref().is_empty());
        Self::new(sha, Targets::Only(names.collect()))
    }

    /// All targets.
    pub const fn all(sha: Option<Sha>) -> Self {
        Self::new(sha, Targets::All)
    }

    /// Targets that rules computed for this head.
    pub fn computed(head: Sha, revision: u64, computed: ComputedTargets) -> Self {
        let ComputedTargets { targets, why_all } = computed;
        Self { sha: Some(head), targets, origin: TargetsOrigin::Computed { revision, why_all } }
    }

    /// Whether they apply to this head.
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
    fn different_names_with_equal_hashes_are_both_kept() {
        let mut builder = TargetSetBuilder::default();
        for name in ["b", "a", "b"] {
            let start = builder.text.len();
            builder.text.push_str(name);
            builder.names.push((7, start, builder.text.len()));
        }
        let set = builder.build();
        assert_eq!(set.iter().collect::<Vec<_>>(), ["a", "b"]);
    }

    #[test]
    fn different_names_with_equal_hashes_do_not_meet() {
        let with = |names: &[&'static str]| TargetSet::sorted(names.iter().map(|name| (7, *name)));
        assert!(!with(&["a"]).meets(&with(&["b", "c"])));
        assert!(with(&["c"]).meets(&with(&["b", "c"])));
        let long = with(&["d"; 40]);
        assert!(!with(&["a"]).meets(&long));
        assert!(with(&["d"]).meets(&long));
    }

    #[test]
    fn only_a_set_without_names_is_empty() {
        assert!(TargetSet::default().is_empty());
        assert!(!set(&[1]).is_empty() && ![""].into_iter().collect::<TargetSet>().is_empty());
    }

    #[test]
    fn repeated_names_count_once_and_names_are_returned_unchanged() {
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
    fn cached_results_of_large_sets_are_correct() {
        let many =
            |from: u16| (from..from + 1_500).map(|it| format!("t{it}")).collect::<TargetSet>();
        let (low, high, between) = (many(0), many(1_500), many(750));
        for _ in 0..2 {
            assert!(!low.meets(&high) && !high.meets(&low));
            assert!(between.meets(&low) && low.clone().meets(&between) && high.meets(&between));
        }
        assert_eq!(low.compared.known.lock().expect("not poisoned").len(), 2);
        let again = many(0);
        assert!(!high.meets(&again), "cached by content");
    }

    #[test]
    fn all_meets_the_empty_set_which_meets_nothing_else() {
        let (all, none) = (Targets::All, Targets::Only(TargetSet::default()));
        let some = Targets::Only(set(&[1]));
        assert!(all.meets(&none) && none.meets(&all) && all.meets(&all));
        assert!(!none.meets(&none) && !none.meets(&some) && !some.meets(&none));
    }
}
