//! Checks in containers of Podman, with an image made of programs of this machine.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output as Said, Stdio};
use std::time::{Duration, Instant};

use signalbox_sandbox::{
    Backend, Ended, Job, JobFolder, LocalSandbox, NotRun, Output, Ran, Sandbox, SandboxSettings,
};
use signalbox_tests::not_tested;
use tempfile::TempDir;
use tokio::sync::watch;

use crate::checks::program;

/// What the image has, beside the libraries of these.
const PROGRAMS: [&str; 9] = ["cat", "head", "id", "ls", "sh", "sleep", "touch", "true", "yes"];

fn podman(arguments: &[&str]) -> Option<Said> {
    let mut command = Command::new("podman");
    command.args(arguments).stdin(Stdio::null()).output().ok()
}

fn text(said: &Said) -> String {
    String::from_utf8_lossy(&said.stdout).into_owned()
}

/// An image, removed in the end.
struct Image(String);

impl Image {
    /// `None` where Podman does not work.
    fn new() -> Option<Self> {
        podman(&["info"])?;
        let folder = TempDir::new().expect("a folder");
        let archive = folder.path().join("image.tar");
        let mut files = BTreeSet::new();
        for name in PROGRAMS {
            let path = PathBuf::from("/usr/bin").join(name);
            let libraries = Command::new("ldd").arg(&path).output().expect("ldd");
            let libraries = text(&libraries);
            let words = libraries.split_whitespace().filter(|it| it.starts_with('/'));
            files.extend(words.map(PathBuf::from));
            files.insert(path);
        }
        let names = files.iter().map(|it| it.strip_prefix("/").expect("an absolute path"));
        let mut pack = Command::new("tar");
        pack.args(["--create", "--dereference", "--directory", "/", "--file"]).arg(&archive);
        assert!(pack.args(names).status().expect("tar").success());
        let image = Self(format!("localhost/signalbox-test:{}", std::process::id()));
        let archive = archive.display().to_string();
        let imported = podman(&["import", "--quiet", &archive, &image.0])?;
        let works = imported.status.success()
            && podman(&image.run(&["--rm"], &["/usr/bin/true"]))?.status.success();
        works.then_some(image)
    }
}

impl Image {
    /// The arguments that run a command in it, with limits that this process may set.
    fn run<'a>(&'a self, further: &[&'a str], command: &[&'a str]) -> Vec<&'a str> {
        let limits = ["--ulimit", "nofile=1000:1000", "--ulimit", "nproc=1000:1000"];
        let run = [&["run", "--pull", "never", "--network", "none"][..], &limits, further];
        [&run.concat()[..], &[&self.0], command].concat()
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        podman(&["rmi", "--force", &self.0]);
    }
}

/// The containers of checks.
fn left(jobs: &Path) -> String {
    let label = format!("label=signalbox.jobs={}", jobs.display());
    text(&podman(&["ps", "--all", "--quiet", "--filter", &label]).expect("podman"))
}

fn job(run: &[&str], time: Duration) -> Job {
    Job {
        run: run.iter().map(ToString::to_string).collect(),
        environment: vec![
            ("PATH".into(), "/nowhere".into()),
            ("PASSED".into(), "a value with spaces".into()),
        ],
        time,
        hidden: Vec::new(),
        reports: vec!["*.xml".to_owned()],
    }
}

/// A sandbox of containers.
struct Place {
    folder: TempDir,
    settings: SandboxSettings,
}

impl Place {
    fn sandbox(&self) -> LocalSandbox {
        let hidden = vec![self.folder.path().to_owned()];
        LocalSandbox::new(self.settings.clone(), program(), hidden)
    }

    fn jobs(&self) -> PathBuf {
        self.folder.path().join("jobs")
    }

    async fn run(&self, run: &[&str], time: Duration) -> (Result<Ran, NotRun>, String) {
        let folder = JobFolder::new(&self.jobs().join("1-0")).expect("a folder");
        let (_never, mut stopped) = watch::channel(false);
        let output = Output::default();
        let ran = self.sandbox().run(job(run, time), &folder, &mut stopped, &output).await;
        folder.clear().await;
        assert_eq!(left(&self.jobs()), "", "no container is left");
        (ran, output.into_text())
    }

    async fn sh(&self, script: &str) -> (Ended, String) {
        let (ran, text) = self.run(&["sh", "-c", script], Duration::from_mins(1)).await;
        match ran {
            Ok(ran) => (ran.ended, text),
            Err(error) => panic!("{error:?}: {text}"),
        }
    }
}

fn code(ended: &Ended) -> Option<i32> {
    match ended {
        Ended::Exited(status) => status.code(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn checks_run_in_containers_and_leave_none() {
    let Some(image) = Image::new() else {
        not_tested("Podman does not run containers here");
        return;
    };
    let settings = SandboxSettings {
        backend: Backend::Container,
        container_engine: "podman".to_owned(),
        container_image: image.0.clone(),
        memory_mib: 64,
        processes: 32,
        output_mib: 1,
        ..SandboxSettings::default()
    };
    let place = Place { folder: TempDir::new().expect("a folder"), settings };
    let ready = place.sandbox().ready().await.expect("it is ready");
    assert_eq!((ready.by.as_str(), ready.network), ("podman", false));

    // What a check sees, and may do.
    let script = "echo \"$PASSED, $HOME, $TMPDIR\"; touch ~/x /tmp/x here; echo '<a/>' > r.xml; ls\n\
                  for place in / /usr /usr/bin /etc; do touch $place/x && echo \"WRITTEN $place\"; done\n\
                  id\n while read line; do case $line in Cap*|NoNew*) echo \"$line\";; esac; done \
                  < /proc/self/status; ls /sys/class/net; exit 7";
    let (ran, text) = place.run(&["sh", "-c", script], Duration::from_mins(1)).await;
    let ran = ran.expect("it ran");
    assert_eq!(code(&ran.ended), Some(7), "{text}");
    assert!(text.contains("a value with spaces, /home/check, /tmp\n"), "{text}");
    assert!(text.contains("here\nr.xml\n") && !text.contains("WRITTEN"), "{text}");
    assert!(!text.contains("uid=0") && text.contains("NoNewPrivs:\t1"), "{text}");
    for line in text.lines().filter(|line| line.starts_with("Cap")) {
        assert!(line.ends_with("\t0000000000000000"), "no capability is left: {text}");
    }
    assert!(text.ends_with("lo\n"), "no network: {text}");
    let reports: Vec<&str> = ran.reports.files.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(reports, ["r.xml"]);

    // How a check ends.
    for status in [1, 125, 126, 127] {
        let (ended, text) = place.sh(&format!("exit {status}")).await;
        assert_eq!(code(&ended), Some(status), "its own exit code: {text}");
    }
    let (ran, text) = place.run(&["no-such-program"], Duration::from_mins(1)).await;
    assert!(matches!(ran, Err(NotRun::Program(_))), "{text}");
    let (ran, text) = place.run(&["/usr"], Duration::from_mins(1)).await;
    assert!(matches!(ran, Err(NotRun::Program(_))), "no program, and the engine works: {text}");
    let (ended, _) = place.sh("yes 'much output'").await;
    assert!(matches!(&ended, Ended::OverLimit(words) if words == "it printed more than 1 MiB"));
    let begun = Instant::now();
    let forever = ["sh", "-c", "sleep 1000 & sleep 1000"];
    let (ran, _) = place.run(&forever, Duration::from_secs(2)).await;
    assert!(matches!(ran, Ok(Ran { ended: Ended::TimedOut, .. })));
    assert!(begun.elapsed() < Duration::from_secs(30));
    let (ended, text) = place.sh("s=x; while :; do s=$s$s; done").await;
    let Ended::OverLimit(words) = ended else { panic!("{ended:?}: {text}") };
    assert!(words.contains("64 MiB of memory"), "{words}");
    let bomb = "n=0; while [ $n -lt 100 ]; do sleep 5 & n=$((n+1)); done; exit 3";
    let (_, text) = place.sh(bomb).await;
    assert!(text.to_lowercase().contains("fork"), "{text}");

    // A server that is gone: what it left is removed at the next start.
    let label = format!("signalbox.jobs={}", place.jobs().display());
    let run = image.run(&["--detach", "--label", &label], &["/usr/bin/sleep", "1000"]);
    let started = podman(&run).expect("podman");
    assert!(started.status.success(), "{started:?}");
    assert_ne!(left(&place.jobs()), "");
    std::fs::create_dir_all(place.jobs()).expect("made");
    place.sandbox().sweep(&place.jobs());
    assert_eq!(left(&place.jobs()), "");

    // An image that is not there.
    let missing = "localhost/signalbox-test:missing".to_owned();
    let settings = SandboxSettings { container_image: missing, ..place.settings.clone() };
    let place = Place { settings, ..place };
    let refused = place.sandbox().ready().await.expect_err("no image").to_string();
    assert!(refused.contains("podman pull localhost/signalbox-test:missing"), "{refused}");
}
