//! The cost of polling when nothing has changed.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::json;
use tempfile::TempDir;

use crate::harness::{On, System};

const PULL_REQUESTS: u64 = 200;

/// A wrapper of git that records its calls.
struct Counted {
    folder: TempDir,
}

impl Counted {
    fn new() -> Self {
        let folder = TempDir::new().expect("a folder");
        let paths = std::env::var_os("PATH").expect("a path");
        let git = std::env::split_paths(&paths).map(|it| it.join("git")).find(|it| it.exists());
        let (git, log) = (git.expect("git").display().to_string(), folder.path().join("calls"));
        let script = format!("#!/bin/sh\necho \"$*\" >> '{}'\nexec {git} \"$@\"\n", log.display());
        let program = folder.path().join("git");
        std::fs::write(&program, script).expect("written");
        std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).expect("changed");
        Self { folder }
    }

    fn path(&self) -> String {
        let own = [self.folder.path().to_owned()];
        let paths = std::env::var_os("PATH").expect("a path");
        let all: Vec<PathBuf> = own.into_iter().chain(std::env::split_paths(&paths)).collect();
        std::env::join_paths(all).expect("a path").into_string().expect("text")
    }

    fn calls(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.folder.path().join("calls")).unwrap_or_default();
        text.lines().map(ToOwned::to_owned).collect()
    }
}

fn is_a_look(call: &str) -> bool {
    call.ends_with("refs/heads refs/pull")
}

/// Opens pull requests with a single push; each changes nothing.
fn open_many(system: &System) {
    let bare = system.path("bare.git").display().to_string();
    let mut push = vec!["push".to_owned(), "-q".to_owned(), bare];
    for number in 1..=PULL_REQUESTS {
        let message = format!("change {number}");
        let commit = ["commit-tree", "main^{tree}", "-p", "main", "-m", &message];
        let commit = system.git("work", &commit);
        push.push(format!("{commit}:refs/for/main/topic-{number}"));
    }
    let push: Vec<&str> = push.iter().map(String::as_str).collect();
    system.git("work", &push);
}

#[tokio::test]
async fn two_hundred_pull_requests_that_wait_cost_one_call_of_git_each_round() {
    let counted = Counted::new();
    let path = counted.path();
    let environment = [("PATH", path.as_str())];
    let system = System::with_environment(On::Sqlite, "exit 0\n", 1, &environment).await;
    system.call("updateQueue", json!({ "state": "PAUSED" })).await;
    open_many(&system);
    for number in 1..=PULL_REQUESTS {
        system.submit(number).await;
    }
    // Each was read once after it was submitted; from then on nothing happens.
    let patience = Duration::from_mins(3);
    let is_quiet = async |_: &System| {
        let calls = counted.calls();
        calls.len() > 2 && calls.iter().rev().take(2).all(|call| is_a_look(call))
    };
    system.until_within(patience, "all are known", is_quiet).await;
    let before = counted.calls().len();
    let rounds = async |_: &System| {
        counted.calls().iter().skip(before).filter(|call| is_a_look(call)).count() >= 4
    };
    system.until_within(patience, "four rounds", rounds).await;
    let calls = counted.calls();
    let others = calls.iter().skip(before).filter(|call| !is_a_look(call));
    let others: Vec<&String> = others.collect();
    assert!(others.len() <= 2, "{others:?}");

    // A push to the target concerns them all, and costs one more call.
    system.write(&[("file.txt", "pushed\n")]);
    system.commit("pushed by hand");
    let before = counted.calls().len();
    system.push("main");
    let rounds = async |_: &System| {
        counted.calls().iter().skip(before).filter(|call| is_a_look(call)).count() >= 3
    };
    system.until_within(patience, "three rounds", rounds).await;
    let calls = counted.calls().len() - before;
    assert!(calls <= 20, "{calls} calls");
}
