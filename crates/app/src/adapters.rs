//! The small adapters: the time, ids, wake-ups, and several observers as one.

use std::sync::Arc;

use signalbox_domain::ids::OrgId;
use signalbox_domain::ports::{Clock, IdSource, Notifier, Observed, Observer, QueueRef, Work};
use signalbox_domain::queue::Lane;
use signalbox_domain::time::Timestamp;
use signalbox_http::EventHub;
use tokio::sync::watch;
use uuid::Uuid;

/// The system's clock.
pub(crate) struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the clock adapter")]
    fn now(&self) -> Timestamp {
        time::OffsetDateTime::now_utc().into()
    }
}

/// Random ids.
pub(crate) struct RandomIds;

impl IdSource for RandomIds {
    #[expect(clippy::disallowed_methods, reason = "this is the adapter for ids")]
    fn new_id(&self) -> Uuid {
        Uuid::new_v4()
    }

    fn request_id(&self) -> Option<String> {
        signalbox_http::current_request_id()
    }
}

/// Wakes a kind of worker. A ring is not lost: a worker that was busy finds it afterwards.
pub(crate) struct Bell(watch::Sender<()>);

impl Default for Bell {
    fn default() -> Self {
        Self(watch::Sender::new(()))
    }
}

impl Bell {
    /// Wakes every worker that listens.
    pub(crate) fn ring(&self) {
        self.0.send_replace(());
    }

    /// For one worker: it changes with every ring.
    pub(crate) fn listen(&self) -> watch::Receiver<()> {
        self.0.subscribe()
    }
}

/// Wakes the workers of this process.
#[derive(Default)]
pub(crate) struct WakeUps {
    deadlines: Bell,
    host_effects: Bell,
    checks: Bell,
    announcements: Bell,
    uploads: Bell,
    fan_out: Bell,
    deliveries: Bell,
    jobs: Bell,
    /// Streams of events.
    pub(crate) events: EventHub,
}

impl WakeUps {
    /// What rings when there is work of that kind.
    pub(crate) const fn of(&self, work: Work) -> &Bell {
        match work {
            Work::Deadlines => &self.deadlines,
            Work::HostEffects => &self.host_effects,
            Work::Checks => &self.checks,
            Work::Announcements => &self.announcements,
            Work::Uploads => &self.uploads,
            Work::FanOut => &self.fan_out,
            Work::Deliveries => &self.deliveries,
            Work::Jobs => &self.jobs,
        }
    }
}

/// The work that effects of a lane are.
pub(crate) const fn work_of(lane: Lane) -> Work {
    match lane {
        Lane::Host => Work::HostEffects,
        Lane::Checks => Work::Checks,
    }
}

impl Notifier for WakeUps {
    fn committed(&self, _: QueueRef, lanes: &[Lane]) {
        for lane in lanes {
            self.of(work_of(*lane)).ring();
        }
    }

    fn told(&self, org: OrgId) {
        self.events.ring(org);
        self.fan_out.ring();
    }

    fn received(&self) {
        self.uploads.ring();
    }
}

/// Logs what happens, and hands it on.
pub(crate) struct LoggingObserver(pub(crate) Arc<dyn Observer>);

impl Observer for LoggingObserver {
    fn observe(&self, seen: &Observed<'_>) {
        match seen {
            Observed::Step { queue, input, decisions, took } => {
                tracing::debug!(queue.id = %queue.id, input, duration_ms = took.millis(), "step");
                for decision in *decisions {
                    log_decision(*queue, decision);
                }
            }
            Observed::CommitConflict { queue } => {
                tracing::debug!(queue.id = %queue.id, "somebody else committed first");
            }
            Observed::EffectRun { queue, effect, outcome, took } => {
                let duration_ms = took.millis();
                tracing::debug!(queue.id = %queue.id, effect, outcome, duration_ms, "effect");
            }
            Observed::WebhookDelivery { outcome, took } => {
                tracing::info!(outcome, duration_ms = took.millis(), "webhook");
            }
            _ => {}
        }
        self.0.observe(seen);
    }
}

fn log_decision(queue: QueueRef, decision: &signalbox_domain::queue::Decision) {
    use signalbox_domain::queue::{Decision, Moved};
    match decision {
        Decision::Moved(Moved { pr, from, to, reason, actor, .. }) => {
            let from = from.map_or("-", signalbox_domain::queue::PrState::word);
            let (to, reason) = (to.word(), reason.word());
            tracing::info!(queue.id = %queue.id, pr.number = pr.0, from, to, reason, %actor, "moved");
        }
        Decision::LandedTreeDiffers { run, tested, landed } => {
            tracing::error!(
                queue.id = %queue.id, run.id = %run, tested, landed,
                "Q1: what landed is not what was tested"
            );
        }
        Decision::QueueMoved { from, to, actor, .. } => {
            let (from, to) = (from.word(), to.word());
            tracing::info!(queue.id = %queue.id, from, to, %actor, "queue moved");
        }
        Decision::Bisected { left, right, .. } => {
            let list = |prs: &[signalbox_domain::ids::PrNumber]| {
                prs.iter().map(|pr| pr.0.to_string()).collect::<Vec<_>>().join(" ")
            };
            let (left, right) = (list(left), list(right));
            tracing::info!(queue.id = %queue.id, left, right, "a failed batch is split");
        }
        Decision::StatusesSilent { run, names } => {
            let names = names.join(", ");
            tracing::warn!(
                queue.id = %queue.id, run.id = %run, names,
                "required statuses that nobody has reported on"
            );
        }
        Decision::Changed { .. }
        | Decision::RunCancelled { .. }
        | Decision::SettingsChanged { .. }
        | Decision::Ignored { .. } => {}
    }
}
