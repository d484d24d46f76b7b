//! Properties of reading and of deleting branches.

use signalbox_domain::ids::{BranchName, PrNumber, Sha};
use signalbox_domain::ports::PullRequestQuery;
use signalbox_domain::queue::{ChangedPaths, MergeMethod, PullRequestState};

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

/// The changed paths of a head are those since it branched off the target, with the former names of
/// renamed files.
pub async fn changed_paths_are_those_of_the_pull_request(world: &dyn HostWorld) {
    let text = "the same\n".repeat(20);
    world.base(&[("a.txt", "a\n"), ("old/name.txt", &text), ("gone.txt", "gone\n")]);
    let place = world.place();
    place.git(&["checkout", "-q", "-B", "topic", "main"]);
    place.git(&["mv", "old/name.txt", "new name.txt"]);
    place.git(&["rm", "-q", "gone.txt"]);
    place.commit(
        &[("ü/-n.txt", "added\n"), ("new\nline", "x\n"), ("a.txt", "changed\n")],
        "change topic",
    );
    let head = world.push("topic");
    place.git(&["checkout", "-q", "main"]);
    let main = world.base(&[("a.txt", "other\n"), ("late.txt", "late\n")]);
    let method = MergeMethod::Squash;
    let paths = async |target, head| paths(world, target, head, method).await;
    let expected = ["a.txt", "gone.txt", "new\nline", "new name.txt", "old/name.txt", "ü/-n.txt"];
    assert_eq!(paths(&main, &head).await, expected);
    place.git(&["checkout", "-q", "topic"]);
    place.git(&["merge", "-q", "-X", "ours", "-m", "catch up", "main"]);
    let merged = world.push("topic");
    assert_eq!(paths(&main, &merged).await, expected, "what it merges is not its own change");
    let empty = world.branch("empty", "main", &[]);
    assert!(paths(&main, &empty).await.is_empty());
    assert!(paths(&head, &head).await.is_empty());
}

async fn paths(
    world: &dyn HostWorld,
    target: &Sha,
    head: &Sha,
    method: MergeMethod,
) -> Vec<String> {
    let listed = world.host().changed_paths(world.repository(), target, head, method).await;
    match listed.expect("an answer") {
        ChangedPaths::Complete(mut paths) => {
            paths.sort_unstable();
            paths.dedup();
            paths
        }
        ChangedPaths::Incomplete { why } => vec![format!("INCOMPLETE: {why}")],
    }
}

/// Whether a list is complete and has this path, or is incomplete.
async fn may_change(
    world: &dyn HostWorld,
    target: &Sha,
    head: &Sha,
    method: MergeMethod,
    path: &str,
) -> bool {
    let listed = paths(world, target, head, method).await;
    listed.iter().any(|it| it == path || it.starts_with("INCOMPLETE"))
}

/// A merge commit cannot hide a path that landing the pull request changes: neither from a rebase, which
/// skips the merge, nor by a second merge base.
pub async fn merges_hide_no_changed_path(world: &dyn HostWorld) {
    let place = world.place();
    let main = world.base(&[("api.txt", "api\n"), ("z.txt", "z\n")]);
    place.branch("side", "main", &[("api.txt", "changed\n")]);
    place.branch("topic", "main", &[("docs.txt", "docs\n")]);
    place.git(&["merge", "-q", "-s", "ours", "-m", "merge side", "side"]);
    let topic = world.push("topic");
    let squash = paths(world, &main, &topic, MergeMethod::Squash).await;
    assert_eq!(squash, ["docs.txt"]);
    assert!(may_change(world, &main, &topic, MergeMethod::Rebase, "api.txt").await);

    place.branch("reverting", "main", &[("docs.txt", "docs\n"), ("z.txt", "other\n")]);
    place.commit(&[("more docs.txt", "docs\n"), ("z.txt", "z\n")], "revert");
    let reverting = world.push("reverting");
    for method in [MergeMethod::Rebase, MergeMethod::MergeCommit] {
        let listed = paths(world, &main, &reverting, method).await;
        assert_eq!(listed, ["docs.txt", "more docs.txt", "z.txt"]);
    }

    place.branch("landed", "main", &[("more.txt", "more\n")]);
    place.git(&["checkout", "-q", "-B", "evil", "landed"]);
    place.git(&["checkout", "-q", "main"]);
    place.commit(&[("api.txt", "new\n")], "an improvement");
    let improved = place.git(&["rev-parse", "main"]);
    place.git(&["merge", "-q", "--no-ff", "-m", "merge landed", "landed"]);
    let main = world.push("main");
    place.git(&["checkout", "-q", "evil"]);
    place.git(&["merge", "-q", "-s", "ours", "-m", "undo", &improved]);
    place.git(&["rm", "-q", "more.txt"]);
    place.commit(&[], "undo more");
    let evil = world.push("evil");
    // Compared with either merge base, the change to one of these does not show.
    for path in ["api.txt", "more.txt"] {
        assert!(may_change(world, &main, &evil, MergeMethod::Squash, path).await, "{path}");
    }

    place.branch("lower", "main", &[("api.txt", "lower\n")]);
    place.branch("upper", "lower", &[("api.txt", "new\n"), ("docs.txt", "docs\n")]);
    let upper = world.push("upper");
    // When the lower one has landed, the upper one undoes its change.
    assert!(may_change(world, &main, &upper, MergeMethod::MergeCommit, "api.txt").await);
    place.branch("part", "main", &[("part.txt", "x\n")]);
    place.branch("whole", "main", &[("whole.txt", "x\n")]);
    place.git(&["merge", "-q", "--no-commit", "part"]);
    place.commit(&[("api.txt", "in a merge\n")], "merge part");
    place.commit(&[("api.txt", "new\n")], "undo");
    let whole = world.push("whole");
    assert!(may_change(world, &main, &whole, MergeMethod::MergeCommit, "api.txt").await);

    place.git(&["checkout", "-q", "--orphan", "stranger"]);
    place.commit(&[("strange.txt", "x\n")], "unrelated");
    let stranger = world.push("stranger");
    assert!(may_change(world, &main, &stranger, MergeMethod::Squash, "api.txt").await);
}
