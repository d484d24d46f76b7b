//! The contract of the announcement store.

use signalbox_domain::ids::{PrNumber, Sha};
use signalbox_domain::ports::{LeasedAnnouncement, SHOWN_AFTER, Shown, Stores};
use signalbox_domain::time::{Span, Timestamp};
use uuid::Uuid;

use super::Sample;

const ONE: Uuid = Uuid::from_u128(10);
const TWO: Uuid = Uuid::from_u128(20);

/// A record with all fields set.
fn shown() -> Shown {
    Shown {
        status: Some(Uuid::from_u128(1)),
        comment: Some(Uuid::from_u128(2)),
        labels: None,
        closed: Some(Uuid::from_u128(3)),
        newer_head: Some(Sha::new("a".repeat(40)).expect("a commit")),
    }
}

async fn lease(stores: &Stores, holder: Uuid, now: Timestamp) -> Vec<LeasedAnnouncement> {
    let until = now.plus(Span::seconds(30));
    stores.queue.announcements.lease(10, holder, now, until).await.expect("an answer")
}

/// A commit makes its pull requests due a moment later; a later commit does not postpone them.
pub async fn a_commit_makes_its_pull_requests_due(stores: &Stores) {
    let mut sample = Sample::new(stores).await;
    sample.submit(1).await;
    let first = sample.world.at;
    sample.world.wait(Span::seconds(1));
    sample.submit(2).await;
    assert_eq!(lease(stores, ONE, first.plus(Span::seconds(1))).await, []);
    let due = lease(stores, ONE, first.plus(SHOWN_AFTER)).await;
    let [only] = due.as_slice() else { panic!("{due:?}") };
    assert_eq!((only.queue, only.pr, &only.shown), (sample.queue, PrNumber(1), &Shown::default()));
    let due = lease(stores, ONE, first.plus(SHOWN_AFTER).plus(Span::seconds(1))).await;
    assert_eq!(due.iter().map(|it| it.pr).collect::<Vec<_>>(), [PrNumber(2)]);
}

/// One lease holder at a time announces a pull request, and reads what the previous one announced.
pub async fn a_pull_request_has_one_lease_holder_at_a_time(stores: &Stores) {
    let mut sample = Sample::new(stores).await;
    sample.submit(7).await;
    let after = |seconds| sample.world.at.plus(Span::seconds(seconds));
    let mut first = lease(stores, ONE, after(3)).await.pop().expect("due");
    assert_eq!(lease(stores, TWO, after(4)).await, [], "another holder has the lease");
    let release = async |leased: &LeasedAnnouncement, now, next| {
        stores.queue.announcements.release(leased, now, next).await.expect("an answer")
    };
    first.shown = shown();
    assert!(release(&first, after(4), Some(after(10))).await);
    assert!(!release(&first, after(4), None).await, "the lease has ended");
    assert_eq!(lease(stores, TWO, after(9)).await, []);
    let second = lease(stores, TWO, after(10)).await.pop().expect("due again");
    assert_eq!(second.shown, shown());
    let third = lease(stores, ONE, after(41)).await.pop().expect("the lease has expired");
    assert!(!release(&second, after(42), None).await, "the lease was lost");
    assert!(release(&third, after(42), None).await);
    assert_eq!(lease(stores, TWO, after(9_999)).await, [], "nothing is due");
}

/// A pull request that a commit names during a lease is due again.
pub async fn a_commit_during_a_lease_is_not_lost(stores: &Stores) {
    let mut sample = Sample::new(stores).await;
    sample.submit(1).await;
    sample.world.wait(SHOWN_AFTER);
    let leased = lease(stores, ONE, sample.world.at).await.pop().expect("due");
    sample.settle().await;
    let end = sample.world.at;
    assert!(end < leased_until(&sample), "the lease is still valid");
    let kept = stores.queue.announcements.release(&leased, end, None).await;
    assert!(kept.expect("an answer"));
    assert_eq!(lease(stores, TWO, end.plus(SHOWN_AFTER)).await.len(), 1);
}

fn leased_until(sample: &Sample<'_>) -> Timestamp {
    sample.world.at.plus(Span::seconds(1))
}

/// Records are deleted by the time of their last announcement, oldest first.
pub async fn old_announcements_are_deleted(stores: &Stores) {
    let mut sample = Sample::new(stores).await;
    for pr in [1, 2, 3] {
        sample.submit(pr).await;
        sample.world.wait(Span::seconds(10));
    }
    let now = sample.world.at;
    let forget = async |before: Timestamp, limit| {
        stores.queue.announcements.forget(before, limit).await.expect("forgotten")
    };
    assert_eq!(forget(now.minus(Span::seconds(15)), 1).await, 1, "the oldest first");
    assert_eq!(forget(now.minus(Span::seconds(15)), 9).await, 1);
    let left = lease(stores, ONE, now).await;
    assert_eq!(left.iter().map(|it| it.pr).collect::<Vec<_>>(), [PrNumber(3)]);
}
