//! What was shown on hosts is remembered, and shown by one server at a time.

use signalbox_domain::ids::{PrNumber, Sha};
use signalbox_domain::ports::{Shown, Stores};
use uuid::Uuid;

use super::{Sample, at};

/// Something of everything.
fn shown(settled: bool) -> Shown {
    Shown {
        status: Some(Uuid::from_u128(1)),
        comment: Some(Uuid::from_u128(2)),
        labels: None,
        closed: Some(Uuid::from_u128(3)),
        newer_head: Some(Sha::new("a".repeat(40)).expect("a commit")),
        settled,
    }
}

/// One holder at a time shows a pull request, and finds what the one before has shown.
pub async fn a_pull_request_is_shown_by_one_holder_at_a_time(stores: &Stores) {
    let queue = Sample::new(stores).await.queue;
    let store = &stores.announcements;
    let (one, two, pr) = (Uuid::from_u128(10), Uuid::from_u128(20), PrNumber(7));
    let claim = async |holder, now, until| {
        store.claim(queue, pr, holder, at(now), at(until)).await.expect("an answer")
    };
    assert_eq!(claim(one, 1, 30).await, Some(Shown::default()));
    assert_eq!(claim(two, 2, 30).await, None, "the other one is at it");
    assert_eq!(claim(one, 2, 30).await, Some(Shown::default()), "its own claim is renewed");
    let release = async |holder, now| {
        store.release(queue, pr, holder, &shown(true), at(now)).await.expect("an answer")
    };
    assert!(!release(two, 3).await, "nothing of who has no claim is written");
    assert!(release(one, 3).await);
    assert_eq!(claim(two, 4, 10).await, Some(shown(true)), "free again, with what was shown");
    assert_eq!(claim(one, 10, 20).await, Some(shown(true)), "the claim has run out");
    assert!(!release(two, 11).await, "the claim was lost");
    assert!(release(one, 12).await);
}

/// What is not settled is listed first and however old it is; the rest since a time.
pub async fn what_is_not_settled_is_found_until_it_is_forgotten(stores: &Stores) {
    let queue = Sample::new(stores).await.queue;
    let store = &stores.announcements;
    let holder = Uuid::from_u128(10);
    for (pr, when, settled) in [(1, 10, true), (2, 20, false), (3, 30, true), (4, 15, false)] {
        let pr = PrNumber(pr);
        store.claim(queue, pr, holder, at(when), at(when + 5)).await.expect("claimed");
        let kept = store.release(queue, pr, holder, &shown(settled), at(when)).await;
        assert!(kept.expect("written"));
    }
    let listed = async |since, limit| {
        let found = store.unsettled_or_since(queue, at(since), limit).await.expect("a list");
        found.into_iter().map(|(pr, shown)| (pr.0, shown.settled)).collect::<Vec<_>>()
    };
    assert_eq!(listed(25, 10).await, [(4, false), (2, false), (3, true)]);
    assert_eq!(listed(0, 3).await, [(4, false), (2, false), (1, true)]);
    let other = signalbox_domain::ports::QueueRef { org: queue.org, ..stray(queue) };
    assert!(store.unsettled_or_since(other, at(0), 10).await.expect("a list").is_empty());
    assert_eq!(store.forget(at(20), 1).await.expect("forgotten"), 1, "the oldest first");
    assert_eq!(listed(0, 10).await, [(4, false), (2, false), (3, true)]);
    assert_eq!(store.forget(at(20), 10).await.expect("forgotten"), 1);
    assert_eq!(listed(0, 10).await, [(2, false), (3, true)]);
}

/// A queue that has shown nothing.
fn stray(queue: signalbox_domain::ports::QueueRef) -> signalbox_domain::ports::QueueRef {
    let id = signalbox_domain::ids::QueueId(Uuid::from_u128(99));
    signalbox_domain::ports::QueueRef { id, ..queue }
}
