//! The contract of the webhook store about audit records.

use signalbox_domain::audit::{AuditAction, AuditActor, AuditRecord};
use signalbox_domain::ids::OrgId;
use signalbox_domain::ports::{AuditFilter, MessageFilter, Stores};
use signalbox_domain::webhook::Endpoint;
use uuid::Uuid;

use super::at;
use super::webhooks::{attempt, created, endpoint, enqueue, lease, message};

fn record(org: OrgId, number: u32, action: AuditAction) -> AuditRecord {
    AuditRecord {
        id: Uuid::from_u128(number.into()),
        org,
        at: at(number),
        actor: AuditActor::Operator,
        action,
        object: "webhook 1".into(),
        repo: None,
        changes: Vec::new(),
        reason: None,
        request: None,
    }
}

/// The numbers of the written records.
async fn kept(stores: &Stores, org: OrgId) -> Vec<u128> {
    let all = stores.account.audit.list(Some(org), &AuditFilter::default(), None, 99).await;
    all.expect("a list").iter().rev().map(|it| it.id.as_u128()).collect()
}

/// A change writes its record; a refused one writes none.
pub async fn endpoints_are_changed_with_their_record_or_not_at_all(stores: &Stores) {
    let first = created(stores, "acme", 0).await;
    let (org, id, hooks) = (first.org, first.id, &stores.webhook.endpoints);
    let note = |number| record(org, number, AuditAction::WebhookUpdated);
    let full = hooks.create(&endpoint(org, 1), 1, Some(&note(1))).await;
    assert!(!full.expect("an answer"));
    assert!(hooks.create(&endpoint(org, 1), 2, Some(&note(2))).await.expect("made"));
    let changed = Endpoint { updated_at: at(3), ..first.clone() };
    assert!(hooks.save(&changed, Some(&note(3))).await.expect("saved"));
    assert!(!hooks.save(&changed, Some(&note(4))).await.expect("an answer"), "an old version");
    let sent = [message(&first, 0, 5)];
    let wrong = hooks.enqueue(org, id, (1, 1), &sent, Some(&note(5))).await;
    assert!(!wrong.expect("an answer"));
    assert!(hooks.enqueue(org, id, (5, 5), &sent, Some(&note(6))).await.expect("written"));
    assert!(hooks.delete(org, id, Some(&note(7))).await.expect("deleted"));
    assert!(!hooks.delete(org, id, Some(&note(8))).await.expect("an answer"));
    assert_eq!(kept(stores, org).await, [2, 3, 6, 7]);
}

/// A replay writes its record if it replays any message.
pub async fn messages_are_replayed_with_their_record_or_not_at_all(stores: &Stores) {
    let first = created(stores, "acme", 0).await;
    let (org, id, hooks) = (first.org, first.id, &stores.webhook.endpoints);
    let sent = message(&first, 6, 1);
    enqueue(stores, &first, std::slice::from_ref(&sent)).await;
    let note = |number| record(org, number, AuditAction::WebhookReplayed);
    let one = async |number| {
        let note = note(number);
        hooks.replay_one(org, id, sent.id, at(30), Some(&note)).await.expect("an answer")
    };
    let all = async |number| {
        let (note, filter) = (note(number), MessageFilter::default());
        hooks.replay(org, id, &filter, (at(30), 9), Some(&note)).await.expect("an answer")
    };
    assert!(!one(1).await, "it is pending");
    assert_eq!(all(2).await, 0);
    let deliver = async |when| {
        let leased = lease(stores, 1, false, when).await.remove(0);
        let taken = super::webhooks::answered(204);
        assert!(attempt(stores, &leased, sent.id, taken, at(when)).await);
        stores.webhook.endpoints.release(leased.token, at(when)).await.expect("released");
    };
    deliver(10).await;
    assert!(one(3).await);
    deliver(40).await;
    assert_eq!(all(4).await, 1);
    assert_eq!(kept(stores, org).await, [3, 4]);
}
