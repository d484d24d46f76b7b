//! A snapshot lists exactly what must be read again.

use signalbox_conformance::git_host::HostWorld;
use signalbox_domain::ids::{BranchName, PrNumber};
use signalbox_domain::ports::{GitHost, PullRequestQuery, Snapshot};
use signalbox_domain::queue::PullRequestState;

use crate::World;

async fn taken(world: &World) -> Snapshot {
    let taken = world.host.snapshot(&world.repository).await;
    taken.expect("an answer").expect("this host has them")
}

/// The pull requests whose mark has changed.
fn changed(before: &Snapshot, after: &Snapshot) -> Vec<PrNumber> {
    let numbers = before.fingerprints.keys().chain(after.fingerprints.keys());
    let mut changed: Vec<PrNumber> = numbers
        .filter(|pr| before.fingerprints.get(pr) != after.fingerprints.get(pr))
        .copied()
        .collect();
    changed.dedup();
    changed
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fingerprint_changes_exactly_with_the_shown_state() {
    let world = World::new().await;
    world.commit(&[("a.txt", "base\n")], "base");
    let main = world.push("main");
    for name in ["one", "two", "three"] {
        world.branch(name, "main", &[(&format!("{name}.txt"), "x\n")]);
        world.push(name);
    }
    let (one, two, three) =
        (world.open("one").await, world.open("two").await, world.open("three").await);
    let first = taken(&world).await;
    assert_eq!(first.heads[&BranchName::new("main").expect("a branch")], main);
    assert_eq!(first.fingerprints.len(), 3);
    assert_eq!(taken(&world).await, first, "nothing has happened");

    world.branch("one", "one", &[("more.txt", "x\n")]);
    world.push("one");
    let pushed = taken(&world).await;
    assert_eq!(changed(&first, &pushed), [one]);

    // The target moves, and contains no pull request yet.
    world.branch("main", "main", &[("b.txt", "x\n")]);
    world.push("main");
    assert_eq!(changed(&pushed, &taken(&world).await), [], "no pull request changes");

    world.git(&["merge", "-q", "--no-ff", "-m", "by hand", "two"]);
    world.push("main");
    let merged = taken(&world).await;
    assert_eq!(changed(&pushed, &merged), [two]);
    let query = PullRequestQuery::Number(two);
    let seen = world.host.pull_request(&world.repository, &query).await;
    let seen = seen.expect("an answer").expect("it is there");
    assert_eq!(seen.state, PullRequestState::Merged);

    world.close(three).await;
    let closed = taken(&world).await;
    assert_eq!(closed.fingerprints.keys().collect::<Vec<_>>(), [&one], "the others are not open");
}
