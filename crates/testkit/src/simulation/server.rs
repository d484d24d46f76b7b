//! A server: the services of one process and their background loops, as in the application.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signalbox_domain::ports::{Leased, Notifier, Observed, Observer, QueueRef};
use signalbox_domain::queue::EffectClass;
use signalbox_domain::time::Span;
use signalbox_services::{Context, EffectRunner, Looked, QueueService, Sweeper, Watch};

use super::schedule::{Schedule, ServerId};

/// A running server.
pub(super) struct Server {
    pub(super) id: ServerId,
    pub(super) queues: Arc<QueueService>,
    pub(super) sweeper: Arc<Sweeper>,
    runner: Arc<EffectRunner>,
    schedule: Arc<Schedule>,
}

/// A notifier of one server that loses some notifications.
struct Bell {
    server: ServerId,
    schedule: Arc<Schedule>,
}

impl Notifier for Bell {
    fn committed(&self, _: QueueRef, classes: &[EffectClass]) {
        for class in classes {
            if !self.schedule.fault(200) {
                self.schedule.wake(self.server, *class);
            }
        }
    }
}

/// Writes conflicts of commits into the trace; the store records the commits themselves.
pub(super) struct Scribe(pub(super) Arc<Schedule>);

impl Observer for Scribe {
    fn observe(&self, seen: &Observed<'_>) {
        if let Observed::EffectRun { effect, outcome, .. } = seen {
            self.0.note_here(format!("{effect} {outcome}"));
        }
    }
}

impl Server {
    /// Starts a server. `alone`: it is the only one, so it ends the leases of dead servers.
    pub(super) fn start(
        id: ServerId,
        context: &Context,
        schedule: &Arc<Schedule>,
        alone: bool,
    ) -> Self {
        let bell = Bell { server: id, schedule: schedule.clone() };
        let context = Context { notifier: Arc::new(bell), ..context.clone() };
        let queues = Arc::new(QueueService::new(context.clone()));
        let server = Self {
            id,
            runner: Arc::new(EffectRunner::new(context.clone(), queues.clone())),
            sweeper: Arc::new(Sweeper::new(context.clone(), queues.clone())),
            queues: queues.clone(),
            schedule: schedule.clone(),
        };
        schedule.note(format!("s{id} starts{}", if alone { " alone" } else { "" }));
        if alone {
            let runner = server.runner.clone();
            schedule.spawn(id, "take over", async move { drop(runner.take_over().await) });
        }
        for class in EffectClass::ALL {
            server.run_effects(*class);
        }
        server.every("deadlines", (1, 15), |sweeper| async move {
            drop(sweeper.deadlines().await);
        });
        server.every("look often", (2, 60), |sweeper| async move {
            drop(sweeper.look_often().await);
        });
        server.every("look at all", (60, 300), |sweeper| async move {
            drop(sweeper.look_at_all().await);
        });
        server.every("stray branches", (300, 600), |sweeper| async move {
            drop(sweeper.stray_branches().await);
        });
        server.watch(Watch::new(context, queues));
        server
    }

    /// Runs the watch over waiting entries periodically. Every wait must be explained, and no
    /// answer lost.
    fn watch(&self, watch: Watch) {
        let schedule = self.schedule.clone();
        self.schedule.spawn(self.id, "waiting entries", async move {
            loop {
                let seconds = schedule.draw(|random| random.between(30, 90));
                schedule.sleep(Span::seconds(seconds)).await;
                let Ok(looked) = watch.look().await else { continue };
                if looked != Looked::default() {
                    schedule.violated(format!("Q10: the watch has found {looked:?}"));
                }
            }
        });
    }

    /// Runs a job periodically, with random pauses in this range of seconds.
    fn every<F, R>(&self, name: &str, (least, most): (u32, u32), job: F)
    where
        F: Fn(Arc<Sweeper>) -> R + Send + 'static,
        R: Future<Output = ()> + Send + 'static,
    {
        let (schedule, sweeper) = (self.schedule.clone(), self.sweeper.clone());
        self.schedule.spawn(self.id, name, async move {
            loop {
                let seconds = schedule.draw(|random| random.between(least, most));
                schedule.sleep(Span::seconds(seconds)).await;
                job(sweeper.clone()).await;
            }
        });
    }

    /// Leases effects of a class and runs each in a task of its own.
    fn run_effects(&self, class: EffectClass) {
        let (id, schedule, runner) = (self.id, self.schedule.clone(), self.runner.clone());
        self.schedule.spawn(id, class.as_str(), async move {
            loop {
                let limit = schedule.draw(|random| random.between(1, 4));
                for leased in runner.lease(class, limit).await.unwrap_or_default() {
                    work(id, &schedule, &runner, leased);
                }
                let seconds = schedule.draw(|random| random.between(1, 10));
                schedule.idle(id, class, Span::seconds(seconds)).await;
            }
        });
    }
}

/// Runs an effect and renews its lease. A lost lease closes the sink.
fn work(id: ServerId, schedule: &Arc<Schedule>, runner: &Arc<EffectRunner>, leased: Leased) {
    let name = leased.effect.name();
    let sink = Arc::new(runner.sink(&leased));
    let done = Arc::new(AtomicBool::new(false));
    let heartbeat = {
        let (schedule, runner, leased) = (schedule.clone(), runner.clone(), leased.clone());
        let (sink, done) = (sink.clone(), done.clone());
        async move {
            loop {
                schedule.sleep(Span::seconds(4)).await;
                if done.load(Ordering::SeqCst) {
                    return;
                }
                if let Ok(false) = runner.renew(&leased).await {
                    return sink.close();
                }
            }
        }
    };
    let (trace, runner) = (schedule.clone(), runner.clone());
    let work = async move {
        if let Err(error) = runner.run(&leased, &sink).await {
            trace.note_here(format!("{} is run again: {error}", leased.effect.name()));
        }
        done.store(true, Ordering::SeqCst);
    };
    schedule.spawn(id, format!("{name} heartbeat"), heartbeat);
    schedule.spawn(id, name, work);
}
