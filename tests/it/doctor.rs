//! `signalbox doctor` on a healthy system, and on an unhealthy one.

use std::os::unix::fs::PermissionsExt;

use serde_json::Value;
use signalbox_tests::{is_root, sandbox_of};

use crate::harness::{On, System};

/// The exit code, and the status of each check; a check with several findings counts by the
/// worst.
fn examine(system: &System, args: &[&str]) -> (Option<i32>, Value) {
    let done = system.command(&[&["doctor", "--json"], args].concat()).output().expect("run");
    let report = serde_json::from_slice(&done.stdout);
    (done.status.code(), report.unwrap_or_else(|error| panic!("{error}: {done:?}")))
}

fn statuses(report: &Value, name: &str) -> Vec<String> {
    let checks = report["checks"].as_array().expect("checks");
    let of_name = checks.iter().filter(|it| it["name"] == name);
    of_name.map(|it| it["status"].as_str().expect("a word").to_owned()).collect()
}

async fn a_healthy_system(on: On) {
    let system = System::new(on, "exit 0\n", 1).await;
    let (code, report) = examine(&system, &[]);
    assert_eq!(code, Some(0), "{report}");
    for name in [
        "config",
        "git",
        "disk_space",
        "listener",
        "metrics_listener",
        "public_url",
        "user",
        "files",
        "database",
        "migrations",
        "clock",
        "repositories",
        "sandbox",
    ] {
        let found = statuses(&report, name);
        assert!(!found.is_empty() && !found.contains(&"fail".to_owned()), "{name}: {report}");
    }
    for name in ["git", "files", "database", "migrations", "repositories"] {
        assert_eq!(statuses(&report, name), ["ok"], "{report}");
    }
}

#[tokio::test]
async fn a_healthy_system_on_sqlite() {
    a_healthy_system(On::Sqlite).await;
}

#[tokio::test]
async fn a_healthy_system_on_postgres() {
    a_healthy_system(On::Postgres).await;
}

#[tokio::test]
async fn a_server_without_a_sandbox_is_warned_of() {
    let system = System::new(On::Sqlite, "exit 0\n", 1).await;
    let (_, report) = examine(&system, &[]);
    assert_eq!(statuses(&report, "sandbox"), ["warn"], "{report}");
    assert!(report.to_string().contains("sandbox.unsafe_local is on"), "{report}");
    let log = std::fs::read_to_string(system.path("server.log")).expect("a log");
    assert!(log.contains("sandbox.unsafe_local is on"), "it is in the log of the start: {log}");

    let isolated_by = |backend: &str, path: &str| {
        let mut command = system.command(&["doctor", "--json"]);
        command.env("SIGNALBOX_SANDBOX__BACKEND", backend);
        command.env("SIGNALBOX_SANDBOX__UNSAFE_LOCAL", "false").env("PATH", path);
        let done = command.output().expect("run");
        serde_json::from_slice::<Value>(&done.stdout).expect("JSON")
    };
    let isolated = |path: &str| isolated_by("auto", path);
    let report = isolated("/nowhere");
    assert_eq!(statuses(&report, "sandbox"), ["fail"], "{report}");
    assert!(report.to_string().contains("apt install bubblewrap"), "{report}");
    let report = isolated_by("none", "/nowhere");
    assert_eq!(statuses(&report, "sandbox"), ["ok"], "{report}");
    if sandbox_of(if is_root() { "root" } else { "user" }) {
        let report = isolated(&std::env::var("PATH").expect("a path"));
        assert_eq!(statuses(&report, "sandbox"), ["ok"], "{report}");
    }
}

#[tokio::test]
async fn problems_are_named() {
    let system = System::new(On::Sqlite, "exit 0\n", 1).await;
    let data = system.path("data");
    std::fs::create_dir_all(&data).expect("made");
    std::fs::set_permissions(&data, PermissionsExt::from_mode(0o777)).expect("changed");
    let hook = system.path("bare.git").join("hooks/proc-receive");
    std::fs::remove_file(&hook).expect("removed");
    let (code, report) = examine(&system, &[]);
    assert_eq!((code, report["status"].as_str()), (Some(0), Some("warn")), "{report}");
    assert_eq!(statuses(&report, "data_folder"), ["warn"]);
    assert_eq!(statuses(&report, "repositories"), ["warn"]);

    let database = system.path("test.db");
    std::fs::set_permissions(&database, PermissionsExt::from_mode(0o644)).expect("changed");
    assert_eq!(statuses(&examine(&system, &[]).1, "files"), ["warn"]);
    std::fs::set_permissions(&database, PermissionsExt::from_mode(0o600)).expect("changed");

    std::fs::remove_file(system.path("bare.git").join("HEAD")).expect("removed");
    let (code, report) = examine(&system, &[]);
    assert_eq!((code, report["status"].as_str()), (Some(1), Some("fail")), "{report}");
    assert_eq!(statuses(&report, "repositories"), ["fail"]);

    let done = system.command(&["doctor", "--config", "missing.toml"]).output().expect("run");
    assert_eq!(done.status.code(), Some(1));
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(text.starts_with("fail config: missing.toml"), "{text}");
}

#[tokio::test]
async fn pushes_without_limits_are_warned_of() {
    let system = System::new(On::Sqlite, "exit 0\n", 1).await;
    assert_eq!(statuses(&examine(&system, &[]).1, "repositories"), ["ok"]);
    for (key, value) in [("receive.fsckObjects", "true"), ("receive.hideRefs", "refs/pull")] {
        let same = format!("^{value}$");
        system.git("bare.git", &["config", "--unset", key, &same]);
        let (_, report) = examine(&system, &[]);
        assert_eq!(statuses(&report, "repositories"), ["warn"], "{report}");
        let words = format!("{key} is not {value}");
        assert!(report.to_string().contains(&words), "{words}: {report}");
        system.git("bare.git", &["config", "--add", key, value]);
    }
    // Of several values, the last one counts.
    for (key, value, words) in [
        ("receive.fsckObjects", "no", "receive.fsckObjects is not true"),
        ("receive.hideRefs", "!refs/pull", "receive.hideRefs has !refs/pull"),
    ] {
        system.git("bare.git", &["config", "--add", key, value]);
        let (_, report) = examine(&system, &[]);
        assert!(report.to_string().contains(words), "{words}: {report}");
        system.git("bare.git", &["config", "--unset", key, &format!("^{value}$")]);
    }
    system.git("bare.git", &["config", "--replace-all", "receive.fsckObjects", "yes"]);
    assert_eq!(statuses(&examine(&system, &[]).1, "repositories"), ["ok"]);
}

/// The rights of a file.
fn mode(path: &std::path::Path) -> u32 {
    std::fs::metadata(path).expect("a file").permissions().mode() & 0o777
}

#[tokio::test]
async fn databases_and_copies_are_readable_by_their_owner_only() {
    let mut system = System::new(On::Sqlite, "exit 0\n", 1).await;
    for name in ["test.db", "test.db-wal", "test.db-shm", "data/webhooks.key"] {
        assert_eq!(mode(&system.path(name)), 0o600, "{name}");
    }
    let copy = system.path("copy.db").display().to_string();
    system.run(&["backup", &copy]);
    assert_eq!(mode(&system.path("copy.db")), 0o600);
    std::fs::set_permissions(&copy, PermissionsExt::from_mode(0o644)).expect("changed");
    system.terminate();
    system.run(&["restore", &copy, "--replace"]);
    assert_eq!(mode(&system.path("test.db")), 0o600, "whatever the mode of the copy");
    system.start().await;
    let log = std::fs::read_to_string(system.path("server.log")).expect("a log");
    let warning = log.lines().rfind(|line| line.contains("the server is exposed"));
    assert!(warning.is_some_and(|line| line.contains("copy.db")), "{log}");
}
