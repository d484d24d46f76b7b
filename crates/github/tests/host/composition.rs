//! Candidates that the host has composed wrongly, as a large host did in April 2026.

use signalbox_conformance::git_host::build;
use signalbox_domain::ids::{Sha, TreeId};
use signalbox_domain::ports::{Built, GitHost, HostError, PastLanding};
use signalbox_domain::queue::{
    BuildCandidate, Candidate, Change, Composition, CompositionCheck, LandingProof, MergeMethod,
    Mismatch,
};
use signalbox_testkit::github_double::{Fault, WrongMerge};

use crate::world::World;

pub(crate) const METHODS: [MergeMethod; 3] =
    [MergeMethod::Squash, MergeMethod::MergeCommit, MergeMethod::Rebase];

/// A target that has gained `landed.txt` since two pull requests were opened from it.
pub(crate) fn work(world: &World) -> (Sha, Vec<Change>) {
    world.commit(&[("a.txt", "1\n2\n3\n4\n5\n6\n7\n"), ("b.txt", "b\n")], "base");
    world.push("main");
    let one = world.open("one", &[("one.txt", "1\n")]);
    let two = world.open("two", &[("a.txt", "1\n2\n3\n4\n5\n6\nseven\n")]);
    world.git(&["checkout", "-q", "main"]);
    world.commit(&[("landed.txt", "landed\n")], "landed");
    (world.push("main"), vec![one, two])
}

pub(crate) async fn composition(world: &World, request: &BuildCandidate) -> Composition {
    match world.build(request).await {
        Built::Candidate { composition: Some(composition), .. } => composition,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_merge_is_never_a_candidate() {
    for (how, of_batch, of_one) in [
        (WrongMerge::Base, &["landed.txt", "one.txt"][..], &["landed.txt"][..]),
        (WrongMerge::DropsAFile, &["a.txt", "landed.txt", "one.txt"], &["landed.txt"]),
        (WrongMerge::RevertsAhead, &["landed.txt", "one.txt"], &["landed.txt"]),
    ] {
        for method in METHODS {
            let world = World::new();
            let (main, changes) = work(&world);
            for (group, lost) in [(changes.clone(), of_batch), (changes[..1].to_vec(), of_one)] {
                world.double.merge_wrongly(Some(how));
                let request = build(&main, group, method);
                let built = world.build(&request).await;
                let Built::Mismatch(Mismatch { base, paths, .. }) = &built else {
                    panic!("{how:?} {method:?}: {built:?}")
                };
                assert_eq!(*base, main);
                assert!(!paths.is_empty(), "{how:?} {method:?}");
                let about = |path: &String| lost.contains(&path.as_str());
                assert!(paths.iter().all(about), "{how:?} {method:?}: {paths:?}");
                let branch = format!("refs/heads/{}", request.branch);
                assert_eq!(world.bare(&["for-each-ref", &branch]), "", "nothing is tested");
                world.double.merge_wrongly(None);
                let right = composition(&world, &request).await;
                assert_eq!(right.check, CompositionCheck::Compared, "{right:?}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn renames_modes_links_and_removals_are_right() {
    let world = World::new();
    let lines: Vec<String> = (0..40).map(|line| format!("line {line}\n")).collect();
    let text = lines.concat();
    world.commit(&[("old.txt", &text), ("gone.txt", "1\n"), ("tool.sh", "true\n")], "base");
    world.push("main");
    let renamed = world.open("renamed", &[("other.txt", "1\n")]);
    world.git(&["checkout", "-q", "renamed"]);
    world.git(&["mv", "old.txt", "new.txt"]);
    world.git(&["rm", "-q", "gone.txt"]);
    world.git(&["update-index", "--chmod=+x", "tool.sh"]);
    std::os::unix::fs::symlink("new.txt", world.clone_folder().join("link")).expect("a link");
    world.commit(&[], "renamed");
    let renamed = Change { head: world.push("renamed"), ..renamed };
    world.git(&["checkout", "-q", "-f", "main"]);
    world.commit(&[("old.txt", &text.replace("line 7\n", "seven\n"))], "on main");
    let main = world.push("main");
    for method in METHODS {
        let checked = composition(&world, &build(&main, vec![renamed.clone()], method)).await;
        assert_eq!(checked.check, CompositionCheck::Compared, "{method:?}: {checked:?}");
        assert!(checked.merged_by_host.contains(&"new.txt".to_owned()), "{checked:?}");
        assert!(!checked.merged_by_host.contains(&"tool.sh".to_owned()), "{checked:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_compared_is_not_called_checked() {
    let world = World::new();
    let (main, changes) = work(&world);
    let request = build(&main, changes[..1].to_vec(), MergeMethod::Squash);
    world.double.plan("GET", "/git/trees/", 1, Fault::Status(404));
    let unknown = composition(&world, &request).await;
    assert_eq!(unknown.check, CompositionCheck::NotChecked);
    assert!(unknown.why_not.is_some_and(|why| why.contains("/git/trees/")), "it says why");
    // A call without an answer is repeated.
    world.double.plan("GET", "/git/trees/", 1, Fault::Status(502));
    let request = build(&main, changes[1..].to_vec(), MergeMethod::Squash);
    let answer = world.host.build_candidate(&world.repository, &request).await;
    assert!(matches!(answer, Err(HostError::Unavailable { .. })), "{answer:?}");
    // Replaying skips merges, so the result need not be the merge.
    world.git(&["checkout", "-q", "one"]);
    world.git(&["merge", "-q", "--no-edit", "two"]);
    let merged = Change { head: world.push("one"), ..changes[0].clone() };
    let rebased = composition(&world, &build(&main, vec![merged], MergeMethod::Rebase)).await;
    let why = rebased.why_not.expect("it says why");
    assert_eq!(why, format!("#{} has merge commits, or more than 100 commits", changes[0].pr));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_check_costs_at_most_four_calls() {
    let world = World::new();
    let (main, changes) = work(&world);
    let calls = async |request: &BuildCandidate| {
        let before = world.host.calls();
        composition(&world, request).await;
        world.host.calls() - before
    };
    let first = calls(&build(&main, changes[..1].to_vec(), MergeMethod::MergeCommit)).await;
    let request = build(&main, changes[1..].to_vec(), MergeMethod::MergeCommit);
    let second = calls(&request).await;
    let again = calls(&request).await;
    // A merge, a branch, and the check: a comparison and the trees that are not known.
    assert!(second < first && again < second, "{first}, {second}, {again}");
    assert!(second - 2 <= 4 + 1, "{second} calls");
}

/// What landed while nothing was checked is proved later, with the objects of the trees.
#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_landing_is_found_afterwards() {
    for method in METHODS {
        let world = World::new();
        let (main, changes) = work(&world);
        let request = build(&main, changes, method);
        let right = world.candidate(&request).await;
        let proof = LandingProof {
            base: main,
            changes: request.changes.iter().map(|it| (it.pr, it.head.clone())).collect(),
            method,
            exact: true,
            composition: None,
            mismatch: None,
        };
        let prove = async |landed: &Candidate| {
            let landing = PastLanding { landed: landed.clone(), proof: proof.clone() };
            world.host.prove(&world.repository, &landing).await.expect("an answer")
        };
        let proved = prove(&right).await.expect("it is right");
        assert_eq!(proved.check, CompositionCheck::Compared, "{proved:?}");
        world.git(&["checkout", "-q", "main"]);
        world.commit(&[("one.txt", "1\n"), ("a.txt", "")], "emptied");
        let sha = world.push("main");
        let tree = TreeId::new(world.git(&["rev-parse", "main^{tree}"])).expect("a tree");
        let mismatch = prove(&Candidate { sha: sha.clone(), tree }).await.expect_err("it is wrong");
        assert_eq!((mismatch.commit, mismatch.paths), (sha, vec!["a.txt".to_owned()]));
    }
}
