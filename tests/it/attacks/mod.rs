//! What a pull request's check tries against the server that runs it. Every attack knows all paths,
//! process ids and addresses. It is run on a real server, as an ordinary user and as root, with an
//! agent, and in containers, and succeeds without a sandbox.

mod target;

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use serde_json::json;
use signalbox_tests::containers::Service;
use signalbox_tests::{is_root, not_tested, sandbox_of};
use tempfile::TempDir;

use self::target::{Attacked, Checks, SECRET, Started, Target, WAIT};
use crate::harness::{On, program};

/// An ordinary user.
const USER: &str = "65534";

const MOVE: &str = r#"
git --git-dir="$BARE" -c safe.directory='*' update-ref refs/heads/main HEAD 2>&1 && echo MOVED
git -c user.name=x -c user.email=x@x commit -q --allow-empty -m x
git -c safe.directory='*' push "$BARE" HEAD:refs/heads/main 2>&1 && echo MOVED
git rev-parse HEAD > "$BARE/refs/heads/main" && echo MOVED
[ -e "$BARE" ] && echo SEEN
cat .git/objects/info/alternates && echo BORROWED
grep -rl "$BARE" .git && echo NAMED
"#;

const MINT: &str = r#"
"$SIGNALBOX" --version && echo HAS THE PROGRAM
"$SIGNALBOX" --database "$DATABASE" token create --org acme --name evil --scope all && echo MINTED
FILE=${DATABASE#sqlite://}
[ -e "$FILE" ] && echo SEEN
printf x >> "$FILE" && echo WRITTEN
for place in /var/run/postgresql /run/postgresql /tmp/.s.PGSQL.5432; do
    [ -e $place ] && echo SEEN $place
done
"#;

const READ: &str = r#"
cat "$DATA/webhooks.key" && echo READ
cat /proc/$SERVER/environ | tr '\0' '\n' | grep SIGNALBOX_TEST && echo READ
for process in /proc/[0-9]*; do
    tr '\0' '\n' < $process/environ | grep SIGNALBOX_TEST_SECRET && echo READ
    for place in $process/root$DATA $process/cwd/data; do
        ls $place && echo READ $place
    done
    cat $process/cmdline | tr '\0' ' ' | grep serve && echo READ
done
env | grep SIGNALBOX_TEST_SECRET && echo READ
cat /etc/shadow && echo READ
for file in /proc/$$/fd/*; do printf 'FILE %s ' "${file##*/}"; readlink $file || echo; done
find / -name webhooks.key 2>/dev/null | grep . && echo READ
id
grep -E '^(Cap|NoNewPrivs)' /proc/self/status
"#;

const SURVIVE: &str = r#"
setsid sh -c 'exec sleep NUMBER' &
( ( setsid env -i /bin/sh -c 'exec sleep NUMBER' <&- >&- 2>&- & ) & )
nohup sh -c 'trap "" TERM INT HUP; exec sleep NUMBER' &
kill -9 1
running() { cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\0' ' ' | grep -o 'sleep NUMBER ' | wc -l; }
while [ "$(running)" -lt 3 ]; do sleep 0.05; done
echo STARTED "$(running)"
"#;

const KILL: &str = r#"
kill -9 $SERVER && echo KILLED
kill -9 -1 && echo KILLED
for process in /proc/[0-9]*; do
    tr '\0' ' ' < $process/cmdline | grep -q serve && kill -9 ${process#/proc/} && echo KILLED
done
gdb -p $SERVER -batch 2>/dev/null && echo ATTACHED
(exec 3<>/dev/tcp/127.0.0.1/${URL##*:}) 2>/dev/null && echo CONNECTED
bash -c "exec 3<>/dev/tcp/127.0.0.1/${URL##*:}" && echo CONNECTED
echo f > /proc/sysrq-trigger && echo SYSRQ
echo '|/bin/false' > /proc/sys/kernel/core_pattern && echo SYSRQ
"#;

/// None of these words is in what a check printed.
fn has_none(text: &str, words: &[&str]) {
    for word in words {
        assert!(!text.lines().any(|line| line.starts_with(word)), "{word}: {text}");
    }
}

async fn moving_the_target(on: On, checks: Checks<'_>) {
    let target = Target::new(on, checks).await;
    let text = target.attack(MOVE).await;
    has_none(&text, &["MOVED", "SEEN", "BORROWED", "NAMED"]);
    assert!(!target.moved(), "{text}");
    target.works().await;
}

async fn minting_a_token(on: On, checks: Checks<'_>) {
    let target = Target::new(on, checks).await;
    let before = target.tokens();
    let text = target.attack(MINT).await;
    assert!(text.contains("HAS THE PROGRAM"), "the attack is a real one: {text}");
    has_none(&text, &["MINTED", "SEEN", "WRITTEN"]);
    assert_eq!(target.tokens(), before, "{text}");
    target.works().await;
}

async fn reading_secrets(on: On, checks: Checks<'_>) {
    let target = Target::new(on, checks).await;
    let text = target.attack(READ).await;
    has_none(&text, &["READ", "SIGNALBOX_TEST"]);
    assert!(!text.contains(SECRET), "{text}");
    let files: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("FILE ")).collect();
    // Its input, its output and its own scripts. What the program that starts the tests leaves open
    // is open in the server and in checks, too.
    let inherited = std::fs::read_dir("/proc/self/fd").expect("a folder").flatten();
    let inherited: Vec<_> =
        inherited.filter_map(|file| std::fs::read_link(file.path()).ok()).collect();
    let known = |file: &&str| match file.split_once(' ') {
        Some(("1" | "2", output)) if output.starts_with("pipe:") => true,
        Some((_, "" | "/dev/null" | "/checkout/attack.sh" | "/checkout/check.sh")) => true,
        Some((_, other)) => inherited.iter().any(|file| file == Path::new(other)),
        None => false,
    };
    assert!(files.len() >= 3 && files.iter().all(known), "{text}");
    assert!(!text.contains("uid=0"), "{text}");
    for line in text.lines().filter(|line| line.starts_with("Cap")) {
        assert!(line.ends_with("\t0000000000000000"), "no capability is left: {text}");
    }
    assert!(text.contains("NoNewPrivs:\t1"), "{text}");
}

async fn touching_another_checkout(on: On, checks: Checks<'_>) {
    let target = Target::new(on, checks).await;
    let system = &target.system;
    system.git("work", &["checkout", "-q", "-b", "other", "main"]);
    system.push("other");
    system.git("work", &["checkout", "-q", "main"]);
    system.create_queue("other", json!({ "concurrency": 2 })).await;
    // It fails if it finds something of the other check.
    let victim = format!("{WAIT}[ ! -e touched ] && [ ! -e /tmp/touched ] || exit 1\nexit 0\n");
    let victim = system.pull_request("victim", &[("attack.sh", &victim)]);
    system.submit(victim).await;
    let waiting = target.started(&Started::default()).await;
    let place = waiting.running[0].join("checkout");
    let script = format!(
        "touch /tmp/touched\n\
         for place in '{}' \"$DATA\"/checks/*/*/checkout; do\n\
         ls \"$place\" && echo SEEN; touch \"$place/touched\" && echo TOUCHED\n\
         done\n\
         for process in /proc/[0-9]*; do readlink $process/cwd; done\n\
         kill -9 -1\n",
        place.display()
    );
    let text = target.attack_on("other", &script).await;
    has_none(&text, &["SEEN", "TOUCHED"]);
    assert!(!place.join("touched").exists(), "{text}");
    waiting.release();
    system.until_state(victim, "MERGED").await;
}

async fn surviving_in_a_session(on: On, checks: Checks<'_>) {
    let target = Target::new(on, checks).await;
    let number = format!("9{}", std::process::id());
    let text = target.attack(&SURVIVE.replace("NUMBER", &number)).await;
    assert!(text.contains("STARTED"), "the attack is a real one: {text}");
    let left = processes(&format!("sleep {number} "));
    assert!(left.is_empty(), "{left:?}: {text}");
}

async fn killing_the_server(on: On, checks: Checks<'_>) {
    let target = Target::new(on, checks).await;
    let server = target.system.server_id();
    let text = target.attack(KILL).await;
    has_none(&text, &["KILLED", "ATTACHED", "CONNECTED", "SYSRQ"]);
    assert_eq!(processes("serve --listen").iter().filter(|it| **it == server).count(), 1, "{text}");
    target.works().await;
}

/// The processes of this user whose command line has that text.
fn processes(text: &str) -> Vec<u32> {
    let all = std::fs::read_dir("/proc").expect("the processes").flatten();
    let all = all.filter_map(|it| it.file_name().to_str()?.parse::<u32>().ok());
    all.filter(|id| {
        let line = std::fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        line.contains(text)
    })
    .collect()
}

/// Runs a test of this file as an ordinary user, if this one is root. `false` when it has to run
/// here.
fn ran_as_user(test: &str) -> bool {
    if !is_root() {
        return false;
    }
    // In a folder that a sandbox can show: it has a `/tmp` of its own.
    let place = TempDir::with_prefix_in("signalbox", "/opt").expect("a folder");
    std::fs::set_permissions(place.path(), PermissionsExt::from_mode(0o755)).expect("opened");
    // The folder of the build may be closed to others.
    let copy = |from: &Path, to: &str| {
        let to = place.path().join(to);
        std::fs::create_dir_all(to.parent().expect("a folder")).expect("made");
        std::fs::copy(from, &to).expect("a copy");
        to
    };
    copy(&program(), "signalbox");
    let own = copy(&std::env::current_exe().expect("this test"), "deps/it");
    let own_folders = Command::new("chown").arg("-R").arg(USER).arg(place.path()).status();
    assert!(own_folders.expect("chown").success());
    let done = Command::new("setpriv")
        .args([format!("--reuid={USER}"), format!("--regid={USER}")])
        .arg("--clear-groups")
        .arg(own)
        .args(["--exact", &format!("attacks::{test}"), "--nocapture"])
        .current_dir(place.path())
        .output()
        .expect("setpriv can be run");
    let said = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success() && said.contains("1 passed"), "{done:?}");
    true
}

/// Whether a server of root, or one whose agent is another user, can be started here.
fn tests_run_as_root() -> bool {
    if !is_root() {
        not_tested(
            "attacks on a server of root, and through an agent: the tests do not run as root",
        );
    }
    is_root()
}

/// Each attack on a server of an ordinary user, on one of root, and on one with an agent.
macro_rules! attacks {
    ($($attack:ident on $on:ident: $user:ident $root:ident $agent:ident)*) => {$(
        #[tokio::test]
        async fn $user() {
            if sandbox_of("user") && !ran_as_user(stringify!($user)) {
                $attack(On::$on, Checks::Isolated).await;
            }
        }

        #[tokio::test]
        async fn $root() {
            if tests_run_as_root() && sandbox_of("root") {
                $attack(On::$on, Checks::Isolated).await;
            }
        }

        #[tokio::test]
        async fn $agent() {
            if tests_run_as_root() && sandbox_of("user") {
                $attack(On::$on, Checks::ByAgent).await;
            }
        }
    )*};
}

attacks! {
    moving_the_target on Sqlite: a_check_cannot_move_the_target a_check_cannot_move_the_target_of_root a_check_cannot_move_the_target_through_an_agent
    minting_a_token on Sqlite: a_check_cannot_mint_a_token_on_sqlite a_check_cannot_mint_a_token_of_root_on_sqlite a_check_cannot_mint_a_token_through_an_agent_on_sqlite
    minting_a_token on Postgres: a_check_cannot_mint_a_token_on_postgres a_check_cannot_mint_a_token_of_root_on_postgres a_check_cannot_mint_a_token_through_an_agent_on_postgres
    reading_secrets on Sqlite: a_check_cannot_read_secrets a_check_cannot_read_secrets_of_root a_check_cannot_read_secrets_through_an_agent
    touching_another_checkout on Sqlite: a_check_cannot_touch_another_checkout a_check_cannot_touch_another_checkout_of_root a_check_cannot_touch_another_checkout_through_an_agent
    surviving_in_a_session on Sqlite: a_check_cannot_survive_in_a_session a_check_cannot_survive_in_a_session_of_root a_check_cannot_survive_in_a_session_through_an_agent
    killing_the_server on Sqlite: a_check_cannot_kill_the_server a_check_cannot_kill_the_server_of_root a_check_cannot_kill_the_server_through_an_agent
}

/// Every attack, one after the other: an image is large.
async fn all(checks: Checks<'_>) {
    for on in [On::Sqlite, On::Postgres] {
        minting_a_token(on, checks).await;
    }
    moving_the_target(On::Sqlite, checks).await;
    reading_secrets(On::Sqlite, checks).await;
    touching_another_checkout(On::Sqlite, checks).await;
    surviving_in_a_session(On::Sqlite, checks).await;
    killing_the_server(On::Sqlite, checks).await;
}

#[tokio::test]
async fn a_check_in_a_container_cannot_attack() {
    if let Some(attacked) = Attacked::new("attacked") {
        all(Checks::InContainers(&attacked)).await;
    }
}

#[tokio::test]
async fn a_check_in_a_container_of_an_engine_cannot_attack() {
    if let Some(attacked) = Attacked::new("attacked-engine") {
        let service = Service::start().await;
        all(Checks::ByEngine(&attacked, &service)).await;
    }
}

#[tokio::test]
async fn without_a_sandbox_the_same_attacks_succeed() {
    let target = Target::new(On::Sqlite, Checks::Unsafe).await;
    let text = target.attack(READ).await;
    assert!(text.contains(SECRET), "{text}");
    let before = target.tokens();
    let text = target.attack(MINT).await;
    assert!(text.contains("MINTED") && target.tokens() > before, "{text}");
    let text = target.attack(MOVE).await;
    assert!(text.contains("MOVED") && target.moved(), "{text}");
}
