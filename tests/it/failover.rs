//! The drill of `docs/operations/high-availability.md`: the primary of the database dies, and its
//! standby takes over. What the server has confirmed is there, and lands once.

use std::process::Command;

use reqwest::Method;
use serde_json::json;
use signalbox_testkit::postgres::Server;

use crate::harness::System;

/// The name that the page gives the standby.
const STANDBY: &str = "standby1";

fn psql(url: &str, sql: &str) -> String {
    let done = Command::new("psql").args(["-XAtq", "-d", url, "-c", sql]).output();
    let done = done.expect("psql can be run");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8_lossy(&done.stdout).trim().to_owned()
}

/// Submits until the server accepts it; until then it must answer with 503.
async fn submit_at_last(system: &System, pr: u64) {
    let accepted = async |system: &System| {
        let headers = [("x-api-token", system.token()), ("content-type", "application/json")];
        let body = json!({
            "repo": { "host": "git.local", "owner": "acme", "name": "calc" },
            "targetBranch": "main", "pr": { "number": pr },
        });
        let path = "/v1/submitPullRequest";
        let reply = system.send(Method::POST, path, &headers, body.to_string()).await;
        assert!([200, 503].contains(&reply.status), "{} {}", reply.status, reply.text);
        reply.status == 200
    };
    system.until("the new primary takes a pull request", accepted).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_standby_takes_over_and_nothing_confirmed_is_lost() {
    let primary = Server::start();
    let standby = primary.standby(STANDBY);
    let postgres = format!("{}/postgres", primary.url());
    psql(&postgres, &format!("ALTER SYSTEM SET synchronous_standby_names = '{STANDBY}'"));
    psql(&postgres, "SELECT pg_reload_conf()");
    let database = primary.create_database();
    let name = database.rsplit('/').next().expect("a name");
    let ((_, first), (_, second)) = (primary.socket(), standby.socket());
    let both = format!(
        "postgres://postgres@127.0.0.1:{first},127.0.0.1:{second}/{name}?target_session_attrs=read-write"
    );
    let folder = tempfile::tempdir().expect("a folder");
    let go = folder.path().join("go");
    let check = format!("while [ ! -e {} ]; do sleep 0.1; done\n", go.display());
    let mut system = System::on_database(both, &check, 2).await;
    let synchronous = async |_: &System| {
        let state = psql(&postgres, "SELECT sync_state FROM pg_stat_replication");
        state == "sync"
    };
    system.until("the standby is synchronous", synchronous).await;

    let mut prs = Vec::new();
    for number in 1..=3 {
        let name = format!("change{number}");
        let pr = system.pull_request(&name, &[(&format!("{name}.txt"), "1\n")]);
        system.submit(pr).await;
        prs.push(pr);
    }
    primary.crash();
    // No other server answers: probes report it, and nothing is accepted.
    let red = async |system: &System| !system.get("/readyz").await.starts_with("ready");
    system.until("the server reports that the database is gone", red).await;
    standby.promote();
    let green = async |system: &System| system.get("/readyz").await == "ready\n";
    system.until("the server has found the new primary", green).await;
    // The name of the new one: `pr open` reads it, too.
    let late = system.pull_request("late", &[("late.txt", "1\n")]);
    submit_at_last(&system, late).await;
    prs.push(late);
    std::fs::write(&go, "").expect("written");
    for pr in &prs {
        system.until_state(*pr, "MERGED").await;
    }
    let history = system.history();
    for subject in ["change1", "change2", "change3", "late"] {
        let landed = history.iter().filter(|it| it.contains(subject)).count();
        assert_eq!(landed, 1, "{subject}: {history:?}");
    }
    let doctor = system.command(&["doctor"]).output().expect("run");
    assert!(doctor.status.success(), "{}", String::from_utf8_lossy(&doctor.stdout));
    system.terminate();
}
