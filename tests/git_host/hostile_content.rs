//! What the author of a change can put into its commits: nothing of it makes the server's machine look
//! faulty, which would stop the whole queue.

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::{Command, Stdio};

use signalbox_conformance::git_host::{HostWorld, build};
use signalbox_domain::ids::{BranchName, PrNumber, RunId, Sha, TreeId};
use signalbox_domain::ports::{Built, ChecksJob, ChecksRunner, GitHost, HostError};
use signalbox_domain::queue::{Candidate, Change, MergeMethod, RunChecks};
use uuid::Uuid;

use crate::World;
use crate::checks::{CONFIG, Reports, program, runner};

/// A tree of these entries, which need not be valid.
fn tree(world: &World, entries: &[(&str, &str, &str)]) -> String {
    let mut raw = Vec::new();
    for (mode, name, id) in entries {
        write!(raw, "{mode} {name}\0").expect("written");
        let digits = id.as_bytes().chunks(2).map(|it| std::str::from_utf8(it).expect("digits"));
        raw.extend(digits.map(|it| u8::from_str_radix(it, 16).expect("a byte")));
    }
    let file = world.folder().join("tree");
    std::fs::write(&file, raw).expect("written");
    let file = file.display().to_string();
    world.bare(&["hash-object", "--literally", "-w", "-t", "tree", &file])
}

fn blob(world: &World, content: &str) -> String {
    let file = world.folder().join("blob");
    std::fs::write(&file, content).expect("written");
    world.bare(&["hash-object", "-w", &file.display().to_string()])
}

/// A commit of that tree on `main`.
fn commit(world: &World, tree: &str) -> Sha {
    let args = ["-c", "user.name=eve", "-c", "user.email=e@x", "commit-tree", tree, "-p", "main"];
    Sha::new(world.bare(&[&args[..], &["-m", "odd"]].concat())).expect("a commit")
}

/// Ten times the tree before, so many times: 10, 100, 1,000 ... files.
fn bomb(world: &World, levels: u32) -> String {
    let (mut id, mut mode) = (blob(world, "x\n"), "100644");
    for _ in 0..levels {
        let names: Vec<String> = (0..10).map(|number| format!("n{number}")).collect();
        let entries: Vec<_> = names.iter().map(|name| (mode, name.as_str(), id.as_str())).collect();
        (id, mode) = (tree(world, &entries), "40000");
    }
    id
}

async fn world() -> World {
    let world = World::new().await;
    world.commit(&[("a.txt", "base\n"), (".signalbox.toml", CONFIG)], "base");
    world.push("main");
    world
}

#[tokio::test(flavor = "multi_thread")]
async fn a_candidate_that_cannot_be_checked_out_fails_its_own_check() {
    let world = world().await;
    let (empty, file) = (blob(&world, ""), blob(&world, "x\n"));
    let folder = tree(&world, &[("100644", "b", &file)]);
    let trees = [
        ("an empty link", tree(&world, &[("120000", "latest", &empty)])),
        ("a file and a folder", tree(&world, &[("100644", "a", &file), ("40000", "a", &folder)])),
        ("a path out of it", tree(&world, &[("100644", "../../x", &file)])),
        ("very many files", bomb(&world, 10)),
    ];
    let head = Sha::new(world.bare(&["rev-parse", "main"])).expect("a commit");
    for (what, id) in trees {
        let sha = commit(&world, &id);
        let reports = Reports::default();
        let job = ChecksJob {
            repository: world.repository.clone(),
            checks: RunChecks {
                run: RunId(Uuid::new_v4()),
                candidate: Candidate { sha, tree: TreeId::new(id).expect("a tree") },
                branch: BranchName::new("signalbox-merge/pr-1/x").expect("a branch"),
                target: BranchName::new("main").expect("a branch"),
                config_from: head.clone(),
                prs: vec![PrNumber(1)],
                again: Vec::new(),
                required: vec!["test".into()],
            },
        };
        runner(&world, &reports)
            .run(&job, &reports)
            .await
            .unwrap_or_else(|it| panic!("{what}: {it}"));
        assert!(!reports.is_empty(), "{what}");
        assert!(reports.all_failed(), "{what}: {}", reports.text());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_on_which_git_crashes_is_at_fault_itself() {
    let world = world().await;
    let main = Sha::new(world.bare(&["rev-parse", "main"])).expect("a commit");
    let file = blob(&world, "x\n");
    let inner = tree(&world, &[("100644", "../../x", &file)]);
    let base = world.bare(&["rev-parse", "main:a.txt"]);
    let outer = tree(&world, &[("100644", "a.txt", &base), ("40000", "zz", &inner)]);
    for method in [MergeMethod::Squash, MergeMethod::MergeCommit, MergeMethod::Rebase] {
        let change = Change {
            pr: PrNumber(1),
            head: commit(&world, &outer),
            title: "odd".into(),
            body: String::new(),
            author: "eve".into(),
        };
        let request = build(&main, vec![change], method);
        let answer = world.host.build_candidate(&world.repository, &request).await;
        assert!(!matches!(answer, Err(HostError::Unavailable { .. })), "{answer:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_that_unpack_to_very_much_name_no_co_authors() {
    let world = world().await;
    let main = Sha::new(world.bare(&["rev-parse", "main"])).expect("a commit");
    let mut stream = String::new();
    for number in 1..=3 {
        let message =
            format!("{}\n\nCo-authored-by: Eve {number} <e{number}@x>\n", "m".repeat(4 << 20));
        let from = if number == 1 { format!("from {main}\n") } else { String::new() };
        let _ = write!(
            stream,
            "commit refs/heads/topic\ncommitter Eve <e@x> 170000000{number} +0000\ndata {}\n{message}\n\
             {from}M 100644 inline f{number}\ndata 2\nx\n\n",
            message.len()
        );
    }
    let mut import = Command::new("git")
        .arg("--git-dir")
        .arg(world.place().bare_folder())
        .args(["fast-import", "--quiet"])
        .stdin(Stdio::piped())
        .spawn()
        .expect("git can be run");
    import.stdin.take().expect("an input").write_all(stream.as_bytes()).expect("written");
    assert!(import.wait().expect("an end").success());
    let head = Sha::new(world.bare(&["rev-parse", "topic"])).expect("a commit");
    let change = Change {
        pr: PrNumber(1),
        head,
        title: "large".into(),
        body: String::new(),
        author: "eve".into(),
    };
    let request = build(&main, vec![change], MergeMethod::Squash);
    let built = world.host.build_candidate(&world.repository, &request).await;
    let Ok(Built::Candidate { candidate, .. }) = built else { panic!("{built:?}") };
    let message = world.bare(&["show", "-s", "--format=%B", candidate.sha.as_str()]);
    assert_eq!(message.trim(), "large (#1)");
}

/// Pushes from the clone; whether it succeeded, and what git printed.
fn push(world: &World, refspec: &str) -> (bool, String) {
    let bare = world.place().bare_folder().display().to_string();
    let done = Command::new("git")
        .arg("-C")
        .arg(world.place().clone_folder())
        .args(["-c", "safe.directory=*", "push", &bare, refspec])
        .output()
        .expect("git can be run");
    (done.status.success(), String::from_utf8_lossy(&done.stderr).into_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_push_writes_no_ref_of_the_server_and_brings_no_broken_tree() {
    let world = world().await;
    let program = [program().display().to_string()];
    for _ in 0..2 {
        world.host.install_hooks(&world.repository, &program).await.expect("installed");
    }
    let landed = format!("refs/signalbox/landed/main/{}", world.bare(&["rev-parse", "main"]));
    for own in [
        &landed,
        "refs/pull/7",
        "refs/pull/7/head",
        "refs/heads/signalbox-merge",
        "refs/heads/signalbox-merge/pr-7/x",
    ] {
        let (pushed, words) = push(&world, &format!("main:{own}"));
        assert!(!pushed && words.contains("hidden ref"), "{own}: {words}");
    }
    let (pushed, words) = push(&world, "main:refs/heads/other");
    assert!(pushed, "{words}");
    // The same name twice: of one of them a review shows nothing.
    let git = world.place().clone_folder().join(".git").display().to_string();
    let file = world.folder().join("twice");
    let id = world.git(&["rev-parse", "main:a.txt"]);
    let bytes: Vec<u8> = (0..20)
        .map(|at| u8::from_str_radix(&id[2 * at..2 * at + 2], 16).expect("a byte"))
        .collect();
    let entry = [b"100644 run.sh\0".as_slice(), &bytes].concat();
    std::fs::write(&file, entry.repeat(2)).expect("written");
    let file = file.display().to_string();
    let args = ["--git-dir", &git, "hash-object", "--literally", "-w", "-t", "tree", &file];
    let twice = world.git(&args);
    let args = ["-c", "user.name=e", "-c", "user.email=e@x", "commit-tree", &twice, "-p", "main"];
    let sha = world.git(&[&args[..], &["-m", "twice"]].concat());
    let (pushed, words) = push(&world, &format!("{sha}:refs/heads/twice"));
    assert!(!pushed && words.contains("duplicateEntries"), "{words}");
}
