//! Faults of the machine are distinguished from faults of a change: each fault is injected into a
//! real repository.

use std::path::{Path, PathBuf};
use std::process::Command;

use signalbox_conformance::git_host::{HostWorld, build, land};
use signalbox_domain::ids::{BranchName, PrNumber, Sha};
use signalbox_domain::ports::{Built, GitHost, HostError, LandAnswer, PullRequestQuery};
use signalbox_domain::queue::{BuildCandidate, Candidate, Change, ConflictWith, MergeMethod};

use crate::World;

/// A repository with a pull request whose candidate is built.
struct BuiltCandidate {
    world: World,
    request: BuildCandidate,
    candidate: Candidate,
    topic: Sha,
}

impl BuiltCandidate {
    async fn new() -> Self {
        let world = World::new().await;
        world.commit(&[("a.txt", "base\n")], "base");
        let main = world.push("main");
        world.branch("topic", "main", &[("b.txt", "b\n")]);
        let topic = world.push("topic");
        let pr = world.open("topic").await;
        let change = Change {
            pr,
            head: topic.clone(),
            title: "change".into(),
            body: String::new(),
            author: "ada".into(),
        };
        let request = build(&main, vec![change], MergeMethod::Squash);
        let built = world.host.build_candidate(&world.repository, &request).await;
        let Ok(Built::Candidate { candidate, .. }) = built else { panic!("{built:?}") };
        Self { world, request, candidate, topic }
    }

    /// The errors of everything that a queue asks for.
    async fn errors(&self) -> Vec<(&'static str, Option<HostError>)> {
        let (host, repository) = (&self.world.host, &self.world.repository);
        let main = BranchName::new("main").expect("a branch");
        let number = PullRequestQuery::Number(self.request.changes[0].pr);
        let order = land(&self.request, &self.candidate);
        let (at, branch) = (&self.request.target_head, &self.request.branch);
        vec![
            ("head", host.head(repository, &main).await.err()),
            ("pull_request", host.pull_request(repository, &number).await.err()),
            ("snapshot", host.snapshot(repository).await.err()),
            ("required_statuses", host.required_statuses(repository, &main, at).await.err()),
            ("build_candidate", host.build_candidate(repository, &self.request).await.err()),
            ("land", host.land(repository, &order).await.err()),
            ("delete_branch", host.delete_branch(repository, branch, None).await.err()),
            ("test_branches", host.test_branches(repository).await.err()),
        ]
    }

    /// Each of them fails, and none is the fault of the change.
    async fn is_unhealthy(&self, what: &str) {
        for (call, error) in self.errors().await {
            match error {
                Some(HostError::Unavailable { words }) => assert!(words.len() > 5, "{words}"),
                other => panic!("{what}: {call}: {other:?}"),
            }
        }
    }

    /// None of them blames the change, and these fail.
    async fn is_unhealthy_for(&self, what: &str, failing: &[&str]) {
        for (call, error) in self.errors().await {
            match error {
                Some(HostError::Unavailable { .. }) => {}
                None if !failing.contains(&call) => {}
                other => panic!("{what}: {call}: {other:?}"),
            }
        }
    }

    async fn lands(&self) {
        let order = land(&self.request, &self.candidate);
        let landed = self.world.host.land(&self.world.repository, &order).await;
        assert!(matches!(landed, Ok(LandAnswer::Landed(..))), "{landed:?}");
    }

    fn bare(&self, part: &str) -> PathBuf {
        self.world.bare_folder().join(part)
    }

    /// The file of a loose object.
    fn object(&self, id: &str) -> PathBuf {
        let (folder, file) = id.split_at(2);
        self.bare("objects").join(folder).join(file)
    }
}

fn moved(from: &Path, to: &Path) {
    std::fs::rename(from, to).expect("moved");
}

#[tokio::test(flavor = "multi_thread")]
async fn moved_or_replaced_files_are_the_machines_fault() {
    let built = BuiltCandidate::new().await;
    let away = built.world.folder().join("away");
    let root = built.world.folder().join("git");
    for gone in [
        root.clone(),
        root.join("acme"),
        built.bare(""),
        built.bare("objects"),
        built.bare("refs"),
        built.bare("HEAD"),
    ] {
        moved(&gone, &away);
        built.is_unhealthy(&format!("{} is gone", gone.display())).await;
        // Later, an empty folder or a file is mounted there.
        std::fs::create_dir(&gone).expect("made");
        if gone.ends_with("refs") || gone.ends_with("objects") {
            std::fs::remove_dir(&gone).expect("removed");
            std::fs::write(&gone, "").expect("written");
        }
        built.is_unhealthy(&format!("{} is replaced", gone.display())).await;
        if gone.is_dir() {
            std::fs::remove_dir(&gone).expect("removed");
        } else {
            std::fs::remove_file(&gone).expect("removed");
        }
        moved(&away, &gone);
    }
    built.lands().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn damaged_files_are_the_machines_fault() {
    let built = BuiltCandidate::new().await;
    let damaged = async |path: PathBuf, content: &[u8], failing: &[&str]| {
        let good = std::fs::read(&path).expect("read");
        // Objects are read-only, and may be linked to a clone's.
        std::fs::remove_file(&path).expect("removed");
        std::fs::write(&path, content).expect("written");
        built.is_unhealthy_for(&path.display().to_string(), failing).await;
        std::fs::remove_file(&path).expect("removed");
        std::fs::write(&path, good).expect("written");
    };
    let head = built.object(built.topic.as_str());
    damaged(head.clone(), b"garbage", &["build_candidate"]).await;
    damaged(head, b"", &["build_candidate"]).await;
    let tree = built.world.bare(&["rev-parse", "main^{tree}"]);
    damaged(built.object(&tree), b"garbage", &["required_statuses", "build_candidate"]).await;
    // A power cut leaves empty files.
    damaged(built.bare("refs/heads/main"), b"", &["head", "land"]).await;
    damaged(built.bare("refs/heads/main"), b"nonsense\n", &["head", "land"]).await;
    let missing = format!("{}\n", "1".repeat(40));
    damaged(built.bare("refs/heads/main"), missing.as_bytes(), &["head", "land"]).await;
    damaged(built.bare("HEAD"), b"", &["head", "build_candidate", "land"]).await;
    damaged(built.bare("config"), b"[core", &["head", "build_candidate", "land"]).await;
    built.lands().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lock_is_no_fault_of_the_change() {
    let built = BuiltCandidate::new().await;
    let lock = built.bare("refs/heads/main.lock");
    std::fs::write(&lock, "").expect("written");
    let order = land(&built.request, &built.candidate);
    let answer = built.world.host.land(&built.world.repository, &order).await;
    let Err(HostError::Unavailable { words }) = answer else { panic!("{answer:?}") };
    assert!(words.contains("main.lock") && words.contains("File exists"), "{words}");
    assert!(!words.contains('\n'), "{words}");
    std::fs::remove_file(lock).expect("removed");
    built.lands().await;
}

/// A file system that is mounted at that folder.
struct Mounted(PathBuf);

impl Drop for Mounted {
    fn drop(&mut self) {
        drop(Command::new("umount").arg("-l").arg(&self.0).status());
    }
}

/// A small file system of its own is mounted, if this process may do that.
#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_is_no_fault_of_the_change() {
    let built = BuiltCandidate::new().await;
    let (bare, kept) = (built.bare(""), built.world.folder().join("kept"));
    moved(&bare, &kept);
    std::fs::create_dir(&bare).expect("made");
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=600k", "tmpfs"])
        .arg(&bare)
        .output()
        .is_ok_and(|done| done.status.success());
    if !mounted {
        println!("SKIPPED: this process may not mount a file system");
        return;
    }
    let _mounted = Mounted(bare.clone());
    let copied = Command::new("cp").arg("-a").arg(kept.join(".")).arg(&bare).status();
    assert!(copied.expect("it can be run").success());
    let filler = bare.join("filler");
    let written = std::fs::write(&filler, vec![1; 1024 * 1024]);
    assert!(written.is_err(), "it is full");
    let mut request = built.request.clone();
    request.changes[0].title = "another title, which makes another commit".repeat(200);
    let answer = built.world.host.build_candidate(&built.world.repository, &request).await;
    let Err(HostError::Unavailable { words }) = answer else { panic!("{answer:?}") };
    assert!(words.contains("No space left on device"), "{words}");
    built.is_unhealthy_for("a full disk", &[]).await;
    std::fs::remove_file(filler).expect("removed");
    built.lands().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_target_is_missing_only_in_a_repository_that_can_be_read() {
    let built = BuiltCandidate::new().await;
    let main = BranchName::new("main").expect("a branch");
    let (host, repository) = (&built.world.host, &built.world.repository);
    built.world.bare(&["update-ref", "-d", "refs/heads/main"]);
    assert_eq!(host.head(repository, &main).await.expect("an answer"), None);
    let order = land(&built.request, &built.candidate);
    let answer = host.land(repository, &order).await;
    assert!(matches!(answer, Err(HostError::NotFound { .. })), "{answer:?}");
    // A branch below it is another one.
    built.world.bare(&["update-ref", "refs/heads/main/x", built.topic.as_str()]);
    assert_eq!(host.head(repository, &main).await.expect("an answer"), None);
    built.world.bare(&["update-ref", "-d", "refs/heads/main/x"]);
    let at = built.request.target_head.as_str();
    built.world.bare(&["update-ref", "refs/heads/main", at]);
    built.lands().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn histories_without_a_common_ancestor_are_the_changes_own_fault() {
    let mut built = BuiltCandidate::new().await;
    let tree = built.world.bare(&["rev-parse", "main^{tree}"]);
    let commit = ["-c", "user.name=a", "-c", "user.email=b", "commit-tree", &tree, "-m", "alone"];
    built.request.changes[0].head = Sha::new(built.world.bare(&commit)).expect("a commit");
    let answer = built.world.host.build_candidate(&built.world.repository, &built.request).await;
    let Err(HostError::Rejected { words }) = answer else { panic!("{answer:?}") };
    assert!(words.contains("no common history"), "{words}");

    // In a group it is the only one that is named.
    let mut good = built.request.changes[0].clone();
    (good.pr, good.head) = (PrNumber(77), built.topic.clone());
    built.request.changes.insert(0, good);
    let answer = built.world.host.build_candidate(&built.world.repository, &built.request).await;
    let Ok(Built::Conflict { pr, with, paths }) = answer else { panic!("{answer:?}") };
    assert_eq!((pr, with), (built.request.changes[1].pr, ConflictWith::Target));
    assert!(paths[0].contains("no common history"), "{paths:?}");
}

/// What others wrote into their commits, and git would not write again, keeps nothing from being
/// built.
#[tokio::test(flavor = "multi_thread")]
async fn odd_authors_are_no_obstacle() {
    let mut built = BuiltCandidate::new().await;
    let good = built.world.bare(&["cat-file", "commit", built.topic.as_str()]);
    let long = "x".repeat(200_000);
    for author in [
        "author ,; <> 5 +0000",
        "author  <> 99999999999999999999999 +0000",
        "author Ada <ada@example.org>",
        &format!("author {long} <{long}> 1700000000 +0100"),
    ] {
        let odd: Vec<&str> = good
            .lines()
            .map(|line| if line.starts_with("author ") { author } else { line })
            .collect();
        let file = built.world.folder().join("commit");
        std::fs::write(&file, odd.join("\n") + "\n").expect("written");
        let file = file.display().to_string();
        let made = built.world.bare(&["hash-object", "--literally", "-w", "-t", "commit", &file]);
        built.request.changes[0].head = Sha::new(made).expect("a commit");
        for method in [MergeMethod::Squash, MergeMethod::MergeCommit, MergeMethod::Rebase] {
            built.request.method = method;
            let host = &built.world.host;
            let answer = host.build_candidate(&built.world.repository, &built.request).await;
            let cut: String = author.chars().take(60).collect();
            assert!(matches!(answer, Ok(Built::Candidate { .. })), "{cut}: {answer:?}");
        }
    }
}
