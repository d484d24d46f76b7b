//! Checks in the sandbox: what they see, what they may do, and the limits that end them.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use signalbox_domain::ports::MAX_CHECK_OUTPUT;
use signalbox_git::LocalChecksRunner;
use signalbox_sandbox::{
    Agent, AgentSandbox, Backend, Ended, Job, JobFolder, LocalSandbox, NotRun, Output, Sandbox,
    SandboxSettings,
};
use signalbox_tests::{is_root, not_tested, sandbox_of};
use tempfile::TempDir;
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;

use crate::World;
use crate::checks::{CONFIG, Reports, program, run_checks_with, runner_in, runner_with};

/// Numbers for sleeps, so that each has a command line of its own.
static NUMBER: AtomicU32 = AtomicU32::new(1);

pub(crate) fn works_here() -> bool {
    sandbox_of(if is_root() { "root" } else { "user" })
}

/// What runs checks.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Kind {
    Local,
    Agent,
}

/// A sandbox and a folder for jobs.
pub(crate) struct Place {
    pub(crate) folder: TempDir,
    pub(crate) sandbox: Arc<dyn Sandbox>,
    pub(crate) agent: Option<(JoinHandle<()>, Arc<Notify>)>,
}

impl Place {
    pub(crate) fn new(kind: Kind, settings: SandboxSettings) -> Self {
        let folder = TempDir::new().expect("a folder");
        let local = LocalSandbox::new(settings, program(), vec![folder.path().to_owned()]);
        if kind == Kind::Local {
            return Self { folder, sandbox: Arc::new(local), agent: None };
        }
        let user = rustix::process::geteuid().as_raw();
        Self::with_agent(folder, local, user)
    }

    /// With an agent of this user for servers of that one.
    pub(crate) fn with_agent(folder: TempDir, local: LocalSandbox, user: u32) -> Self {
        let (jobs, socket) = (folder.path().join("agent"), folder.path().join("agent.sock"));
        std::fs::create_dir(&jobs).expect("made");
        let listener = Agent::listen(&socket).expect("a socket");
        let stop = Arc::new(Notify::new());
        let stopping = stop.clone();
        let stopping = async move { stopping.notified().await };
        let agent = Arc::new(Agent::new(Arc::new(local), jobs, BTreeSet::from([user])));
        let agent = tokio::spawn(agent.serve(listener, stopping));
        let sandbox = Arc::new(AgentSandbox::new(socket));
        Self { folder, sandbox, agent: Some((agent, stop)) }
    }

    /// Nothing of a check is left in the folder of the agent.
    pub(crate) fn is_clean(&self) -> bool {
        let left = std::fs::read_dir(self.folder.path().join("agent"));
        left.is_ok_and(|mut left| left.next().is_none())
    }

    async fn run_for(&self, script: &str, time: Duration) -> (Result<Ended, NotRun>, String) {
        self.run_at(&self.folder.path().join("jobs/1"), script, time).await
    }

    async fn run_in(&self, folder: &Path, script: &str) -> (Result<Ended, NotRun>, String) {
        self.run_at(folder, script, Duration::from_mins(1)).await
    }

    async fn run_at(
        &self,
        path: &Path,
        script: &str,
        time: Duration,
    ) -> (Result<Ended, NotRun>, String) {
        let folder = JobFolder::new(path).expect("a folder");
        let job = Job {
            run: ["sh", "-c", script].map(ToOwned::to_owned).to_vec(),
            environment: vec![("PATH".into(), std::env::var_os("PATH").unwrap_or_default())],
            time,
            hidden: Vec::new(),
            reports: Vec::new(),
        };
        let (_never, mut stopped) = watch::channel(false);
        let output = Output::default();
        let ran = self.sandbox.run(job, &folder, &mut stopped, &output).await;
        folder.clear().await;
        assert!(!path.exists(), "its folder is removed");
        (ran.map(|ran| ran.ended), output.into_text())
    }

    async fn run(&self, script: &str) -> (Result<Ended, NotRun>, String) {
        self.run_for(script, Duration::from_mins(1)).await
    }
}

/// Each of these in a sandbox of this process and in one of an agent.
macro_rules! in_every_sandbox {
    ($($test:ident;)*) => {$(
        mod $test {
            #[tokio::test(flavor = "multi_thread")]
            async fn here() {
                if super::works_here() {
                    super::$test(super::Kind::Local).await;
                }
            }

            #[tokio::test(flavor = "multi_thread")]
            async fn by_an_agent() {
                if super::works_here() {
                    super::$test(super::Kind::Agent).await;
                }
            }
        }
    )*};
}

in_every_sandbox! {
    a_harmless_check_works;
    the_machine_cannot_be_changed;
    the_network_is_off_unless_the_operator_shares_it;
    too_much_memory_ends_a_check;
    too_many_processes_are_refused_to_the_check_alone;
    too_much_output_ends_a_check;
    the_time_limit_ends_everything;
    a_killed_server_leaves_no_process_of_a_check;
    the_checkout_is_a_repository_of_its_own;
}

pub(crate) fn code(ended: &Result<Ended, NotRun>) -> Option<i32> {
    match ended {
        Ok(Ended::Exited(status)) => status.code(),
        other => panic!("{other:?}"),
    }
}

/// Why a check was ended.
fn limit(ended: Result<Ended, NotRun>) -> String {
    match ended {
        Ok(Ended::OverLimit(words)) => words,
        other => panic!("{other:?}"),
    }
}

/// A command that runs until it is killed, and that no other test has.
pub(crate) fn endless() -> String {
    let number = NUMBER.fetch_add(1, Ordering::SeqCst);
    format!("sleep {}.{number}", 100_000 + std::process::id())
}

pub(crate) fn is_running(command: &str) -> bool {
    let processes = std::fs::read_dir("/proc").expect("the processes").flatten();
    let mut lines =
        processes.map(|it| std::fs::read(it.path().join("cmdline")).unwrap_or_default());
    lines.any(|line| String::from_utf8_lossy(&line).replace('\0', " ").trim() == command)
}

async fn a_harmless_check_works(kind: Kind) {
    let place = Place::new(kind, SandboxSettings::default());
    place.sandbox.ready().await.expect("it is ready");
    let script = "set -e; pwd; mkdir -p target/debug; printf '#!/bin/sh\\necho built\\n' > target/debug/x\n\
                  chmod +x target/debug/x; target/debug/x; echo kept > \"$HOME/.cache\"; cat ~/.cache\n\
                  ls -A /tmp; mktemp > /dev/null; [ \"$TMPDIR\" = /tmp ]; touch /var/tmp/x; echo x > /dev/null\n\
                  whoami; head -c 4 /dev/urandom | wc -c; mkdir /dev/shm/x; ls /proc/self/stat; exit 7\n";
    let (ended, text) = place.run(script).await;
    assert_eq!(code(&ended), Some(7), "{text}");
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    assert_eq!(lines, ["/checkout", "built", "kept", "check", "4", "/proc/self/stat"]);
    let (ended, text) = place.run("ls -A /tmp /checkout ~ | grep -v :; true").await;
    assert_eq!((code(&ended), text.trim()), (Some(0), ""), "nothing of the other check is there");
}

async fn the_machine_cannot_be_changed(kind: Kind) {
    let place = Place::new(kind, SandboxSettings::default());
    let script = "for place in / /usr /usr/bin /usr/local /etc /dev /home /proc/sys/kernel /var\n\
                  do touch $place/x && echo \"WRITTEN $place\"; done\n\
                  mount -t tmpfs none /checkout && echo WRITTEN\n\
                  hostname other && echo WRITTEN\n\
                  for place in /root /boot /srv /mnt /run /sys /opt /media\n\
                  do [ -e $place ] && echo \"SEEN $place\"; done\n\
                  cat /etc/passwd; ls /etc\n";
    let (_, text) = place.run(script).await;
    assert!(!text.contains("WRITTEN") && !text.contains("SEEN"), "{text}");
    assert!(text.contains("check:x:") && !text.contains("root:"), "{text}");
    assert!(!text.contains("shadow") && !text.contains("ssh"), "{text}");
}

async fn the_network_is_off_unless_the_operator_shares_it(kind: Kind) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("its address").port();
    let script = format!("bash -c 'exec 3<>/dev/tcp/127.0.0.1/{port}' && echo CONNECTED; true");
    let (_, text) = Place::new(kind, SandboxSettings::default()).run(&script).await;
    assert!(!text.contains("CONNECTED"), "{text}");
    let shared = SandboxSettings { network: true, ..SandboxSettings::default() };
    let (_, text) = Place::new(kind, shared).run(&script).await;
    assert!(text.contains("CONNECTED"), "{text}");
}

#[tokio::test]
async fn paths_of_the_operator_can_be_read_and_not_written() {
    if !works_here() {
        return;
    }
    let tools = TempDir::with_prefix_in("tools", "/opt").or_else(|_| TempDir::with_prefix("tools"));
    let tools = tools.expect("a folder");
    if tools.path().starts_with("/tmp") {
        not_tested("this user has no place outside of /tmp for tools");
        return;
    }
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(tools.path(), open).expect("opened");
    std::fs::write(tools.path().join("tool"), "a tool\n").expect("written");
    let shown = tools.path().display();
    let script =
        format!("cat {shown}/tool; echo x > {shown}/tool && echo WRITTEN; ls {shown}/..\n");
    let none = Place::new(Kind::Local, SandboxSettings::default());
    assert!(!none.run(&script).await.1.contains("a tool"));
    let read_only_paths = vec![tools.path().to_owned()];
    let settings = SandboxSettings { read_only_paths, ..SandboxSettings::default() };
    let place = Place::new(Kind::Local, settings.clone());
    let (_, text) = place.run(&script).await;
    assert!(text.starts_with("a tool\n") && !text.contains("WRITTEN"), "{text}");

    let hidden = vec![tools.path().join("data")];
    let sandbox = LocalSandbox::new(settings, program(), hidden);
    let refused = sandbox.ready().await.expect_err("it would show the data").to_string();
    assert!(refused.contains("checks would see") && refused.contains("data"), "{refused}");
}

async fn too_much_memory_ends_a_check(kind: Kind) {
    let settings = SandboxSettings { memory_mib: 64, ..SandboxSettings::default() };
    let place = Place::new(kind, settings);
    // One process that grows, and several that are small each.
    let grows = "s=x; while :; do s=$s$s; done";
    let many = "for n in 1 2 3 4 5 6; do sh -c 's=x; while [ ${#s} -lt 16000000 ]; do s=$s$s; done; \
                sleep 60' & done; wait";
    for script in [grows, many] {
        let (ended, text) = place.run(script).await;
        assert_eq!(limit(ended), "it used more than 64 MiB of memory", "{script}: {text}");
    }
    let (ended, text) = place.run("echo small").await;
    assert_eq!((code(&ended), text.as_str()), (Some(0), "small\n"));
}

/// A small file system, until it is dropped; `None` where this user may not mount any.
struct SmallDisk(TempDir);

impl SmallDisk {
    fn new(size: &str) -> Option<Self> {
        let folder = TempDir::new().expect("a folder");
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"]).arg(folder.path());
        mount.output().is_ok_and(|it| it.status.success()).then_some(Self(folder))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        Command::new("umount").arg("-l").arg(self.0.path()).output().ok();
    }
}

#[tokio::test]
async fn a_check_that_fills_the_disk_is_ended() {
    let disk = works_here().then(|| SmallDisk::new("96m")).flatten();
    let Some(disk) = disk else {
        not_tested("this process may not mount a file system");
        return;
    };
    let settings = SandboxSettings { keep_free_mib: 32, ..SandboxSettings::default() };
    let place = Place::new(Kind::Local, settings);
    // Also what has no name any more counts.
    let script =
        "exec 3> file; rm file; while :; do head -c 1000000 /dev/zero >&3; sleep 0.01; done";
    let (ended, text) = place.run_in(&disk.0.path().join("job"), script).await;
    assert_eq!(limit(ended), "it left less than 32 MiB of the disk free", "{text}");
    std::fs::write(disk.0.path().join("other"), vec![1; 80 << 20]).expect("written");
    let (ended, _) = place.run_in(&disk.0.path().join("job"), "true").await;
    let words = format!("{:?}", ended.expect_err("it waits for space"));
    assert!(words.contains("MiB free, and sandbox.keep_free_mib is 32"), "{words}");
}

#[tokio::test]
async fn a_full_disk_is_not_mistaken_for_a_sandbox_that_does_not_work() {
    if !works_here() {
        return;
    }
    let settings = SandboxSettings { keep_free_mib: u32::MAX, ..SandboxSettings::default() };
    let place = Place::new(Kind::Local, settings);
    place.sandbox.ready().await.expect("the sandbox works");
    let (ended, _) = place.run("true").await;
    let words = format!("{:?}", ended.expect_err("it waits for space"));
    assert!(words.contains("MiB free, and sandbox.keep_free_mib is 4294967295"), "{words}");
}

async fn too_many_processes_are_refused_to_the_check_alone(kind: Kind) {
    let settings = SandboxSettings { processes: 32, ..SandboxSettings::default() };
    let place = Place::new(kind, settings);
    let sleep = endless();
    let script = format!("bomb() {{ for n in $(seq 100); do {sleep} & done; }}; bomb");
    let (_, text) = place.run(&script).await;
    assert!(text.to_lowercase().contains("fork"), "{text}");
    assert!(!is_running(&sleep), "none of them is left");
    assert!(Command::new("true").status().expect("this user can start more").success());
}

async fn too_much_output_ends_a_check(kind: Kind) {
    let settings = SandboxSettings { output_mib: 1, ..SandboxSettings::default() };
    let (ended, text) = Place::new(kind, settings).run("yes 'much output'").await;
    assert_eq!(limit(ended), "it printed more than 1 MiB");
    assert!(text.starts_with("much output\n") && text.len() <= MAX_CHECK_OUTPUT);
}

async fn the_time_limit_ends_everything(kind: Kind) {
    let place = Place::new(kind, SandboxSettings::default());
    let sleep = endless();
    let script = format!(
        "trap 'echo asked to end' TERM; setsid sh -c 'trap \"\" TERM; {sleep}' & \
         ( env -i setsid {sleep} & ); {sleep} & wait; wait"
    );
    let begun = Instant::now();
    let (ended, text) = place.run_for(&script, Duration::from_secs(2)).await;
    assert!(matches!(ended, Ok(Ended::TimedOut)), "{ended:?}: {text}");
    assert!(begun.elapsed() < Duration::from_secs(20));
    assert!(text.contains("asked to end"), "it had a moment to end itself: {text:?}");
    assert!(!is_running(&sleep), "none of them is left");
}

async fn a_killed_server_leaves_no_process_of_a_check(kind: Kind) {
    let place = Place::new(kind, SandboxSettings::default());
    let sleep = endless();
    // The future is dropped as soon as the check runs, as when the server ends.
    let job = place.run(&sleep);
    let started = async {
        while !is_running(&sleep) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::select! {
        ended = job => panic!("{ended:?}"),
        () = started => {}
    }
    let begun = Instant::now();
    while is_running(&sleep) {
        assert!(begun.elapsed() < Duration::from_secs(20), "it is still there");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

async fn the_checkout_is_a_repository_of_its_own(kind: Kind) {
    let world = World::new().await;
    for number in 0..30 {
        world.commit(&[("number.txt", &number.to_string())], &format!("commit {number}"));
    }
    let reports = Reports::default();
    let place = Place::new(kind, SandboxSettings::default());
    let runner = runner_with(place.sandbox.clone(), &world, &reports);
    // Before anything refreshes the index, which other programs do not.
    let script = "git diff-index --quiet HEAD && echo UNCHANGED\n\
                  git rev-list --count HEAD; git branch -a | wc -l; git log -1 --format=%s\n\
                  git fsck && cat .git/objects/info/alternates && echo BORROWED\n\
                  git status --short; git config --list --local | grep -i url\n\
                  git -c user.name=a -c user.email=a commit -q --allow-empty -m own; exit 0\n";
    run_checks_with(&runner, &world, CONFIG, script, &reports).await;
    let text = reports.text();
    assert!(text.starts_with("UNCHANGED\n20\n1\nbase\n"), "{text}");
    assert!(!text.contains("BORROWED") && !text.contains("url"), "{text}");
}

/// A runner where bubblewrap is not installed.
#[tokio::test(flavor = "multi_thread")]
async fn without_a_sandbox_nothing_runs_and_the_reason_is_given() {
    const EMPTY_PATH: &str = "SIGNALBOX_TEST_EMPTY_PATH";
    if std::env::var_os(EMPTY_PATH).is_none() {
        // The variable is of the whole process, so that the test calls itself.
        let tools = TempDir::new().expect("a folder");
        for tool in ["git", "sh"] {
            let found = Command::new("which").arg(tool).output().expect("which");
            let found = String::from_utf8_lossy(&found.stdout).trim().to_owned();
            std::os::unix::fs::symlink(found, tools.path().join(tool)).expect("a link");
        }
        let own = std::env::current_exe().expect("this test");
        let name = "sandbox::without_a_sandbox_nothing_runs_and_the_reason_is_given";
        let mut command = Command::new(own);
        command.args(["--exact", name]).env("PATH", tools.path()).env(EMPTY_PATH, "1");
        let done = command.output().expect("it can be run");
        let said = String::from_utf8_lossy(&done.stdout);
        assert!(done.status.success() && said.contains("1 passed"), "{done:?}");
        return;
    }
    let world = World::new().await;
    let reports = Reports::default();
    let runner: LocalChecksRunner = runner_in(SandboxSettings::default(), &world, &reports);
    let mark = world.folder().join("ran");
    let script = format!("touch {}\n", mark.display());
    let error = crate::checks::try_checks(&runner, &world, CONFIG, &script, &reports).await;
    let words = error.expect_err("refused").to_string();
    assert!(words.contains("bubblewrap is not installed"), "{words}");
    assert!(words.contains("apt install bubblewrap"), "{words}");
    assert!(!mark.exists() && reports.is_empty(), "nothing was run or called failed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_runs_no_checks_refuses_them_and_fails_none() {
    let world = World::new().await;
    let reports = Reports::default();
    let settings = SandboxSettings { backend: Backend::None, ..SandboxSettings::default() };
    let runner: LocalChecksRunner = runner_in(settings, &world, &reports);
    let mark = world.folder().join("ran");
    let script = format!("touch {}\n", mark.display());
    let error = crate::checks::try_checks(&runner, &world, CONFIG, &script, &reports).await;
    let words = error.expect_err("refused").to_string();
    assert!(words.contains("sandbox.backend is none"), "{words}");
    assert!(!mark.exists() && reports.is_empty(), "nothing was run or called failed");
}
