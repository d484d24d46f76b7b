//! The contract of the pull request store.

use std::collections::BTreeSet;

use signalbox_domain::ids::{BranchName, OrgId, PrNumber, Sha};
use signalbox_domain::ports::{NewPullRequest, OpenPullRequest, Stores};
use signalbox_domain::queue::PullRequestState;
use uuid::Uuid;

use super::sample::shared;
use super::{Sample, at};

async fn new(stores: &Stores) -> NewPullRequest {
    let org = Sample::org(stores, "acme").await;
    let repository = Sample::repository(stores, org.id, "calc").await;
    NewPullRequest {
        org: org.id,
        repo: repository.id,
        title: "add a number".into(),
        body: "because".into(),
        author: "ada".into(),
        head_branch: Some(BranchName::new("add").expect("a branch")),
        topic: Some("numbers".into()),
        head: Sha::new("a".repeat(40)).expect("a commit"),
        base: BranchName::new("main").expect("a branch"),
        at: at(0),
    }
}

/// Numbers count from 1 without gaps, even for concurrent calls.
pub async fn twenty_concurrent_calls_get_twenty_numbers(stores: &Stores) {
    let new = new(stores).await;
    let tasks: Vec<_> = (0..20)
        .map(|_| {
            let (stores, new) = (shared(stores), new.clone());
            tokio::spawn(async move { stores.host.pull_requests.open(&new).await })
        })
        .collect();
    let mut numbers = BTreeSet::new();
    for task in tasks {
        numbers.insert(task.await.expect("a task").expect("opened").number.0);
    }
    assert_eq!(numbers, (1..=20).collect());
}

/// Lookups by number, topic and branch find it; those of another organization do not.
pub async fn a_pull_request_is_found_by_every_key_and_only_by_its_organization(stores: &Stores) {
    let new = new(stores).await;
    let store = &stores.host.pull_requests;
    let opened = store.open(&new).await.expect("opened");
    assert_eq!(opened.number, PrNumber(1));
    assert_eq!(opened.state, PullRequestState::Open);
    let (org, repo, base) = (new.org, new.repo, &new.base);
    let branch = new.head_branch.as_ref().expect("a branch");
    let found = store.find(org, repo, PrNumber(1)).await.expect("a read");
    assert_eq!(found.as_ref(), Some(&opened));
    let by_topic = store.find_open_by_topic(org, repo, "numbers", base).await.expect("a read");
    assert_eq!(by_topic.as_ref(), Some(&opened));
    let second = store.open(&new).await.expect("opened");
    let by_branch = store.find_by_branch(org, repo, branch).await.expect("a read");
    assert_eq!(by_branch.as_ref(), Some(&second), "the newest");
    let closed = signalbox_domain::ports::StoredPullRequest {
        state: PullRequestState::Closed,
        head_branch: second.head_branch.clone(),
        topic: None,
        ..second.clone()
    };
    assert!(store.update(&closed).await.expect("an update"));
    let by_branch = store.find_by_branch(org, repo, branch).await.expect("a read");
    assert_eq!(by_branch.as_ref(), Some(&opened), "open ones first");
    assert_eq!(store.find(org, repo, PrNumber(2)).await.expect("a read"), Some(closed.clone()));
    let brief = store.open_ones(org, repo).await.expect("a list");
    let wanted = OpenPullRequest {
        number: opened.number,
        head_branch: opened.head_branch.clone(),
        base: opened.base.clone(),
        updated_at: opened.updated_at,
    };
    assert_eq!(brief, [wanted], "the closed one is omitted");
    let open = store.list(org, repo, true).await.expect("a list");
    assert_eq!(open, std::slice::from_ref(&opened));
    assert_eq!(store.list(org, repo, false).await.expect("a list"), [closed, opened.clone()]);
    let other = OrgId(Uuid::new_v4());
    assert_eq!(store.find(other, repo, PrNumber(1)).await.expect("a read"), None);
    assert!(store.list(other, repo, false).await.expect("a list").is_empty());
    assert!(store.open_ones(other, repo).await.expect("a list").is_empty());
    let stranger = signalbox_domain::ports::StoredPullRequest { org: other, ..opened };
    assert!(!store.update(&stranger).await.expect("an update"));
}
