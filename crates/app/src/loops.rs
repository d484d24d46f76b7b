//! Background work: effects, deadlines, hosts that do not tell, stray branches.

use std::sync::Arc;
use std::time::Duration;

use signalbox_domain::ports::Leased;
use signalbox_domain::queue::Lane;
use signalbox_domain::service::{EffectRunner, Error};
use signalbox_domain::time::Span;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::config::{Checks, Config, Host};
use crate::wiring::{App, chain};

/// Effects of the host lane that are run at the same time.
const HOST_WORKERS: u32 = 4;
/// How long an idle loop waits for a wake-up before it looks by itself.
const IDLE: Duration = Duration::from_millis(500);
/// How often a lease on checks is renewed: a cancelled run stops within this time.
const CHECKS_RENEWAL: Duration = Duration::from_secs(2);
/// How long what checks printed is kept, in hours.
const KEEP_OUTPUT_HOURS: u32 = 45 * 24;

/// The loops of a server.
pub(crate) struct Loops {
    tasks: JoinSet<()>,
    stop: watch::Sender<bool>,
    runner: Arc<EffectRunner>,
}

impl Loops {
    /// Starts them.
    pub(crate) fn start(app: &Arc<App>) -> Self {
        let (stop, stopped) = watch::channel(false);
        let mut tasks = JoinSet::new();
        for (lane, workers) in
            [(Lane::Host, HOST_WORKERS), (Lane::Checks, check_workers(&app.config))]
        {
            tasks.spawn(effects(app.clone(), lane, workers, stopped.clone()));
        }
        let (second, minute) = (Duration::from_secs(1), Duration::from_mins(1));
        let sweeper = app.sweeper.clone();
        tasks.spawn(every("deadlines", second, stopped.clone(), move || {
            let sweeper = sweeper.clone();
            async move { sweeper.deadlines().await.map(drop) }
        }));
        let sweeper = app.sweeper.clone();
        tasks.spawn(every("polled hosts", 2 * second, stopped.clone(), move || {
            let sweeper = sweeper.clone();
            async move { sweeper.reconcile(true).await }
        }));
        let sweeper = app.sweeper.clone();
        tasks.spawn(every("all hosts", minute, stopped.clone(), move || {
            let sweeper = sweeper.clone();
            async move { sweeper.reconcile(false).await }
        }));
        let sweeper = app.sweeper.clone();
        tasks.spawn(every("stray branches", 10 * minute, stopped.clone(), move || {
            let sweeper = sweeper.clone();
            async move { sweeper.stray_branches().await.map(drop) }
        }));
        let context = app.context.clone();
        tasks.spawn(every("old outputs", 60 * minute, stopped, move || {
            let context = context.clone();
            async move {
                let before = context.clock.now().minus(Span::hours(KEEP_OUTPUT_HOURS));
                Ok(context.stores.check_log.prune(before, 1_000).await.map(drop)?)
            }
        }));
        Self { tasks, stop, runner: app.runner.clone() }
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
    }
}

fn check_workers(config: &Config) -> u32 {
    let hosts = config.organizations.iter().flat_map(|it| &it.hosts);
    let configured: u32 = hosts
        .map(|host| match host {
            Host::Git { checks, .. } => checks.concurrency,
        })
        .sum();
    configured.max(Checks::default().concurrency)
}

/// Does something again and again. An error is logged, and the next round tries again.
async fn every<F, R>(name: &str, pause: Duration, mut stopped: watch::Receiver<bool>, mut job: F)
where
    F: FnMut() -> R,
    R: Future<Output = Result<(), Error>>,
{
    while !*stopped.borrow() {
        if let Err(error) = job().await {
            tracing::warn!(error = %chain(name, &error), "background work failed; it is repeated");
        }
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            changed = stopped.changed() => if changed.is_err() { return },
        }
    }
}

/// Leases effects of a lane and runs them, as many at the same time as there are workers.
async fn effects(app: Arc<App>, lane: Lane, workers: u32, mut stopped: watch::Receiver<bool>) {
    let mut running = JoinSet::new();
    while !*stopped.borrow() {
        let busy = u32::try_from(running.len()).unwrap_or(u32::MAX);
        let free = workers.saturating_sub(busy);
        let leased = if free == 0 { Ok(Vec::new()) } else { app.runner.lease(lane, free).await };
        let leased = leased.unwrap_or_else(|error| {
            tracing::warn!(error = %chain("outbox", &error), "effects cannot be leased");
            Vec::new()
        });
        let more = !leased.is_empty();
        for effect in leased {
            running.spawn(run(app.clone(), effect));
        }
        if more && running.len() < usize::try_from(workers).unwrap_or(usize::MAX) {
            continue;
        }
        tokio::select! {
            ended = running.join_next(), if !running.is_empty() => {
                if let Some(Err(error)) = ended {
                    tracing::error!(%error, "an effect's task ended badly; its lease runs out");
                }
            }
            () = app.wake_ups.of(lane).notified(), if free > 0 => {}
            () = tokio::time::sleep(IDLE), if free > 0 => {}
            changed = stopped.changed() => if changed.is_err() { break },
        }
    }
    match lane {
        // Short calls are finished; checks are killed by dropping them.
        Lane::Host => while running.join_next().await.is_some() {},
        Lane::Checks => running.shutdown().await,
    }
}

/// Runs an effect and keeps its lease alive. A lost lease closes the sink, which ends checks.
async fn run(app: Arc<App>, leased: Leased) {
    let sink = app.runner.sink(&leased);
    let pause = match leased.effect.lane() {
        Lane::Host => EffectRunner::renewal(),
        Lane::Checks => CHECKS_RENEWAL,
    };
    let heartbeat = async {
        loop {
            tokio::time::sleep(pause).await;
            match app.runner.renew(&leased).await {
                Ok(true) => {}
                Ok(false) => sink.close(),
                Err(error) => {
                    tracing::warn!(error = %chain("lease", &error), "a lease was not renewed");
                }
            }
        }
    };
    let work = app.runner.run(&leased, &sink);
    tokio::select! {
        done = work => if let Err(error) = done {
            let what = leased.effect.name();
            tracing::warn!(error = %chain(what, &error), "an effect is run again later");
        },
        () = heartbeat => {}
    }
}
