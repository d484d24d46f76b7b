//! Authors of a squash. Not a property of every host: one that leaves the message to a forge need
//! not have it.

use signalbox_domain::queue::MergeMethod;

use super::{Acts as _, HostWorld, build};

/// The squash of commits by several authors names each of them: the author of the head as its
/// author, the others as trailers. Authors of the target are not named.
pub async fn a_squash_names_all_of_its_authors(world: &dyn HostWorld) {
    let place = world.place();
    let commit_as = |name: &str, file: &str, message: &str| {
        std::fs::write(place.clone_folder().join(file), message).expect("written");
        place.git(&["add", "-A"]);
        let user = format!("user.name={name}");
        let email = format!("user.email={}@example.org", name.to_lowercase());
        place.git(&["-c", &user, "-c", &email, "commit", "-q", "-m", message]);
    };
    world.base(&[("a.txt", "1\n")]);
    let mut topic = world.change("topic", &[("b.txt", "b\n")]).await;
    let named = "second\n\nCo-authored-by: Dot <dot@example.org>";
    commit_as("Bob", "c.txt", named);
    commit_as("Ada", "d.txt", "third");
    topic.head = world.push("topic");
    place.git(&["checkout", "-q", "main"]);
    commit_as("Cid", "e.txt", "on the target");
    let main = world.push("main");
    let alone = world.change("alone", &[("f.txt", "f\n")]).await;
    let shown = async |changes, method| {
        let candidate = world.candidate(&build(&main, changes, method)).await;
        let format = "--format=%an%n%(trailers:key=Co-authored-by,valueonly)";
        place.bare(&["log", "-1", format, candidate.sha.as_str()])
    };
    let trailers = "Ada\nBob <bob@example.org>\nDot <dot@example.org>";
    assert_eq!(shown(vec![topic.clone()], MergeMethod::Squash).await, trailers);
    // Also on top of others; a merge commit has the commits themselves.
    let both = vec![alone.clone(), topic.clone()];
    assert_eq!(shown(both, MergeMethod::Squash).await, trailers);
    assert_eq!(shown(vec![alone], MergeMethod::Squash).await, "Ada");
    assert!(!shown(vec![topic], MergeMethod::MergeCommit).await.contains("Bob"));
}
