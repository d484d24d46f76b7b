//! The contract of the webhook store.

use std::collections::BTreeSet;

use signalbox_domain::ids::OrgId;
use signalbox_domain::ports::{LeasedEndpoint, MessageFilter, Stores};
use signalbox_domain::time::{Span, Timestamp, Window};
use signalbox_domain::webhook::{
    Attempt, Content, Endpoint, EndpointId, EndpointSettings, Health, Jitter, Message,
    MessageState, OffReason, Sealed, Secret, Sent,
};
use uuid::Uuid;

use super::sample::shared;
use super::{Sample, at};

const HOLDER: Uuid = Uuid::from_u128(1);

pub(super) fn endpoint(org: OrgId, seconds: u32) -> Endpoint {
    let sealed = Sealed { key: "k1".into(), text: "sealed".into() };
    Endpoint {
        id: EndpointId(Uuid::new_v4()),
        org,
        version: 0,
        settings: EndpointSettings {
            url: "https://hooks.test/x".into(),
            description: "a \"description\"".into(),
            kinds: vec!["pull_request.merged".into()],
        },
        secrets: vec![Secret { sealed, created_at: at(seconds), until: None }],
        health: Health::default(),
        cursor: 5,
        created_at: at(seconds),
        updated_at: at(seconds),
    }
}

pub(super) async fn created(stores: &Stores, slug: &str, seconds: u32) -> Endpoint {
    let org = Sample::org(stores, slug).await;
    let endpoint = endpoint(org.id, seconds);
    assert!(stores.webhook.endpoints.create(&endpoint, 50, None).await.expect("created"));
    endpoint
}

pub(super) fn message(endpoint: &Endpoint, position: i64, seconds: u32) -> Message {
    let content = Content {
        event: Uuid::new_v4(),
        position,
        kind: "pull_request.merged".into(),
        payload: "{\"a\": \"ä\"}".into(),
        request: Some("r-7".into()),
    };
    Message::new((endpoint.org, endpoint.id), content, at(seconds))
}

/// Writes messages without moving the cursor.
pub(super) async fn enqueue(stores: &Stores, endpoint: &Endpoint, messages: &[Message]) {
    let (org, id, cursor) = (endpoint.org, endpoint.id, endpoint.cursor);
    let written = stores.webhook.endpoints.enqueue(org, id, (cursor, cursor), messages, None).await;
    assert!(written.expect("an answer"));
}

pub(super) async fn lease(
    stores: &Stores,
    limit: u32,
    failing: bool,
    now: u32,
) -> Vec<LeasedEndpoint> {
    let times = (at(now), at(now + 60));
    stores.webhook.endpoints.lease(limit, failing, HOLDER, times).await.expect("a lease")
}

pub(super) fn answered(status: u16) -> Sent {
    Sent::Answered { status, abort: false, retry_after: None, body: "a\0b".into() }
}

/// Records an attempt that ends at this time.
pub(super) async fn attempt(
    stores: &Stores,
    leased: &LeasedEndpoint,
    message: Uuid,
    sent: Sent,
    when: Timestamp,
) -> bool {
    let verdict = sent.verdict();
    let headers = vec![("webhook-id".to_owned(), message.to_string())];
    let attempt = Attempt::of((message, 0), (when, Span::ZERO), headers, sent);
    let kept = stores.webhook.endpoints.record(leased.token, &attempt, verdict, Jitter::NONE).await;
    kept.expect("an answer")
}

/// An endpoint is read back unchanged, by its organization only.
pub async fn an_endpoint_is_stored_unchanged_and_belongs_to_its_organization(stores: &Stores) {
    let first = created(stores, "acme", 0).await;
    let other = created(stores, "other", 1).await;
    let found = stores.webhook.endpoints.endpoint(first.org, first.id).await.expect("a read");
    assert_eq!(found.as_ref(), Some(&first));
    assert_eq!(stores.webhook.endpoints.endpoint(other.org, first.id).await.expect("a read"), None);
    assert_eq!(
        stores.webhook.endpoints.endpoints(first.org).await.expect("a list"),
        std::slice::from_ref(&first)
    );
    let stolen = Endpoint { org: other.org, ..first.clone() };
    assert!(!stores.webhook.endpoints.save(&stolen, None).await.expect("an answer"));
    assert!(!stores.webhook.endpoints.delete(other.org, first.id, None).await.expect("an answer"));
    let mut all = [first.id, other.id];
    all.sort_unstable();
    let page = async |after| {
        let page = stores.webhook.endpoints.every(after, 1).await.expect("a page");
        page.into_iter().map(|it| it.id).collect::<Vec<_>>()
    };
    assert_eq!(page(None).await, [all[0]]);
    assert_eq!(page(Some(all[0])).await, [all[1]]);
    assert!(page(Some(all[1])).await.is_empty());
}

/// Concurrent creations stop at the limit.
pub async fn the_number_of_endpoints_is_limited(stores: &Stores) {
    let org = Sample::org(stores, "acme").await;
    let stores = shared(stores);
    let mut racing = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let (stores, endpoint) = (stores.clone(), endpoint(org.id, 0));
        racing.spawn(async move {
            stores.webhook.endpoints.create(&endpoint, 3, None).await.expect("an answer")
        });
    }
    assert_eq!(racing.join_all().await.into_iter().filter(|made| *made).count(), 3);
    assert_eq!(stores.webhook.endpoints.endpoints(org.id).await.expect("a list").len(), 3);
    let other = Sample::org(&stores, "other").await;
    assert!(stores.webhook.endpoints.create(&endpoint(other.id, 0), 3, None).await.expect("made"));
}

/// A change on an old version is refused.
pub async fn a_change_of_an_old_version_is_not_written(stores: &Stores) {
    let first = created(stores, "acme", 0).await;
    let mut changed = first.clone();
    changed.settings.url = "https://elsewhere.test/".into();
    changed.health = changed.health.switched_off(at(7));
    changed.updated_at = at(7);
    assert!(stores.webhook.endpoints.save(&changed, None).await.expect("saved"));
    assert!(!stores.webhook.endpoints.save(&first, None).await.expect("an answer"));
    let found = stores.webhook.endpoints.endpoint(first.org, first.id).await.expect("a read");
    assert_eq!(found, Some(Endpoint { version: 1, ..changed }));
}

/// Messages are written once, and only together with their move of the cursor.
pub async fn messages_and_the_cursor_move_together(stores: &Stores) {
    let first = created(stores, "acme", 0).await;
    let other = created(stores, "other", 0).await;
    let (one, two) = (message(&first, 6, 1), message(&first, 7, 1));
    let (org, id) = (first.org, first.id);
    let hooks = &stores.webhook.endpoints;
    let both = [one.clone(), two.clone()];
    assert!(!hooks.enqueue(org, id, (4, 7), &both, None).await.expect("an answer"));
    assert!(!hooks.enqueue(other.org, id, (5, 7), &both, None).await.expect("an answer"));
    assert_eq!(hooks.waiting(org, id).await.expect("a count"), 0);
    assert!(hooks.enqueue(org, id, (5, 6), &both[..1], None).await.expect("an answer"));
    assert!(!hooks.enqueue(org, id, (5, 7), &both, None).await.expect("an answer"));
    assert!(hooks.enqueue(org, id, (6, 9), &both, None).await.expect("the first again"));
    assert_eq!(hooks.waiting(org, id).await.expect("a count"), 2);
    assert_eq!(hooks.waiting(other.org, id).await.expect("a count"), 0);
    let kept = hooks.message(org, id, one.id).await.expect("a read");
    assert_eq!(kept, Some(one.clone()));
    assert_eq!(hooks.message(other.org, id, one.id).await.expect("a read"), None);
    let found = hooks.endpoint(org, id).await.expect("a read").expect("an endpoint");
    assert_eq!((found.cursor, found.version), (9, 2));
    let off = Endpoint { health: found.health.switched_off(at(2)), ..found };
    assert!(hooks.save(&off, None).await.expect("saved"));
    let more = [message(&first, 10, 2)];
    assert!(!hooks.enqueue(org, id, (9, 10), &more, None).await.expect("an answer"), "it is off");
}

/// The endpoint with the longest wait is next; failing endpoints are leased separately.
pub async fn endpoints_take_turns(stores: &Stores) {
    let org = Sample::org(stores, "acme").await;
    let mut ids = Vec::new();
    for seconds in 0..3 {
        let endpoint = endpoint(org.id, seconds);
        stores.webhook.endpoints.create(&endpoint, 50, None).await.expect("created");
        enqueue(stores, &endpoint, &[message(&endpoint, 6, 10), message(&endpoint, 7, 50)]).await;
        ids.push(endpoint.id);
    }
    assert!(lease(stores, 9, false, 9).await.is_empty(), "nothing is due");
    let first = lease(stores, 1, false, 10).await.remove(0);
    assert_eq!(first.endpoint.id, ids[0]);
    stores.webhook.endpoints.release(first.token, at(11)).await.expect("released");
    let next: Vec<_> = lease(stores, 9, false, 12).await;
    let order: Vec<EndpointId> = next.iter().map(|it| it.endpoint.id).collect();
    assert_eq!(order, [ids[1], ids[2], ids[0]]);
    let due = stores.webhook.endpoints.due(next[0].token, at(49), 9).await.expect("messages");
    assert_eq!(due.iter().map(|it| it.position).collect::<Vec<_>>(), [6]);
    let all = stores.webhook.endpoints.due(next[0].token, at(50), 9).await.expect("messages");
    assert_eq!(all.iter().map(|it| it.position).collect::<Vec<_>>(), [6, 7]);
    assert_eq!(
        stores.webhook.endpoints.due(next[0].token, at(50), 1).await.expect("messages").len(),
        1
    );
    assert!(attempt(stores, &next[0], due[0].id, Sent::TimedOut, at(12)).await);
    for leased in &next {
        stores.webhook.endpoints.release(leased.token, at(13)).await.expect("released");
    }
    assert!(lease(stores, 9, true, 13).await.is_empty(), "the retry is not due yet");
    let failing = lease(stores, 9, true, 17).await;
    assert_eq!(failing.iter().map(|it| it.endpoint.id).collect::<Vec<_>>(), [ids[1]]);
    assert_eq!(lease(stores, 9, false, 17).await.len(), 2);
}

/// Of many workers, one leases each endpoint.
pub async fn an_endpoint_is_leased_once(stores: &Stores) {
    let org = Sample::org(stores, "acme").await;
    for seconds in 0..20 {
        let endpoint = endpoint(org.id, seconds);
        stores.webhook.endpoints.create(&endpoint, 50, None).await.expect("created");
        enqueue(stores, &endpoint, &[message(&endpoint, 6, 0)]).await;
    }
    let stores = shared(stores);
    let mut workers = tokio::task::JoinSet::new();
    for worker in 0..8 {
        let (stores, holder) = (stores.clone(), Uuid::from_u128(worker));
        workers.spawn(async move {
            let mut taken = Vec::new();
            loop {
                let times = (at(100), at(160));
                let leased = stores.webhook.endpoints.lease(3, false, holder, times).await;
                let leased = leased.expect("a lease");
                if leased.is_empty() {
                    return taken;
                }
                taken.extend(leased.into_iter().map(|it| it.endpoint.id));
            }
        });
    }
    let taken: Vec<EndpointId> = workers.join_all().await.into_iter().flatten().collect();
    assert_eq!(taken.len(), 20);
    assert_eq!(taken.into_iter().collect::<BTreeSet<_>>().len(), 20);
}

/// Every attempt is recorded under its number and updates its message.
pub async fn an_attempt_is_recorded_and_updates_its_message(stores: &Stores) {
    let first = created(stores, "acme", 0).await;
    let sent = message(&first, 6, 1);
    enqueue(stores, &first, std::slice::from_ref(&sent)).await;
    let leased = lease(stores, 1, false, 1).await.remove(0);
    assert!(attempt(stores, &leased, sent.id, answered(500), at(2)).await);
    let (org, id, hooks) = (first.org, first.id, &stores.webhook.endpoints);
    let kept = hooks.message(org, id, sent.id).await.expect("a read").expect("a message");
    let failed = sent.clone().after(answered(500).verdict(), at(2), Jitter::NONE, None);
    assert_eq!(kept, failed);
    assert_eq!(kept.next_at, Some(at(7)));
    let health = async || hooks.endpoint(org, id).await.expect("a read").expect("one").health;
    assert_eq!(health().await.failing_since, Some(at(2)));
    assert!(attempt(stores, &leased, sent.id, answered(204), at(7)).await);
    let kept = hooks.message(org, id, sent.id).await.expect("a read").expect("a message");
    assert_eq!((kept.state, kept.tries), (MessageState::Delivered, 2));
    assert_eq!((kept.next_at, kept.ended_at), (None, Some(at(7))));
    assert_eq!(health().await, Health::default());
    let tries = hooks.attempts(org, id, &[sent.id, Uuid::new_v4()]).await.expect("tries");
    let shown: Vec<_> = tries.iter().map(|it| (it.number, it.status, it.at)).collect();
    assert_eq!(shown, [(1, Some(500), at(2)), (2, Some(204), at(7))]);
    assert_eq!(tries[0].response, "a\u{fffd}b");
    assert_eq!(tries[0].headers, [("webhook-id".to_owned(), sent.id.to_string())]);
    let stranger = OrgId(Uuid::new_v4());
    assert!(hooks.attempts(stranger, id, &[sent.id]).await.expect("none").is_empty());
}

/// An expired lease is taken over, and its former holder's calls have no effect.
pub async fn a_lost_webhook_lease_has_no_effect(stores: &Stores) {
    let first = created(stores, "acme", 0).await;
    let sent = message(&first, 6, 1);
    enqueue(stores, &first, std::slice::from_ref(&sent)).await;
    let lost = lease(stores, 1, false, 1).await.remove(0);
    assert!(lease(stores, 1, false, 60).await.is_empty());
    let good = lease(stores, 1, false, 61).await.remove(0);
    assert_ne!(lost.token, good.token);
    assert!(stores.webhook.endpoints.due(lost.token, at(61), 9).await.expect("none").is_empty());
    assert!(!attempt(stores, &lost, sent.id, answered(200), at(61)).await);
    stores.webhook.endpoints.release(lost.token, at(61)).await.expect("no effect");
    assert!(lease(stores, 1, false, 62).await.is_empty(), "the other lease is valid");
    assert_eq!(stores.webhook.endpoints.due(good.token, at(61), 9).await.expect("one").len(), 1);
    assert_eq!(
        stores.webhook.endpoints.hand_back(Some(Uuid::from_u128(9))).await.expect("none"),
        0
    );
    assert_eq!(stores.webhook.endpoints.hand_back(Some(HOLDER)).await.expect("one"), 1);
    assert!(!attempt(stores, &good, sent.id, answered(200), at(62)).await);
    assert_eq!(lease(stores, 1, false, 63).await.len(), 1);
    assert_eq!(stores.webhook.endpoints.hand_back(None).await.expect("one"), 1);
}

/// Five days of failures disable an endpoint, and so does one 410; then nothing is due.
pub async fn a_failing_endpoint_is_disabled(stores: &Stores) {
    let first = created(stores, "acme", 0).await;
    let messages = [message(&first, 6, 1), message(&first, 7, 1), message(&first, 8, 1)];
    enqueue(stores, &first, &messages).await;
    let leased = lease(stores, 1, false, 1).await.remove(0);
    let (org, id, hooks) = (first.org, first.id, &stores.webhook.endpoints);
    let off = async || hooks.endpoint(org, id).await.expect("a read").expect("one").health.off;
    assert!(attempt(stores, &leased, messages[0].id, Sent::TimedOut, at(2)).await);
    let later = at(2).plus(Span::days(5));
    assert!(
        attempt(stores, &leased, messages[1].id, answered(302), later.minus(Span::MICROSECOND))
            .await
    );
    assert_eq!(off().await, None);
    assert!(attempt(stores, &leased, messages[1].id, answered(302), later).await);
    assert_eq!(off().await.map(|off| (off.reason, off.at)), Some((OffReason::Failing, later)));
    let far = later.plus(Span::days(9));
    assert!(hooks.due(leased.token, far, 9).await.expect("none").is_empty());
    let times = (far, far.plus(Span::seconds(1)));
    for failing in [false, true] {
        assert!(hooks.lease(9, failing, HOLDER, times).await.expect("none").is_empty());
    }
    assert!(attempt(stores, &leased, messages[2].id, answered(410), far).await, "it is written");
    assert_eq!(off().await.map(|off| off.reason), Some(OffReason::Failing));
    let gone = created(stores, "other", 0).await;
    let one = message(&gone, 6, 1);
    enqueue(stores, &gone, std::slice::from_ref(&one)).await;
    let leased = lease(stores, 1, false, 1).await.remove(0);
    assert!(attempt(stores, &leased, one.id, answered(410), at(3)).await);
    let found = hooks.endpoint(gone.org, gone.id).await.expect("a read").expect("one");
    assert_eq!(found.health.off.map(|off| off.reason), Some(OffReason::Gone));
}

/// Lists are newest first, in pages without gaps, and can be filtered.
pub async fn messages_are_listed_in_pages_and_filtered(stores: &Stores) {
    let first = created(stores, "acme", 0).await;
    let mut all: Vec<Message> = [3, 1, 2, 2, 5]
        .into_iter()
        .map(|seconds| message(&first, i64::from(seconds), seconds))
        .collect();
    all[0].kind = "pull_request.failed".into();
    enqueue(stores, &first, &all).await;
    let leased = lease(stores, 1, false, 9).await.remove(0);
    assert!(attempt(stores, &leased, all[4].id, answered(200), at(9)).await);
    let (org, id, hooks) = (first.org, first.id, &stores.webhook.endpoints);
    let list = async |org, filter: &MessageFilter, after, limit| {
        let page = hooks.messages(org, id, filter, after, limit).await.expect("a page");
        page.into_iter().map(|it| (it.created_at, it.id)).collect::<Vec<_>>()
    };
    let mut wanted: Vec<_> = all.iter().map(|it| (it.created_at, it.id)).collect();
    wanted.sort_unstable();
    wanted.reverse();
    let none = MessageFilter::default();
    let one = list(org, &none, None, 2).await;
    let two = list(org, &none, one.last().copied(), 2).await;
    let three = list(org, &none, two.last().copied(), 2).await;
    assert_eq!([one, two, three].concat(), wanted);
    assert!(list(OrgId(Uuid::new_v4()), &none, None, 9).await.is_empty());
    let kind = MessageFilter { kind: Some("pull_request.failed".into()), ..none.clone() };
    assert_eq!(list(org, &kind, None, 9).await, [(at(3), all[0].id)]);
    let state = MessageFilter { state: Some(MessageState::Delivered), ..none.clone() };
    assert_eq!(list(org, &state, None, 9).await, [(at(5), all[4].id)]);
    let made = Window { since: Some(at(2)), until: Some(at(3)) };
    assert_eq!(list(org, &MessageFilter { made, ..none }, None, 9).await, wanted[1..4]);
}

/// Ended messages are replayed under the same id; pending ones are unchanged.
pub async fn ended_messages_are_replayed(stores: &Stores) {
    let first = created(stores, "acme", 0).await;
    let all: Vec<Message> = (1..=4).map(|it| message(&first, i64::from(it), it)).collect();
    enqueue(stores, &first, &all).await;
    let leased = lease(stores, 1, false, 9).await.remove(0);
    let abort = Sent::Answered { status: 400, abort: true, retry_after: None, body: String::new() };
    for (message, sent) in [(&all[0], answered(200)), (&all[1], abort.clone()), (&all[2], abort)] {
        assert!(attempt(stores, &leased, message.id, sent, at(9)).await);
    }
    let (org, id, hooks) = (first.org, first.id, &stores.webhook.endpoints);
    let read = async |message| hooks.message(org, id, message).await.expect("a read").expect("one");
    let stranger = OrgId(Uuid::new_v4());
    let one = async |org, message| {
        hooks.replay_one(org, id, message, at(20), None).await.expect("an answer")
    };
    assert!(!one(stranger, all[0].id).await);
    assert!(!one(org, all[3].id).await, "it is pending");
    let before = read(all[0].id).await;
    assert!(one(org, all[0].id).await);
    assert_eq!(read(all[0].id).await, before.replayed(at(20)));
    let aborted = MessageFilter { state: Some(MessageState::Aborted), ..Default::default() };
    let replay = async |org, filter: &MessageFilter, limit| {
        hooks.replay(org, id, filter, (at(30), limit), None).await.expect("an answer")
    };
    assert_eq!(replay(stranger, &aborted, 9).await, 0);
    assert_eq!(replay(org, &aborted, 1).await, 1);
    assert_eq!(read(all[1].id).await.state, MessageState::Pending, "the oldest first");
    assert_eq!(replay(org, &MessageFilter::default(), 9).await, 1);
    assert_eq!(replay(org, &MessageFilter::default(), 9).await, 0);
    assert_eq!(hooks.waiting(org, id).await.expect("a count"), 4);
    assert!(attempt(stores, &leased, all[0].id, answered(200), at(31)).await);
    let tries = hooks.attempts(org, id, &[all[0].id]).await.expect("tries");
    assert_eq!(tries.iter().map(|it| it.number).collect::<Vec<_>>(), [1, 2]);
}

/// Messages that ended long ago are deleted with their attempts; deleting an endpoint deletes all
/// of its messages.
pub async fn old_messages_are_pruned_and_deletion_removes_all_messages(stores: &Stores) {
    let first = created(stores, "acme", 0).await;
    let all: Vec<Message> = (1..=3).map(|it| message(&first, i64::from(it), it)).collect();
    enqueue(stores, &first, &all).await;
    let leased = lease(stores, 1, false, 9).await.remove(0);
    for (message, seconds) in [(&all[0], 10), (&all[1], 20)] {
        assert!(attempt(stores, &leased, message.id, answered(200), at(seconds)).await);
    }
    let (org, id, hooks) = (first.org, first.id, &stores.webhook.endpoints);
    assert_eq!(hooks.prune(at(10), 9).await.expect("none"), 0);
    assert_eq!(hooks.prune(at(99), 1).await.expect("one"), 1);
    assert_eq!(hooks.message(org, id, all[0].id).await.expect("a read"), None);
    assert!(hooks.attempts(org, id, &[all[0].id]).await.expect("none").is_empty());
    assert_eq!(hooks.prune(at(99), 9).await.expect("one"), 1);
    assert_eq!(hooks.waiting(org, id).await.expect("a count"), 1, "pending messages stay");
    assert!(attempt(stores, &leased, all[2].id, answered(500), at(30)).await);
    assert!(hooks.delete(org, id, None).await.expect("deleted"));
    assert!(!hooks.delete(org, id, None).await.expect("an answer"));
    assert_eq!(hooks.endpoint(org, id).await.expect("a read"), None);
    assert_eq!(hooks.message(org, id, all[2].id).await.expect("a read"), None);
    assert!(hooks.attempts(org, id, &[all[2].id]).await.expect("none").is_empty());
    assert!(!attempt(stores, &leased, all[2].id, answered(200), at(31)).await);
}
