//! Properties of landings.

use signalbox_domain::ids::{BranchName, Sha};
use signalbox_domain::ports::{Built, LandAnswer, Landed};
use signalbox_domain::queue::{Land, MergeMethod, PullRequestState};

use super::{Acts as _, HostWorld, build, land};

/// If a head or the target has moved, nothing is touched. Otherwise the candidate becomes the
/// target's head, once, also if the landing is repeated.
pub async fn a_landing_moves_the_target_to_the_candidate_or_not_at_all(world: &dyn HostWorld) {
    let place = world.place();
    let main = world.base(&[("a.txt", "base\n")]);
    let topic = world.change("topic", &[("b.txt", "b\n")]).await;
    let request = build(&main, vec![topic.clone()], MergeMethod::Squash);
    let candidate = world.candidate(&request).await;
    let order = land(&request, &candidate);

    let pushed = world.branch("topic", "topic", &[("late.txt", "late\n")]);
    assert_eq!(world.land(&order).await, LandAnswer::HeadMoved { pr: topic.pr });
    assert_eq!(place.bare(&["rev-parse", "main"]), main.as_str(), "not touched");
    place.git(&["reset", "-q", "--hard", topic.head.as_str()]);
    assert_ne!(pushed, world.push("topic"));

    let outside = world.branch("main", "main", &[("outside.txt", "x\n")]);
    let answer = world.land(&order).await;
    assert!(matches!(&answer, LandAnswer::TargetMoved(it) if it.sha == outside), "{answer:?}");
    assert_eq!(place.bare(&["rev-parse", "main"]), outside.as_str(), "not touched");
    place.git(&["reset", "-q", "--hard", main.as_str()]);
    world.push("main");

    for _ in 0..2 {
        let LandAnswer::Landed(head, _) = world.land(&order).await else { panic!("it lands") };
        assert_eq!((&head.sha, &head.tree), (&candidate.sha, &candidate.tree));
        assert_eq!(place.bare(&["rev-parse", "main"]), candidate.sha.as_str());
        let range = format!("{main}..main");
        assert_eq!(place.bare(&["rev-list", "--count", &range]), "1", "landed once");
    }
    world.close_landed(&order, &candidate.sha).await;
    assert_ne!(world.read(topic.pr).await.state, PullRequestState::Open);
}

/// The target has the same tree in another commit: the landed commit has the tested tree, and is
/// found by a repeat after a lost answer.
pub async fn a_target_with_the_same_tree_in_another_commit_counts_as_unmoved(
    world: &dyn HostWorld,
) {
    let place = world.place();
    let main = world.base(&[("a.txt", "base\n")]);
    let topic = world.change("topic", &[("b.txt", "b\n")]).await;
    let request = build(&main, vec![topic], MergeMethod::Squash);
    let candidate = world.candidate(&request).await;
    place.branch("main", "main", &[]);
    let duplicate = world.push("main");
    assert_eq!(place.tree(&duplicate), place.tree(&main));
    let order = Land { expected: duplicate, ..land(&request, &candidate) };
    let answer = world.land(&order).await;
    let LandAnswer::Landed(head, _) = &answer else { panic!("{answer:?}") };
    assert_eq!(head.tree, candidate.tree, "the tree is the tested one");
    assert_eq!(place.bare(&["rev-parse", "main^{tree}"]), candidate.tree.as_str());
    assert_eq!(world.land(&order).await, answer, "a repeat whose first answer was lost");
}

/// A group lands together with the tested tree, by each merge method.
pub async fn groups_land_together(world: &dyn HostWorld) {
    let mut main = world.base(&[("a.txt", "base\n")]);
    for (method, name) in [
        (MergeMethod::Squash, "squash"),
        (MergeMethod::MergeCommit, "merge"),
        (MergeMethod::Rebase, "rebase"),
    ] {
        let mut group = Vec::new();
        for number in 0..3 {
            let name = format!("{name}{number}");
            group.push(world.change(&name, &[(&format!("{name}.txt"), "x\n")]).await);
        }
        let request = build(&main, group.clone(), method);
        let candidate = world.candidate(&request).await;
        let order = land(&request, &candidate);
        let answer = world.land(&order).await;
        let LandAnswer::Landed(head, _) = answer else { panic!("{method:?}: {answer:?}") };
        assert_eq!(head.tree, candidate.tree, "{method:?}");
        world.close_landed(&order, &head.sha).await;
        assert_eq!(world.place().bare(&["rev-parse", "main"]), head.sha.as_str());
        for change in group {
            let state = world.read(change.pr).await.state;
            assert_ne!(state, PullRequestState::Open, "{method:?}");
            if method == MergeMethod::MergeCommit {
                assert_eq!(state, PullRequestState::Merged);
            }
        }
        main = head.sha;
        world.place().git(&["fetch", "-q", &bare(world), "main"]);
        world.place().git(&["checkout", "-q", "-B", "main", "FETCH_HEAD"]);
    }
}

fn bare(world: &dyn HostWorld) -> String {
    world.place().bare_folder().display().to_string()
}

/// A lane lands on the landings of other lanes if the order is not exact and the merge is clean.
pub async fn lanes_land_beside_each_other_unless_they_conflict(world: &dyn HostWorld) {
    let main = world.base(&[("a.txt", "base\n"), ("b.txt", "base\n")]);
    let one = world.change("one", &[("a.txt", "one\n")]).await;
    let two = world.change("two", &[("b.txt", "two\n")]).await;
    let both = world.change("both", &[("a.txt", "both\n"), ("c.txt", "both\n")]).await;
    let mut landings = Vec::new();
    for change in [one, two, both] {
        let request = build(&main, vec![change], MergeMethod::Squash);
        landings.push(land(&request, &world.candidate(&request).await));
    }
    let answer = world.land(&landings[0]).await;
    let LandAnswer::Landed(after_first, _) = answer else { panic!("{answer:?}") };
    landings[1].expected = after_first.sha.clone();
    let exact = world.land(&landings[1]).await;
    assert_eq!(exact, LandAnswer::TargetMoved(after_first), "the tested tree itself cannot land");
    landings[1].exact = false;
    let answer = world.land(&landings[1]).await;
    let LandAnswer::Landed(after_second, _) = answer.clone() else { panic!("{answer:?}") };
    let shown = |file: &str| world.place().bare(&["show", &format!("main:{file}")]);
    assert_eq!(["a.txt", "b.txt"].map(shown), ["one", "two"]);
    assert_eq!(
        world.land(&landings[1]).await,
        answer,
        "a repeat after a lost answer finds the landing"
    );
    (landings[2].expected, landings[2].exact) = (after_second.sha.clone(), false);
    let answer = world.land(&landings[2]).await;
    assert_eq!(
        answer,
        LandAnswer::TargetMoved(after_second),
        "it conflicts with the landed changes"
    );
}

/// A landing is contained in its descendants, and not in its ancestors.
pub async fn landings_are_contained_in_their_descendants(world: &dyn HostWorld) {
    let main = world.base(&[("a.txt", "base\n")]);
    let mut landings = Vec::new();
    let mut at = main.clone();
    for name in ["one", "two"] {
        let topic = world.change(name, &[(&format!("{name}.txt"), "x\n")]).await;
        let request = build(&at, vec![topic.clone()], MergeMethod::Squash);
        let answer = world.land(&land(&request, &world.candidate(&request).await)).await;
        let LandAnswer::Landed(head, _) = answer else { panic!("{answer:?}") };
        at = head.sha.clone();
        landings.insert(0, Landed { head: topic.head, commit: head.sha });
    }
    let target = BranchName::new("main").expect("a branch");
    for (head, wanted) in
        [(&at, [true, true]), (&landings[1].commit, [false, true]), (&main, [false, false])]
    {
        let found = world.host().contained(world.repository(), &target, head, &landings).await;
        assert_eq!(found.expect("an answer"), wanted, "at {head}");
    }
}

/// A change that adds nothing to the target leaves its tree unchanged. A change that adds nothing
/// to its group gets no commit by any method, and the answer names it.
pub async fn a_change_that_adds_nothing_gets_no_commit(world: &dyn HostWorld) {
    let main = world.base(&[("a.txt", "base\n")]);
    let one = world.change("one", &[("b.txt", "same\n")]).await;
    let duplicate = world.change("duplicate", &[("b.txt", "same\n")]).await;
    for method in [MergeMethod::Squash, MergeMethod::Rebase, MergeMethod::MergeCommit] {
        let both = build(&main, vec![one.clone(), duplicate.clone()], method);
        let built = world.host().build_candidate(world.repository(), &both).await;
        let Ok(Built::Candidate { candidate, empty, .. }) = built else { panic!("{built:?}") };
        assert_eq!(empty, [duplicate.pr], "{method:?}");
        let range = format!("{main}..{}", candidate.sha);
        let commits = world.place().bare(&["rev-list", "--first-parent", "--count", &range]);
        assert_eq!(commits, "1", "{method:?}");
    }
    let main = world.branch("main", "main", &[("b.txt", "same\n")]);
    let late = build(&main, vec![duplicate], MergeMethod::Squash);
    let candidate = world.candidate(&late).await;
    assert_eq!(candidate.tree.as_str(), world.place().tree(&main));
}

/// Branch names, file names and commit messages are never interpreted as options or commands.
pub async fn names_are_never_interpreted_as_options(world: &dyn HostWorld) {
    let place = world.place();
    let main = world.base(&[("a.txt", "base\n")]);
    let evil = "x;touch${IFS}pwned;$(touch${IFS}pwned)`id`|\"'&&";
    let files = [("--upload-pack=touch pwned", "x\n"), ("$(touch pwned)", "y\n")];
    place.branch(evil, "main", &files);
    place.git(&["commit", "-q", "--amend", "-m", "$(touch pwned) `touch pwned`\n\n--author=evil"]);
    let head: Sha = world.push(evil);
    let pr = world.open(evil).await;
    let request = build(&main, vec![super::change(pr, &head)], MergeMethod::Squash);
    let candidate = world.candidate(&request).await;
    let landed = world.land(&land(&request, &candidate)).await;
    assert!(matches!(landed, LandAnswer::Landed(..)), "{landed:?}");
    let folders =
        [place.clone_folder(), place.bare_folder(), place.folder().to_owned(), ".".into()];
    assert!(folders.iter().all(|folder| !folder.join("pwned").exists()));
    assert!(BranchName::new("--help").is_err());
}
