//! The oracle: what a queue would achieve that knew beforehand which pull requests merge.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use signalbox_domain::time::Timestamp;

use crate::workload::minutes;
use crate::{Areas, Sample, Stream};

/// The minutes of the counted pull requests in the queue of an oracle with so many slots.
///
/// It tests each pull request once, in the order of submission, on top of exactly the ones that merge. One
/// that fails leaves when its tests end. One that merges also waits for earlier ones that merge and
/// share an area with it. A queue can be faster only by batches, where slots are scarce, by optimistic
/// merging, or by another order.
pub fn oracle(stream: &Stream, concurrency: u32) -> Sample {
    let slots = usize::try_from(concurrency.max(1)).unwrap_or(usize::MAX);
    let mut busy: BinaryHeap<Reverse<Timestamp>> = BinaryHeap::new();
    let mut landed = Landed::default();
    let mut minutes_in_queue = Vec::with_capacity(stream.changes.len());
    for (change, merges) in stream.changes.iter().zip(stream.acceptable()) {
        let free = if busy.len() < slots { None } else { busy.pop().map(|Reverse(at)| at) };
        let tested = free.max(Some(change.at)).unwrap_or(change.at).plus(change.tests_take);
        busy.push(Reverse(tested));
        let ended = if merges { landed.land(&change.areas, tested) } else { tested };
        minutes_in_queue.push(minutes(ended.since(change.at)));
    }
    minutes_in_queue.into_iter().skip(stream.counted_from()).collect()
}

/// When the last pull request with an area lands.
#[derive(Default)]
struct Landed {
    by_area: BTreeMap<u64, Timestamp>,
    /// The last one that changes all areas.
    everything: Option<Timestamp>,
    /// The last one of all.
    last: Option<Timestamp>,
}

impl Landed {
    /// Lands a pull request that has passed; returns when.
    fn land(&mut self, areas: &Areas, tested: Timestamp) -> Timestamp {
        let before = match areas {
            Areas::All => self.last,
            Areas::Only(areas) => {
                let shared = areas.iter().filter_map(|area| self.by_area.get(area)).max();
                shared.copied().max(self.everything)
            }
        };
        let at = before.max(Some(tested)).unwrap_or(tested);
        match areas {
            Areas::All => self.everything = self.everything.max(Some(at)),
            Areas::Only(areas) => self.by_area.extend(areas.iter().map(|area| (*area, at))),
        }
        self.last = self.last.max(Some(at));
        at
    }
}

#[cfg(test)]
mod tests {
    use signalbox_domain::time::Span;

    use super::*;
    use crate::{Change, Conditions};

    fn stream(changes: &[(u32, u32, bool, Areas)]) -> Stream {
        let start = Timestamp::from_unix_seconds(0);
        let change = |(at, takes, fails, areas): &(u32, u32, bool, Areas)| Change {
            at: start.plus(Span::minutes(*at)),
            tests_take: Span::minutes(*takes),
            fails: *fails,
            areas: areas.clone(),
            conflicts: Vec::new(),
            priority: None,
            author: String::new(),
        };
        let changes = changes.iter().map(change).collect();
        Stream { conditions: Conditions::default(), seed: 1, changes }
    }

    fn only(areas: impl IntoIterator<Item = u64>) -> Areas {
        Areas::Only(areas.into_iter().collect())
    }

    #[test]
    fn one_that_merges_waits_for_earlier_ones_of_its_area_and_one_that_fails_for_none() {
        let of = |areas: [Areas; 4]| {
            let [one, two, three, four] = areas;
            stream(&[
                (0, 30, false, one),
                (0, 10, false, two),
                (0, 5, true, three),
                (0, 20, false, four),
            ])
        };
        let everything = of([Areas::All, Areas::All, Areas::All, Areas::All]);
        let expected: Sample = [30.0, 30.0, 5.0, 30.0].into_iter().collect();
        assert_eq!(oracle(&everything, 9), expected);
        let lanes = of([only([1]), only([2]), only([1]), only([1, 2])]);
        let expected: Sample = [30.0, 10.0, 5.0, 30.0].into_iter().collect();
        assert_eq!(oracle(&lanes, 9), expected);
        let all_last = of([only([1]), only([2]), only([1]), Areas::All]);
        assert_eq!(oracle(&all_last, 9), expected);
    }

    #[test]
    fn with_few_slots_one_starts_when_another_ends() {
        let three = stream(&[
            (0, 30, false, only([1])),
            (1, 10, true, only([2])),
            (2, 10, false, only([3])),
        ]);
        let expected = |of: [f64; 3]| -> Sample { of.into_iter().collect() };
        assert_eq!(oracle(&three, 1), expected([30.0, 39.0, 48.0]));
        assert_eq!(oracle(&three, 2), expected([30.0, 10.0, 19.0]));
    }
}
