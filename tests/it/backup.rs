//! Copies of databases, and the state after a restore.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;
use signalbox_testkit::postgres::Server;
use tempfile::TempDir;

use crate::harness::{On, System};

fn complaint(system: &System, args: &[&str]) -> String {
    let done = system.command(args).output().expect("it can be run");
    assert_eq!(done.status.code(), Some(1), "{args:?}: {done:?}");
    String::from_utf8_lossy(&done.stderr).into_owned()
}

#[tokio::test]
async fn a_copy_that_was_made_while_the_server_ran_is_restored() {
    let mut system = System::new(On::Sqlite, "exit 0\n", 1).await;
    let first = system.pull_request("first", &[("first.txt", "1\n")]);
    system.submit(first).await;
    system.until_state(first, "MERGED").await;
    let copy = system.path("copy.db").display().to_string();
    let printed = system.run(&["backup", &copy]);
    assert!(printed.contains(" bytes, "), "{printed}");
    assert!(complaint(&system, &["backup", &copy]).contains("already exists; choose another file"));

    system.call("updateQueue", json!({ "concurrency": 9 })).await;
    assert!(complaint(&system, &["restore", &copy, "--replace"]).contains("a server is running"));
    system.terminate();
    assert!(complaint(&system, &["restore", &copy]).contains("pass --replace"));
    system.run(&["restore", &copy, "--replace"]);
    system.start().await;
    assert_eq!(system.call("getQueue", json!({})).await["concurrency"], 1, "the copied value");
    assert_eq!(system.state(first).await, "MERGED");
    let second = system.pull_request("second", &[("second.txt", "2\n")]);
    system.submit(second).await;
    system.until_state(second, "MERGED").await;
    assert_eq!(system.history(), ["base", "change first (#1)", "change second (#2)"]);
    assert!(system.path("test.db.replaced").exists(), "the previous database is kept");
}

#[tokio::test]
async fn a_damaged_copy_is_not_restored() {
    let mut system = System::new(On::Sqlite, "exit 0\n", 1).await;
    let copy = system.path("copy.db");
    system.run(&["backup", &copy.display().to_string()]);
    system.terminate();
    let mut bytes = std::fs::read(&copy).expect("a copy");
    let broken = system.path("broken.db");
    let half = bytes.len() / 2;
    std::fs::write(&broken, &bytes[..half]).expect("written");
    let text = broken.display().to_string();
    complaint(&system, &["restore", &text, "--replace"]);
    for byte in &mut bytes[4_096..40_960] {
        *byte ^= 0x5a;
    }
    std::fs::write(&broken, &bytes).expect("written");
    complaint(&system, &["restore", &text, "--replace"]);
    std::fs::write(&broken, "").expect("written");
    assert!(complaint(&system, &["restore", &text, "--replace"]).contains("is empty"));
    system.start().await;
    assert_eq!(system.call("getQueue", json!({})).await["concurrency"], 1, "nothing has changed");
}

#[tokio::test]
async fn a_second_server_does_not_start_on_an_embedded_database() {
    let system = System::new(On::Sqlite, "exit 0\n", 1).await;
    let words = complaint(&system, &["serve", "--listen", "127.0.0.1:0"]);
    assert!(words.contains("a server is running on this database"), "{words}");
}

/// A program of PostgreSQL, beside the others or in the path.
fn program(name: &str) -> PathBuf {
    let folders = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let beside = folders.map(|it| it.path().join("bin").join(name)).filter(|it| it.exists()).max();
    beside.unwrap_or_else(|| PathBuf::from(name))
}

fn run(command: &mut Command) {
    let done = command.output().expect("the PostgreSQL clients are installed");
    assert!(done.status.success(), "{command:?}: {}", String::from_utf8_lossy(&done.stderr));
}

/// Copies the database while the server runs, as docs/operations/backup.md describes.
fn copy(system: &System, on: On) -> PathBuf {
    let copy = system.path("the.copy");
    match on {
        On::Sqlite => drop(system.run(&["backup", &copy.display().to_string()])),
        On::Postgres => run(Command::new(program("pg_dump"))
            .args(["--format=custom", "--no-owner", "--file"])
            .arg(&copy)
            .arg(system.database())),
    }
    copy
}

/// Stops the server, puts a copy in the place of its database, and starts it again.
async fn restore(system: &mut System, on: On, copy: &Path) {
    system.terminate();
    match on {
        On::Sqlite => {
            drop(system.run(&["restore", &copy.display().to_string(), "--replace"]));
        }
        On::Postgres => {
            let other = Server::shared().create_database();
            run(Command::new(program("pg_restore"))
                .args(["--no-owner", "--exit-on-error", "--single-transaction", "--dbname", &other])
                .arg(copy));
            system.use_database(other);
        }
    }
    system.start().await;
}

#[tokio::test]
async fn a_dump_of_postgresql_is_restored_into_another_database() {
    let mut system = System::new(On::Postgres, "exit 0\n", 1).await;
    let first = system.pull_request("first", &[("first.txt", "1\n")]);
    system.submit(first).await;
    system.until_state(first, "MERGED").await;
    let refused = complaint(&system, &["backup", "copy.db"]);
    assert!(refused.contains("pg_dump"), "{refused}");
    let dump = copy(&system, On::Postgres);
    restore(&mut system, On::Postgres, &dump).await;
    assert_eq!(system.state(first).await, "MERGED");
    let second = system.pull_request("second", &[("second.txt", "2\n")]);
    system.submit(second).await;
    system.until_state(second, "MERGED").await;
    assert_eq!(system.history(), ["base", "change first (#1)", "change second (#2)"]);
}

/// Twelve pull requests land after the copy was made, and one of them is reverted manually. The
/// restored database has no record of that, and still nothing lands again or comes back.
async fn nothing_lands_again_after_a_restore(on: On) {
    let gate = TempDir::new().expect("a folder");
    let open = gate.path().join("open");
    let check = format!("while [ ! -e '{}' ]; do sleep 0.05; done\n", open.display());
    let mut system = System::new(on, &check, 3).await;
    let mut prs = Vec::new();
    for number in 1..=12 {
        let file = format!("file{number}.txt");
        prs.push(system.pull_request(&format!("change{number}"), &[(&file, "here\n")]));
    }
    for pr in &prs {
        system.submit(*pr).await;
    }
    system.until_state(prs[0], "TESTING").await;
    let copied = copy(&system, on);
    std::fs::write(&open, "").expect("opened");
    for pr in &prs {
        system.until_state(*pr, "MERGED").await;
    }
    let bare = system.path("bare.git").display().to_string();
    system.git("work", &["fetch", "-q", &bare, "main"]);
    system.git("work", &["checkout", "-q", "-B", "main", "FETCH_HEAD"]);
    let landed = system.git("work", &["log", "-1", "--format=%H", "--grep=(#5)"]);
    system.git("work", &["revert", "--no-edit", &landed]);
    system.push("main");
    let history = system.history();
    assert_eq!(history.len(), 14, "{history:?}");

    restore(&mut system, on, &copied).await;
    for pr in &prs {
        system.until_state(*pr, "MERGED").await;
    }
    system.until("all is done", async |system: &System| system.left_to_do().await == 0).await;
    assert_eq!(system.history(), history, "nothing landed again");
    let there = async |system: &System| system.git("bare.git", &["ls-tree", "main", "file5.txt"]);
    assert_eq!(there(&system).await, "", "the reverted change has not come back");
    let exit = system.entry(prs[4]).await["exit"].clone();
    assert_eq!(exit["reason"], "MANUAL_MERGE");
    assert_eq!(exit["sha"], landed, "the repository remembers how it landed");

    // To land it again, its author pushes a new commit.
    let (status, reply) =
        system.try_call("submitPullRequest", json!({ "pr": { "number": prs[4] } })).await;
    assert_eq!(status, 409, "{reply}");
    let again = ["pr", "open", "git.local/acme/calc", "--branch", "change5"];
    let words = complaint(&system, &again);
    assert!(words.contains("landed on `main` before"), "{words}");
    system.git("work", &["checkout", "-q", "change5"]);
    system.write(&[("again.txt", "again\n")]);
    system.commit("again");
    system.push("change5");
    system.run(&again);
    system.submit(13).await;
    system.until_state(13, "MERGED").await;
    assert_ne!(there(&system).await, "", "it is back, because it was submitted again");
    assert_eq!(system.history().len(), 15);
}

#[tokio::test]
async fn nothing_lands_again_after_a_restore_of_sqlite() {
    nothing_lands_again_after_a_restore(On::Sqlite).await;
}

#[tokio::test]
async fn nothing_lands_again_after_a_restore_of_postgresql() {
    nothing_lands_again_after_a_restore(On::Postgres).await;
}
