//! Candidates and landings, beyond what every git host promises.

use signalbox_conformance::git_host::{build, land};
use signalbox_domain::ports::{Forge, GitHost, HostError, LandAnswer, LandedNote};
use signalbox_domain::queue::MergeMethod;
use signalbox_domain::time::Span;
use signalbox_testkit::github_double::Fault;

use crate::world::World;

#[tokio::test(flavor = "multi_thread")]
async fn a_landing_whose_answer_is_lost_is_found_again() {
    let world = World::new();
    world.commit(&[("a.txt", "base\n")], "base");
    let main = world.push("main");
    let topic = world.open("topic", &[("b.txt", "b\n")]);
    let number = u64::from(topic.pr.0);
    let request = build(&main, vec![topic.clone()], MergeMethod::Squash);
    let candidate = world.candidate(&request).await;
    let order = land(&request, &candidate);

    world.double.plan("PATCH", "/git/refs/heads/main", 1, Fault::LostAnswer);
    let lost = world.host.land(&world.repository, &order).await;
    assert!(matches!(lost, Err(HostError::Unavailable { .. })), "{lost:?}");
    let LandAnswer::Landed(head, _) = world.land(&order).await else { panic!() };
    assert_eq!((&head.sha, &head.tree), (&candidate.sha, &candidate.tree));
    assert_eq!(world.bare(&["rev-parse", "main"]), candidate.sha.as_str());
    assert_eq!(world.bare(&["rev-list", "--count", &format!("{main}..main")]), "1", "landed once");
    assert_eq!(world.double.pull(number), (true, false), "the host does not mark it automatically");
    let landed = LandedNote {
        pr: topic.pr,
        head: topic.head.clone(),
        sha: head.sha.clone(),
        rewritten: true,
    };
    world.double.plan("PATCH", "/pulls/", 1, Fault::LostAnswer);
    let close = async || world.host.close_landed(&world.repository, &landed).await;
    assert!(matches!(close().await, Err(HostError::Unavailable { .. })));
    assert_eq!(close().await.expect("closed"), None, "nothing was pushed later");
    assert_eq!(world.double.pull(number), (false, false), "what has landed is closed");
    assert!(matches!(world.land(&order).await, LandAnswer::Landed(..)), "nothing is repeated");
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
    let LandAnswer::Landed(head, _) = world.land(&land(&request, &candidate)).await else {
        panic!()
    };
    assert_ne!(head.sha, candidate.sha, "the host has made a commit of its own");
    assert_eq!(head.tree, candidate.tree, "with the tested tree");
    assert_eq!(world.double.pull(u64::from(topic.pr.0)), (false, true));

    let group =
        vec![world.open("two", &[("c.txt", "c\n")]), world.open("three", &[("d.txt", "d\n")])];
    let request = build(&head.sha, group, MergeMethod::Squash);
    let candidate = world.candidate(&request).await;
    let refused = world.host.land(&world.repository, &land(&request, &candidate)).await;
    let Err(HostError::AccessDenied { words }) = refused else { panic!("{refused:?}") };
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
async fn a_scratch_branch_is_reused_and_is_a_stray_when_unused() {
    let world = World::new();
    world.commit(&[("a.txt", "base\n")], "base");
    let main = world.push("main");
    for name in ["one", "two"] {
        let change = world.open(name, &[(&format!("{name}.txt"), "x\n")]);
        world.candidate(&build(&main, vec![change], MergeMethod::Squash)).await;
        assert_eq!(world.temporary().lines().count(), 1);
    }
    let strays = async || {
        let found = world.host.test_branches(&world.repository).await.expect("branches");
        found.into_iter().filter(|it| it.branch.as_str().starts_with("signalbox-temp/")).count()
    };
    assert_eq!(strays().await, 0, "it may be reused");
    // Another server has taken it for a stray.
    world.bare(&["update-ref", "-d", world.temporary().lines().next().expect("a bench")]);
    let change = world.open("three", &[("three.txt", "x\n")]);
    world.candidate(&build(&main, vec![change], MergeMethod::Squash)).await;
    world.clock.advance(Span::minutes(10));
    assert_eq!(strays().await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn commits_pushed_after_the_landing_are_reported() {
    let world = World::new();
    world.commit(&[("a.txt", "base\n")], "base");
    let main = world.push("main");
    let topic = world.open("topic", &[("b.txt", "b\n")]);
    let request = build(&main, vec![topic.clone()], MergeMethod::Squash);
    let candidate = world.candidate(&request).await;
    let LandAnswer::Landed(head, _) = world.land(&land(&request, &candidate)).await else {
        panic!()
    };
    let later = world.branch("topic", "topic", &[("c.txt", "c\n")]);
    let landed = LandedNote { pr: topic.pr, head: topic.head, sha: head.sha, rewritten: true };
    let newer = world.host.close_landed(&world.repository, &landed).await.expect("closed");
    assert_eq!(newer, Some(later));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_branch_that_vanishes_during_a_build_fails_no_pull_request() {
    let world = World::new();
    world.commit(&[("a.txt", "base\n")], "base");
    let main = world.push("main");
    let topic = world.open("topic", &[("b.txt", "b\n")]);
    let request = build(&main, vec![topic], MergeMethod::Squash);
    for (method, part, status, words) in [
        ("POST", "/merges", 404, "Base does not exist"),
        ("PATCH", "/git/refs/heads/signalbox-", 422, "Reference does not exist"),
    ] {
        // A left-over branch exists, and another process deletes it at the same time.
        if method == "PATCH" {
            world.bare(&["update-ref", &format!("refs/heads/{}", request.branch), main.as_str()]);
        }
        world.double.plan(method, part, 1, Fault::Refusal(status, words));
        let built = world.host.build_candidate(&world.repository, &request).await;
        assert!(
            built.as_ref().is_ok() || built.as_ref().is_err_and(HostError::is_passing),
            "{built:?}"
        );
        world.candidate(&request).await;
    }
}
