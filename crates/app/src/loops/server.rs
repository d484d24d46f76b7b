//! The loops of a server, from start to shutdown.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use signalbox_domain::ports::Work;
use signalbox_domain::queue::EffectClass;
use signalbox_loops::{Leases, every, schedule, supervise, woken};
use signalbox_services::{EffectRunner, Error, JobService, Sweeper, UploadService, WebhookService};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::agenda::keep_agenda;
use super::effects::effects;
use super::jobs::Job;
use super::uploads::read_uploads;
use super::{jobs, webhooks};
use crate::wiring::{App, chain};

/// Effects of the host class that are run at the same time.
const HOST_WORKERS: usize = 4;
/// The first pause before a loop is restarted after a panic.
const RESTART: Duration = Duration::from_secs(1);
/// Pull requests whose state is reported to their host at the same time.
const ANNOUNCERS: usize = 4;

/// The loops of a server.
pub(crate) struct Loops {
    tasks: JoinSet<()>,
    stop: watch::Sender<bool>,
    runner: Arc<EffectRunner>,
    uploads: Arc<UploadService>,
    hooks: Arc<WebhookService>,
    jobs: Arc<JobService>,
}

impl Loops {
    /// Starts them.
    pub(crate) fn start(app: &Arc<App>) -> Self {
        let (stop, _) = watch::channel(false);
        let (runner, uploads) = (app.runner.clone(), app.uploads.clone());
        let (hooks, leases) = (app.webhooks.clone(), app.jobs.clone());
        let mut loops = Self { tasks: JoinSet::new(), stop, runner, uploads, hooks, jobs: leases };
        loops.effect_loop(app, "host effects", EffectClass::Host, HOST_WORKERS);
        loops.effect_loop(app, "checks", EffectClass::Checks, app.hosts.concurrent_checks());
        loops.woken("deadlines", Work::Deadlines, app, |app| async move {
            while app.sweeper.deadlines().await? >= Sweeper::DUE_AT_ONCE {}
            Ok(())
        });
        for _ in 0..ANNOUNCERS {
            loops.woken("announcements", Work::Announcements, app, |app| async move {
                while !app.stopping.load(Ordering::SeqCst) && app.status_reporter.next().await? {}
                Ok(())
            });
        }
        for _ in 0..app.config.flaky.readers {
            loops.woken("uploads", Work::Uploads, app, read_uploads);
        }
        loops.woken("new webhook messages", Work::FanOut, app, webhooks::fan_out);
        // Without the key no message can be signed: messages wait until a server has it.
        if app.lost_key.is_none() {
            loops.start_again("webhooks", app, webhooks::deliver);
        }
        let reread = app.hosts.shortest_reread().to_std();
        let shared: Arc<[Job]> = jobs::shared(reread).into();
        loops.start_again("jobs", app, move |app, stopped| {
            let observer = app.context.observer.clone();
            let leases = Leases { service: app.jobs.clone(), observer };
            let bell = app.wake_ups.of(Work::Jobs).listen();
            schedule(app, leases, shared.clone(), bell, stopped)
        });
        for job in jobs::of_this_machine() {
            loops.every(app, job);
        }
        // Last, because everything that it wakes must be running.
        loops.start_again("agenda", app, keep_agenda);
        loops
    }

    fn effect_loop(
        &mut self,
        app: &Arc<App>,
        name: &'static str,
        class: EffectClass,
        workers: usize,
    ) {
        self.start_again(name, app, move |app, stopped| effects(app, class, workers, stopped));
    }

    /// Starts a loop, and restarts it after a panic.
    fn start_again<F, R>(&mut self, name: &'static str, app: &Arc<App>, start: F)
    where
        F: Fn(Arc<App>, watch::Receiver<bool>) -> R + Send + 'static,
        R: Future<Output = ()> + Send + 'static,
    {
        let (app, stopped) = (app.clone(), self.stop.subscribe());
        let observer = app.context.observer.clone();
        self.tasks.spawn(supervise(name, observer, RESTART, stopped.clone(), move || {
            start(app.clone(), stopped.clone())
        }));
    }

    /// Runs a job whenever there is work of that kind.
    fn woken<F, R>(&mut self, name: &'static str, work: Work, app: &Arc<App>, job: F)
    where
        F: Fn(Arc<App>) -> R + Clone + Send + 'static,
        R: Future<Output = Result<(), Error>> + Send + 'static,
    {
        self.start_again(name, app, move |app, stopped| {
            let (bell, job) = (app.wake_ups.of(work).listen(), job.clone());
            woken(name, bell, stopped, move || job(app.clone()))
        });
    }

    fn every(&mut self, app: &Arc<App>, job: Job) {
        self.start_again(job.kind, app, move |app, stopped| {
            let run = job.run.clone();
            every(job.kind, job.period, stopped, move || run(app.clone()))
        });
    }

    /// Stops them: short calls finish, checks are killed, and leases are released for the next
    /// server.
    pub(crate) async fn stop(mut self) {
        self.stop.send_replace(true);
        let finish = async { while self.tasks.join_next().await.is_some() {} };
        if tokio::time::timeout(Duration::from_secs(10), finish).await.is_err() {
            self.tasks.shutdown().await;
        }
        if let Err(error) = self.runner.hand_back().await {
            tracing::warn!(error = %chain("leases", &error), "could not release leases; they expire");
        }
        if let Err(error) = self.jobs.hand_back(false).await {
            tracing::warn!(error = %chain("jobs", &error), "could not release leases; they expire");
        }
        if let Err(error) = self.uploads.hand_back(false).await {
            tracing::warn!(error = %chain("uploads", &error), "could not release leases; they expire");
        }
        if let Err(error) = self.hooks.hand_back(false).await {
            tracing::warn!(error = %chain("webhooks", &error), "could not release leases; they expire");
        }
    }
}
