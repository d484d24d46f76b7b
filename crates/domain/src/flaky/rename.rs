//! Which new test is a test that vanished, under another name.

use super::presence::place;
use super::{LabelSource, ManualFlag, MonitorId};
use super::{MonitorRecord, QuarantineDecision, TestCase, TestId, TestKey};

use std::collections::{BTreeMap, BTreeSet};

/// Commits without a test, one after the other, after which it counts as renamed, at least.
pub const RENAMED_AFTER_COMMITS: u32 = 2;
/// Minutes from the first run without a test until it counts as renamed, at least: the jobs of one commit
/// may report at different times, and tests may move between their shards.
pub const RENAMED_AFTER_MINUTES: u32 = 60;
/// The least similarity of two names, in percent: more of them is equal than not.
const LEAST_SIMILARITY: usize = 50;
/// How much more similar a pair must be than any other pair of its tests, in percent.
const LEAST_MARGIN: usize = 10;
/// The most characters of a name that are compared.
const MAX_COMPARED: usize = 200;
/// The most tests that vanish or appear in one upload; more are a reorganization that no name explains.
const MAX_TESTS: usize = 100;

/// Pairs of a test that vanished and a test that appeared at the same time, `could_be`, by their
/// places in the lists. Each test is in at most one pair, and a test that fits several is in none.
///
/// Tests of one place are compared by their names if their classes are equal, or by their classes if
/// their names are. Tests of different places must have the same name.
pub fn renames(
    vanished: &[&TestKey],
    appeared: &[&TestKey],
    could_be: impl Fn(usize, usize) -> bool,
) -> Vec<(usize, usize)> {
    if vanished.len() > MAX_TESTS || appeared.len() > MAX_TESTS {
        return Vec::new();
    }
    let score = |old: usize, new: usize| match (vanished.get(old), appeared.get(new)) {
        (Some(one), Some(other)) if could_be(old, new) => similarity(one, other),
        _ => 0,
    };
    let scores: Vec<Vec<usize>> = (0..vanished.len())
        .map(|old| (0..appeared.len()).map(|new| score(old, new)).collect())
        .collect();
    let at = |old: usize, new: usize| {
        scores.get(old).and_then(|row| row.get(new)).copied().unwrap_or_default()
    };
    let mut pairs = Vec::new();
    for old in 0..vanished.len() {
        for new in 0..appeared.len() {
            let best = at(old, new);
            let others = (0..appeared.len()).filter(|it| *it != new).map(|it| at(old, it));
            let rivals = (0..vanished.len()).filter(|it| *it != old).map(|it| at(it, new));
            let second = others.chain(rivals).max().unwrap_or_default();
            if best >= LEAST_SIMILARITY && best >= second + LEAST_MARGIN {
                pairs.push((old, new));
            }
        }
    }
    pairs
}

/// How similar the names of two tests are, in percent; 0 for tests that cannot be one.
fn similarity(one: &TestKey, other: &TestKey) -> usize {
    if one.variant != other.variant || one.name.is_empty() || one.id() == other.id() {
        return 0;
    }
    if one.name == other.name {
        return 100;
    }
    let is_near = place(one) == place(other)
        && (&one.classname, &one.parent) == (&other.classname, &other.parent);
    if is_near { common(&one.name, &other.name) } else { 0 }
}

/// Twice the longest common subsequence of characters, as a share of the characters of both, in
/// percent.
fn common(one: &str, other: &str) -> usize {
    let chars = |text: &str| text.chars().take(MAX_COMPARED).collect::<Vec<char>>();
    let (one, other) = (chars(one), chars(other));
    let mut row = vec![0_usize; other.len() + 1];
    for a in &one {
        let mut diagonal = 0;
        for (at, b) in other.iter().enumerate() {
            let left = row.get(at).copied().unwrap_or_default();
            let Some(cell) = row.get_mut(at + 1) else { continue };
            let above = *cell;
            *cell = if a == b { diagonal + 1 } else { above.max(left) };
            diagonal = above;
        }
    }
    let length = row.last().copied().unwrap_or_default();
    (200 * length).checked_div(one.len() + other.len()).unwrap_or_default()
}

/// What a test takes over from the one that was renamed to it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Inheritance {
    /// The test that was renamed.
    pub from: TestId,
    /// Whether it takes the place of what the test has itself: the name from before is back.
    pub is_back: bool,
    /// Its flag.
    pub flag: Option<ManualFlag>,
    /// What was decided about its quarantine.
    pub quarantine: Option<QuarantineDecision>,
    /// The records of monitors.
    pub monitors: BTreeMap<MonitorId, MonitorRecord>,
    /// Its labels.
    pub labels: BTreeMap<String, BTreeSet<LabelSource>>,
}

impl Inheritance {
    /// What a test leaves to its successor.
    pub fn of(test: &TestCase, successor: &TestCase) -> Self {
        Self {
            from: test.id,
            is_back: successor.retired.is_some(),
            flag: test.flag.clone(),
            quarantine: test.quarantine.clone(),
            monitors: test.monitors.clone(),
            labels: test.labels.clone(),
        }
    }
}
