//! Following a queue on the command line: `queue submit --wait`, `queue watch`, `queue status`.

use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

use crate::harness::{On, System};

const CHECK: &str = "test ! -e bad.txt\n";

/// A command on the queue of this test.
fn command(system: &System, args: &[&str]) -> Command {
    let (url, token) = (system.url(), system.token().to_owned());
    let mut command = system.command(&["queue"]);
    command.args(args).args(["--repo", "git.local/acme/calc"]);
    command.env("SIGNALBOX_SERVER", url).env("SIGNALBOX_TOKEN", token);
    command
}

fn run(system: &System, args: &[&str]) -> (Option<i32>, String) {
    code_and_text(&command(system, args).output().expect("it can be run"))
}

fn code_and_text(done: &Output) -> (Option<i32>, String) {
    (done.status.code(), String::from_utf8_lossy(&done.stdout).into_owned())
}

async fn the_exit_code_of_a_wait_is_its_outcome(on: On) {
    let system = System::new(on, CHECK, 1).await;
    let good = system.pull_request("good", &[("good.txt", "1\n")]).to_string();
    let bad = system.pull_request("bad", &[("bad.txt", "1\n")]).to_string();
    let (code, words) = run(&system, &["submit", &good, "--wait"]);
    assert_eq!(code, Some(0), "{words}");
    let last = words.lines().last().unwrap_or_default();
    assert!(last.starts_with(&format!("#{good} Merged")), "{words}");
    let (code, words) = run(&system, &["submit", &bad, "--wait"]);
    assert_eq!(code, Some(3), "{words}");
    let why = format!("why: signalbox queue why {bad} --repo git.local/acme/calc");
    assert_eq!(words.lines().last(), Some(why.as_str()), "{words}");
    assert_eq!(run(&system, &["submit", "99", "--wait"]).0, Some(7));

    let (_, status) = run(&system, &["status"]);
    assert!(status.contains("failed in the last 24 hours: 1\n"), "{status}");
    assert!(status.contains(&format!("#{bad} change bad (TEST_RUN_")), "{status}");
    assert!(status.contains(&why) && status.contains(" ago)"), "{status}");
    let status: Value = serde_json::from_str(&run(&system, &["status", "--json"]).1).expect("JSON");
    assert_eq!(status["recentlyFailed"][0]["prNumber"].to_string(), bad);
}

#[tokio::test]
async fn the_exit_code_of_a_wait_is_its_outcome_on_sqlite() {
    the_exit_code_of_a_wait_is_its_outcome(On::Sqlite).await;
}

#[tokio::test]
async fn the_exit_code_of_a_wait_is_its_outcome_on_postgres() {
    the_exit_code_of_a_wait_is_its_outcome(On::Postgres).await;
}

#[tokio::test]
async fn a_wait_ends_with_a_cancellation_and_a_watch_with_the_last_pull_request() {
    let mut system = System::new(On::Sqlite, CHECK, 1).await;
    let first = system.pull_request("first", &[("first.txt", "1\n")]);
    let second = system.pull_request("second", &[("second.txt", "1\n")]);
    assert_eq!(run(&system, &["pause", "--reason", "lunch"]).0, Some(0));
    let start = |args: &[&str], name: &str| {
        let file = std::fs::File::create(system.path(name)).expect("a file");
        command(&system, args).stdout(file).stderr(Stdio::null()).spawn().expect("it can be run")
    };
    let mut wait = start(&["submit", &first.to_string(), "--wait"], "wait.txt");
    let printed = |system: &System, name: &str, part: &str| {
        std::fs::read_to_string(system.path(name)).unwrap_or_default().contains(part)
    };
    let waits = async |system: &System| printed(system, "wait.txt", &format!("#{first} "));
    system.until("the wait has begun", waits).await;
    system.submit(second).await;
    let mut watch = start(&["watch", "--until-empty"], "watch.txt");
    let seen = async |system: &System| printed(system, "watch.txt", &format!("#{second} "));
    system.until("the watch has begun", seen).await;
    // A restart ends neither.
    system.kill();
    system.start().await;
    system.call("cancelPullRequest", json!({ "pr": { "number": first } })).await;
    assert_eq!(wait.wait().expect("it ended").code(), Some(4));
    assert_eq!(run(&system, &["resume"]).0, Some(0));
    assert!(watch.wait().expect("it ended").success());
    let words = std::fs::read_to_string(system.path("watch.txt")).expect("its output");
    assert!(words.lines().any(|line| line.contains(&format!("#{second} Merged"))), "{words}");
    assert!(!words.contains('\u{1b}'), "{words:?}");
}
