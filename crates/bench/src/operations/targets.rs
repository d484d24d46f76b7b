//! Whether two sets of targets share one: sets that share none, which takes the longest.

use std::collections::HashSet;
use std::hint::black_box;
use std::time::Instant;

use async_trait::async_trait;
use signalbox_domain::queue::TargetSet;

use super::Operation;
use crate::failure::Failure;
use crate::measure::{Turns, in_turn, micros_each};
use crate::report::{Report, Row, count};
use crate::setup::Setup;

const SMALL: usize = 100;
const LARGE: [usize; 3] = [100, 10_000, 100_000];
/// Small sets, each compared with each of the large ones.
const SETS: usize = 200;
/// How often a round does all comparisons.
const PASSES: usize = 50;

/// Intersection of targets.
pub(crate) struct TargetSets;

#[async_trait(?Send)]
impl Operation for TargetSets {
    fn name(&self) -> &'static str {
        "targets"
    }

    async fn run(&self, setup: &Setup, report: &mut Report) -> Result<(), Failure> {
        for large in setup.sizes(&LARGE) {
            let sets = Sets::new(*large);
            let passes = setup.many(PASSES);
            let data = format!("{SMALL} names and {}, none shared", count(*large));
            let sets_of_names = compared(setup, passes, &sets, Sets::hash_sets).await?;
            let floor = format!("{data}; floor: hash set of names");
            report.add(Row::against("target intersection", floor, &sets_of_names));
            let bits = compared(setup, passes, &sets, Sets::bit_sets).await?;
            let floor = format!("{data}; floor: bit set of numbered names");
            report.add(Row::against("target intersection", floor, &bits));
        }
        Ok(())
    }
}

async fn compared(
    setup: &Setup,
    passes: usize,
    sets: &Sets,
    floor: fn(&Sets) -> usize,
) -> Result<Turns, Failure> {
    let timed = |of: fn(&Sets) -> usize| {
        let begun = Instant::now();
        let met: usize = (0..passes).map(|_| black_box(of(black_box(sets)))).sum();
        if met > 0 {
            return Err(Failure::new("target sets", "must not meet"));
        }
        Ok(micros_each(begun.elapsed(), passes * SETS))
    };
    in_turn(setup.rounds, async || timed(floor), async || timed(Sets::product)).await
}

/// The same small sets and the same large one, in three forms. Numbers of small sets are even,
/// those of the large one odd.
struct Sets {
    small: Vec<TargetSet>,
    large: TargetSet,
    small_names: Vec<HashSet<String>>,
    large_names: HashSet<String>,
    small_bits: Vec<Vec<u64>>,
    large_bits: Vec<u64>,
}

impl Sets {
    fn new(large: usize) -> Self {
        let step = (large / SMALL).max(1);
        let small: Vec<Vec<usize>> = (0..SETS)
            .map(|set| (0..SMALL).map(|at| 2 * (at * step + set % step)).collect())
            .collect();
        let odd: Vec<usize> = (0..large).map(|at| 2 * at + 1).collect();
        let of_small = |set: &Vec<usize>| set.iter().map(|it| name(*it)).collect();
        Self {
            large: odd.iter().map(|it| name(*it)).collect(),
            large_names: odd.iter().map(|it| name(*it)).collect(),
            large_bits: bits(&odd, 2 * large),
            small_names: small.iter().map(|set| set.iter().map(|it| name(*it)).collect()).collect(),
            small_bits: small.iter().map(|set| bits(set, 2 * large)).collect(),
            small: small.iter().map(of_small).collect(),
        }
    }

    fn product(&self) -> usize {
        self.small.iter().filter(|set| set.meets(&self.large)).count()
    }

    fn hash_sets(&self) -> usize {
        self.small_names.iter().filter(|set| !set.is_disjoint(&self.large_names)).count()
    }

    fn bit_sets(&self) -> usize {
        let meets =
            |set: &&Vec<u64>| set.iter().zip(&self.large_bits).any(|(one, other)| one & other != 0);
        self.small_bits.iter().filter(meets).count()
    }
}

fn name(number: usize) -> String {
    format!("//area/package:target-{number}")
}

fn bits(numbers: &[usize], universe: usize) -> Vec<u64> {
    let mut words = vec![0_u64; universe.div_ceil(64)];
    for number in numbers {
        if let Some(word) = words.get_mut(number / 64) {
            *word |= 1 << (number % 64);
        }
    }
    words
}
