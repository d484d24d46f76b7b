//! The contract of retention.

use signalbox_domain::ports::Stores;
use signalbox_domain::time::Span;

use super::Sample;

/// Old journal records are deleted, up to the limit; the queue stays unchanged.
pub async fn old_journal_records_are_deleted_and_queues_stay(stores: &Stores) {
    let mut sample = Sample::new(stores).await;
    sample.submit(1).await;
    sample.settle().await;
    let middle = sample.world.at.plus(Span::seconds(1));
    sample.world.wait(Span::seconds(2));
    sample.submit(2).await;
    let records =
        async || stores.queue.reads.journal(sample.queue, 0, 1_000).await.expect("a journal");
    let old = records().await.iter().filter(|record| record.at < middle).count();
    let kept = records().await.len() - old;
    assert!(old > 2 && kept > 0, "{old} {kept}");
    let before = sample.load().await;
    assert_eq!(stores.runtime.retention.prune_journal(middle, 2).await.expect("pruned"), 2);
    let rest = u64::try_from(old - 2).expect("a small number");
    assert_eq!(stores.runtime.retention.prune_journal(middle, 1_000).await.expect("pruned"), rest);
    assert_eq!(stores.runtime.retention.prune_journal(middle, 1_000).await.expect("pruned"), 0);
    let left = records().await;
    assert_eq!(left.len(), kept);
    assert!(left.iter().all(|record| record.at >= middle));
    let after = sample.load().await;
    assert_eq!((after.1, &after.0.header), (before.1, &before.0.header));
    sample.settle().await;
}
