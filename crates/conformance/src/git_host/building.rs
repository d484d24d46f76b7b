//! Properties of building candidates.

use signalbox_domain::ids::{PrNumber, RunId, Sha};
use signalbox_domain::ports::{Built, HostError};
use signalbox_domain::queue::{Ahead, BuildCandidate, ConflictWith, MergeMethod};
use uuid::Uuid;

use super::{Acts as _, HostWorld, build, change};

/// Squash, merge commit and rebase have the expected number of commits and parents, author and
/// branch, and the same tree. A repeat gives the same tree.
pub async fn each_merge_method_gives_its_own_history_and_the_same_tree(world: &dyn HostWorld) {
    let place = world.place();
    world.base(&[("a.txt", "1\n2\n3\n")]);
    let mut topic = world.change("topic", &[("b.txt", "b\n")]).await;
    place.commit(&[("a.txt", "1\n2\n3\n4\n")], "second commit");
    topic.head = world.push("topic");
    let main = world.branch("main", "main", &[("c.txt", "c\n")]);
    let mut trees = Vec::new();
    for (method, commits, parents) in
        [(MergeMethod::Squash, 1, 1), (MergeMethod::MergeCommit, 3, 2), (MergeMethod::Rebase, 2, 1)]
    {
        let request = build(&main, vec![topic.clone()], method);
        let candidate = world.candidate(&request).await;
        let range = format!("{main}..{}", candidate.sha);
        assert_eq!(place.bare(&["rev-list", "--count", &range]), commits.to_string(), "{method:?}");
        let line = place.bare(&["rev-list", "--parents", "-n1", candidate.sha.as_str()]);
        assert_eq!(line.split(' ').count(), parents + 1, "{method:?}");
        let branch = place.bare(&["rev-parse", &format!("refs/heads/{}", request.branch)]);
        assert_eq!(branch, candidate.sha.as_str());
        assert_eq!(place.tree(&candidate.sha), candidate.tree.as_str(), "the commit's own tree");
        trees.push(candidate.tree.clone());
        let again = world.candidate(&request).await;
        assert_eq!(again.tree, candidate.tree, "a repeat gives the same tree");
    }
    trees.dedup();
    assert_eq!(trees.len(), 1);
    let squashed = build(&main, vec![topic.clone()], MergeMethod::Squash);
    let squashed = world.candidate(&squashed).await;
    let shown = place.bare(&["log", "-1", "--format=%an %s", squashed.sha.as_str()]);
    assert_eq!(shown, format!("Ada change {0} (#{0})", topic.pr));
    let rebased = build(&main, vec![topic], MergeMethod::Rebase);
    let rebased = world.candidate(&rebased).await;
    let subjects = place.bare(&["log", "-2", "--format=%an %s", rebased.sha.as_str()]);
    assert_eq!(subjects, "Ada second commit\nAda change topic");
}

/// A conflict names the pull request, what it conflicts with and the paths, and leaves no branch.
pub async fn a_conflict_names_the_first_conflicting_candidate_ahead(world: &dyn HostWorld) {
    let main = world.base(&[("a.txt", "base\n")]);
    let harmless = world.change("harmless", &[("b.txt", "b\n")]).await;
    let one = world.change("one", &[("a.txt", "one\n"), ("d.txt", "one\n")]).await;
    let other = world.change("other", &[("a.txt", "other\n")]).await;
    let first = build(&main, vec![harmless], MergeMethod::Squash);
    let first_built = world.candidate(&first).await;
    let mut second = build(&main, vec![one.clone()], MergeMethod::Squash);
    second.ahead = vec![Ahead { run: first.run, sha: first_built.sha.clone() }];
    second.base = first_built.sha.clone();
    let second_built = world.candidate(&second).await;
    let mut third = build(&main, vec![other.clone()], MergeMethod::Squash);
    third.ahead = second.ahead.clone();
    third.ahead.push(Ahead { run: second.run, sha: second_built.sha.clone() });
    third.base = second_built.sha.clone();
    for method in [MergeMethod::Squash, MergeMethod::MergeCommit, MergeMethod::Rebase] {
        third.method = method;
        let wanted = Built::Conflict {
            pr: other.pr,
            with: ConflictWith::Ahead(second.run),
            paths: vec!["a.txt".into()],
        };
        assert_eq!(world.build(&third).await, wanted, "{method:?}");
    }
    assert_eq!(world.test_branches().await.len(), 2, "a conflict leaves no branch");
    let batch = build(&main, vec![one.clone(), other.clone()], MergeMethod::Squash);
    let conflict = world.build(&batch).await;
    let Built::Conflict { pr, with, .. } = conflict else { panic!("{conflict:?}") };
    assert_eq!((pr, with), (other.pr, ConflictWith::Group(one.pr)));
    let main = world.branch("main", "main", &[("a.txt", "moved\n")]);
    let late = build(&main, vec![other], MergeMethod::Squash);
    let conflict = world.build(&late).await;
    let Built::Conflict { with, .. } = conflict else { panic!("{conflict:?}") };
    assert_eq!(with, ConflictWith::Target);
    assert_eq!(world.test_branches().await.len(), 2);
}

/// A candidate on several lanes has the changes of all; if two of them conflict, the later one is
/// named.
pub async fn a_candidate_combines_lanes_that_have_not_landed(world: &dyn HostWorld) {
    let main = world.base(&[("a.txt", "base\n"), ("b.txt", "base\n")]);
    let one = world.change("one", &[("a.txt", "one\n")]).await;
    let two = world.change("two", &[("b.txt", "two\n")]).await;
    let top = world.change("top", &[("c.txt", "top\n")]).await;
    let other = world.change("other", &[("a.txt", "other\n")]).await;
    let runs = [RunId(Uuid::new_v4()), RunId(Uuid::new_v4())];
    let mut joined = build(&main, vec![top.clone()], MergeMethod::Squash);
    joined.before = vec![(runs[0], one.clone().into()), (runs[1], two.into())];
    let candidate = world.candidate(&joined).await;
    let names = world.place().bare(&["diff", "--name-only", main.as_str(), candidate.sha.as_str()]);
    assert_eq!(names, "a.txt\nb.txt\nc.txt");
    joined.before = vec![(runs[0], one.into()), (runs[1], other.into())];
    let built = world.build(&joined).await;
    let Built::Conflict { pr, with, .. } = built else { panic!("{built:?}") };
    assert_eq!((pr, with), (top.pr, ConflictWith::Ahead(runs[1])));
}

/// Checks of a pull request's own head are returned if requested, and only if the head is based on
/// the target and has the candidate's tree.
pub async fn checks_of_an_up_to_date_head_are_returned(world: &dyn HostWorld) {
    let main = world.base(&[("a.txt", "base\n")]);
    let topic = world.change("topic", &[("b.txt", "b\n")]).await;
    world.report(&topic.head, "test");
    let mut request = build(&main, vec![topic.clone()], MergeMethod::Squash);
    let told = async |request: BuildCandidate| match world.build(&request).await {
        Built::Candidate { head_checks, .. } => {
            head_checks.into_iter().map(|it| it.name).collect::<Vec<_>>()
        }
        other @ (Built::Conflict { .. } | Built::MergedBefore { .. } | Built::Mismatch(_)) => {
            panic!("{other:?}")
        }
    };
    assert!(told(request.clone()).await.is_empty(), "not requested");
    request.direct = true;
    assert_eq!(told(request).await, ["test"]);
    let main = world.branch("main", "main", &[("c.txt", "c\n")]);
    let mut behind = build(&main, vec![topic], MergeMethod::Squash);
    behind.direct = true;
    assert!(told(behind).await.is_empty(), "the head is not on top of the target");
}

/// A missing commit is an error and leaves no branch.
pub async fn a_missing_commit_is_an_error_and_leaves_no_branch(world: &dyn HostWorld) {
    let main = world.base(&[("a.txt", "base\n")]);
    let missing = Sha::new("1".repeat(40)).expect("a commit");
    let request = build(&main, vec![change(PrNumber(9), &missing)], MergeMethod::Squash);
    let answer = world.host().build_candidate(world.repository(), &request).await;
    let Err(error) = answer else { panic!("{answer:?}") };
    assert!(!error.is_passing(), "{error}");
    let not_found = matches!(error, HostError::NotFound { .. } | HostError::Rejected { .. });
    assert!(not_found, "{error}");
    assert!(world.test_branches().await.is_empty());
}
