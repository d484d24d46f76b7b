//! The contract of the upload store.

use std::collections::BTreeSet;

use signalbox_domain::flaky::{Trust, UploadId, UploadSource};
use signalbox_domain::ids::{OrgId, RepoId};
use signalbox_domain::ports::{LeasedUpload, Repository, Stores};
use signalbox_domain::upload::{
    Claims, ContentHash, Part, Received, UploadRecord, UploadState, UploadWarning, WarningKind,
};
use uuid::Uuid;

use super::sample::shared;
use super::{Sample, at};

async fn repository(stores: &Stores) -> Repository {
    let org = Sample::org(stores, "acme").await;
    Sample::repository(stores, org.id, "calc").await
}

fn record(repository: &Repository, seconds: u32) -> UploadRecord {
    let claims = Claims { branch: Some("topic".into()), ..Claims::default() };
    UploadRecord::awaited(
        UploadId(Uuid::new_v4()),
        (repository.org, repository.id),
        (UploadSource::Bundle, Trust::Token),
        claims,
        at(seconds),
    )
}

fn received(seconds: u32) -> Received {
    let hash = ContentHash::of(b"content");
    let part = Part { key: "key".into(), name: "bundle".into(), bytes: 7, hash };
    Received { at: at(seconds), parts: vec![part] }
}

async fn created(stores: &Stores, repository: &Repository, seconds: u32) -> UploadRecord {
    let record = record(repository, seconds);
    assert!(stores.flaky.uploads.create(&record, None).await.expect("created"));
    let (org, id) = (record.org, record.id);
    let taken = stores.flaky.uploads.receive(org, id, &received(seconds)).await;
    assert!(taken.expect("received"));
    record
}

async fn lease(stores: &Stores, limit: u32, now: u32) -> Vec<LeasedUpload> {
    let holder = Uuid::from_u128(1);
    let leased = stores.flaky.uploads.lease(limit, holder, at(now), at(now + 30)).await;
    leased.expect("a lease")
}

/// An upload is created once, and only its organization and the holder of its secret see it.
pub async fn an_upload_is_created_once_and_found_by_its_own(stores: &Stores) {
    let repository = repository(stores).await;
    let record = record(&repository, 0);
    let (secret, other) = (ContentHash::of(b"secret"), ContentHash::of(b"other"));
    assert!(stores.flaky.uploads.create(&record, Some(secret)).await.expect("created"));
    let changed = UploadRecord { state: UploadState::Failed, ..record.clone() };
    assert!(!stores.flaky.uploads.create(&changed, Some(other)).await.expect("an answer"));
    let found = stores.flaky.uploads.find(record.org, record.id).await.expect("a read");
    assert_eq!(found.as_ref(), Some(&record));
    let stranger = OrgId(Uuid::new_v4());
    assert_eq!(stores.flaky.uploads.find(stranger, record.id).await.expect("a read"), None);
    let by_secret = stores.flaky.uploads.find_by_secret(record.id, secret).await.expect("a read");
    assert_eq!(by_secret, found);
    assert_eq!(stores.flaky.uploads.find_by_secret(record.id, other).await.expect("a read"), None);
    let another = UploadId(Uuid::new_v4());
    assert_eq!(stores.flaky.uploads.find_by_secret(another, secret).await.expect("a read"), None);
}

/// Bytes are accepted once; sending them again changes nothing and creates no second job.
pub async fn bytes_are_received_once(stores: &Stores) {
    let repository = repository(stores).await;
    let record = record(&repository, 0);
    stores.flaky.uploads.create(&record, None).await.expect("created");
    assert!(lease(stores, 10, 100).await.is_empty(), "nothing has come yet");
    let stranger = OrgId(Uuid::new_v4());
    let receive = async |org| {
        stores.flaky.uploads.receive(org, record.id, &received(1)).await.expect("an answer")
    };
    assert!(!receive(stranger).await);
    assert!(receive(record.org).await);
    assert!(!receive(record.org).await);
    let leased = lease(stores, 10, 100).await;
    assert_eq!(leased.len(), 1);
    assert_eq!(leased[0].record.state, UploadState::Received);
    assert_eq!(leased[0].record.received, Some(received(1)));
    assert_eq!(leased[0].attempts, 0);
}

/// Of concurrent calls of `receive` one succeeds, and eight workers process each upload once.
pub async fn uploads_are_leased_once_each(stores: &Stores) {
    let repository = repository(stores).await;
    let record = record(&repository, 0);
    stores.flaky.uploads.create(&record, None).await.expect("created");
    let stores = shared(stores);
    let mut racing = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let (stores, record) = (stores.clone(), record.clone());
        racing.spawn(async move {
            stores
                .flaky
                .uploads
                .receive(record.org, record.id, &received(1))
                .await
                .expect("an answer")
        });
    }
    assert_eq!(racing.join_all().await.into_iter().filter(|taken| *taken).count(), 1);
    for seconds in 0..40 {
        created(&stores, &repository, seconds).await;
    }
    let mut workers = tokio::task::JoinSet::new();
    for worker in 0..8 {
        let stores = stores.clone();
        workers.spawn(async move {
            let (mut taken, holder) = (Vec::new(), Uuid::from_u128(worker));
            loop {
                let leased = stores.flaky.uploads.lease(3, holder, at(100), at(130)).await;
                let leased = leased.expect("a lease");
                if leased.is_empty() {
                    return taken;
                }
                taken.extend(leased.into_iter().map(|it| it.record.id));
            }
        });
    }
    let taken: Vec<UploadId> = workers.join_all().await.into_iter().flatten().collect();
    assert_eq!(taken.len(), 41);
    assert_eq!(taken.into_iter().collect::<BTreeSet<_>>().len(), 41);
}

/// An expired lease is taken over, and its former holder's calls have no effect.
pub async fn a_lost_upload_lease_has_no_effect(stores: &Stores) {
    let repository = repository(stores).await;
    created(stores, &repository, 0).await;
    let first = lease(stores, 1, 10).await.remove(0);
    assert!(lease(stores, 1, 20).await.is_empty());
    assert!(stores.flaky.uploads.renew(first.token, at(60)).await.expect("renewed"));
    assert!(lease(stores, 1, 50).await.is_empty());
    let second = lease(stores, 1, 60).await.remove(0);
    assert_eq!(second.attempts, 1);
    let uploads = &stores.flaky.uploads;
    assert!(!uploads.renew(first.token, at(99)).await.expect("an answer"));
    assert_eq!(uploads.claim(first.token, ContentHash([1; 32])).await.expect("an answer"), None);
    let failed = UploadRecord { state: UploadState::Failed, ..first.record.clone() };
    assert!(!uploads.finish(first.token, &failed).await.expect("an answer"));
    assert!(!uploads.retry(first.token, at(0), at(0), "x").await.expect("an answer"));
    let kept = uploads.find(repository.org, first.record.id).await.expect("a read");
    assert_eq!(kept.expect("an upload").state, UploadState::Received);
    assert_eq!(uploads.hand_back(Some(Uuid::from_u128(9))).await.expect("none"), 0);
    assert_eq!(uploads.hand_back(Some(Uuid::from_u128(1))).await.expect("one"), 1);
    assert_eq!(lease(stores, 1, 61).await.len(), 1);
    assert_eq!(uploads.hand_back(None).await.expect("one"), 1);
}

/// A finished upload is not leased again, and its record is stored unchanged; a retried one is
/// leased again when it is due.
pub async fn an_upload_is_finished_or_retried(stores: &Stores) {
    let repository = repository(stores).await;
    let record = created(stores, &repository, 0).await;
    let leased = lease(stores, 1, 10).await.remove(0);
    let retried = stores.flaky.uploads.retry(leased.token, at(50), at(10), "away").await;
    assert!(retried.expect("retried"));
    assert!(lease(stores, 1, 49).await.is_empty());
    let leased = lease(stores, 1, 50).await.remove(0);
    assert_eq!((leased.attempts, leased.failing_since), (1, Some(at(10))));
    let warnings = vec![UploadWarning { kind: WarningKind::ShaMissing, count: 0 }];
    let done = UploadRecord {
        state: UploadState::Read,
        problem: Some("line 3: \u{fffd}".into()),
        warnings,
        ..leased.record
    };
    assert!(stores.flaky.uploads.finish(leased.token, &done).await.expect("finished"));
    assert!(lease(stores, 1, 1_000).await.is_empty());
    let kept = stores.flaky.uploads.find(record.org, record.id).await.expect("a read");
    assert_eq!(kept, Some(done));
}

/// A digest belongs to the upload that claims it first, within a repository; a failed upload gives
/// it back.
pub async fn a_digest_belongs_to_the_first_until_it_fails(stores: &Stores) {
    let here = repository(stores).await;
    let elsewhere = Sample::repository(stores, here.org, "other").await;
    let first = created(stores, &here, 0).await;
    let second = created(stores, &here, 1).await;
    let third = created(stores, &elsewhere, 2).await;
    let leased = lease(stores, 3, 10).await;
    let digest = ContentHash([7; 32]);
    let claim = async |at: usize| {
        stores.flaky.uploads.claim(leased[at].token, digest).await.expect("an answer")
    };
    assert_eq!(claim(0).await, Some(first.id));
    assert_eq!(claim(0).await, Some(first.id), "also when it claims again");
    assert_eq!(claim(1).await, Some(first.id));
    assert_eq!(claim(2).await, Some(third.id), "another repository");
    let failed = UploadRecord { state: UploadState::Failed, ..leased[0].record.clone() };
    assert!(stores.flaky.uploads.finish(leased[0].token, &failed).await.expect("finished"));
    assert_eq!(claim(1).await, Some(second.id));
}

/// Lists are newest first, in pages without gaps, and one organization's own.
pub async fn uploads_are_listed_in_pages_and_pruned_by_age(stores: &Stores) {
    let repository = repository(stores).await;
    let mut ids = Vec::new();
    for seconds in [3, 1, 2, 2, 5] {
        ids.push((at(seconds), created(stores, &repository, seconds).await.id));
    }
    ids.sort_unstable();
    ids.reverse();
    let list = async |org, repo, after, limit| {
        let page = stores.flaky.uploads.list(org, repo, after, limit).await.expect("a page");
        page.into_iter().map(|it| (it.created_at, it.id)).collect::<Vec<_>>()
    };
    let (org, repo) = (repository.org, repository.id);
    let first = list(org, repo, None, 2).await;
    let second = list(org, repo, first.last().copied(), 2).await;
    let third = list(org, repo, second.last().copied(), 2).await;
    assert_eq!([first, second, third].concat(), ids);
    let stranger = OrgId(Uuid::new_v4());
    assert!(list(stranger, repo, None, 9).await.is_empty());
    assert!(list(org, RepoId(Uuid::new_v4()), None, 9).await.is_empty());
    assert_eq!(stores.flaky.uploads.prune(at(3), 2).await.expect("pruned"), 2);
    assert_eq!(stores.flaky.uploads.prune(at(3), 9).await.expect("pruned"), 1);
    assert_eq!(list(org, repo, None, 9).await, ids[..2]);
    assert_eq!(lease(stores, 9, 100).await.len(), 2, "their work is gone too");
}

/// Uploads without a token do not displace uploads with one.
pub async fn trusted_uploads_are_listed_apart(stores: &Stores) {
    let repository = repository(stores).await;
    let mut ids = Vec::new();
    for seconds in [1, 2, 3] {
        ids.push(created(stores, &repository, seconds).await.id);
        let record = UploadRecord { trust: Trust::Public, ..record(&repository, seconds) };
        assert!(stores.flaky.uploads.create(&record, None).await.expect("created"));
    }
    ids.reverse();
    let list = async |org, repo, since, limit| {
        let found = stores.flaky.uploads.trusted_since(org, repo, at(since), limit).await;
        found.expect("a list").into_iter().map(|it| it.id).collect::<Vec<_>>()
    };
    let (org, repo) = (repository.org, repository.id);
    assert_eq!(list(org, repo, 0, 9).await, ids);
    assert_eq!(list(org, repo, 0, 1).await, ids[..1]);
    assert_eq!(list(org, repo, 2, 9).await, ids[..2]);
    assert!(list(OrgId(Uuid::new_v4()), repo, 0, 9).await.is_empty());
    assert!(list(org, RepoId(Uuid::new_v4()), 0, 9).await.is_empty());
}

/// A repository keeps the public id that it got first.
pub async fn a_public_id_is_kept_and_leads_to_its_repository(stores: &Stores) {
    let repository = repository(stores).await;
    let (first, second) = (Uuid::new_v4(), Uuid::new_v4());
    let (org, repo) = (repository.org, repository.id);
    let id = async |candidate| {
        stores.flaky.uploads.public_id(org, repo, candidate).await.expect("an id")
    };
    assert_eq!(id(first).await, first);
    assert_eq!(id(second).await, first);
    let found = stores.flaky.uploads.find_public(first).await.expect("a read");
    assert_eq!(found, Some((org, repo)));
    assert_eq!(stores.flaky.uploads.find_public(second).await.expect("a read"), None);
}
