//! Copies of databases, and the state after a restore.

use std::os::unix::fs::PermissionsExt;

use serde_json::json;
use signalbox_testkit::postgres::Server;
use tempfile::TempDir;

use crate::harness::{On, System};
use crate::receiver::Receiver;

/// The error of a command; its code is 1, or 8 if something exists or is in use.
fn complaint(system: &System, args: &[&str]) -> String {
    let done = system.command(args).output().expect("it can be run");
    let code = done.status.code();
    assert!(code == Some(1) || code == Some(8), "{args:?}: {done:?}");
    String::from_utf8_lossy(&done.stderr).into_owned()
}

/// Copies the database and the key while the server runs.
fn copy(system: &System) -> String {
    let copy = system.path("backup.tar.gz").display().to_string();
    let printed = system.run(&["backup", &copy]);
    assert!(printed.contains(" bytes; ") && printed.contains("not included"), "{printed}");
    assert!(printed.contains("bare.git"), "what else to copy: {printed}");
    copy
}

/// Stops the server, puts a backup in the place of its database, and starts it again.
async fn restore(system: &mut System, on: On, copy: &str) {
    system.terminate();
    match on {
        On::Sqlite => drop(system.run(&["restore", copy, "--replace"])),
        On::Postgres => {
            let refused = complaint(system, &["restore", copy]);
            assert!(refused.contains("create an empty one"), "{refused}");
            system.use_database(Server::shared().create_database());
            system.run(&["restore", copy]);
        }
    }
    system.start().await;
}

async fn a_copy_that_was_made_while_the_server_ran_is_restored(on: On) {
    let mut system = System::new(on, "exit 0\n", 1).await;
    let first = system.pull_request("first", &[("first.txt", "1\n")]);
    system.submit(first).await;
    system.until_state(first, "MERGED").await;
    let copy = copy(&system);
    let mode = std::fs::metadata(&copy).expect("a file").permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "only its owner may read it");
    assert!(complaint(&system, &["backup", &copy]).contains("already exists; choose another file"));

    system.call("updateQueue", json!({ "concurrency": 9 })).await;
    let printed = system.run(&["restore", &copy, "--verify"]);
    assert!(printed.contains(" migrations, intact"), "{printed}");
    assert!(printed.contains("opens the secrets"), "{printed}");
    assert!(!printed.contains("only listed"), "{printed}");
    if let On::Sqlite = on {
        let words = complaint(&system, &["restore", &copy, "--replace"]);
        assert!(words.contains("a server is running"), "{words}");
        system.terminate();
        assert!(complaint(&system, &["restore", &copy]).contains("pass --replace"));
        system.start().await;
    }
    restore(&mut system, on, &copy).await;
    assert_eq!(system.call("getQueue", json!({})).await["concurrency"], 1, "the copied value");
    assert_eq!(system.state(first).await, "MERGED");
    let second = system.pull_request("second", &[("second.txt", "2\n")]);
    system.submit(second).await;
    system.until_state(second, "MERGED").await;
    assert_eq!(system.history(), ["base", "change first (#1)", "change second (#2)"]);
    if let On::Sqlite = on {
        assert!(system.path("test.db.replaced").exists(), "the previous database is kept");
    }
}

#[tokio::test]
async fn a_copy_of_sqlite_is_restored() {
    a_copy_that_was_made_while_the_server_ran_is_restored(On::Sqlite).await;
}

#[tokio::test]
async fn a_copy_of_postgresql_is_restored() {
    a_copy_that_was_made_while_the_server_ran_is_restored(On::Postgres).await;
}

#[tokio::test]
async fn a_damaged_copy_is_not_restored() {
    let mut system = System::new(On::Sqlite, "exit 0\n", 1).await;
    let copy = copy(&system);
    system.terminate();
    let mut bytes = std::fs::read(&copy).expect("a copy");
    let broken = system.path("broken.tar.gz");
    let text = broken.display().to_string();
    let half = bytes.len() / 2;
    let refused = |bytes: &[u8]| {
        std::fs::write(&broken, bytes).expect("written");
        complaint(&system, &["restore", &text, "--verify"]);
        complaint(&system, &["restore", &text, "--replace"])
    };
    refused(&bytes[..half]);
    refused(b"");
    assert!(refused(b"SQLite format 3").contains("not a backup of Signalbox"));
    // Within a repetition, a single changed byte may mean the same.
    for byte in &mut bytes[half..half + 64] {
        *byte ^= 0x5a;
    }
    refused(&bytes);
    system.start().await;
    assert_eq!(system.call("getQueue", json!({})).await["concurrency"], 1, "nothing has changed");
    let left = std::fs::read_dir(system.path("")).expect("a folder").flatten();
    let left = left.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let left: Vec<String> = left.filter(|name| name.starts_with(".signalbox")).collect();
    assert!(left.is_empty(), "{left:?}");
}

/// A status of `doctor`, by the name of its check.
fn doctor(system: &System, name: &str) -> String {
    let done = system.command(&["doctor", "--json"]).output().expect("it can be run");
    let report: serde_json::Value = serde_json::from_slice(&done.stdout).expect("JSON");
    let checks = report["checks"].as_array().expect("checks").iter();
    let mut found = checks.filter(|check| check["name"] == name);
    found.next().map(|check| check["status"].to_string()).unwrap_or_default()
}

/// The machine is lost. A new one has the bare repository, the configuration and the backup.
async fn a_lost_machine_is_replaced(on: On) {
    let mut system = System::new(on, "exit 0\n", 1).await;
    system.terminate();
    let config = "[webhooks]\nallow = [\"127.0.0.1/32\"]\nallow_http = true\n";
    std::fs::write(system.path("signalbox.toml"), config).expect("written");
    system.start().await;
    let receiver = Receiver::new(false).await;
    let body = json!({ "url": receiver.url(), "events": ["queue.state_changed"] });
    let created = system.call("webhooks/create", body.clone()).await;
    receiver.knows(&[created["secret"].as_str().expect("a secret")]);
    let copy = copy(&system);
    system.run(&["restore", &copy, "--verify"]);

    system.kill();
    std::fs::remove_dir_all(system.path("data")).expect("removed");
    match on {
        On::Sqlite => {
            for end in ["", "-wal", "-shm"] {
                std::fs::remove_file(system.path(&format!("test.db{end}"))).ok();
            }
        }
        On::Postgres => system.use_database(Server::shared().create_database()),
    }
    system.run(&["restore", &copy]);
    assert_eq!(doctor(&system, "webhook_key"), "\"ok\"");
    let key = std::fs::read(system.path("data/webhooks.key")).expect("restored");

    // Without the key the server works, and says that it sends no webhooks.
    std::fs::remove_file(system.path("data/webhooks.key")).expect("removed");
    assert_eq!(doctor(&system, "webhook_key"), "\"fail\"");
    system.start().await;
    let (status, refused) = system.try_call("webhooks/create", body).await;
    assert_eq!(status, 503, "{refused}");
    let pr = system.pull_request("first", &[("first.txt", "1\n")]);
    system.submit(pr).await;
    system.until_state(pr, "MERGED").await;
    system.call("updateQueue", json!({ "state": "PAUSED" })).await;
    let log = std::fs::read_to_string(system.path("server.log")).expect("a log");
    assert!(log.contains("webhooks are off"), "{log}");
    assert!(!system.path("data/webhooks.key").exists(), "no other key is made");
    assert!(receiver.taken().is_empty());

    // With the key it sends what has waited, under the known secret.
    system.terminate();
    std::fs::write(system.path("data/webhooks.key"), key).expect("written");
    system.start().await;
    system.until("the message has arrived", async |_: &System| receiver.taken().len() == 1).await;
    assert_eq!(receiver.complaints(), Vec::<String>::new());
}

#[tokio::test]
async fn a_lost_machine_with_sqlite_is_replaced() {
    a_lost_machine_is_replaced(On::Sqlite).await;
}

#[tokio::test]
async fn a_lost_machine_with_postgresql_is_replaced() {
    a_lost_machine_is_replaced(On::Postgres).await;
}

#[tokio::test]
async fn a_second_server_does_not_start_on_an_embedded_database() {
    let system = System::new(On::Sqlite, "exit 0\n", 1).await;
    let words = complaint(&system, &["serve", "--listen", "127.0.0.1:0"]);
    assert!(words.contains("a server is running on this database"), "{words}");
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
    let copied = copy(&system);
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
