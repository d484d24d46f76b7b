//! The loops of a server, from its start to its end.

use std::sync::Arc;
use std::time::Duration;

use signalbox_domain::queue::Lane;
use signalbox_domain::time::Span;
use signalbox_services::{EffectRunner, Error, FlakyService, UploadService, WebhookService};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::effects::effects;
use super::failing;
use super::periodic::every;
use super::retention::forget;
use super::supervise::supervise;
use super::uploads::read_uploads;
use super::webhooks;
use crate::wiring::{App, chain};

/// Effects of the host lane that are run at the same time.
const HOST_WORKERS: usize = 4;
/// The first pause before a loop that panicked is started again.
const RESTART: Duration = Duration::from_secs(1);
/// How long an idle reader of uploads waits before it looks again.
const UPLOADS: Duration = Duration::from_millis(500);
/// How long it takes at most until somebody looks for new events.
const WEBHOOKS: Duration = Duration::from_millis(500);

/// The loops of a server.
pub(crate) struct Loops {
    tasks: JoinSet<()>,
    stop: watch::Sender<bool>,
    runner: Arc<EffectRunner>,
    uploads: Arc<UploadService>,
    hooks: Arc<WebhookService>,
}

impl Loops {
    /// Starts them.
    pub(crate) fn start(app: &Arc<App>) -> Self {
        let (stop, _) = watch::channel(false);
        let (runner, uploads) = (app.runner.clone(), app.uploads.clone());
        let hooks = app.webhooks.clone();
        let mut loops = Self { tasks: JoinSet::new(), stop, runner, uploads, hooks };
        loops.lane(app, "host effects", Lane::Host, HOST_WORKERS);
        loops.lane(app, "checks", Lane::Checks, app.hosts.checks_at_once());
        let (second, minute) = (Duration::from_secs(1), Duration::from_mins(1));
        loops.every("deadlines", second, app, |app| async move {
            app.sweeper.deadlines().await.map(drop)
        });
        loops.every("polled hosts", 2 * second, app, |app| async move {
            app.sweeper.reconcile(true).await
        });
        loops.every(
            "all hosts",
            minute.min(app.hosts.shortest_reread().to_std()),
            app,
            |app| async move { app.sweeper.reconcile(false).await },
        );
        loops.every("undecided hosts", 3 * second, app, |app| async move {
            app.sweeper.undecided().await.map(drop)
        });
        loops.every(
            "announcements",
            2 * second,
            app,
            |app| async move { app.announcer.round().await },
        );
        loops.every(
            "missed commands",
            5 * minute,
            app,
            |app| async move { app.hints.catch_up().await },
        );
        loops.every("old host events", 60 * minute, app, |app| async move {
            app.hints.forget().await?;
            app.announcer.forget().await.map(drop)
        });
        loops.every("waiting entries", minute, app, |app| async move {
            let looked = app.watch.look().await?;
            for it in &looked.unexplained {
                tracing::error!(
                    queue = %it.queue.queue.id, branch = %it.queue.branch, pr = %it.pr,
                    seen = it.why, "a pull request waits for nothing known; please report this"
                );
            }
            for run in &looked.lost {
                tracing::error!(%run, "an effect was gone without an answer; it runs again");
            }
            Ok(())
        });
        loops.every("stray branches", 10 * minute, app, |app| async move {
            app.sweeper.stray_branches().await.map(drop)
        });
        let told = Arc::new(failing::Told::default());
        loops.every("failing effects", 15 * second, app, move |app| {
            failing::tell(app, told.clone())
        });
        loops.every("locks of git", 30 * second, app, failing::heal_locks);
        for _ in 0..app.config.flaky.readers {
            loops.every("uploads", UPLOADS, app, read_uploads);
        }
        loops.every("old uploads", 60 * minute, app, |app| async move {
            let now = app.context.clock.now();
            let before = |days: u32| now.minus(Span::hours(days * 24));
            let flaky = &app.config.flaky;
            let (bundles, records) = (flaky.keep_bundles_days, flaky.keep_uploads_days);
            app.uploads.sweep(before(bundles), before(records)).await
        });
        loops.every("old outputs", 60 * minute, app, |app| async move {
            let days = app.config.retention.outputs_days;
            let before = app.context.clock.now().minus(Span::days(days));
            Ok(app.context.stores.check_log.prune(before, 1_000).await.map(drop)?)
        });
        loops.every("old history", 60 * minute, app, forget);
        loops.every("events of other servers", second, app, |app| async move {
            let log = &app.context.stores.event_log;
            Ok(app.wake_ups.events.look(log.as_ref()).await?)
        });
        loops.flaky(app);
        loops.webhooks(app);
        loops
    }

    /// What time does to flaky tests.
    fn flaky(&mut self, app: &Arc<App>) {
        let (second, minute) = (Duration::from_secs(1), Duration::from_mins(1));
        self.every("monitors", 10 * second, app, |app| async move {
            let service = &app.flaky.service;
            while service.measure().await? >= FlakyService::AT_ONCE {}
            Ok(())
        });
        self.every("days of results", 60 * minute, app, |app| async move {
            app.flaky.service.prepare_days().await
        });
        self.every("old results", 10 * minute, app, |app| async move {
            let history = Span::hours(app.config.flaky.history_days.saturating_mul(24));
            while app.flaky.service.prune(history).await? > 0 {}
            Ok(())
        });
    }

    /// What happens is told.
    fn webhooks(&mut self, app: &Arc<App>) {
        self.every("new webhook messages", WEBHOOKS, app, webhooks::fan_out);
        self.every("old webhook messages", Duration::from_mins(10), app, webhooks::prune);
        let (app, stopped) = (app.clone(), self.stop.subscribe());
        let observer = app.context.observer.clone();
        self.tasks.spawn(supervise("webhooks", observer, RESTART, stopped.clone(), move || {
            webhooks::deliver(app.clone(), stopped.clone())
        }));
    }

    fn lane(&mut self, app: &Arc<App>, name: &'static str, lane: Lane, workers: usize) {
        let (app, stopped) = (app.clone(), self.stop.subscribe());
        let observer = app.context.observer.clone();
        self.tasks.spawn(supervise(name, observer, RESTART, stopped.clone(), move || {
            effects(app.clone(), lane, workers, stopped.clone())
        }));
    }

    fn every<F, R>(&mut self, name: &'static str, pause: Duration, app: &Arc<App>, job: F)
    where
        F: Fn(Arc<App>) -> R + Clone + Send + 'static,
        R: Future<Output = Result<(), Error>> + Send + 'static,
    {
        let (app, stopped) = (app.clone(), self.stop.subscribe());
        let observer = app.context.observer.clone();
        self.tasks.spawn(supervise(name, observer, RESTART, stopped.clone(), move || {
            let (app, job) = (app.clone(), job.clone());
            every(name, pause, stopped.clone(), move || job(app.clone()))
        }));
    }

    /// Stops them: short calls are finished, checks are killed, and what was leased is given back
    /// for the next server.
    pub(crate) async fn stop(mut self) {
        self.stop.send_replace(true);
        let finish = async { while self.tasks.join_next().await.is_some() {} };
        if tokio::time::timeout(Duration::from_secs(10), finish).await.is_err() {
            self.tasks.shutdown().await;
        }
        if let Err(error) = self.runner.hand_back().await {
            tracing::warn!(error = %chain("leases", &error), "leases run out by themselves");
        }
        if let Err(error) = self.uploads.hand_back(false).await {
            tracing::warn!(error = %chain("uploads", &error), "leases run out by themselves");
        }
        if let Err(error) = self.hooks.hand_back(false).await {
            tracing::warn!(error = %chain("webhooks", &error), "leases run out by themselves");
        }
    }
}
