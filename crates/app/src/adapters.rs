//! The small adapters: the time, ids, wake-ups, and several observers as one.

use std::sync::Arc;

use signalbox_domain::ids::OrgId;
use signalbox_domain::ports::{Clock, IdSource, Notifier, Observed, Observer, QueueRef};
use signalbox_domain::queue::Lane;
use signalbox_domain::time::Timestamp;
use signalbox_http::EventHub;
use tokio::sync::Notify;
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

/// Wakes the workers of this process.
#[derive(Default)]
pub(crate) struct WakeUps {
    host: Notify,
    checks: Notify,
    /// Streams of events.
    pub(crate) events: EventHub,
}

impl WakeUps {
    /// What is notified when a lane has new effects.
    pub(crate) const fn of(&self, lane: Lane) -> &Notify {
        match lane {
            Lane::Host => &self.host,
            Lane::Checks => &self.checks,
        }
    }
}

impl Notifier for WakeUps {
    fn committed(&self, _: QueueRef, lanes: &[Lane]) {
        for lane in lanes {
            self.of(*lane).notify_one();
        }
    }

    fn told(&self, org: OrgId) {
        self.events.ring(org);
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
