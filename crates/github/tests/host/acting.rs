//! Candidates and landings.

use signalbox_domain::ids::{PrNumber, RunId};
use signalbox_domain::ports::{Built, GitHost, HostError, LandAnswer};
use signalbox_domain::queue::{Ahead, ConflictWith, MergeMethod};
use signalbox_testkit::github_double::Fault;
use uuid::Uuid;

use crate::world::{World, build, land};

#[tokio::test(flavor = "multi_thread")]
async fn each_method_gives_its_own_history_and_the_same_tree() {
    let world = World::new();
    world.commit(&[("a.txt", "1\n2\n3\n")], "base");
    world.push("main");
    let mut topic = world.open("topic", &[("b.txt", "b\n")]);
    world.commit(&[("a.txt", "1\n2\n3\n4\n")], "second commit");
    topic.head = world.push("topic");
    let main = world.branch("main", "main", &[("c.txt", "c\n")]);
    let mut trees = Vec::new();
    for (method, commits, parents) in
        [(MergeMethod::Squash, 1, 1), (MergeMethod::MergeCommit, 3, 2), (MergeMethod::Rebase, 2, 1)]
    {
        let request = build(&main, vec![topic.clone()], method);
        let candidate = world.candidate(&request).await;
        let range = format!("{main}..{}", candidate.sha);
        assert_eq!(world.bare(&["rev-list", "--count", &range]), commits.to_string(), "{method:?}");
        let line = world.bare(&["rev-list", "--parents", "-n1", candidate.sha.as_str()]);
        assert_eq!(line.split(' ').count(), parents + 1, "{method:?}");
        let branch = world.bare(&["rev-parse", &format!("refs/heads/{}", request.branch)]);
        assert_eq!(branch, candidate.sha.as_str());
        let tree = world.bare(&["rev-parse", &format!("{}^{{tree}}", candidate.sha)]);
        assert_eq!(tree, candidate.tree.as_str(), "the tree that is told is the commit's");
        trees.push(candidate.tree.clone());
        let again = world.candidate(&request).await;
        assert_eq!(again.tree, candidate.tree, "repeating gives the same tree");
    }
    trees.dedup();
    assert_eq!(trees.len(), 1);
    let squashed = build(&main, vec![topic.clone()], MergeMethod::Squash);
    let squashed = world.candidate(&squashed).await;
    let shown = world.bare(&["log", "-1", "--format=%an %s", squashed.sha.as_str()]);
    assert_eq!(shown, format!("Ada change 1 (#{})", topic.pr));
    let rebased = build(&main, vec![topic], MergeMethod::Rebase);
    let rebased = world.candidate(&rebased).await;
    let subjects = world.bare(&["log", "-2", "--format=%an %s", rebased.sha.as_str()]);
    assert_eq!(subjects, "Ada second commit\nAda change topic");
    assert_eq!(world.temporary(), "", "nothing temporary is left");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conflict_names_the_first_candidate_ahead_that_it_is_with() {
    let world = World::new();
    world.commit(&[("a.txt", "base\n")], "base");
    let main = world.push("main");
    let harmless = world.open("harmless", &[("b.txt", "b\n")]);
    let one = world.open("one", &[("a.txt", "one\n"), ("d.txt", "one\n")]);
    let other = world.open("other", &[("a.txt", "other\n")]);
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
    let branches = world.host.test_branches(&world.repository).await.expect("branches");
    assert_eq!(branches.len(), 2, "a conflict leaves no branch behind");
    let batch = build(&main, vec![one.clone(), other.clone()], MergeMethod::Squash);
    let Built::Conflict { pr, with, .. } = world.build(&batch).await else { panic!() };
    assert_eq!((pr, with), (other.pr, ConflictWith::Group(one.pr)));
    let main = world.branch("main", "main", &[("a.txt", "moved\n")]);
    let late = build(&main, vec![other.clone()], MergeMethod::Squash);
    let Built::Conflict { with, .. } = world.build(&late).await else { panic!() };
    assert_eq!(with, ConflictWith::Target);
    let mut joined = build(&main, vec![other], MergeMethod::Squash);
    let before = RunId(Uuid::new_v4());
    joined.before = vec![(before, one)];
    let Built::Conflict { with, .. } = world.build(&joined).await else { panic!() };
    assert_eq!(with, ConflictWith::Ahead(before));
    assert_eq!(world.temporary(), "");
}

#[tokio::test(flavor = "multi_thread")]
async fn landing_moves_the_target_to_what_was_tested_or_not_at_all() {
    let world = World::new();
    world.commit(&[("a.txt", "base\n")], "base");
    let main = world.push("main");
    let topic = world.open("topic", &[("b.txt", "b\n")]);
    let number = u64::from(topic.pr.0);
    let request = build(&main, vec![topic.clone()], MergeMethod::Squash);
    let candidate = world.candidate(&request).await;
    let order = land(&request, &candidate);

    let pushed = world.branch("topic", "topic", &[("late.txt", "late\n")]);
    assert_eq!(world.land(&order).await, LandAnswer::HeadMoved { pr: topic.pr });
    world.git(&["reset", "-q", "--hard", topic.head.as_str()]);
    assert_ne!(pushed, world.push("topic"));

    world.double.plan("PATCH", "/git/refs/heads/main", 1, Fault::LostAnswer);
    let lost = world.host.land(&world.repository, &order).await;
    assert!(matches!(lost, Err(HostError::Unavailable { .. })), "{lost:?}");
    let LandAnswer::Landed(head) = world.land(&order).await else { panic!() };
    assert_eq!((&head.sha, &head.tree), (&candidate.sha, &candidate.tree));
    assert_eq!(world.bare(&["rev-parse", "main"]), candidate.sha.as_str());
    assert_eq!(world.bare(&["rev-list", "--count", &format!("{main}..main")]), "1", "landed once");
    assert_eq!(world.double.pull(number), (false, false), "what has landed is closed");
    assert!(matches!(world.land(&order).await, LandAnswer::Landed(_)), "nothing is repeated");

    let other = world.open("other", &[("c.txt", "c\n")]);
    let request = build(&main, vec![other], MergeMethod::Squash);
    let candidate = world.candidate(&request).await;
    let answer = world.land(&land(&request, &candidate)).await;
    assert_eq!(answer, LandAnswer::TargetMoved(head), "the target is not where it was expected");
    assert_eq!(world.temporary(), "");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_merge_commit_marks_its_pull_requests_as_merged() {
    let world = World::new();
    world.commit(&[("a.txt", "base\n")], "base");
    let main = world.push("main");
    let group =
        vec![world.open("one", &[("b.txt", "b\n")]), world.open("two", &[("c.txt", "c\n")])];
    let request = build(&main, group.clone(), MergeMethod::MergeCommit);
    let candidate = world.candidate(&request).await;
    let LandAnswer::Landed(head) = world.land(&land(&request, &candidate)).await else { panic!() };
    assert_eq!(head.tree, candidate.tree);
    for change in group {
        assert_eq!(world.double.pull(u64::from(change.pr.0)), (false, true));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn lanes_land_beside_each_other_and_only_where_they_do_not_meet() {
    let world = World::new();
    world.commit(&[("a.txt", "base\n"), ("b.txt", "base\n")], "base");
    let main = world.push("main");
    let one = world.open("one", &[("a.txt", "one\n")]);
    let two = world.open("two", &[("b.txt", "two\n")]);
    let both = world.open("both", &[("a.txt", "both\n"), ("c.txt", "both\n")]);
    let first = build(&main, vec![one], MergeMethod::Squash);
    let second = build(&main, vec![two], MergeMethod::Squash);
    let third = build(&main, vec![both], MergeMethod::Squash);
    let mut landings = Vec::new();
    for request in [&first, &second, &third] {
        landings.push(land(request, &world.candidate(request).await));
    }
    let LandAnswer::Landed(after_first) = world.land(&landings[0]).await else { panic!() };
    landings[1].expected = after_first.sha.clone();
    let exact = world.land(&landings[1]).await;
    assert_eq!(exact, LandAnswer::TargetMoved(after_first), "the tested tree itself cannot land");
    landings[1].exact = false;
    let answer = world.land(&landings[1]).await;
    let LandAnswer::Landed(after_second) = answer.clone() else { panic!("{answer:?}") };
    let files = ["a.txt", "b.txt"].map(|file| world.bare(&["show", &format!("main:{file}")]));
    assert_eq!(files, ["one", "two"]);
    assert_eq!(world.land(&landings[1]).await, answer, "an answer that was lost is found again");
    (landings[2].expected, landings[2].exact) = (after_second.sha.clone(), false);
    let answer = world.land(&landings[2]).await;
    assert_eq!(answer, LandAnswer::TargetMoved(after_second), "it is in the way of what landed");
    assert_eq!(world.temporary(), "");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_branch_with_rules_is_merged_into_by_the_host() {
    let world = World::new();
    world.commit(&[("a.txt", "base\n")], "base");
    let main = world.push("main");
    world.double.guard("main");
    let topic = world.open("topic", &[("b.txt", "b\n")]);
    let request = build(&main, vec![topic.clone()], MergeMethod::Squash);
    let candidate = world.candidate(&request).await;
    world.double.plan("PUT", "/merge", 1, Fault::Status(405));
    let refused = world.host.land(&world.repository, &land(&request, &candidate)).await;
    assert!(matches!(refused, Err(HostError::Rejected { .. })), "{refused:?}");
    let LandAnswer::Landed(head) = world.land(&land(&request, &candidate)).await else { panic!() };
    assert_ne!(head.sha, candidate.sha, "the host has made a commit of its own");
    assert_eq!(head.tree, candidate.tree, "with the tested tree");
    assert_eq!(world.double.pull(u64::from(topic.pr.0)), (false, true));

    let group =
        vec![world.open("two", &[("c.txt", "c\n")]), world.open("three", &[("d.txt", "d\n")])];
    let request = build(&head.sha, group, MergeMethod::Squash);
    let candidate = world.candidate(&request).await;
    let refused = world.host.land(&world.repository, &land(&request, &candidate)).await;
    let Err(HostError::Rejected { words }) = refused else { panic!("{refused:?}") };
    assert!(words.contains("protected ref") && words.contains("bypass"), "{words}");
    assert_eq!(world.bare(&["rev-parse", "main"]), head.sha.as_str(), "nothing has landed");

    let moved = world.open("moved", &[("e.txt", "e\n")]);
    let request = build(&head.sha, vec![moved.clone()], MergeMethod::Squash);
    let candidate = world.candidate(&request).await;
    world.double.plan("PUT", "/merge", 1, Fault::Status(409));
    let answer = world.land(&land(&request, &candidate)).await;
    assert_eq!(answer, LandAnswer::HeadMoved { pr: moved.pr });
}

#[tokio::test(flavor = "multi_thread")]
async fn branches_are_deleted_only_where_they_are_expected() {
    let world = World::new();
    world.commit(&[("a.txt", "base\n")], "base");
    let main = world.push("main");
    world.branch("signalbox-merger/not-ours", "main", &[]);
    let topic = world.open("topic", &[("b.txt", "b\n")]);
    let request = build(&main, vec![topic], MergeMethod::Squash);
    let candidate = world.candidate(&request).await;
    let known = world.host.test_branches(&world.repository).await.expect("branches");
    assert_eq!(known.iter().map(|it| &it.branch).collect::<Vec<_>>(), [&request.branch]);
    let delete = async |expected| {
        world.host.delete_branch(&world.repository, &request.branch, expected).await
    };
    delete(Some(&main)).await.expect("nothing is done");
    assert_eq!(world.host.test_branches(&world.repository).await.expect("branches").len(), 1);
    delete(Some(&candidate.sha)).await.expect("deleted");
    delete(Some(&candidate.sha)).await.expect("it is gone");
    delete(None).await.expect("it is gone");
    assert!(world.host.test_branches(&world.repository).await.expect("branches").is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_reported_on_an_up_to_date_head_is_told() {
    let world = World::new();
    world.commit(&[("a.txt", "base\n")], "base");
    let main = world.push("main");
    let topic = world.open("topic", &[("b.txt", "b\n")]);
    world.double.report(topic.head.as_str(), "test", "completed", Some("success"));
    let mut request = build(&main, vec![topic.clone()], MergeMethod::Squash);
    let Built::Candidate { head_checks, .. } = world.build(&request).await else { panic!() };
    assert!(head_checks.is_empty(), "nobody asked");
    request.direct = true;
    let Built::Candidate { head_checks, .. } = world.build(&request).await else { panic!() };
    assert_eq!(head_checks.iter().map(|it| it.name.as_str()).collect::<Vec<_>>(), ["test"]);
    let main = world.branch("main", "main", &[("c.txt", "c\n")]);
    let mut behind = build(&main, vec![topic], MergeMethod::Squash);
    behind.direct = true;
    let Built::Candidate { head_checks, .. } = world.build(&behind).await else { panic!() };
    assert!(head_checks.is_empty(), "the head is not on top of the target");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_there_is_said() {
    let world = World::new();
    world.commit(&[("a.txt", "base\n")], "base");
    let main = world.push("main");
    let mut topic = world.open("topic", &[("b.txt", "b\n")]);
    topic.head = signalbox_domain::ids::Sha::new("1".repeat(40)).expect("a commit");
    topic.pr = PrNumber(9);
    let request = build(&main, vec![topic], MergeMethod::Squash);
    let answer = world.host.build_candidate(&world.repository, &request).await;
    assert!(matches!(answer, Err(HostError::NotFound { .. })), "{answer:?}");
    assert_eq!(world.temporary(), "");
}
