//! The contract of the audit log.

use signalbox_domain::audit::{AuditAction, AuditActor, AuditChange, AuditRecord};
use signalbox_domain::ids::{OrgId, RepoName, TokenId};
use signalbox_domain::ports::{AuditFilter, AuditPlace, CommitError, Stores, Version};
use signalbox_domain::queue::{EffectClass, Fact, Input, NumberedEffect, absorb};
use signalbox_domain::time::Window;
use uuid::Uuid;

use super::{Sample, at};

fn record(org: OrgId, number: u128, seconds: u32) -> AuditRecord {
    AuditRecord {
        id: Uuid::from_u128(number),
        org,
        at: at(seconds),
        actor: AuditActor::Token { id: TokenId(Uuid::from_u128(7)), name: "ci".into() },
        action: AuditAction::QueueUpdated,
        object: "queue main of git.local/Acme/Calc".into(),
        repo: Some(RepoName::new("git.local", "Acme", "Calc").expect("a name")),
        changes: vec![AuditChange {
            field: "state".into(),
            before: Some("RUNNING".into()),
            after: Some("PAUSED".into()),
        }],
        reason: Some("release day".into()),
        request: Some("r-1".into()),
    }
}

fn numbers(records: &[AuditRecord]) -> Vec<u128> {
    records.iter().map(|it| it.id.as_u128()).collect()
}

/// Records are read back unchanged, newest first, in pages without gaps or repeats, even if several
/// have the same time.
pub async fn records_are_paged_newest_first(stores: &Stores) {
    let org = Sample::org(stores, "acme").await.id;
    for (number, seconds) in [(1, 10), (2, 20), (3, 20), (4, 20), (5, 30)] {
        stores.account.audit.append(&record(org, number, seconds)).await.expect("written");
    }
    let all = AuditFilter::default();
    let mut seen = Vec::new();
    let mut place = None;
    loop {
        let page = stores.account.audit.list(Some(org), &all, place, 2).await.expect("a page");
        let Some(last) = page.last() else { break };
        place = Some(AuditPlace { at: last.at, id: last.id });
        seen.extend(page);
    }
    assert_eq!(numbers(&seen), [5, 4, 3, 2, 1]);
    assert_eq!(seen[0], record(org, 5, 30));
}

/// Each filter finds exactly the matching records; repositories match case-insensitively.
pub async fn records_are_filtered(stores: &Stores) {
    let org = Sample::org(stores, "acme").await.id;
    let other = AuditRecord {
        actor: AuditActor::Operator,
        action: AuditAction::TokenCreated,
        object: "token 1".into(),
        repo: None,
        ..record(org, 1, 10)
    };
    for record in [&other, &record(org, 2, 20)] {
        stores.account.audit.append(record).await.expect("written");
    }
    let repo = |name| RepoName::new("git.local", "acme", name).expect("a name");
    let window = |since: Option<u32>, until: Option<u32>| Window {
        since: since.map(at),
        until: until.map(at),
    };
    let plain = AuditFilter::default;
    for (filter, found) in [
        (plain(), vec![2, 1]),
        (AuditFilter { action: Some(AuditAction::TokenCreated), ..plain() }, vec![1]),
        (AuditFilter { token: Some(TokenId(Uuid::from_u128(7))), ..plain() }, vec![2]),
        (AuditFilter { token: Some(TokenId(Uuid::from_u128(8))), ..plain() }, vec![]),
        (AuditFilter { object: Some("token 1".into()), ..plain() }, vec![1]),
        (AuditFilter { repos: vec![repo("x"), repo("calc")], ..plain() }, vec![2]),
        (AuditFilter { repos: vec![repo("x")], ..plain() }, vec![]),
        (AuditFilter { window: window(Some(20), None), ..plain() }, vec![2]),
        (AuditFilter { window: window(None, Some(20)), ..plain() }, vec![1]),
    ] {
        let records = stores.account.audit.list(Some(org), &filter, None, 9).await.expect("a list");
        assert_eq!(numbers(&records), found, "{filter:?}");
    }
}

/// Another organization sees nothing; a list of all organizations contains everything.
pub async fn records_are_for_their_own_organization(stores: &Stores) {
    let (org, other) =
        (Sample::org(stores, "acme").await.id, Sample::org(stores, "other").await.id);
    stores.account.audit.append(&record(org, 1, 10)).await.expect("written");
    let all = AuditFilter::default();
    let list =
        async |org| stores.account.audit.list(org, &all, None, 9).await.expect("a list").len();
    assert_eq!((list(Some(org)).await, list(Some(other)).await, list(None).await), (1, 0, 1));
}

/// Old records are deleted, oldest first, up to the limit.
pub async fn old_records_are_pruned(stores: &Stores) {
    let org = Sample::org(stores, "acme").await.id;
    for number in 1..=5 {
        let seconds = u32::try_from(number).expect("a small number");
        stores.account.audit.append(&record(org, number, seconds)).await.expect("written");
    }
    assert_eq!(stores.account.audit.prune(at(4), 2).await.expect("pruned"), 2);
    let left = stores.account.audit.list(Some(org), &AuditFilter::default(), None, 9).await;
    assert_eq!(numbers(&left.expect("a list")), [5, 4, 3]);
    assert_eq!(stores.account.audit.prune(at(4), 9).await.expect("pruned"), 1);
    assert_eq!(stores.account.audit.prune(at(4), 9).await.expect("pruned"), 0);
}

/// A commit writes its audit record, and a failed one writes none; its effects have the request's
/// id.
pub async fn a_commit_writes_its_record_or_nothing(stores: &Stores) {
    let mut sample = Sample::new(stores).await;
    let org = sample.queue.org;
    let good = record(org, 1, 10);
    let fact = Fact::TimePassed;
    let mut transition = absorb(&sample.world.queue, &fact, sample.world.at);
    transition.effects = vec![NumberedEffect { number: 1, effect: Sample::inspect(1) }];
    let input = Input::Fact(fact);
    let done = sample.commit_audited(&transition, input.clone(), Some(&good), Some("r-9")).await;
    done.expect("committed");
    let late = record(org, 2, 20);
    sample.version = Version(0);
    let refused = sample.commit_audited(&transition, input, Some(&late), None).await;
    assert!(matches!(refused, Err(CommitError::Conflict)), "{refused:?}");
    let kept = stores.account.audit.list(Some(org), &AuditFilter::default(), None, 9).await;
    assert_eq!(kept.expect("a list"), [good]);
    let holder = Uuid::from_u128(1);
    let leased =
        stores.queue.outbox.lease(EffectClass::Host, 9, holder, at(10_000), at(20_000)).await;
    let leased = leased.expect("leased");
    assert!(leased.iter().any(|it| it.request.as_deref() == Some("r-9")), "{leased:?}");
}
