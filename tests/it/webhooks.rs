//! Webhooks leave the house: at least once, signed, whatever happens to the server and to
//! receivers.

use std::collections::BTreeSet;
use std::process::Command;

use serde_json::{Value, json};
use uuid::Uuid;

use crate::harness::{On, System};
use crate::receiver::Receiver;

const CONFIG: &str = "[webhooks]\nallow = [\"127.0.0.1/32\"]\nallow_http = true\n";
const KIND: &str = "queue.state_changed";

fn size(variable: &str, usual: usize) -> usize {
    std::env::var(variable).ok().and_then(|it| it.parse().ok()).unwrap_or(usual)
}

/// A system whose webhooks may go to this machine.
async fn system(on: On) -> System {
    let mut system = System::new(on, "exit 0\n", 1).await;
    system.terminate();
    std::fs::write(system.path("signalbox.toml"), CONFIG).expect("written");
    system.start().await;
    system
}

/// A new endpoint: its id and its secret.
async fn endpoint(system: &System, url: &str) -> (String, String) {
    let body = json!({ "url": url, "events": [KIND] });
    let created = system.call("webhooks/create", body).await;
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    (text(&created["webhook"]["id"]), text(&created["secret"]))
}

/// The queue is paused or resumed: one event.
async fn event(system: &System, number: usize) {
    let state = if number.is_multiple_of(2) { "PAUSED" } else { "RUNNING" };
    system.call("updateQueue", json!({ "state": state })).await;
}

/// How many messages of an endpoint are in a state; 100 stands for any more.
async fn in_state(system: &System, id: &str, state: &str) -> usize {
    let body = json!({ "webhookId": id, "state": state, "pageSize": 100 });
    let page = system.call("webhooks/deliveries", body).await;
    page["deliveries"].as_array().map_or(0, Vec::len)
}

async fn nothing_is_lost(on: On) {
    let (messages, kills) =
        (size("SIGNALBOX_WEBHOOK_MESSAGES", 160), size("SIGNALBOX_WEBHOOK_KILLS", 3));
    let mut system = system(on).await;
    let receiver = Receiver::new(true).await;
    let (id, secret) = endpoint(&system, &receiver.url()).await;
    receiver.knows(&[&secret]);
    let closed = endpoint(&system, "http://127.0.0.1:1/").await.0;
    let part = messages / (kills + 1);
    for number in 0..messages {
        event(&system, number).await;
        if number > 0 && number % part == 0 && number / part <= kills {
            system.kill();
            system.start().await;
        }
    }
    let patience =
        std::time::Duration::from_secs(180 + u64::try_from(messages / 20).expect("a size"));
    let what = "every message is taken";
    let all = async |_: &System| receiver.taken().len() >= messages;
    system.until_within(patience, what, all).await;
    let none_waits = async |system: &System| in_state(system, &id, "pending").await == 0;
    system.until_within(patience, "no message waits", none_waits).await;
    assert_eq!(receiver.complaints(), Vec::<String>::new());
    let endpoint = Uuid::parse_str(&id).expect("an id");
    let events = system.events(KIND).await;
    assert_eq!(events.len(), messages);
    let wanted: BTreeSet<String> = events
        .iter()
        .map(|event| Uuid::new_v5(&endpoint, event.id.as_bytes()).to_string())
        .collect();
    let taken = receiver.taken();
    assert_eq!(taken.keys().cloned().collect::<BTreeSet<_>>(), wanted, "none lost, none made up");
    let twice = taken.values().filter(|count| **count > 1).count();
    print(&format!("{messages} messages, {kills} kills: {twice} came again under the same id"));
    let bodies: BTreeSet<String> = events.into_iter().map(|event| event.payload).collect();
    assert_eq!(receiver.bodies().into_keys().collect::<BTreeSet<_>>(), bodies);
    assert_eq!(in_state(&system, &closed, "delivered").await, 0);
    verify(&system, &receiver);
}

/// The figures of a run with its output shown.
#[expect(clippy::print_stdout, reason = "figures and skipped parts belong to the run's output")]
fn print(line: &str) {
    println!("{line}");
}

/// Lets other libraries check what came, where they are installed.
fn verify(system: &System, receiver: &Receiver) {
    let Some(folder) = std::env::var_os("SIGNALBOX_VERIFIERS") else {
        print("not checked by other libraries: SIGNALBOX_VERIFIERS names no folder with them");
        return;
    };
    let file = system.path("requests.jsonl");
    let recorded = receiver.recorded();
    // Receivers refuse old messages: the newest are verified.
    let newest: Vec<&str> = recorded.lines().rev().take(200).collect();
    std::fs::write(&file, newest.join("\n")).expect("written");
    let scripts = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("verifiers");
    for (program, script) in [("node", "verify.js"), ("venv/bin/python", "verify.py")] {
        let folder = std::path::Path::new(&folder);
        let own = folder.join(program);
        let program = if own.exists() { own } else { program.into() };
        let done = Command::new(program)
            .current_dir(folder)
            .args([&scripts.join(script), &file])
            .output()
            .expect("it can be run");
        assert!(done.status.success(), "{script}: {}", String::from_utf8_lossy(&done.stderr));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_lost_on_sqlite() {
    nothing_is_lost(On::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_lost_on_postgres() {
    nothing_is_lost(On::Postgres).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn secrets_are_rotated_with_an_overlap_and_never_shown_again() {
    let system = system(On::Sqlite).await;
    let receiver = Receiver::new(false).await;
    let url = receiver.url();
    let run = |args: &[&str]| {
        let mut command = system.command(&[&["webhooks"], args].concat());
        let command = command.env("SIGNALBOX_TOKEN", system.token());
        let done = command.env("SIGNALBOX_SERVER", system.url()).output().expect("it can be run");
        assert!(done.status.success(), "{args:?}: {}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8(done.stdout).expect("text")
    };
    let created: Value = serde_json::from_str(&run(&["create", &url, "--json"])).expect("JSON");
    let id = created["webhook"]["id"].as_str().expect("an id").to_owned();
    let first = created["secret"].as_str().expect("a secret").to_owned();
    receiver.knows(&[&first]);
    let test = async |count: usize| {
        assert!(run(&["test", &id]).contains("is queued"));
        system.until("it came", async |_: &System| receiver.taken().len() == count).await;
    };
    test(1).await;
    let rotated: Value = serde_json::from_str(&run(&["rotate", &id, "--json"])).expect("JSON");
    let second = rotated["secret"].as_str().expect("a secret").to_owned();
    receiver.knows(&[&second, &first]);
    test(2).await;
    let ended = ["rotate", &id, "--overlap-hours", "0", "--json"];
    let ended: Value = serde_json::from_str(&run(&ended)).expect("JSON");
    let third = ended["secret"].as_str().expect("a secret").to_owned();
    receiver.knows(&[&third]);
    test(3).await;
    assert_eq!(receiver.complaints(), Vec::<String>::new());
    let row = format!("on     {url}  of the public API");
    assert!(run(&["list"]).contains(&row), "{}", run(&["list"]));
    run(&["update", &id, "--all-events"]);
    let listed = run(&["list"]);
    assert!(listed.contains("queue.state_changed") && listed.contains("pull_request.merged"));
    run(&["update", &id, "--default-events"]);
    assert!(run(&["list"]).contains(&row));
    let listed = [run(&["list", "--json"]), run(&["deliveries", &id, "--json"])].concat();
    let told = run(&["deliveries", &id]);
    let row = |line: &&str| line.ends_with("  delivered  1         204");
    assert_eq!(told.lines().filter(row).count(), 3, "{told}");
    let replayed = run(&["replay", &id, "--since", "2020-01-01T00:00:00Z"]);
    assert_eq!(replayed.trim(), "3 messages are queued");
    let again = async |_: &System| receiver.taken().values().all(|count| *count == 2);
    system.until("they came again", again).await;
    assert_eq!(receiver.taken().len(), 3, "under the same ids");
    // Neither replies, nor logs, nor the database reveal a secret.
    let log = std::fs::read_to_string(system.path("server.log")).expect("a log");
    for secret in [&first, &second, &third] {
        let secret = secret.trim_start_matches("whsec_");
        assert!(!listed.contains(secret) && !log.contains(secret));
        for name in ["test.db", "test.db-wal"] {
            let bytes = std::fs::read(system.path(name)).unwrap_or_default();
            assert!(!bytes.windows(secret.len()).any(|it| it == secret.as_bytes()), "{name}");
        }
    }
    run(&["update", &id, "--disable"]);
    assert!(run(&["list"]).contains("  off: requested  "));
    run(&["delete", &id]);
    assert_eq!(run(&["list"]), "no webhooks found\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_inside_is_refused_unless_it_is_named() {
    let system = System::new(On::Sqlite, "exit 0\n", 1).await;
    for url in
        ["https://127.0.0.1/", "https://169.254.169.254/", "http://hooks.test/", "https://[::1]/"]
    {
        let (status, reply) = system.try_call("webhooks/create", json!({ "url": url })).await;
        assert_eq!((status, reply["errors"][0]["pointer"].as_str()), (400, Some("/url")), "{url}");
    }
    // A host name is accepted; its addresses are checked when a message is sent.
    let (id, _) = endpoint(&system, "https://localhost:1/").await;
    system.call("webhooks/test", json!({ "webhookId": id })).await;
    let tried = async |system: &System| {
        let body = json!({ "webhookId": id });
        let page = system.call("webhooks/deliveries", body).await;
        let tries = &page["deliveries"][0]["attempts"];
        tries[0]["outcome"] == "forbidden"
            && tries[0]["error"].as_str().is_some_and(|it| it.contains("loopback"))
    };
    system.until("the message is refused", tried).await;
}
