//! The contract of the read store.

use signalbox_domain::ids::{PrNumber, RepoId};
use signalbox_domain::ports::{MetricsScope, QueueRef, Stores};
use signalbox_domain::queue::{Decision, PrState, Stay};
use signalbox_domain::time::Span;
use uuid::Uuid;

use super::Sample;

/// An ended entry, and the run that proved it, can still be read.
pub async fn an_ended_entry_and_run_are_still_read(stores: &Stores) {
    let mut sample = Sample::new(stores).await;
    sample.submit(1).await;
    sample.settle().await;
    let entry = stores.queue.reads.entry(sample.queue, PrNumber(1)).await.expect("a read");
    let entry = entry.expect("an ended entry");
    assert_eq!(entry.state.name(), PrState::Merged);
    let run = entry.verified_by.expect("the run that proved it");
    let run = stores.queue.reads.run(sample.queue, run).await.expect("a read").expect("a run");
    assert_eq!(run.status.as_str(), "SUCCEEDED");
    assert_eq!(stores.queue.reads.entry(sample.queue, PrNumber(2)).await.expect("a read"), None);
}

fn states(moves: &[signalbox_domain::ports::MoveRecord]) -> Vec<PrState> {
    let end = |decision: &Decision| match decision {
        Decision::Moved(step) => step.to,
        other => panic!("{other:?} is not a move"),
    };
    moves.iter().map(|it| end(&it.decision)).collect()
}

/// The moves since a time are listed oldest first.
pub async fn moves_are_in_order(stores: &Stores) {
    let mut sample = Sample::new(stores).await;
    let beginning = sample.world.at;
    sample.submit(1).await;
    sample.settle().await;
    let path = vec![
        PrState::NotReady,
        PrState::Pending,
        PrState::Testing,
        PrState::TestsPassed,
        PrState::Merged,
    ];
    let scope = MetricsScope { org: sample.queue.org, repo: Some(sample.repository.id) };
    let moves = stores.queue.reads.moves_since(sample.queue, beginning).await.expect("moves");
    assert_eq!(states(&moves), path);
    let later = sample.world.at.plus(Span::hours(1));
    let none = stores.queue.reads.moves_since(sample.queue, later).await;
    assert!(none.expect("moves").is_empty());
    let other = sample.new_queue("other");
    stores.queue.queues.create(&other).await.expect("a queue");
    let other = QueueRef { id: other.header.id, ..sample.queue };
    let none = stores.queue.reads.moves_since(other, beginning).await;
    assert!(none.expect("moves").is_empty());
    // Metrics read the same from columns of their own.
    let mut stays = stores.queue.reads.stays_since(scope, beginning).await.expect("stays");
    stays.sort_by_key(|(_, stay)| path.iter().position(|state| *state == stay.state));
    let expected: Vec<_> = moves
        .iter()
        .filter_map(|it| Some((sample.queue, Stay::of(it.at, &it.decision)?)))
        .collect();
    assert_eq!(stays, expected);
    assert_eq!(stays.len(), path.len() - 1);
    let none = stores.queue.reads.stays_since(scope, later).await;
    assert!(none.expect("stays").is_empty());
    let other = MetricsScope { repo: Some(RepoId(Uuid::nil())), ..scope };
    let none = stores.queue.reads.stays_since(other, beginning).await;
    assert!(none.expect("stays").is_empty());
}

/// Depths count live entries by state, for every queue, including empty ones.
pub async fn depths_count_live_entries_by_state(stores: &Stores) {
    let mut sample = Sample::new(stores).await;
    stores.queue.queues.create(&sample.new_queue("empty")).await.expect("a queue");
    for pr in 1..=4 {
        sample.submit(pr).await;
    }
    let scope = MetricsScope { org: sample.queue.org, repo: None };
    let depths = stores.queue.reads.depths(scope).await.expect("depths");
    assert_eq!(depths.len(), 2);
    assert_eq!(depths[0].branch.as_str(), "empty");
    assert!(depths[0].counts.iter().all(|(.., count)| *count == 0));
    let mut counts = depths[1].counts.clone();
    counts.sort();
    assert_eq!(counts, [(PrState::Pending, false, 3), (PrState::Testing, false, 1)]);
    assert_eq!(depths[1].repo, sample.repository.name);
}
