//! A server that is frozen while it writes. In a transaction of several statements it holds the
//! others on its database up for a few seconds, and they report a problem until then; in a step of
//! a queue, which is one statement, it holds no other server up.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::harness::{On, System};

/// A writer stops after its insert into a table while the test holds the lock 42.
fn stop_at(system: &System, table: &str) {
    let sql = format!(
        "CREATE FUNCTION stand_still() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
         PERFORM pg_advisory_xact_lock(42); RETURN NULL; END $$; \
         CREATE TRIGGER stand_still AFTER INSERT ON {table} FOR EACH STATEMENT \
         EXECUTE FUNCTION stand_still();"
    );
    psql(system.database(), &sql);
}

/// How long the others may be blocked. Without limits it is as long as the server is frozen.
const PATIENCE: Duration = Duration::from_secs(20);

/// The result of a query.
fn psql(url: &str, sql: &str) -> String {
    let done = Command::new("psql").args(["-XAtq", "-d", url, "-c", sql]).output();
    let done = done.expect("psql can be run");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8_lossy(&done.stdout).trim().to_owned()
}

/// A session that holds the lock 42 until this is dropped.
struct Holder(Child);

impl Holder {
    fn new(url: &str) -> Self {
        let mut holder = Command::new("psql")
            .args(["-XAtq", "-d", url])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("psql can be run");
        let input = holder.stdin.as_mut().expect("its input");
        writeln!(input, "SELECT pg_advisory_lock(42); \\echo held").expect("written");
        let output = BufReader::new(holder.stdout.as_mut().expect("its output"));
        let held = output.lines().any(|line| line.expect("a line").contains("held"));
        assert!(held, "the lock is held");
        Self(holder)
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// A session that waits for the lock 42, and for no other one: servers have such locks of their
/// own.
const WAITS: &str = "pid IN (SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND NOT granted \
    AND classid = 0 AND objid = 42)";

/// A session that has written settings and has not ended its transaction.
const STANDS: &str = "state = 'idle in transaction' AND query LIKE '%flaky_settings_log%'";

async fn sessions(system: &System, which: &str, some: bool) {
    let sql = format!(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND {which}"
    );
    let what = format!("sessions with {which}: {some}");
    let found = async |system: &System| (psql(system.database(), &sql) != "0") == some;
    system.until(&what, found).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_frozen_in_a_transaction_holds_the_others_up_for_seconds_only() {
    let one = System::new(On::Postgres, "exit 0\n", 2).await;
    let two = one.another_server().await;
    stop_at(&one, "flaky_settings_log");
    let holder = Holder::new(one.database());
    let set = |to: &str| json!({ "quarantineEnabled": true, "autoQuarantine": to });
    let on_the_frozen = one.try_call("flaky-tests/update-settings", set("flaky"));
    let on_the_other = async {
        sessions(&one, WAITS, true).await;
        one.signal("STOP");
        // The statement ends, and no process commits it.
        drop(holder);
        sessions(&one, STANDS, true).await;
        let begun = Instant::now();
        let setting = async {
            let (status, reply) =
                two.try_call("flaky-tests/update-settings", set("flaky_and_broken")).await;
            assert_eq!(status, 200, "{reply}");
            begun.elapsed()
        };
        let watching = async {
            let red =
                async |two: &System| two.get("/readyz").await.starts_with("not ready: writes: ");
            two.until("the other server reports it", red).await;
        };
        let (took, ()) = tokio::join!(setting, watching);
        assert!(took < PATIENCE, "{took:?}");
        let green = async |two: &System| two.get("/readyz").await == "ready\n";
        two.until("the other is ready again", green).await;
        psql(one.database(), "DROP TRIGGER stand_still ON flaky_settings_log");
        one.signal("CONT");
    };
    let ((status, reply), ()) = tokio::join!(on_the_frozen, on_the_other);
    // The database has ended its transaction: nothing of it is left, and the reply asks the caller
    // to retry.
    assert_eq!((status, &reply["code"]), (503, &json!("unavailable")), "{reply}");
    let settings = two.call("flaky-tests/get-settings", json!({})).await;
    assert_eq!(settings["autoQuarantine"], "flaky_and_broken", "{settings}");
    one.call("flaky-tests/update-settings", set("flaky")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_frozen_in_a_step_holds_no_other_up_and_has_taken_it() {
    let one = System::new(On::Postgres, "exit 0\n", 2).await;
    let two = one.another_server().await;
    let first = one.pull_request("first", &[("first.txt", "1\n")]);
    let second = one.pull_request("second", &[("second.txt", "2\n")]);
    stop_at(&one, "event_log");
    let holder = Holder::new(one.database());
    let submit = |pr: u64| json!({ "pr": { "number": pr } });
    let on_the_frozen = one.try_call("submitPullRequest", submit(first));
    let on_the_other = async {
        sessions(&one, WAITS, true).await;
        one.signal("STOP");
        drop(holder);
        // The statement ends, and its effects stay, although no process commits it.
        let (status, reply) = two.try_call("submitPullRequest", submit(second)).await;
        assert_eq!(status, 200, "{reply}");
        two.entry(first).await;
        psql(one.database(), "DROP TRIGGER stand_still ON event_log");
        one.signal("CONT");
    };
    let ((status, reply), ()) = tokio::join!(on_the_frozen, on_the_other);
    assert_eq!(status, 200, "{reply}");
    one.until_state(first, "MERGED").await;
    one.until_state(second, "MERGED").await;
}
