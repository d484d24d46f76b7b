//! Sorted maps and sets behave like those of the standard library.

use std::collections::BTreeMap;
use std::ops::Bound;

use proptest::prelude::*;

use super::*;

impl<K: Ord + Clone, V: Clone> Node<K, V> {
    /// Checks the sizes, the order and the depth. Returns the depth.
    fn check(&self) -> usize {
        match self {
            Self::Leaf(items) => {
                assert!((1..=MOST).contains(&items.len()), "{} items", items.len());
                1
            }
            Self::Inner(children) => {
                assert!((1..=MOST).contains(&children.len()), "{} children", children.len());
                let depths: Vec<usize> = children.iter().map(|child| child.node.check()).collect();
                assert!(depths.windows(2).all(|pair| pair[0] == pair[1]), "{depths:?}");
                for (at, child) in children.iter().enumerate() {
                    assert_eq!(child.size, child.node.size());
                    let (items, _) = child.node.leaf(0);
                    assert!(at == 0 || items.first().is_some_and(|(key, _)| *key >= child.from));
                    let (items, last) = child.node.leaf(child.size - 1);
                    let next = children.get(at + 1);
                    assert!(next.is_none_or(|next| items[last].0 < next.from));
                }
                depths[0] + 1
            }
        }
    }
}

fn bound(kind: u8, key: u16) -> Bound<u16> {
    match kind % 3 {
        0 => Bound::Unbounded,
        1 => Bound::Included(key),
        _ => Bound::Excluded(key),
    }
}

/// Whether the standard library accepts this range.
fn is_valid(from: Bound<u16>, to: Bound<u16>) -> bool {
    match (from, to) {
        (Bound::Unbounded, _) | (_, Bound::Unbounded) => true,
        (Bound::Excluded(from), Bound::Excluded(to)) => from < to,
        (
            Bound::Included(from) | Bound::Excluded(from),
            Bound::Included(to) | Bound::Excluded(to),
        ) => from <= to,
    }
}

fn check(map: &SortedMap<u16, u32>, model: &BTreeMap<u16, u32>) {
    if let Some(root) = &map.root {
        root.check();
    }
    assert_eq!((map.size(), map.is_empty()), (model.len(), model.is_empty()));
    assert!(map.iter().eq(model.iter()) && map.iter().rev().eq(model.iter().rev()));
    assert_eq!(map.first(), model.first_key_value());
    assert!(model.iter().all(|(key, value)| map.get(key) == Some(value)));
}

/// Runs of neighboring keys that are inserted or removed, in either direction, so that nodes empty,
/// fill again from below, and merge.
fn runs() -> impl Strategy<Value = Vec<(bool, u16)>> {
    let run = (any::<bool>(), 0..200_u16, 1..40_u16, any::<bool>()).prop_map(
        |(inserts, from, many, is_upward)| {
            let mut keys: Vec<(bool, u16)> =
                (from..from + many).map(|key| (inserts, key)).collect();
            if !is_upward {
                keys.reverse();
            }
            keys
        },
    );
    proptest::collection::vec(run, 1..60).prop_map(|runs: Vec<Vec<(bool, u16)>>| runs.concat())
}

/// The keys of many steps: increasing, decreasing, or in any order.
fn keys() -> impl Strategy<Value = Vec<(bool, u16)>> {
    let any = proptest::collection::vec((any::<bool>(), 0..600_u16), 0..400);
    let (up, down) = (0..1_500_u16, 0..1_500_u16);
    let up = up.prop_map(|most| (0..most).map(|key| (true, key)).collect());
    let down = down.prop_map(|most| (0..most).rev().map(|key| (true, key)).collect());
    proptest::collection::vec(prop_oneof![3 => any, 1 => up, 1 => down], 1..4)
        .prop_map(|parts: Vec<Vec<(bool, u16)>>| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn each_key_is_found_after_each_step(steps in runs()) {
        let (mut map, mut model) = (SortedMap::default(), BTreeMap::new());
        for (number, (inserts, key)) in (0_u32..).zip(steps) {
            if inserts {
                map.insert(key, number);
                model.insert(key, number);
            } else {
                prop_assert_eq!(map.remove(&key), model.remove(&key).is_some(), "{}", key);
            }
            if number % 8 == 0 {
                check(&map, &model);
            }
        }
        check(&map, &model);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn like_the_map_of_the_standard_library(
        steps in keys(),
        kept_at in 0..400_u32,
        ranges in proptest::collection::vec((0..3_u8, 0..700_u16, 0..3_u8, 0..700_u16, 0..6_usize), 8),
        from_front in any::<bool>(),
    ) {
        let (mut map, mut model) = (SortedMap::default(), BTreeMap::new());
        let mut kept = (map.clone(), model.clone());
        for (number, (inserts, key)) in (0_u32..).zip(steps.iter().copied()) {
            if number == kept_at {
                kept = (map.clone(), model.clone());
            }
            if inserts {
                map.insert(key, number);
                model.insert(key, number);
            } else {
                prop_assert_eq!(map.remove(&key), model.remove(&key).is_some());
            }
            prop_assert_eq!(map.get(&key), model.get(&key));
        }
        check(&map, &model);
        // An earlier version does not change.
        check(&kept.0, &kept.1);
        for (from, first, to, last, taken) in ranges {
            let range = (bound(from, first), bound(to, last));
            if !is_valid(range.0, range.1) {
                prop_assert_eq!(map.range(range).count(), 0);
                continue;
            }
            let (mut found, mut expected) = (map.range(range), model.range(range));
            for _ in 0..taken {
                prop_assert_eq!(found.next(), expected.next());
                prop_assert_eq!(found.next_back(), expected.next_back());
            }
            prop_assert!(found.eq(expected));
        }
        let mut left: Vec<u16> = model.keys().copied().collect();
        if !from_front {
            left.reverse();
        }
        for (number, key) in left.into_iter().enumerate() {
            prop_assert!(map.remove(&key));
            model.remove(&key);
            if number % 16 == 0 {
                check(&map, &model);
            }
        }
        check(&map, &model);
    }
}
