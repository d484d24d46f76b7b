//! The contract of the store of idempotency keys.

use futures_util::future::join_all;
use signalbox_domain::ids::TokenId;
use signalbox_domain::ports::{KeptReply, KeyClaim, KeyedRequest, Stores};
use uuid::Uuid;

use super::{Sample, at};

async fn request(stores: &Stores, token: u128, fingerprint: &str, claim: u128) -> KeyedRequest {
    KeyedRequest {
        org: Sample::org(stores, "acme").await.id,
        token: TokenId(Uuid::from_u128(token)),
        key: "k".to_owned(),
        fingerprint: fingerprint.to_owned(),
        claim: Uuid::from_u128(claim),
    }
}

fn reply(body: Option<&str>) -> KeptReply {
    let content_type = "application/json".to_owned();
    KeptReply { status: 200, content_type, body: body.map(ToOwned::to_owned) }
}

/// A key is claimed once; a repeat gets the reply when there is one, and another request with the
/// same key is refused. Keys of another token are other keys.
pub async fn a_repeat_gets_the_reply_of_the_first_request(stores: &Stores) {
    let keys = &stores.account.idempotency;
    let claim = async |request: &KeyedRequest, now: u32| {
        keys.claim(request, at(now), at(now + 60)).await.expect("an answer")
    };
    let first = request(stores, 1, "a", 1).await;
    let again = request(stores, 1, "a", 2).await;
    let other = request(stores, 1, "b", 3).await;
    assert_eq!(claim(&first, 0).await, KeyClaim::Claimed);
    assert_eq!(claim(&again, 1).await, KeyClaim::Running);
    assert_eq!(claim(&other, 1).await, KeyClaim::OtherRequest);
    assert_eq!(claim(&request(stores, 2, "b", 4).await, 1).await, KeyClaim::Claimed);
    for kept in [reply(Some("{}")), reply(None)] {
        assert!(keys.keep(&first, &kept, at(1_000)).await.expect("kept"));
        assert_eq!(claim(&again, 900).await, KeyClaim::Replied(kept));
        assert_eq!(claim(&other, 900).await, KeyClaim::OtherRequest);
    }
    keys.release(&first).await.expect("nothing to release");
    assert_eq!(claim(&again, 900).await, KeyClaim::Replied(reply(None)));
}

/// A released or expired key is new, and the attempt that has lost it keeps nothing.
pub async fn a_released_or_expired_key_is_new(stores: &Stores) {
    let keys = &stores.account.idempotency;
    let first = request(stores, 1, "a", 1).await;
    let second = request(stores, 1, "b", 2).await;
    let third = request(stores, 1, "c", 3).await;
    let claim = async |request: &KeyedRequest, now: u32, until: u32| {
        keys.claim(request, at(now), at(until)).await.expect("an answer")
    };
    assert_eq!(claim(&first, 0, 60).await, KeyClaim::Claimed);
    keys.release(&first).await.expect("released");
    assert_eq!(claim(&second, 1, 60).await, KeyClaim::Claimed);
    assert!(!keys.keep(&first, &reply(None), at(1_000)).await.expect("an answer"));
    keys.release(&first).await.expect("nothing to release");
    assert_eq!(claim(&third, 59, 100).await, KeyClaim::OtherRequest);
    assert_eq!(claim(&third, 60, 100).await, KeyClaim::Claimed);
    assert!(!keys.keep(&second, &reply(None), at(1_000)).await.expect("an answer"));
    assert!(keys.keep(&third, &reply(None), at(200)).await.expect("kept"));
    assert_eq!(claim(&first, 200, 300).await, KeyClaim::Claimed);
}

/// Of concurrent claims of a key one is granted, also when an expired one is taken over.
pub async fn one_of_concurrent_claims_is_granted(stores: &Stores) {
    let keys = &stores.account.idempotency;
    for round in 0..3 {
        let mut claims = Vec::new();
        for number in 1..=8 {
            claims.push(request(stores, 1, "a", round * 8 + number).await);
        }
        let now = 100 * u32::try_from(round).expect("small");
        let answers = join_all(claims.iter().map(|it| keys.claim(it, at(now), at(now + 60)))).await;
        let granted = answers.iter().filter(|it| matches!(it, Ok(KeyClaim::Claimed))).count();
        assert_eq!(granted, 1, "{answers:?}");
        assert!(answers.iter().all(Result::is_ok), "{answers:?}");
    }
}

/// Expired keys are deleted, no more at a time than requested.
pub async fn expired_keys_are_deleted(stores: &Stores) {
    let keys = &stores.account.idempotency;
    for (token, until) in [(1, 10), (2, 20), (3, 30)] {
        let request = request(stores, token, "a", token).await;
        keys.claim(&request, at(0), at(until)).await.expect("claimed");
    }
    for (limit, deleted) in [(1, 1), (5, 1), (5, 0)] {
        assert_eq!(keys.forget(at(25), limit).await.expect("deleted"), deleted);
    }
    let left = request(stores, 3, "a", 4).await;
    assert_eq!(keys.claim(&left, at(25), at(60)).await.expect("an answer"), KeyClaim::Running);
}
