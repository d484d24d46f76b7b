//! Locks that git has left behind are removed, and no others.

use std::fs::File;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use signalbox_domain::testing::ManualClock;
use signalbox_domain::time::{Span, Timestamp};
use signalbox_git::{PlainGitHost, stale_locks};

use crate::World;

/// A lock that was written so long ago.
fn lock(path: &Path, now: Timestamp, age: Span) -> File {
    std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
    let file = File::create(path).expect("made");
    let at = u64::try_from(now.minus(age).unix_micros()).expect("after 1970");
    file.set_modified(UNIX_EPOCH + Duration::from_micros(at)).expect("set");
    file
}

fn names(host: &World, now: Timestamp) -> Vec<String> {
    let found = stale_locks(&host.bare_folder(), now).expect("searched");
    let folder = host.bare_folder().canonicalize().expect("a path");
    let name = |path: &Path| path.strip_prefix(&folder).expect("inside").display().to_string();
    let mut names: Vec<String> = found.iter().map(|it| name(&it.path)).collect();
    names.sort_unstable();
    names
}

#[tokio::test(flavor = "multi_thread")]
async fn only_old_locks_without_a_process_are_stale() {
    let world = World::new().await;
    let (bare, now) = (world.bare_folder(), Timestamp::from_unix_seconds(1_900_000_000));
    let stale = [
        "HEAD.lock",
        "config.lock",
        "objects/info/commit-graphs/commit-graph-chain.lock",
        "packed-refs.lock",
        "refs/heads/deep/er/topic.lock",
        "refs/heads/main.lock",
        "shallow.lock",
    ];
    for name in stale {
        drop(lock(&bare.join(name), now, Span::minutes(11)));
    }
    drop(lock(&bare.join("index.lock"), now, Span::minutes(9)));
    let held = lock(&bare.join("refs/heads/held.lock"), now, Span::minutes(200));
    assert_eq!(names(&world, now), stale, "one is young, and one is open in this process");
    drop(held);
    assert_eq!(names(&world, now).len(), stale.len() + 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn healing_removes_stale_locks_so_that_the_target_can_move() {
    let world = World::new().await;
    world.commit(&[("a.txt", "base\n")], "base");
    world.push("main");
    let real = Timestamp::from_unix_seconds(1_900_000_000);
    let clock = ManualClock::at(real);
    let (young, old) =
        (world.bare_folder().join("config.lock"), world.bare_folder().join("refs/heads/main.lock"));
    drop(lock(&old, real, Span::minutes(15)));
    drop(lock(&young, real, Span::minutes(1)));
    let host: PlainGitHost = world.host_at(clock);
    let healed = host.heal_locks(&world.repository).await.expect("healed");
    assert_eq!(healed.len(), 1, "{healed:?}");
    assert!(healed[0].path.ends_with("refs/heads/main.lock"), "{healed:?}");
    assert!(!old.exists() && young.exists());
    let left = std::fs::read_dir(world.bare_folder()).expect("a folder").flatten();
    let left: Vec<_> = left.map(|it| it.file_name()).collect();
    assert!(!left.iter().any(|it| it.to_string_lossy().starts_with("signalbox-stale")), "{left:?}");
    world.bare(&["update-ref", "refs/heads/main", "refs/heads/main"]);
}
