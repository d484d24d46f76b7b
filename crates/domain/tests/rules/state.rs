//! A queue as a value.

use signalbox_domain::queue::{Entry, Queue, RunStatus, TestRun};
use signalbox_domain::testing::Rules;

use crate::{is_checks, run_until, world};

#[test]
fn queues_are_equal_when_their_contents_are() {
    let mut world = world(2, Rules::default());
    world.submit(1, None).expect("submitted");
    run_until(&mut world, is_checks);
    let queue = &world.queue;
    let entries: Vec<Entry> = queue.entries_in_order().cloned().collect();
    let runs: Vec<TestRun> = queue.runs().cloned().collect();
    let of = |header: &_, entries: &[Entry], runs: &[TestRun]| {
        Queue::restore(Clone::clone(header), entries.to_vec(), runs.to_vec())
    };
    assert_eq!(of(&queue.header, &entries, &runs), *queue);
    let mut header = queue.header.clone();
    header.sequence += 1;
    assert_ne!(of(&header, &entries, &runs), *queue, "another header");
    let mut other = entries.clone();
    other[0].no_batch = !other[0].no_batch;
    assert_ne!(of(&queue.header, &other, &runs), *queue, "another entry");
    let mut other = runs;
    other[0].status = RunStatus::Passed;
    assert_ne!(of(&queue.header, &entries, &other), *queue, "another run");
}
