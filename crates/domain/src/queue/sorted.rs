//! Sorted maps and sets whose versions share structure: a clone is O(1), and a change copies only
//! the nodes on the way to it that other versions use too.
//!
//! They are B-trees with all items in the leaves. Nodes are wide, so a change copies few of them,
//! and the items of small queues stand in one node.

use std::borrow::Borrow;
use std::fmt;
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

/// The most items or children of a node. Small in tests, so that few items make a deep tree.
const MOST: usize = if cfg!(test) { 4 } else { 16 };
/// A node with fewer is merged with its neighbor if both fit into one.
const FEW: usize = MOST / 4 + 1;

enum Node<K, V> {
    Leaf(Vec<(K, V)>),
    Inner(Vec<Child<K, V>>),
}

/// A child of a node.
struct Child<K, V> {
    /// Not above its keys, and above those of the children before it; the first child's is not used.
    from: K,
    /// The number of items in it.
    size: usize,
    node: Arc<Node<K, V>>,
}

impl<K: Clone, V> Clone for Child<K, V> {
    fn clone(&self) -> Self {
        Self { from: self.from.clone(), size: self.size, node: self.node.clone() }
    }
}

impl<K: Clone, V: Clone> Clone for Node<K, V> {
    /// A copy is made to be changed, so it has room for another item.
    fn clone(&self) -> Self {
        fn with_room<T: Clone>(items: &[T]) -> Vec<T> {
            let mut copy = Vec::with_capacity(items.len() + 1);
            copy.extend_from_slice(items);
            copy
        }
        match self {
            Self::Leaf(items) => Self::Leaf(with_room(items)),
            Self::Inner(children) => Self::Inner(with_room(children)),
        }
    }
}

/// The child that has this key, if any does.
fn child_with<K: Borrow<Q>, V, Q: Ord + ?Sized>(children: &[Child<K, V>], key: &Q) -> usize {
    let others = children.get(1..).unwrap_or_default();
    others.partition_point(|child| child.from.borrow() <= key)
}

impl<K: Ord + Clone, V: Clone> Node<K, V> {
    fn len(&self) -> usize {
        match self {
            Self::Leaf(items) => items.len(),
            Self::Inner(children) => children.len(),
        }
    }

    /// The number of items.
    fn size(&self) -> usize {
        match self {
            Self::Leaf(items) => items.len(),
            Self::Inner(children) => children.iter().map(|child| child.size).sum(),
        }
    }

    fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&(K, V)>
    where
        K: Borrow<Q>,
    {
        let mut node = self;
        loop {
            match node {
                Self::Inner(children) => node = &children.get(child_with(children, key))?.node,
                Self::Leaf(items) => {
                    let at = items.binary_search_by(|(item, _)| item.borrow().cmp(key)).ok()?;
                    return items.get(at);
                }
            }
        }
    }

    /// The number of items with keys below this one; with `and_it`, or equal to it.
    fn position<Q: Ord + ?Sized>(&self, key: &Q, and_it: bool) -> usize
    where
        K: Borrow<Q>,
    {
        let (mut node, mut before) = (self, 0);
        loop {
            match node {
                Self::Inner(children) => {
                    let (ahead, rest) = children.split_at(child_with(children, key));
                    before += ahead.iter().map(|child| child.size).sum::<usize>();
                    let Some(child) = rest.first() else { return before };
                    node = &child.node;
                }
                Self::Leaf(items) => {
                    return before
                        + items.partition_point(|(item, _)| {
                            let item = item.borrow();
                            item < key || (and_it && item == key)
                        });
                }
            }
        }
    }

    /// The items of the leaf with this index, and the index within it.
    fn leaf(&self, mut index: usize) -> (&[(K, V)], usize) {
        let mut node = self;
        loop {
            match node {
                Self::Leaf(items) => return (items, index),
                Self::Inner(children) => {
                    let has_it = |child: &&Child<K, V>| {
                        let is_in = index < child.size;
                        index -= if is_in { 0 } else { child.size };
                        is_in
                    };
                    let Some(child) = children.iter().find(has_it) else { return (&[], 0) };
                    node = &child.node;
                }
            }
        }
    }

    /// Returns whether the key is new, and the second half of the node if it was split.
    fn insert(&mut self, key: K, value: V) -> (bool, Option<Child<K, V>>) {
        match self {
            Self::Leaf(items) => match items.binary_search_by(|(item, _)| item.cmp(&key)) {
                Ok(at) => {
                    if let Some(item) = items.get_mut(at) {
                        item.1 = value;
                    }
                    (false, None)
                }
                Err(at) => {
                    items.insert(at, (key, value));
                    let split = (items.len() > MOST).then(|| items.split_off(MOST / 2));
                    (true, split.and_then(|items| Child::of(Self::Leaf(items))))
                }
            },
            Self::Inner(children) => {
                let at = child_with(children, &key);
                let Some(child) = children.get_mut(at) else { return (false, None) };
                let (is_new, split) = Arc::make_mut(&mut child.node).insert(key, value);
                child.size += usize::from(is_new);
                if let Some(second) = split {
                    child.size -= second.size;
                    children.insert(at + 1, second);
                }
                let split = (children.len() > MOST).then(|| children.split_off(MOST / 2));
                (is_new, split.and_then(|children| Child::of(Self::Inner(children))))
            }
        }
    }

    /// Removes an item that is there.
    fn remove<Q: Ord + ?Sized>(&mut self, key: &Q)
    where
        K: Borrow<Q>,
    {
        match self {
            Self::Leaf(items) => {
                if let Ok(at) = items.binary_search_by(|(item, _)| item.borrow().cmp(key)) {
                    items.remove(at);
                }
            }
            Self::Inner(children) => {
                let at = child_with(children, key);
                let Some(child) = children.get_mut(at) else { return };
                Arc::make_mut(&mut child.node).remove(key);
                child.size -= 1;
                if child.size == 0 {
                    children.remove(at);
                } else if child.node.len() < FEW && !merge(children, at + 1) {
                    merge(children, at);
                }
            }
        }
    }
}

/// Merges a child with the one before it if both are there and fit into one. Returns whether it did.
fn merge<K: Ord + Clone, V: Clone>(children: &mut Vec<Child<K, V>>, second: usize) -> bool {
    let Some([one, other]) = second.checked_sub(1).and_then(|at| children.get_mut(at..=second))
    else {
        return false;
    };
    if one.node.len() + other.node.len() > MOST {
        return false;
    }
    match (Arc::make_mut(&mut one.node), &*other.node) {
        (Node::Leaf(items), Node::Leaf(others)) => items.extend_from_slice(others),
        (Node::Inner(items), Node::Inner(others)) => {
            // Its own key was not used, and smaller ones may have been inserted.
            let first =
                others.first().map(|first| Child { from: other.from.clone(), ..first.clone() });
            items.extend(first);
            items.extend_from_slice(others.get(1..).unwrap_or_default());
        }
        (Node::Leaf(_), Node::Inner(_)) | (Node::Inner(_), Node::Leaf(_)) => return false,
    }
    one.size += other.size;
    children.remove(second);
    true
}

impl<K: Ord + Clone, V: Clone> Child<K, V> {
    /// A child with these items, which are some.
    fn of(node: Node<K, V>) -> Option<Self> {
        let from = match &node {
            Node::Leaf(items) => items.first()?.0.clone(),
            Node::Inner(children) => children.first()?.from.clone(),
        };
        Some(Self { from, size: node.size(), node: Arc::new(node) })
    }
}

/// A sorted map.
pub(super) struct SortedMap<K, V> {
    root: Option<Arc<Node<K, V>>>,
    size: usize,
}

impl<K, V> Default for SortedMap<K, V> {
    fn default() -> Self {
        Self { root: None, size: 0 }
    }
}

impl<K, V> Clone for SortedMap<K, V> {
    fn clone(&self) -> Self {
        Self { root: self.root.clone(), size: self.size }
    }
}

impl<K: Ord + Clone, V: Clone> SortedMap<K, V> {
    pub(super) const fn size(&self) -> usize {
        self.size
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.size == 0
    }

    pub(super) fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        self.root.as_ref()?.get(key).map(|(_, value)| value)
    }

    pub(super) fn contains_key<Q: Ord + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.get(key).is_some()
    }

    pub(super) fn insert(&mut self, key: K, value: V) {
        let Some(root) = &mut self.root else {
            self.root = Some(Arc::new(Node::Leaf(vec![(key, value)])));
            self.size = 1;
            return;
        };
        let (is_new, split) = Arc::make_mut(root).insert(key, value);
        self.size += usize::from(is_new);
        if let Some(second) = split {
            let first = Child {
                from: second.from.clone(),
                size: self.size - second.size,
                node: root.clone(),
            };
            *root = Arc::new(Node::Inner(vec![first, second]));
        }
    }

    /// Removes an item. Returns whether it was there.
    pub(super) fn remove<Q: Ord + ?Sized>(&mut self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        let Some(root) = self.root.as_mut().filter(|root| root.get(key).is_some()) else {
            return false;
        };
        Arc::make_mut(root).remove(key);
        self.size -= 1;
        if self.size == 0 {
            self.root = None;
            return true;
        }
        while let Node::Inner(children) = &**root
            && let [only] = children.as_slice()
        {
            *root = only.node.clone();
        }
        true
    }

    pub(super) fn first(&self) -> Option<(&K, &V)> {
        self.iter().next()
    }

    pub(super) fn iter(&self) -> Range<'_, K, V> {
        Range { root: self.root.as_deref(), next: 0, end: self.size, front: &[], back: &[] }
    }

    pub(super) fn values(&self) -> impl Iterator<Item = &V> {
        self.iter().map(|(_, value)| value)
    }

    /// The items with keys in this range.
    pub(super) fn range<Q: Ord + ?Sized>(&self, keys: impl RangeBounds<Q>) -> Range<'_, K, V>
    where
        K: Borrow<Q>,
    {
        let root = self.root.as_deref();
        let position = |key, and_it| root.map_or(0, |root| root.position(key, and_it));
        let next = match keys.start_bound() {
            Bound::Unbounded => 0,
            Bound::Included(key) => position(key, false),
            Bound::Excluded(key) => position(key, true),
        };
        let end = match keys.end_bound() {
            Bound::Unbounded => self.size,
            Bound::Included(key) => position(key, true),
            Bound::Excluded(key) => position(key, false),
        };
        Range { root, next, end: end.max(next), front: &[], back: &[] }
    }
}

impl<K: Ord + Clone, V: Clone + PartialEq> PartialEq for SortedMap<K, V> {
    fn eq(&self, other: &Self) -> bool {
        self.size == other.size && self.iter().eq(other.iter())
    }
}

impl<K: Ord + Clone, V: Clone + Eq> Eq for SortedMap<K, V> {}

impl<K: Ord + Clone + fmt::Debug, V: Clone + fmt::Debug> fmt::Debug for SortedMap<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

/// Items of a map, in order.
pub(super) struct Range<'a, K, V> {
    root: Option<&'a Node<K, V>>,
    /// The indexes of the next item and of the end.
    next: usize,
    end: usize,
    /// Items from `next` on, of one leaf; some may be behind the end.
    front: &'a [(K, V)],
    /// Items up to `end`, of one leaf; some may be ahead of the next.
    back: &'a [(K, V)],
}

impl<'a, K: Ord + Clone, V: Clone> Iterator for Range<'a, K, V> {
    type Item = (&'a K, &'a V);

    fn next(&mut self) -> Option<Self::Item> {
        if self.next == self.end {
            return None;
        }
        if self.front.is_empty() {
            let (items, at) = self.root?.leaf(self.next);
            self.front = items.get(at..)?;
        }
        let ((key, value), rest) = self.front.split_first()?;
        self.front = rest;
        self.next += 1;
        Some((key, value))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.end - self.next, Some(self.end - self.next))
    }
}

impl<K: Ord + Clone, V: Clone> DoubleEndedIterator for Range<'_, K, V> {
    fn next_back(&mut self) -> Option<Self::Item> {
        if self.next == self.end {
            return None;
        }
        if self.back.is_empty() {
            let (items, at) = self.root?.leaf(self.end - 1);
            self.back = items.get(..=at)?;
        }
        let ((key, value), rest) = self.back.split_last()?;
        self.back = rest;
        self.end -= 1;
        Some((key, value))
    }
}

/// A sorted set.
#[derive(PartialEq, Eq)]
pub(super) struct SortedSet<K: Ord + Clone>(SortedMap<K, ()>);

impl<K: Ord + Clone> Default for SortedSet<K> {
    fn default() -> Self {
        Self(SortedMap::default())
    }
}

impl<K: Ord + Clone> Clone for SortedSet<K> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<K: Ord + Clone> SortedSet<K> {
    pub(super) const fn size(&self) -> usize {
        self.0.size()
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn contains(&self, key: &K) -> bool {
        self.0.contains_key(key)
    }

    pub(super) fn insert(&mut self, key: K) {
        self.0.insert(key, ());
    }

    /// Removes an item. Returns whether it was there.
    pub(super) fn remove(&mut self, key: &K) -> bool {
        self.0.remove(key)
    }

    pub(super) fn first(&self) -> Option<&K> {
        self.iter().next()
    }

    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = &K> {
        self.0.iter().map(|(key, ())| key)
    }

    /// The items in this range.
    pub(super) fn range(&self, keys: impl RangeBounds<K>) -> impl DoubleEndedIterator<Item = &K> {
        self.0.range(keys).map(|(key, ())| key)
    }
}

impl<K: Ord + Clone + fmt::Debug> fmt::Debug for SortedSet<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

#[cfg(test)]
#[path = "sorted_tests.rs"]
mod tests;
