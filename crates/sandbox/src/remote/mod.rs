//! Checks in containers of an engine that is reached by its API, and may be on another machine.
//!
//! A container has three volumes of its own: the checkout, which is sent to it before it starts, its
//! home and its temporary folder. What it prints is read as it comes, reports are fetched when it has
//! ended, and it is removed with its volumes. Nothing of this machine is visible in it.

mod api;
mod container;
mod files;

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bollard::Docker;
use tokio::sync::watch;
use tokio::time::Instant;

use self::container::Container;
use crate::users::UserId;
use crate::{
    Ended, Job, JobFolder, NotReady, NotRun, Output, Ran, Ready, Sandbox, SandboxSettings, folder,
};

/// The longest that the first container may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// The longest that earlier containers are removed before a check begins.
const TIDYING: Duration = Duration::from_mins(1);
/// How long an engine may still make a container whose creation it has not confirmed.
const CREATION: Duration = Duration::from_mins(2);
/// The label of containers that no sweep looks for: the first one of a process that only asks whether
/// checks can run, such as `doctor`.
const NO_PLACE: &str = "none";
/// The file with the label of all others, beside the folders of their jobs.
const PLACE: &str = "engine-place";

/// Runs checks in containers of the engine at `container_host`.
pub(crate) struct EngineSandbox {
    settings: SandboxSettings,
    works: AtomicBool,
    /// Whose containers these are, for their label: what a sweep read.
    place: OnceLock<Result<String, String>>,
    /// Whether containers of an earlier process of this place may still be there.
    is_unswept: AtomicBool,
    left: Left,
}

/// The containers that could not be removed, by name, and since when.
#[derive(Clone, Default)]
pub(crate) struct Left(Arc<Mutex<BTreeMap<String, Instant>>>);

impl Left {
    fn add(&self, name: &str) {
        let mut left = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        left.entry(name.to_owned()).or_insert_with(Instant::now);
    }

    fn forget(&self, name: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(name);
    }

    fn names(&self) -> BTreeMap<String, Instant> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl EngineSandbox {
    pub(crate) fn new(settings: SandboxSettings) -> Self {
        let (works, is_unswept) = (AtomicBool::new(false), AtomicBool::new(false));
        Self { settings, works, place: OnceLock::new(), is_unswept, left: Left::default() }
    }

    /// The label of its containers. The error says why they could never be found again.
    fn place(&self) -> Result<&str, String> {
        self.place.get().map_or(Ok(NO_PLACE), |place| place.as_deref().map_err(Clone::clone))
    }

    /// An error of the engine, with where it is.
    fn failed(&self, words: &str) -> String {
        format!("the container engine at {}: {words}", self.settings.container_host)
    }

    /// Removes the containers that an earlier process of this place, or a broken connection, left.
    async fn tidy(&self, docker: &Docker) -> Result<(), String> {
        let again = async {
            for (name, since) in self.left.names() {
                let is_made = since.elapsed() > CREATION;
                api::remove(docker, &name, is_made, &self.left).await;
            }
        };
        // The rest of them is removed another time.
        drop(tokio::time::timeout(TIDYING, again).await);
        if self.is_unswept.load(Ordering::SeqCst) {
            for name in api::containers(docker, self.place()?).await? {
                if !container::is_of_this_process(&name) {
                    api::remove(docker, &name, true, &self.left).await;
                }
            }
            self.is_unswept.store(false, Ordering::SeqCst);
        }
        Ok(())
    }

    /// Runs a command that does nothing, as every other.
    async fn try_out(&self) -> Result<(), String> {
        let place = tempfile::tempdir().map_err(|error| format!("no folder: {error}"))?;
        let folder = JobFolder::new(&place.path().join("probe"));
        let folder = folder.map_err(|error| format!("no folder: {error}"))?;
        let job = Job {
            run: vec!["true".to_owned()],
            environment: Vec::new(),
            time: PATIENCE,
            hidden: Vec::new(),
            reports: Vec::new(),
        };
        let (_never, mut stopped) = watch::channel(false);
        let ran = self.run_once(&job, &folder, &mut stopped, &Output::default()).await;
        folder.clear().await;
        match ran.map(|ran| ran.ended) {
            Ok(Ended::Exited(status)) if status.success() => Ok(()),
            Ok(ended) => {
                Err(format!("a check that does nothing ended in a container: {}", ended.words()))
            }
            Err(NotRun::Program(error)) => {
                Err(format!("it cannot run the program `true` of the image: {error}"))
            }
            Err(NotRun::Machine(error)) => Err(error.to_string()),
        }
    }

    async fn run_once(
        &self,
        job: &Job,
        folder: &JobFolder,
        stopped: &mut watch::Receiver<bool>,
        output: &Output,
    ) -> Result<Ran, NotRun> {
        let docker = api::connect(&self.settings).await.map_err(io::Error::other)?;
        // Checks of one engine share its kernel's counts of processes by user.
        let user = UserId::take(self.settings.first_user_id);
        let place = self.place().map_err(io::Error::other)?;
        let container = Container::new(docker, self.left.clone(), folder);
        container.run(&self.settings, place, user.get(), job, folder, stopped, output).await
    }
}

#[async_trait]
impl Sandbox for EngineSandbox {
    async fn ready(&self) -> Result<Ready, NotReady> {
        let is_tidy = self.left.names().is_empty() && !self.is_unswept.load(Ordering::SeqCst);
        if !(is_tidy && self.works.load(Ordering::SeqCst)) {
            let tried = async {
                let docker = api::connect(&self.settings).await?;
                self.tidy(&docker).await?;
                if self.works.load(Ordering::SeqCst) {
                    return Ok(());
                }
                api::has_image(&docker, &self.settings.container_image).await?;
                self.try_out().await
            };
            tried.await.map_err(|words| NotReady(self.failed(&words)))?;
            self.works.store(true, Ordering::SeqCst);
        }
        let by = format!("containers of the engine at {}", self.settings.container_host);
        Ok(Ready { by, network: self.settings.network })
    }

    async fn run(
        &self,
        job: Job,
        folder: &JobFolder,
        stopped: &mut watch::Receiver<bool>,
        output: &Output,
    ) -> Result<Ran, NotRun> {
        let error = match self.run_once(&job, folder, stopped, output).await {
            Ok(ran) => return Ok(ran),
            Err(error) => error,
        };
        // Engines fail alike for a program that is not there and for a runtime that is broken.
        self.works.store(false, Ordering::SeqCst);
        let machine = |words: String| NotRun::Machine(io::Error::other(words));
        match error {
            NotRun::Machine(error) => Err(machine(self.failed(&error.to_string()))),
            NotRun::Program(error) => match self.ready().await {
                Ok(_) => Err(NotRun::Program(error)),
                Err(refused) => Err(machine(refused.0)),
            },
        }
    }

    fn sweep(&self, folder: &Path) {
        self.is_unswept.store(true, Ordering::SeqCst);
        self.place.get_or_init(|| {
            let words =
                |error| format!("no name for its containers beside {}: {error}", folder.display());
            place_of(folder).map_err(words)
        });
        folder::clear_jobs(folder);
    }
}

/// Whose jobs a folder has: a random name beside it, which the folders of one server share. Servers
/// of one engine may have equal folders, on several machines.
fn place_of(folder: &Path) -> io::Result<String> {
    let parent = folder.parent().unwrap_or(folder);
    let path = parent.join(PLACE);
    match fs::read_to_string(&path) {
        Ok(place) if !place.is_empty() => return Ok(place),
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    fs::create_dir_all(parent)?;
    let made = tempfile::Builder::new().prefix("").rand_bytes(20).tempfile_in(parent)?;
    let place = made.path().file_name().unwrap_or_default().to_string_lossy().into_owned();
    fs::write(made.path(), &place)?;
    made.persist(&path)?;
    Ok(place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_one_server_share_a_place_and_no_other_has_it() {
        let (one, other) = (tempfile::tempdir(), tempfile::tempdir());
        let (one, other) = (one.expect("a folder"), other.expect("a folder"));
        let place = place_of(&one.path().join("jobs")).expect("made");
        assert!(place.len() >= 20, "{place}");
        assert_eq!(place_of(&one.path().join("others")).expect("read"), place);
        assert_ne!(place_of(&other.path().join("jobs")).expect("made"), place);
    }

    #[tokio::test]
    async fn an_engine_that_is_not_there_is_named() {
        let settings = SandboxSettings {
            container_host: "unix:///nowhere/engine.sock".to_owned(),
            ..SandboxSettings::default()
        };
        let refused = EngineSandbox::new(settings).ready().await.expect_err("no engine");
        let words = refused.to_string();
        let start = "checks are refused: the container engine at unix:///nowhere/engine.sock: ";
        assert!(words.starts_with(start) && !words.contains("ocker"), "{words}");
    }
}
