//! Faults of the machine fail no pull request: all wait, show why, and continue automatically.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use signalbox_domain::ports::Stores;
use signalbox_domain::queue::EffectClass;
use signalbox_domain::time::{Span, Timestamp};
use signalbox_tests::free_port;

use crate::harness::{On, System};

const CHECK: &str = "sleep 0.3\nexit 0\n";
/// How many attempts of an effect fail before the fault ends: about eight seconds.
const TRIES: u32 = 4;

async fn stores(system: &System) -> Stores {
    signalbox_persistence::connect(system.database()).await.expect("a database").stores()
}

fn far() -> Timestamp {
    Timestamp::from_unix_seconds(10_000_000_000)
}

fn moved(from: &Path, to: &Path) {
    std::fs::rename(from, to).expect("moved");
}

/// Brings a folder back, with the locks of git in it as old as after a long outage: a git that was
/// about to write a ref when the folder went away has left its lock.
fn brought_back(from: &Path, to: &Path) {
    age_locks(from);
    // The same git may have made folders in its place.
    if to.is_dir() {
        std::fs::remove_dir_all(to).expect("removed");
    }
    moved(from, to);
}

fn age_locks(folder: &Path) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            age_locks(&path);
        } else if path.extension().is_some_and(|end| end == "lock") {
            age(&File::options().write(true).open(&path).expect("a lock"));
        }
    }
}

fn age(lock: &File) {
    let old = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
    lock.set_modified(old).expect("set");
}

/// The pull requests in the queue, with their wait reasons. Pull requests that have left are
/// merged.
async fn waiting(system: &System, prs: &[u64]) -> Vec<(u64, String, String)> {
    let mut waiting = Vec::new();
    for pr in prs {
        let entry = system.entry(*pr).await;
        let state = entry["state"].as_str().expect("a state").to_owned();
        assert!(!["FAILED", "CANCELLED"].contains(&state.as_str()), "#{pr}: {entry}");
        if state != "MERGED" {
            let kind = entry["waitReason"]["kind"].as_str().unwrap_or_default().to_owned();
            waiting.push((*pr, state, kind));
        }
    }
    waiting
}

/// Keeps a fault until the queue has retried for a while, and checks the wait reasons.
async fn while_it_lasts(system: &System, prs: &[u64]) {
    let stores = stores(system).await;
    let failing = async || {
        let failing = stores.queue.outbox.failing(None, far(), 100).await.expect("an answer");
        let tries = failing.longest.iter().map(|it| (it.number, it.attempts));
        tries.collect::<BTreeMap<u64, u32>>()
    };
    // Earlier failures may still wait for their next attempt.
    let before = failing().await;
    let tried = async |_: &System| {
        let now = failing().await;
        let more = |number: &u64| before.get(number).map_or(0, |tries| tries + 1);
        now.iter().any(|(number, tries)| *tries >= TRIES && *tries >= more(number))
    };
    system.until("an effect has failed repeatedly", tried).await;
    let waiting = waiting(system, prs).await;
    assert!(!waiting.is_empty());
    for (pr, state, kind) in &waiting {
        assert_eq!(kind, "host_unreachable", "#{pr} is {state}");
    }
    let entry = system.entry(waiting[0].0).await;
    let reason = entry["reason"].as_str().expect("a sentence");
    assert!(reason.contains("has not been available since"), "{reason}");
}

async fn until_merged(system: &System, prs: &[u64], count: usize) {
    let merged = async |system: &System| prs.len() - waiting(system, prs).await.len() >= count;
    system.until_within(Duration::from_mins(3), "pull requests merge", merged).await;
}

/// The file of the commit that `main` points at.
fn head_object(system: &System, bare: &str) -> PathBuf {
    let head = system.git(bare, &["rev-parse", "main"]);
    let (folder, file) = head.split_at(2);
    system.path(bare).join("objects").join(folder).join(file)
}

async fn twenty_pull_requests_survive_what_happens_to_the_repository(on: On) {
    let system = System::new(on, CHECK, 4).await;
    let mut prs = Vec::new();
    for number in 1..=20 {
        let file = format!("file{number}.txt");
        prs.push(system.pull_request(&format!("branch-{number}"), &[(&file, "x\n")]));
    }
    for pr in &prs {
        system.submit(*pr).await;
    }
    let bare = system.path("bare.git");
    until_merged(&system, &prs, 1).await;
    moved(&bare, &system.path("away.git"));
    while_it_lasts(&system, &prs).await;
    brought_back(&system.path("away.git"), &bare);

    until_merged(&system, &prs, 5).await;
    moved(&bare.join("objects"), &system.path("objects"));
    std::fs::write(bare.join("objects"), "").expect("written");
    while_it_lasts(&system, &prs).await;
    std::fs::remove_file(bare.join("objects")).expect("removed");
    brought_back(&system.path("objects"), &bare.join("objects"));

    until_merged(&system, &prs, 9).await;
    // The queue must be idle for a moment, so that the damaged file is the one that it needs next.
    moved(&bare, &system.path("away.git"));
    while_it_lasts(&system, &prs).await;
    let object = head_object(&system, "away.git");
    let good = std::fs::read(&object).expect("a loose object");
    std::fs::remove_file(&object).expect("removed");
    std::fs::write(&object, "garbage").expect("written");
    brought_back(&system.path("away.git"), &bare);
    while_it_lasts(&system, &prs).await;
    let object = head_object(&system, "bare.git");
    std::fs::remove_file(&object).expect("removed");
    std::fs::write(&object, good).expect("written");

    until_merged(&system, &prs, 20).await;
    let mut wanted = vec!["base".to_owned()];
    wanted.extend((1..=20).map(|number| format!("change branch-{number} (#{number})")));
    assert_eq!(system.history(), wanted, "each once, in order");
}

#[tokio::test]
async fn twenty_pull_requests_survive_what_happens_to_the_repository_on_sqlite() {
    twenty_pull_requests_survive_what_happens_to_the_repository(On::Sqlite).await;
}

#[tokio::test]
async fn twenty_pull_requests_survive_what_happens_to_the_repository_on_postgres() {
    twenty_pull_requests_survive_what_happens_to_the_repository(On::Postgres).await;
}

/// Deletes the target and returns where it was.
fn delete_main(system: &System) -> String {
    // It moves meanwhile: then it is another one that must go.
    loop {
        let head = system.git("bare.git", &["rev-parse", "main"]);
        let delete = ["update-ref", "-d", "refs/heads/main", head.as_str()];
        let done = signalbox_conformance::git_place::git_in(&system.path("bare.git"), &delete);
        if done.status.success() {
            return head;
        }
    }
}

async fn a_target_that_is_deleted_and_restored_fails_no_pull_request(on: On) {
    let system = System::new(on, CHECK, 3).await;
    let mut prs = Vec::new();
    for number in 1..=6 {
        let file = format!("file{number}.txt");
        prs.push(system.pull_request(&format!("branch-{number}"), &[(&file, "x\n")]));
    }
    for pr in &prs {
        system.submit(*pr).await;
    }
    until_merged(&system, &prs, 1).await;
    let head = delete_main(&system);
    // The first one is tested, and waits to land.
    let missed = async |system: &System| {
        let waiting = waiting(system, &prs).await;
        let tested = |it: &&(u64, String, String)| it.1 == "TESTS_PASSED";
        waiting.iter().find(tested).is_some_and(|it| it.2 == "target_branch_missing")
    };
    system.until("the target is missed", missed).await;
    system.git("bare.git", &["update-ref", "refs/heads/main", &head]);
    until_merged(&system, &prs, 6).await;
    for pr in &prs {
        let entry = system.entry(*pr).await;
        assert_eq!(entry["exit"]["testedTree"], entry["exit"]["landedTree"], "{entry}");
    }
    assert_eq!(system.history().len(), 7);
}

#[tokio::test]
async fn a_target_that_is_deleted_and_restored_fails_no_pull_request_on_sqlite() {
    a_target_that_is_deleted_and_restored_fails_no_pull_request(On::Sqlite).await;
}

#[tokio::test]
async fn a_target_that_is_deleted_and_restored_fails_no_pull_request_on_postgres() {
    a_target_that_is_deleted_and_restored_fails_no_pull_request(On::Postgres).await;
}

#[tokio::test]
async fn a_lock_that_a_killed_git_has_left_is_removed() {
    let mut system = System::new(On::Sqlite, "exit 0\n", 1).await;
    let pr = system.pull_request("first", &[("first.txt", "1\n")]);
    system.kill();
    let lock = system.path("bare.git/refs/heads/main.lock");
    age(&File::create(&lock).expect("made"));
    let done = system.command(&["doctor"]).output().expect("run");
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    assert_eq!(done.status.code(), Some(1), "{text}");
    assert!(text.contains("main.lock is") && text.contains("held by no process"), "{text}");
    system.start().await;
    system.submit(pr).await;
    system.until_state(pr, "MERGED").await;
    let log = std::fs::read_to_string(system.path("server.log")).expect("a log");
    assert!(log.contains("removed a stale lock of git"), "{log}");
}

/// Makes every failing effect one that has failed for some minutes. The server must not run.
async fn age_failures(system: &System) {
    let outbox = stores(system).await.queue.outbox;
    let failing = outbox.failing(None, far(), 10).await.expect("an answer");
    assert!(failing.count > 0, "something has failed");
    let holder = uuid::Uuid::new_v5(&uuid::Uuid::NAMESPACE_OID, b"holder");
    outbox.hand_back(None).await.expect("handed back");
    let since = failing.longest[0].since.minus(Span::minutes(7));
    for class in EffectClass::ALL {
        for leased in outbox.lease(*class, 10, holder, far(), far()).await.expect("leased") {
            let words = failing.longest[0].error.clone();
            let kept = outbox.retry(leased.token, since, since, &words).await;
            assert!(kept.expect("restored"));
        }
    }
}

async fn a_lasting_failure_is_reported_everywhere(on: On) {
    let listen = format!("127.0.0.1:{}", free_port());
    let environment = [("SIGNALBOX_SERVER__METRICS_LISTEN", listen.as_str())];
    let mut system = System::with_environment(on, "sleep 0.5\n", 1, &environment).await;
    let pr = system.pull_request("first", &[("first.txt", "1\n")]);
    system.submit(pr).await;
    system.until_state(pr, "TESTING").await;
    let (bare, away) = (system.path("bare.git"), system.path("away.git"));
    moved(&bare, &away);
    let database = stores(&system).await;
    // A git process in the middle of a read fails with another error, once.
    let fails = async |_: &System| {
        let failing = database.queue.outbox.failing(None, far(), 10).await.expect("an answer");
        failing.longest.first().is_some_and(|it| it.error.contains("bare.git"))
    };
    system.until("the repository is missed", fails).await;
    system.kill();
    age_failures(&system).await;

    let done = system.command(&["doctor", "--json"]).output().expect("run");
    assert_eq!(done.status.code(), Some(1));
    let report: Value = serde_json::from_slice(&done.stdout).expect("JSON");
    let mut checks = report["checks"].as_array().expect("checks").iter();
    let told = checks.find(|it| it["name"] == "effects").expect("a finding");
    assert_eq!(told["status"], "fail", "{told}");
    let words = told["detail"].as_str().expect("words");
    assert!(
        words.starts_with("git.local/acme/calc main: ") && words.contains("bare.git"),
        "{told}"
    );

    system.start().await;
    let page = async || {
        let reply = reqwest::get(format!("http://{listen}/metrics")).await.expect("a reply");
        reply.text().await.expect("a page")
    };
    let number = |page: &str, name: &str| -> f64 {
        let line = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix("{} "));
        line.expect("a sample").parse().expect("a number")
    };
    let shown = page().await;
    assert!(number(&shown, "signalbox_effects_failing") >= 1.0, "{shown}");
    assert!(number(&shown, "signalbox_effects_failing_oldest_age_seconds") >= 400.0, "{shown}");
    let logged = async |system: &System| {
        let log = std::fs::read_to_string(system.path("server.log")).unwrap_or_default();
        log.contains("an effect keeps failing")
    };
    system.until("it is logged", logged).await;

    brought_back(&away, &bare);
    system
        .until_within(Duration::from_mins(2), "it merges", async |system: &System| {
            system.state(pr).await == "MERGED"
        })
        .await;
    let ended = async |_: &System| number(&page().await, "signalbox_effects_failing") < 1.0;
    system.until("nothing fails any more", ended).await;
    let (status, _) = system.try_call("getQueue", json!({})).await;
    assert_eq!(status, 200);
}

#[tokio::test]
async fn a_lasting_failure_is_reported_everywhere_on_sqlite() {
    a_lasting_failure_is_reported_everywhere(On::Sqlite).await;
}

#[tokio::test]
async fn a_lasting_failure_is_reported_everywhere_on_postgres() {
    a_lasting_failure_is_reported_everywhere(On::Postgres).await;
}
