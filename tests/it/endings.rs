//! How work ends early: drained, out of time, cancelled, stopped, killed.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;
use tempfile::TempDir;

use crate::harness::{On, System};

/// A check that writes its process id and then runs until a file appears.
struct Endless {
    folder: TempDir,
}

impl Endless {
    /// How many processes have written their id.
    const PROCESSES: usize = 6;

    fn new() -> Self {
        Self { folder: TempDir::new().expect("a folder") }
    }

    /// It has children that killing its group would not reach, or that a polite signal would not
    /// end: one in a session of its own, a daemon, one that ignores the signal, one that has closed
    /// its output, and one in its own session with an empty environment.
    fn script(&self) -> String {
        let folder = self.folder.path().display();
        let on = format!("echo $$ >> '{folder}/pids'; while :; do sleep 0.2; done");
        let on = on.replace('\'', "\"");
        format!(
            "echo $$ >> '{folder}/pids'\n\
             setsid sh -c '{on}' &\n\
             ( ( sh -c '{on}' ) & )\n\
             sh -c 'trap \"\" TERM; {on}' &\n\
             sh -c 'exec <&- >&- 2>&-; {on}' &\n\
             env -i PATH=\"$PATH\" setsid sh -c '{on}' &\n\
             while [ ! -e '{folder}/open' ]; do sleep 0.05; done\n"
        )
    }

    fn open(&self) {
        std::fs::write(self.folder.path().join("open"), "").expect("opened");
    }

    /// Every process that has written its id.
    fn pids(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.folder.path().join("pids")).unwrap_or_default();
        text.lines().map(ToOwned::to_owned).collect()
    }

    fn alive(&self) -> Vec<String> {
        let lives = |pid: &String| {
            let mut command = Command::new("kill");
            command.args(["-0", pid]).stderr(Stdio::null());
            command.status().expect("it can be run").success()
        };
        self.pids().into_iter().filter(lives).collect()
    }

    /// Waits until all processes of the check run.
    async fn until_running(&self, system: &System) {
        let all = async |_: &System| self.alive().len() == Self::PROCESSES;
        system.until("the check runs", all).await;
    }

    async fn until_gone(&self, system: &System) {
        system.until("the check is gone", async |_: &System| self.alive().is_empty()).await;
        let folder = system.path("data").join("checks").join("other");
        let left = || std::fs::read_dir(&folder).expect("the folder of checks").count();
        system.until("its folder is gone", async |_: &System| left() == 0).await;
    }
}

#[tokio::test]
async fn a_draining_queue_finishes_its_line_and_accepts_no_new_pull_requests() {
    let check = Endless::new();
    let system = System::new(On::Sqlite, &check.script(), 1).await;
    let first = system.pull_request("first", &[("first.txt", "1\n")]);
    let second = system.pull_request("second", &[("second.txt", "2\n")]);
    let third = system.pull_request("third", &[("third.txt", "3\n")]);
    system.submit(first).await;
    system.submit(second).await;
    system.until_state(first, "TESTING").await;
    system.until_state(second, "PENDING").await;
    let reply = system.call("updateQueue", json!({ "state": "DRAINING" })).await;
    assert_eq!(reply["state"], "DRAINING");
    system.submit(third).await;
    assert_eq!(system.entry(third).await["waitReason"]["kind"], "queue_draining");
    check.open();
    system.until_state(second, "MERGED").await;
    assert_eq!(system.state(first).await, "MERGED");
    assert_eq!(system.state(third).await, "NOT_READY");
    assert_eq!(system.history(), ["base", "change first (#1)", "change second (#2)"]);
    system.call("updateQueue", json!({ "state": "RUNNING" })).await;
    system.until_state(third, "MERGED").await;
}

/// A system whose only pull request never finishes on its own.
async fn endless_system(check: &Endless, config: Option<&str>) -> (System, u64) {
    let system = System::new(On::Sqlite, &check.script(), 1).await;
    if let Some(config) = config {
        system.write(&[(".signalbox.toml", config)]);
        system.commit("configure");
        system.push("main");
    }
    let pr = system.pull_request("endless", &[("endless.txt", "endless\n")]);
    (system, pr)
}

/// The shortest time that can be configured is a minute, so both kinds pass it together.
#[tokio::test]
async fn what_takes_too_long_fails_and_is_killed() {
    let patience = Duration::from_mins(3);
    let (one, other) = (Endless::new(), Endless::new());
    let of_the_check = async {
        let config =
            "[[checks]]\nname = \"test\"\nrun = [\"sh\", \"check.sh\"]\ntimeout_minutes = 1\n";
        let (system, pr) = endless_system(&one, Some(config)).await;
        system.submit(pr).await;
        one.until_running(&system).await;
        let failed = async |system: &System| system.state(pr).await == "FAILED";
        system.until_within(patience, "the check's time is over", failed).await;
        let exit = system.entry(pr).await["exit"].clone();
        assert!(exit["details"].to_string().contains("killed after 1 minute"), "{exit}");
        one.until_gone(&system).await;
        assert_eq!(system.history(), ["base", "configure"]);
    };
    let of_the_run = async {
        let (system, pr) = endless_system(&other, None).await;
        system.call("updateQueue", json!({ "testingTimeoutMinutes": 1 })).await;
        system.submit(pr).await;
        other.until_running(&system).await;
        let failed = async |system: &System| system.state(pr).await == "FAILED";
        system.until_within(patience, "the run's time is over", failed).await;
        assert_eq!(system.entry(pr).await["exit"]["reason"], "TEST_RUN_TIMEOUT");
        other.until_gone(&system).await;
        assert_eq!(system.history(), ["base"]);
    };
    tokio::join!(of_the_check, of_the_run);
}

#[tokio::test]
async fn the_checks_of_a_cancelled_pull_request_are_killed_immediately() {
    let check = Endless::new();
    let (system, pr) = endless_system(&check, None).await;
    system.submit(pr).await;
    check.until_running(&system).await;
    let begun = Instant::now();
    system.call("cancelPullRequest", json!({ "pr": { "number": pr } })).await;
    check.until_gone(&system).await;
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn a_server_that_stops_kills_its_checks_and_the_next_one_runs_them_again() {
    let check = Endless::new();
    let (mut system, pr) = endless_system(&check, None).await;
    system.submit(pr).await;
    check.until_running(&system).await;
    let (code, took) = system.terminate();
    assert_eq!(code, Some(0));
    assert!(took < Duration::from_secs(30), "{took:?}");
    // Before the next server starts, which would kill left-over processes.
    check.until_gone(&system).await;
    system.start().await;
    assert_eq!(system.state(pr).await, "TESTING");
    check.until_running(&system).await;
    check.open();
    system.until_state(pr, "MERGED").await;
    assert_eq!(system.history(), ["base", "change endless (#1)"]);
    assert_eq!(check.pids().len(), 2 * Endless::PROCESSES, "once for each server");
    check.until_gone(&system).await;
}

#[tokio::test]
async fn nothing_of_a_check_outlives_a_server_that_was_killed() {
    let check = Endless::new();
    let (mut system, pr) = endless_system(&check, None).await;
    system.submit(pr).await;
    check.until_running(&system).await;
    system.kill();
    // Its processes do not outlive it; its folder waits for the next one.
    system.until("the check is gone", async |_: &System| check.alive().is_empty()).await;
    check.open();
    system.start().await;
    system.until_state(pr, "MERGED").await;
    check.until_gone(&system).await;
    assert_eq!(system.history(), ["base", "change endless (#1)"]);
}
