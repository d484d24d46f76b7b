//! The checks runner: the environment of checks, their reports, and how they end.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use signalbox_domain::flaky::{Actor, Excuse, Excused, QuarantineCause};
use signalbox_domain::ids::{BranchName, PrNumber, RunId};
use signalbox_domain::ports::{
    CheckOutput, CheckReports, ChecksJob, ChecksRunner, ChecksSink, HostError, LeftReports,
    SinkClosed,
};
use signalbox_domain::queue::{Candidate, CheckConclusion, CheckReport, RunChecks};
use signalbox_domain::testing::ManualClock;
use signalbox_domain::time::Timestamp;
use signalbox_git::{ChecksConfig, LocalChecksRunner};
use signalbox_sandbox::{LocalSandbox, Sandbox, SandboxSettings};
use uuid::Uuid;

use crate::World;

/// Keeps the reports of a runner.
#[derive(Default)]
pub(crate) struct Reports {
    checks: std::sync::Mutex<Vec<CheckReport>>,
    outputs: std::sync::Mutex<Vec<CheckOutput>>,
    so_far: std::sync::Mutex<Vec<String>>,
    taken: Arc<Taken>,
    closed: AtomicBool,
}

impl Reports {
    /// Whether nothing was reported.
    pub(crate) fn is_empty(&self) -> bool {
        self.checks.lock().expect("a lock").is_empty()
    }

    /// Whether every check ended with a failure.
    pub(crate) fn all_failed(&self) -> bool {
        let checks = self.checks.lock().expect("a lock");
        let ended: Vec<_> = checks.iter().filter_map(|it| it.conclusion).collect();
        !ended.is_empty() && ended.iter().all(|it| *it == CheckConclusion::Failure)
    }

    /// The output of the first check.
    pub(crate) fn text(&self) -> String {
        self.outputs.lock().expect("a lock")[0].text.clone()
    }
}

#[async_trait]
impl ChecksSink for Reports {
    async fn report(&self, checks: Vec<CheckReport>) -> Result<(), SinkClosed> {
        self.checks.lock().expect("a lock").extend(checks);
        Ok(())
    }

    async fn output(&self, output: CheckOutput) -> Result<(), SinkClosed> {
        let mut outputs = self.outputs.lock().expect("a lock");
        outputs.retain(|it| it.check != output.check);
        outputs.push(output);
        Ok(())
    }

    async fn output_so_far(&self, output: CheckOutput, _: Timestamp) -> bool {
        self.so_far.lock().expect("a lock").push(output.text);
        // The first write fails.
        self.so_far.lock().expect("a lock").len() > 1
    }

    async fn closed(&self) {
        while !self.closed.load(Ordering::SeqCst) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

/// Keeps the reports that checks wrote: the check, a file's name, its text. It also keeps the
/// results of the checks, and replies with an excuse if there is one.
#[derive(Default)]
struct Taken {
    files: std::sync::Mutex<Vec<(String, String, String)>>,
    ended: std::sync::Mutex<Vec<(bool, bool)>>,
    excuse: Option<Excuse>,
}

#[async_trait]
impl CheckReports for Taken {
    async fn collected(
        &self,
        _: &ChecksJob,
        check: &str,
        left: LeftReports,
    ) -> Result<Option<Excuse>, String> {
        self.ended.lock().expect("a lock").push((left.failed, left.whole));
        for mut file in left.files {
            let mut text = String::new();
            std::io::Read::read_to_string(&mut file.content, &mut text).expect("text");
            self.files.lock().expect("a lock").push((check.to_owned(), file.name, text));
        }
        Ok(self.excuse.clone())
    }
}

/// The server's program, which supervises checks.
pub(crate) fn program() -> PathBuf {
    let test = std::env::current_exe().expect("this test's own path");
    let target = test.parent().and_then(Path::parent).expect("the target folder");
    let program = target.join("signalbox");
    assert!(program.exists(), "build it first: cargo build -p signalbox");
    program
}

pub(crate) fn runner(world: &World, reports: &Reports) -> LocalChecksRunner {
    let settings = SandboxSettings { unsafe_local: true, ..SandboxSettings::default() };
    runner_in(settings, world, reports)
}

pub(crate) fn runner_in(
    settings: SandboxSettings,
    world: &World,
    reports: &Reports,
) -> LocalChecksRunner {
    let hidden = vec![world.folder().to_owned()];
    runner_with(Arc::new(LocalSandbox::new(settings, program(), hidden)), world, reports)
}

pub(crate) fn runner_with(
    sandbox: Arc<dyn Sandbox>,
    world: &World,
    reports: &Reports,
) -> LocalChecksRunner {
    LocalChecksRunner::new(
        ChecksConfig {
            work_dir: world.folder().join("checks"),
            timeout_minutes: 1,
            pass_env: Vec::new(),
            public_url: "http://localhost".into(),
            clone_depth: 20,
        },
        sandbox,
        world.host.clone(),
        Arc::new(ManualClock::default()),
        reports.taken.clone(),
    )
}

async fn run_checks(world: &World, config: &str, script: &str, reports: &Reports) {
    run_checks_with(&runner(world, reports), world, config, script, reports).await;
}

pub(crate) async fn run_checks_with(
    runner: &LocalChecksRunner,
    world: &World,
    config: &str,
    script: &str,
    reports: &Reports,
) {
    try_checks(runner, world, config, script, reports).await.expect("it runs");
    let left = std::fs::read_dir(world.folder().join("checks"));
    assert!(left.is_ok_and(|mut left| left.next().is_none()), "checkouts are removed");
}

pub(crate) async fn try_checks(
    runner: &LocalChecksRunner,
    world: &World,
    config: &str,
    script: &str,
    reports: &Reports,
) -> Result<(), HostError> {
    world.commit(&[(".signalbox.toml", config), ("check.sh", script)], "base");
    let head = world.push("main");
    let tree = world.tree(&head);
    let job = ChecksJob {
        repository: world.repository.clone(),
        checks: RunChecks {
            run: RunId(Uuid::new_v4()),
            candidate: Candidate {
                sha: head.clone(),
                tree: signalbox_domain::ids::TreeId::new(tree).expect("a tree"),
            },
            branch: BranchName::new("signalbox-merge/pr-1/x").expect("a branch"),
            target: BranchName::new("main").expect("a branch"),
            config_from: head,
            prs: vec![PrNumber(1)],
            again: Vec::new(),
            required: vec!["test".into(), "missing".into()],
        },
    };
    runner.run(&job, reports).await
}

pub(crate) const CONFIG: &str = "[[checks]]\nname = \"test\"\nrun = [\"sh\", \"check.sh\"]\n";

#[tokio::test(flavor = "multi_thread")]
async fn a_check_runs_in_a_clean_checkout_with_a_fixed_environment() {
    let world = World::new().await;
    let reports = Reports::default();
    let script = "pwd; git rev-parse HEAD; git branch -a; env | sort | cut -d= -f1; ls -A \"$HOME\"\nexit 3\n";
    run_checks(&world, CONFIG, script, &reports).await;
    let checks = reports.checks.lock().expect("a lock").clone();
    let missing = checks.iter().find(|it| it.name == "missing").expect("a report");
    assert_eq!(missing.conclusion, Some(CheckConclusion::Failure));
    assert!(missing.summary.as_deref().is_some_and(|it| it.contains("no check named")));
    let ended = checks.iter().rfind(|it| it.name == "test").expect("a report");
    assert_eq!(ended.conclusion, Some(CheckConclusion::Failure));
    assert!(ended.summary.as_deref().is_some_and(|it| it.contains("exit status: 3")));
    let text = reports.outputs.lock().expect("a lock")[0].text.clone();
    let variables: Vec<&str> =
        text.lines().skip_while(|line| *line != "CI").filter(|it| !it.is_empty()).collect();
    let wanted = [
        "CI",
        "HOME",
        "LANG",
        "PATH",
        "PWD",
        "SIGNALBOX_BRANCH",
        "SIGNALBOX_CHECK",
        "SIGNALBOX_PR",
        "SIGNALBOX_TEST_RUN",
        "TMPDIR",
    ];
    let known: Vec<&&str> = variables.iter().filter(|it| wanted.contains(it)).collect();
    assert_eq!(known.len(), wanted.len(), "{text}");
    assert!(variables.len() <= wanted.len() + 3, "nothing else but what sh itself adds: {text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn reports_that_a_check_wrote_are_taken_also_when_it_failed() {
    let world = World::new().await;
    let reports = Reports::default();
    let config = format!("{CONFIG}reports = [\"out/**/junit.xml\"]\n");
    let script = "mkdir -p out/a; echo '<testsuite/>' > out/a/junit.xml; echo x > out/other.xml\n\
                  ln -s /etc/passwd out/junit.xml; exit 1\n";
    run_checks(&world, &config, script, &reports).await;
    let taken = reports.taken.files.lock().expect("a lock").clone();
    let wanted = ("test".to_owned(), "out/a/junit.xml".to_owned(), "<testsuite/>\n".to_owned());
    assert_eq!(taken, [wanted]);
}

async fn with_excuse(excuse: Excuse, files: &[(&str, &str)], script: &str) -> Reports {
    let world = World::new().await;
    if !files.is_empty() {
        world.commit(files, "before");
    }
    let taken = Taken { excuse: Some(excuse), ..Taken::default() };
    let reports = Reports { taken: Arc::new(taken), ..Reports::default() };
    let config = format!("{CONFIG}reports = [\"*.xml\"]\n");
    run_checks(&world, &config, script, &reports).await;
    reports
}

fn last(reports: &Reports) -> CheckReport {
    let checks = reports.checks.lock().expect("a lock");
    checks.iter().rfind(|it| it.name == "test").expect("a report").clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_excused_check_counts_as_passed_and_names_the_tests() {
    let script = "echo before; echo '<testsuite/>' > junit.xml; exit 1\n";
    let cause =
        QuarantineCause::Flag { by: Actor { full_name: "Ada".into(), email: String::new() } };
    let excused = Excused { name: "adds".into(), cause };
    let reports = with_excuse(Excuse::Excused(vec![excused]), &[], script).await;
    let check = last(&reports);
    assert_eq!(check.conclusion, Some(CheckConclusion::Success));
    let summary = check.summary.expect("a summary");
    assert!(summary.starts_with("exit status: 1 after "), "{summary}");
    assert!(
        summary.ends_with("; only quarantined tests failed: adds (flagged as flaky by Ada)"),
        "{summary}"
    );
    let text = reports.outputs.lock().expect("a lock")[0].text.clone();
    assert_eq!(text, "before\n[only quarantined tests failed: adds (flagged as flaky by Ada)]\n");
    assert_eq!(*reports.taken.ended.lock().expect("a lock"), [(true, true)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_check_that_is_not_excused_fails_and_names_its_tests() {
    let script = "echo '<testsuite/>' > junit.xml; exit 1\n";
    let reports = with_excuse(Excuse::Failing(vec!["adds".into()]), &[], script).await;
    let check = last(&reports);
    assert_eq!(check.conclusion, Some(CheckConclusion::Failure));
    assert!(check.summary.is_some_and(|it| it.ends_with("; tests failed: adds")));
    let reports = with_excuse(Excuse::Unexplained, &[], script).await;
    let check = last(&reports);
    assert_eq!(check.conclusion, Some(CheckConclusion::Failure));
    assert!(check.summary.is_some_and(|it| it.starts_with("exit status: 1 after ")));
}

#[tokio::test(flavor = "multi_thread")]
async fn other_endings_and_foreign_reports_are_distinguished() {
    let none = || Excuse::Unexplained;
    for (script, files, ended) in [
        ("echo x > a.xml; exit 0\n", &[][..], (false, true)),
        ("echo x > a.xml; kill -9 $$\n", &[], (false, true)),
        ("echo x > a.xml; sh -c 'kill -9 $$'; exit $?\n", &[], (false, true)),
        ("echo x > a.xml; exit 2\n", &[("old.xml", "<testsuite/>")], (true, false)),
    ] {
        let reports = with_excuse(none(), files, script).await;
        assert_eq!(*reports.taken.ended.lock().expect("a lock"), [ended], "{script}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_surviving_child_neither_blocks_the_check_nor_outlives_it() {
    let world = World::new().await;
    let reports = Reports::default();
    let begun = Instant::now();
    run_checks(&world, CONFIG, "sleep 300 & echo $!\nexit 0\n", &reports).await;
    assert!(begun.elapsed() < Duration::from_secs(20));
    let text = reports.outputs.lock().expect("a lock")[0].text.clone();
    let pid = text.trim();
    assert!(!is_alive(pid), "process {pid} is still there");
    let checks = reports.checks.lock().expect("a lock").clone();
    let ended = checks.iter().rfind(|it| it.name == "test").expect("a report");
    assert_eq!(ended.conclusion, Some(CheckConclusion::Success));
}

fn is_alive(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    !stat.is_empty() && !stat.contains(") Z ")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_check_that_kills_its_supervisor_fails_and_leaves_nothing_behind() {
    let world = World::new().await;
    let reports = Reports::default();
    let script = "setsid sh -c 'echo $$ > pid; exec sleep 300' &\n\
                  while [ ! -s pid ]; do sleep 0.05; done; cat pid; kill -9 $PPID; sleep 300\n";
    run_checks(&world, CONFIG, script, &reports).await;
    let check = last(&reports);
    assert_eq!(check.conclusion, Some(CheckConclusion::Failure));
    let summary = check.summary.expect("a summary");
    assert!(summary.contains("supervises the check was killed"), "{summary}");
    let text = reports.outputs.lock().expect("a lock")[0].text.clone();
    let pid = text.trim();
    assert!(!pid.is_empty() && !is_alive(pid), "process {pid} is still there");
}

#[tokio::test(flavor = "multi_thread")]
async fn left_overs_of_a_crashed_server_are_removed_at_the_start() {
    let world = World::new().await;
    let folder = world.folder().join("checks").join("run-0");
    std::fs::create_dir_all(folder.join("home")).expect("made");
    let sleep = |folder: &Path| {
        let mut command = Command::new("sleep");
        command.arg("300").env("SIGNALBOX_CHECK", folder).spawn().expect("it can be run")
    };
    let mut left = sleep(&folder);
    let mut other = sleep(&world.folder().join("checks-of-others").join("run-0"));
    runner(&world, &Reports::default()).sweep_leftovers();
    assert!(left.wait().expect("it has ended").code().is_none(), "it was killed");
    assert!(!folder.exists());
    assert!(other.try_wait().expect("a look").is_none(), "it belongs to another server");
    other.kill().expect("killed");
    other.wait().expect("gone");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_check_whose_result_is_no_longer_needed_is_killed() {
    let world = World::new().await;
    let reports = Arc::new(Reports::default());
    let mark = world.folder().join("began");
    let script = format!("touch {}; sleep 300\n", mark.display());
    let closer = reports.clone();
    let marked = mark.clone();
    tokio::spawn(async move {
        while !marked.exists() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        closer.closed.store(true, Ordering::SeqCst);
    });
    let begun = Instant::now();
    run_checks(&world, CONFIG, &script, &reports).await;
    assert!(begun.elapsed() < Duration::from_secs(20));
    assert!(mark.exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_is_not_there_and_endless_output_are_failures_with_words() {
    let world = World::new().await;
    let reports = Reports::default();
    let config = "[[checks]]\nname = \"test\"\nrun = [\"no-such-program\"]\n";
    run_checks(&world, config, "", &reports).await;
    let checks = reports.checks.lock().expect("a lock").clone();
    let ended = checks.iter().rfind(|it| it.name == "test").expect("a report");
    assert!(
        ended.summary.as_deref().is_some_and(|it| it.contains("could not run \"no-such-program\""))
    );
    let reports = Reports::default();
    let script =
        "i=0; while [ $i -lt 20000 ]; do echo line $i of very much output; i=$((i+1)); done\n";
    run_checks(&world, CONFIG, script, &reports).await;
    let text = reports.outputs.lock().expect("a lock")[0].text.clone();
    assert!(text.len() <= signalbox_domain::ports::MAX_CHECK_OUTPUT);
    assert!(text.starts_with("line 0 of") && text.contains("bytes omitted"));
    assert!(text.trim_end().ends_with("line 19999 of very much output"));
}

/// A check prints a line and waits; when that line is stored, it may end.
#[tokio::test(flavor = "multi_thread")]
async fn the_output_of_a_running_check_is_stored() {
    let world = World::new().await;
    let reports = Reports::default();
    let go = world.folder().join("go");
    let script =
        format!("echo begun\nuntil [ -e {0} ]; do sleep 0.05; done\necho done\n", go.display());
    let texts = || reports.so_far.lock().expect("a lock").clone();
    let seen = async {
        // The write that failed is repeated.
        while texts().len() < 2 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        std::fs::write(&go, "").expect("written");
    };
    let both = async { tokio::join!(run_checks(&world, CONFIG, &script, &reports), seen) };
    tokio::time::timeout(Duration::from_mins(2), both).await.expect("in time");
    assert_eq!(texts()[..2], ["begun\n", "begun\n"]);
    assert_eq!(reports.text(), "begun\ndone\n");
}
