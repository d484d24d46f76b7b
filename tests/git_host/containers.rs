//! Checks in containers of Podman, with an image made of programs of this machine.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use signalbox_sandbox::{
    Backend, Ended, Job, JobFolder, NotRun, Output, Ran, Sandbox, SandboxSettings,
};
use signalbox_tests::containers::{Image, left, podman};
use signalbox_tests::not_tested;
use tempfile::TempDir;
use tokio::sync::watch;

use crate::checks::program;

pub(crate) fn job(run: &[&str], time: Duration) -> Job {
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
pub(crate) struct Place {
    pub(crate) folder: TempDir,
    pub(crate) settings: SandboxSettings,
    pub(crate) sandbox: Arc<dyn Sandbox>,
}

impl Place {
    pub(crate) fn new(settings: SandboxSettings) -> Self {
        let folder = TempDir::new().expect("a folder");
        let hidden = vec![folder.path().to_owned()];
        let sandbox = signalbox_sandbox::sandbox(settings.clone(), program(), hidden);
        Self { folder, settings, sandbox }
    }

    /// As the next process would.
    pub(crate) fn restarted(self) -> Self {
        let hidden = vec![self.folder.path().to_owned()];
        let sandbox = signalbox_sandbox::sandbox(self.settings.clone(), program(), hidden);
        Self { sandbox, ..self }
    }

    pub(crate) fn jobs(&self) -> PathBuf {
        self.folder.path().join("jobs")
    }

    /// The label of its containers.
    pub(crate) fn label(&self) -> String {
        if self.settings.container_host.is_empty() {
            return format!("signalbox.jobs={}", self.jobs().display());
        }
        let place = std::fs::read_to_string(self.folder.path().join("engine-place"));
        format!("signalbox.place={}", place.as_deref().unwrap_or("none"))
    }

    pub(crate) async fn run(&self, run: &[&str], time: Duration) -> (Result<Ran, NotRun>, String) {
        let folder = JobFolder::new(&self.jobs().join("1-0")).expect("a folder");
        let (_never, mut stopped) = watch::channel(false);
        let output = Output::default();
        std::fs::write(folder.checkout().join("old.xml"), "<old/>").expect("written");
        let ran = self.sandbox.run(job(run, time), &folder, &mut stopped, &output).await;
        folder.clear().await;
        assert_eq!(left(&self.label()), "", "no container is left");
        (ran, output.into_text())
    }

    pub(crate) async fn sh(&self, script: &str) -> (Ended, String) {
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

/// The settings of containers of an image, with low limits.
pub(crate) fn settings(image: &Image) -> SandboxSettings {
    SandboxSettings {
        backend: Backend::Container,
        container_engine: "podman".to_owned(),
        container_image: image.name().to_owned(),
        memory_mib: 64,
        processes: 32,
        output_mib: 1,
        ..SandboxSettings::default()
    }
}

/// What a check in a container sees and may do, and how it ends.
pub(crate) async fn a_check_is_isolated_and_ends(place: &Place) {
    let script = "echo \"$PASSED, $HOME, $TMPDIR\"; touch ~/x /tmp/x here; echo '<a/>' > r.xml; ls\n\
                  for place in / /usr /usr/bin /etc; do touch $place/x && echo \"WRITTEN $place\"; done\n\
                  id\n while read line; do case $line in Cap*|NoNew*) echo \"$line\";; esac; done \
                  < /proc/self/status; ls /sys/class/net; exit 7";
    let (ran, text) = place.run(&["sh", "-c", script], Duration::from_mins(1)).await;
    let ran = ran.expect("it ran");
    assert_eq!(code(&ran.ended), Some(7), "{text}");
    assert!(text.contains("a value with spaces, /home/check, /tmp\n"), "{text}");
    assert!(text.contains("here\nold.xml\nr.xml\n") && !text.contains("WRITTEN"), "{text}");
    assert!(!text.contains("uid=0") && text.contains("NoNewPrivs:\t1"), "{text}");
    for line in text.lines().filter(|line| line.starts_with("Cap")) {
        assert!(line.ends_with("\t0000000000000000"), "no capability is left: {text}");
    }
    assert!(text.ends_with("lo\n"), "no network: {text}");
    let reports: Vec<&str> = ran.reports.files.iter().map(|it| it.name.as_str()).collect();
    assert_eq!((reports, ran.reports.old), (vec!["old.xml", "r.xml"], 1));

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
}

#[tokio::test(flavor = "multi_thread")]
async fn checks_run_in_containers_and_leave_none() {
    let Some(image) = Image::new("test", &[]) else {
        not_tested("Podman does not run containers here");
        return;
    };
    let place = Place::new(settings(&image));
    let ready = place.sandbox.ready().await.expect("it is ready");
    assert_eq!((ready.by.as_str(), ready.network), ("podman", false));
    a_check_is_isolated_and_ends(&place).await;

    // A server that is gone: what it left is removed at the next start.
    let label = place.label();
    let run = image.run(&["--detach", "--label", &label], &["/usr/bin/sleep", "1000"]);
    let started = podman(&run).expect("podman");
    assert!(started.status.success(), "{started:?}");
    assert_ne!(left(&label), "");
    std::fs::create_dir_all(place.jobs()).expect("made");
    place.sandbox.sweep(&place.jobs());
    assert_eq!(left(&label), "");

    // An image that is not there.
    let missing = "localhost/signalbox-test:missing".to_owned();
    let place = Place::new(SandboxSettings { container_image: missing, ..place.settings });
    let refused = place.sandbox.ready().await.expect_err("no image").to_string();
    assert!(refused.contains("podman pull localhost/signalbox-test:missing"), "{refused}");
}
