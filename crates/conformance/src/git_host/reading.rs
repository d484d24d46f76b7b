//! Properties of reading and of deleting branches.

use signalbox_domain::ids::{BranchName, PrNumber};
use signalbox_domain::ports::PullRequestQuery;
use signalbox_domain::queue::{MergeMethod, PullRequestState};

use super::{Acts as _, HostWorld, build};

/// A pull request is found by its number and its branch, with its present head. A missing one is
/// `None`.
pub async fn pull_requests_are_read_as_they_are_now(world: &dyn HostWorld) {
    let main = world.base(&[("a.txt", "base\n")]);
    let topic = world.change("topic", &[("b.txt", "b\n")]).await;
    let seen = world.read(topic.pr).await;
    assert_eq!((seen.number, &seen.head), (topic.pr, &topic.head));
    assert_eq!((seen.base.as_str(), seen.state), ("main", PullRequestState::Open));
    assert_eq!(seen.head_branch.as_deref(), Some("topic"));
    let pushed = world.branch("topic", "topic", &[("c.txt", "c\n")]);
    assert_eq!(world.read(topic.pr).await.head, pushed);
    let find = async |query| {
        let found = world.host().pull_request(world.repository(), &query).await;
        found.expect("an answer").map(|it| it.number)
    };
    assert_eq!(find(PullRequestQuery::Branch("topic".into())).await, Some(topic.pr));
    assert_eq!(find(PullRequestQuery::Branch("nowhere".into())).await, None);
    assert_eq!(find(PullRequestQuery::Number(PrNumber(99))).await, None);
    world.close(topic.pr).await;
    assert_eq!(world.read(topic.pr).await.state, PullRequestState::Closed);
    let head = async |name: &str| {
        let branch = BranchName::new(name).expect("a branch");
        world.host().head(world.repository(), &branch).await.expect("an answer")
    };
    let found = head("main").await.expect("a head");
    assert_eq!(
        (found.sha.as_str(), found.tree.as_str()),
        (main.as_str(), &*world.place().tree(&main))
    );
    assert_eq!(head("nowhere").await, None);
}

/// A test branch is deleted only at its expected head; a missing one is not an error; other
/// branches are neither listed nor touched.
pub async fn branches_are_deleted_only_at_their_expected_heads(world: &dyn HostWorld) {
    let main = world.base(&[("a.txt", "base\n")]);
    world.branch("signalbox-merger/not-ours", "main", &[]);
    let topic = world.change("topic", &[("b.txt", "b\n")]).await;
    let request = build(&main, vec![topic], MergeMethod::Squash);
    let candidate = world.candidate(&request).await;
    assert_eq!(world.test_branches().await, [request.branch.as_str()]);
    let delete = async |expected| {
        let deleted = world.host().delete_branch(world.repository(), &request.branch, expected);
        deleted.await.expect("an answer");
    };
    delete(Some(&main)).await;
    assert_eq!(world.test_branches().await.len(), 1, "it has another head");
    delete(Some(&candidate.sha)).await;
    assert!(world.test_branches().await.is_empty());
    delete(Some(&candidate.sha)).await;
    delete(None).await;
    let left = world.place().bare(&["for-each-ref", "--format=%(refname)", "refs/heads/signal*"]);
    assert_eq!(left, "");
    let others = ["for-each-ref", "--format=%(refname)", "refs/heads/signalbox-merger"];
    assert_ne!(world.place().bare(&others), "");
}
