//! Copies of databases, and what is left after a restore.

use std::path::PathBuf;
use std::process::Command;

use serde_json::json;
use signalbox_testkit::postgres::Server;

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
    let said = system.run(&["backup", &copy]);
    assert!(said.contains("bytes and"), "{said}");
    assert!(complaint(&system, &["backup", &copy]).contains("is there already"));

    system.call("updateQueue", json!({ "concurrency": 9 })).await;
    assert!(complaint(&system, &["restore", &copy, "--replace"]).contains("a server is running"));
    system.terminate();
    assert!(complaint(&system, &["restore", &copy]).contains("say --replace"));
    system.run(&["restore", &copy, "--replace"]);
    system.start().await;
    assert_eq!(system.call("getQueue", json!({})).await["concurrency"], 1, "as it was copied");
    assert_eq!(system.state(first).await, "MERGED");
    let second = system.pull_request("second", &[("second.txt", "2\n")]);
    system.submit(second).await;
    system.until_state(second, "MERGED").await;
    assert_eq!(system.history(), ["base", "change first (#1)", "change second (#2)"]);
    assert!(system.path("test.db.replaced").exists(), "the one before is kept");
}

#[tokio::test]
async fn what_is_no_whole_database_is_not_restored() {
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

/// The way that docs/operations/backup.md describes.
#[tokio::test]
async fn a_dump_of_postgresql_is_restored_into_another_database() {
    let mut system = System::new(On::Postgres, "exit 0\n", 1).await;
    let first = system.pull_request("first", &[("first.txt", "1\n")]);
    system.submit(first).await;
    system.until_state(first, "MERGED").await;
    let refused = complaint(&system, &["backup", "copy.db"]);
    assert!(refused.contains("pg_dump"), "{refused}");
    let dump = system.path("copy.dump");
    let run = |command: &mut Command| {
        let done = command.output().expect("the PostgreSQL clients are installed");
        assert!(done.status.success(), "{command:?}: {}", String::from_utf8_lossy(&done.stderr));
    };
    let url = system.database().to_owned();
    run(Command::new(program("pg_dump"))
        .args(["--format=custom", "--no-owner", "--file"])
        .arg(&dump)
        .arg(&url));
    system.terminate();
    let other = Server::shared().create_database();
    run(Command::new(program("pg_restore"))
        .args(["--no-owner", "--exit-on-error", "--single-transaction", "--dbname", &other])
        .arg(&dump));
    system.use_database(other);
    system.start().await;
    assert_eq!(system.state(first).await, "MERGED");
    let second = system.pull_request("second", &[("second.txt", "2\n")]);
    system.submit(second).await;
    system.until_state(second, "MERGED").await;
    assert_eq!(system.history(), ["base", "change first (#1)", "change second (#2)"]);
}
