//! The container of one job.

use std::collections::HashMap;
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::pin::Pin;
use std::process::ExitStatus;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use bollard::Docker;
use bollard::container::LogOutput;
use bollard::errors::Error;
use bollard::models::{
    ContainerCreateBody, ContainerState, ContainerStateStatusEnum, HostConfig, HostConfigLogConfig,
    Mount, MountType, MountVolumeOptions, ResourcesUlimits,
};
use bollard::query_parameters::{
    CreateContainerOptionsBuilder, InspectContainerOptions, LogsOptionsBuilder,
    StartContainerOptions, StopContainerOptionsBuilder, WaitContainerOptions,
};
use futures_util::{Stream, StreamExt as _, pin_mut};
use tokio::sync::watch;

use super::{Left, api, files};
use crate::bubblewrap::{CHECKOUT, HOME, TMP};
use crate::{Collected, Ended, Job, JobFolder, NotRun, Output, Ran, SandboxSettings};

/// How long an engine may take to get a checkout, or to give the reports back.
const TRANSFER: Duration = Duration::from_mins(30);
/// How often the server checks that the container still runs.
const PULSE: Duration = Duration::from_secs(30);
/// How many times in a row the engine may fail to answer.
const MISSED: u32 = 3;
/// How long a check has after the polite signal, in seconds.
const GRACE: i32 = 2;
/// How long output that does not come is waited for after the end of a container.
const DRAIN: Duration = Duration::from_secs(5);
/// What follows output that does not come.
const CUT: &[u8] = b"\n[the engine did not send the rest of the output]\n";
/// The most open files of a process.
const OPEN_FILES: i64 = 16_384;
/// The most processes of the user of a check, whom checks of other servers may share.
const PROCESSES_OF_USER: i64 = 32_768;
/// What engines say about a program that they cannot run.
const NOT_RUNNABLE: [&str; 6] = [
    "exec format error",
    "is a directory",
    "no such file",
    "not a directory",
    "not found",
    "permission denied",
];
/// The exit code of a command that was killed.
const KILLED: i64 = 137;
/// How an engine keeps what a container prints, which both kinds can give back.
const LOG: &str = "json-file";
/// How many times what a check may print it keeps. Beyond that the oldest is lost.
const LOG_ROOM: u64 = 8;
/// Variables of a job that are those of its container.
const OWN: [&str; 3] = ["HOME", "PATH", "TMPDIR"];
const MIB: i64 = 1024 * 1024;
/// Names of containers are unique in one engine, also among several servers.
static NUMBER: AtomicU32 = AtomicU32::new(0);
static PROCESS: LazyLock<String> = LazyLock::new(|| {
    let mut bytes = [0; 8];
    // Without it, names of two servers could be equal, which the engine refuses, and a sweep would
    // take containers of an earlier process for its own.
    let _zero = getrandom::fill(&mut bytes);
    format!("signalbox-{:016x}-", u64::from_ne_bytes(bytes))
});

/// Whether a container has a name that this process gave.
pub(super) fn is_of_this_process(name: &str) -> bool {
    name.starts_with(PROCESS.as_str())
}

/// A container, which need not be there yet. Dropping it removes it, with what still runs in it.
pub(super) struct Container {
    docker: Docker,
    name: String,
    left: Left,
    /// Whether the engine said that it is there.
    is_made: bool,
    is_removed: bool,
}

impl Container {
    pub(super) fn new(docker: Docker, left: Left, folder: &JobFolder) -> Self {
        let words = folder.path().file_name().unwrap_or_default().to_string_lossy();
        let is_plain = |it: &char| it.is_ascii_alphanumeric() || *it == '-';
        let words: String = words.chars().filter(is_plain).collect();
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("{}{number}-{words}", *PROCESS);
        Self { docker, name, left, is_made: false, is_removed: false }
    }

    /// Runs a job in it, and removes it.
    #[expect(clippy::too_many_arguments, reason = "the parts of a job, used once")]
    pub(super) async fn run(
        mut self,
        settings: &SandboxSettings,
        place: &str,
        user: u32,
        job: &Job,
        folder: &JobFolder,
        stopped: &mut watch::Receiver<bool>,
        output: &Output,
    ) -> Result<Ran, NotRun> {
        let body = body(settings, place, user, job).inspect_err(|_| self.is_removed = true)?;
        let prepared = tokio::select! {
            prepared = self.prepare(body, user, folder) => Some(prepared),
            _ = stopped.wait_for(|stopped| *stopped) => None,
        };
        let ran = match prepared {
            None => Ok(Ran { ended: Ended::Stopped, reports: Collected::default() }),
            Some(Err(error)) => Err(error),
            Some(Ok(())) => self.follow(settings, job, folder, stopped, output).await,
        };
        api::remove(&self.docker, &self.name, self.is_made, &self.left).await;
        // Not before: a caller that is gone leaves it to the drop.
        self.is_removed = true;
        ran
    }

    /// Makes it and sends it its checkout.
    async fn prepare(
        &mut self,
        body: ContainerCreateBody,
        user: u32,
        folder: &JobFolder,
    ) -> Result<(), NotRun> {
        let options = CreateContainerOptionsBuilder::default().name(&self.name).build();
        let made = api::in_time(self.docker.create_container(Some(options), body)).await;
        made.map_err(|error| machine(&error))?;
        self.is_made = true;
        let patient = api::patient(&self.docker, TRANSFER);
        for (inner, shown) in [("checkout", CHECKOUT), ("home", HOME), ("tmp", TMP)] {
            files::send(&patient, &self.name, &folder.path().join(inner), shown, user).await?;
        }
        Ok(())
    }

    /// Starts it, reads what it prints until it ends, and fetches its reports.
    async fn follow(
        &self,
        settings: &SandboxSettings,
        job: &Job,
        folder: &JobFolder,
        stopped: &mut watch::Receiver<bool>,
        output: &Output,
    ) -> Result<Ran, NotRun> {
        let started = self.docker.start_container(&self.name, None::<StartContainerOptions>);
        let started = api::in_time(started).await;
        started.map_err(|error| not_started(&error))?;
        // The engine keeps what is printed before it is read, as it would not for one that attaches.
        let logs = LogsOptionsBuilder::default().follow(true).stdout(true).stderr(true).build();
        let long = api::patient(&self.docker, job.time.saturating_add(TRANSFER));
        let from = Box::pin(long.logs(&self.name, Some(logs)));
        let most = u64::from(settings.output_mib) << 20;
        let mut printed = Printed { from, output, room: most, is_open: true };
        let mut ended = tokio::select! {
            exited = exit(&long, &self.name) => exited.map(|()| None)?,
            overflow = printed.overflow() => {
                overflow?;
                Some(Ended::OverLimit(over(settings)))
            }
            ended = self.pulse() => ended.map(|()| None)?,
            () = tokio::time::sleep(job.time) => Some(Ended::TimedOut),
            _ = stopped.wait_for(|stopped| *stopped) => {
                let (ended, reports) = (Ended::Stopped, Collected::default());
                return Ok(Ran { ended, reports });
            }
        };
        // A connection may be lost without a word, and the end of the check with it.
        if matches!(ended, Some(Ended::TimedOut)) && !self.runs().await? {
            ended = None;
        }
        if ended.is_some() {
            // An engine that is gone took the check with it, which did not take too long.
            let grace = if matches!(ended, Some(Ended::TimedOut)) { GRACE } else { 0 };
            let options = StopContainerOptionsBuilder::default().t(grace).build();
            let killed = self.docker.stop_container(&self.name, Some(options));
            let killed = api::in_time(killed).await;
            killed.map_err(|error| machine(&error))?;
        }
        let is_short = printed.rest().await;
        let ended = match ended {
            Some(ended) => ended,
            None if is_short => self.end(settings).await?,
            None => Ended::OverLimit(over(settings)),
        };
        let patient = api::patient(&self.docker, TRANSFER);
        let fetched = files::fetch(&patient, &self.name, job.reports.clone(), folder);
        let reports = tokio::select! {
            fetched = tokio::time::timeout(TRANSFER, fetched) => match fetched {
                Ok(fetched) => fetched?,
                // It left more than can be searched.
                Err(_) => Collected { omitted: 1, ..Collected::default() },
            },
            _ = stopped.wait_for(|stopped| *stopped) => {
                return Ok(Ran { ended: Ended::Stopped, reports: Collected::default() });
            }
        };
        Ok(Ran { ended, reports })
    }

    /// Resolves when it has ended, or the engine does not answer any more.
    async fn pulse(&self) -> Result<(), NotRun> {
        let mut missed = 0;
        loop {
            tokio::time::sleep(PULSE).await;
            match self.runs().await {
                Ok(true) => missed = 0,
                Ok(false) => return Ok(()),
                Err(error) => {
                    missed += 1;
                    if missed == MISSED {
                        return Err(error);
                    }
                }
            }
        }
    }

    async fn runs(&self) -> Result<bool, NotRun> {
        Ok(self.state().await?.running == Some(true))
    }

    async fn state(&self) -> Result<ContainerState, NotRun> {
        let found = self.docker.inspect_container(&self.name, None::<InspectContainerOptions>);
        let found = api::in_time(found).await.map_err(|error| machine(&error))?;
        Ok(found.state.unwrap_or_default())
    }

    /// Its result, as the engine reports it.
    async fn end(&self, settings: &SandboxSettings) -> Result<Ended, NotRun> {
        let state = self.state().await?;
        let code = state.exit_code.unwrap_or_default();
        let mib = settings.memory_mib;
        if state.oom_killed == Some(true) {
            return Ok(Ended::OverLimit(format!("it used more than {mib} MiB of memory")));
        }
        if state.status != Some(ContainerStateStatusEnum::EXITED) {
            return Err(NotRun::Machine(io::Error::other("the container was ended by the engine")));
        }
        if code == KILLED && mib > 0 {
            // Not every engine notices why the kernel ended it.
            return Ok(Ended::OverLimit(format!(
                "it was killed, possibly because it used more than {mib} MiB of memory"
            )));
        }
        let code = i32::try_from(code & 0xff).unwrap_or_default();
        Ok(Ended::Exited(ExitStatus::from_raw(code << 8)))
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        if self.is_removed {
            return;
        }
        let (docker, name, left) = (self.docker.clone(), self.name.clone(), self.left.clone());
        let is_made = self.is_made;
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => {
                runtime.spawn(async move { api::remove(&docker, &name, is_made, &left).await });
            }
            Err(_) => left.add(&name),
        }
    }
}

/// What a container prints.
struct Printed<'a> {
    from: Pin<Box<dyn Stream<Item = Result<LogOutput, Error>> + Send + 'a>>,
    output: &'a Output,
    /// How many more bytes it may have.
    room: u64,
    is_open: bool,
}

impl Printed<'_> {
    /// Reads it until it is too much, which may be never.
    async fn overflow(&mut self) -> Result<(), NotRun> {
        self.read().await?;
        if self.is_open {
            return Ok(());
        }
        // Its end is not that of the container.
        std::future::pending().await
    }

    /// Reads what is left after the end of the container; `false`: it is too much.
    async fn rest(&mut self) -> bool {
        while self.is_open {
            match tokio::time::timeout(DRAIN, self.from.next()).await {
                Ok(Some(Ok(piece))) => {
                    if !self.push(piece) {
                        return false;
                    }
                }
                Ok(None) => self.is_open = false,
                Ok(Some(Err(_))) | Err(_) => {
                    self.output.push(CUT);
                    self.is_open = false;
                }
            }
        }
        true
    }

    /// Reads it until it is too much, or to the end, which closes it.
    async fn read(&mut self) -> Result<(), NotRun> {
        while let Some(piece) = self.from.next().await {
            if !self.push(piece.map_err(|error| machine(&error))?) {
                return Ok(());
            }
        }
        self.is_open = false;
        Ok(())
    }

    /// Keeps a piece; `false`: it is too much.
    fn push(&mut self, piece: LogOutput) -> bool {
        let bytes = piece.into_bytes();
        self.output.push(&bytes);
        let room = self.room.checked_sub(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
        self.room = room.unwrap_or_default();
        room.is_some()
    }
}

fn over(settings: &SandboxSettings) -> String {
    format!("it printed more than {} MiB", settings.output_mib)
}

/// Why a container did not start: its program, as far as its words can be trusted, or the engine.
fn not_started(error: &Error) -> NotRun {
    let words = io::Error::other(api::words(error));
    let Error::DockerResponseServerError { status_code, message } = error else {
        return NotRun::Machine(words);
    };
    let message = message.to_lowercase();
    // 404 and 409: it was removed, or something else has its name.
    let is_program = ![404, 409].contains(status_code)
        && NOT_RUNNABLE.iter().any(|words| message.contains(words));
    if is_program { NotRun::Program(words) } else { NotRun::Machine(words) }
}

/// Waits for the end of a container.
async fn exit(docker: &Docker, name: &str) -> Result<(), NotRun> {
    let waited = docker.wait_container(name, None::<WaitContainerOptions>);
    pin_mut!(waited);
    match waited.next().await {
        // Its code, too, is an error of the client.
        Some(Ok(_) | Err(Error::DockerContainerWaitError { .. })) => Ok(()),
        Some(Err(error)) => Err(machine(&error)),
        None => Err(NotRun::Machine(io::Error::other("the engine ended the connection"))),
    }
}

fn machine(error: &Error) -> NotRun {
    NotRun::Machine(io::Error::other(api::words(error)))
}

/// What an engine makes a container of.
fn body(
    settings: &SandboxSettings,
    place: &str,
    user: u32,
    job: &Job,
) -> Result<ContainerCreateBody, NotRun> {
    let mut env = vec![format!("HOME={HOME}"), format!("TMPDIR={TMP}")];
    for (name, value) in &job.environment {
        if OWN.contains(&name.as_str()) {
            continue;
        }
        let Some(value) = value.to_str() else {
            let words =
                format!("the variable {name} is not UTF-8, which a container engine requires");
            return Err(NotRun::Program(io::Error::other(words)));
        };
        env.push(format!("{name}={value}"));
    }
    let volume = |path: &str| Mount {
        target: Some(path.to_owned()),
        typ: Some(MountType::VOLUME),
        // What the image has there is not of the checkout.
        volume_options: Some(MountVolumeOptions { no_copy: Some(true), ..Default::default() }),
        ..Mount::default()
    };
    let limit = |name: &str, most: i64| ResourcesUlimits {
        name: Some(name.to_owned()),
        soft: Some(most),
        hard: Some(most),
    };
    let memory = (settings.memory_mib > 0).then(|| i64::from(settings.memory_mib) * MIB);
    let processes = i64::from(settings.processes);
    let limits = [("core", 0), ("nofile", OPEN_FILES), ("nproc", PROCESSES_OF_USER)];
    // A check that prints faster than it is read must not fill the engine's disk.
    let most = u64::from(settings.output_mib) * LOG_ROOM + LOG_ROOM;
    let log = HashMap::from([("max-size".to_owned(), format!("{most}m"))]);
    let host = HostConfig {
        mounts: Some([CHECKOUT, HOME, TMP].map(volume).to_vec()),
        network_mode: (!settings.network).then(|| "none".to_owned()),
        readonly_rootfs: Some(true),
        cap_drop: Some(vec!["ALL".to_owned()]),
        security_opt: Some(vec!["no-new-privileges".to_owned()]),
        memory,
        memory_swap: memory,
        pids_limit: Some(processes),
        ulimits: Some(limits.map(|(name, most)| limit(name, most)).to_vec()),
        log_config: Some(HostConfigLogConfig { typ: Some(LOG.to_owned()), config: Some(log) }),
        ..HostConfig::default()
    };
    Ok(ContainerCreateBody {
        image: Some(settings.container_image.clone()),
        // That of the image is not used.
        entrypoint: Some(vec![String::new()]),
        cmd: Some(job.run.clone()),
        env: Some(env),
        user: Some(format!("{user}:{user}")),
        working_dir: Some(CHECKOUT.to_owned()),
        // One engine waits that long also before it removes a container that still runs.
        stop_timeout: Some(0),
        labels: Some(HashMap::from([(api::LABEL.to_owned(), place.to_owned())])),
        host_config: Some(host),
        ..ContainerCreateBody::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job() -> Job {
        Job {
            run: vec!["make".to_owned(), "test".to_owned()],
            environment: vec![
                ("PATH".to_owned(), "/server".into()),
                ("CI_KEY".to_owned(), "a value".into()),
            ],
            time: Duration::from_secs(1),
            hidden: Vec::new(),
            reports: Vec::new(),
        }
    }

    #[test]
    fn a_container_has_volumes_of_its_own_and_no_rights() {
        let settings =
            SandboxSettings { container_image: "rust:1".to_owned(), ..Default::default() };
        let body = body(&settings, "here", 60_801, &job()).expect("a body");
        assert_eq!(body.cmd, Some(vec!["make".to_owned(), "test".to_owned()]));
        assert_eq!(body.user.as_deref(), Some("60801:60801"));
        let env = body.env.expect("variables");
        assert!(env.contains(&"CI_KEY=a value".to_owned()), "{env:?}");
        assert!(!env.iter().any(|it| it.starts_with("PATH=")), "that of the image: {env:?}");
        let host = body.host_config.expect("limits");
        assert_eq!(host.network_mode.as_deref(), Some("none"));
        assert_eq!((host.readonly_rootfs, host.privileged, host.binds), (Some(true), None, None));
        assert_eq!(host.cap_drop, Some(vec!["ALL".to_owned()]));
        assert_eq!(host.memory, Some(8_192 * MIB));
        let mounts = host.mounts.expect("volumes");
        assert!(mounts.iter().all(|it| it.typ == Some(MountType::VOLUME) && it.source.is_none()));
    }

    #[test]
    fn only_words_about_a_program_blame_it() {
        let refused = |status_code, message: &str| {
            let message = message.to_owned();
            not_started(&Error::DockerResponseServerError { status_code, message })
        };
        let missing = "exec: \"nosuch\": executable file not found in $PATH";
        assert!(matches!(refused(400, missing), NotRun::Program(_)));
        assert!(matches!(refused(500, missing), NotRun::Program(_)));
        assert!(matches!(refused(404, "no such container: not found"), NotRun::Machine(_)));
        assert!(matches!(refused(500, "no space left on device"), NotRun::Machine(_)));
    }

    #[test]
    fn a_variable_that_cannot_be_sent_is_named() {
        use std::os::unix::ffi::OsStringExt as _;
        let mut job = job();
        job.environment.push(("ODD".to_owned(), std::ffi::OsString::from_vec(vec![0xff])));
        let refused = body(&SandboxSettings::default(), "here", 1_000, &job);
        let Err(NotRun::Program(error)) = refused else { panic!("it was accepted") };
        assert!(error.to_string().starts_with("the variable ODD is not UTF-8"), "{error}");
    }
}
