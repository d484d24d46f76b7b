//! The small adapters: the time, ids and wake-ups.

use signalbox_domain::ids::OrgId;
use signalbox_domain::ports::{Clock, IdSource, Notifier, QueueRef, Work};
use signalbox_domain::queue::EffectClass;
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

/// Wakes a kind of worker. A ring is not lost: a busy worker sees it afterwards.
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

/// The work that effects of a class are.
pub(crate) const fn work_of(class: EffectClass) -> Work {
    match class {
        EffectClass::Host => Work::HostEffects,
        EffectClass::Checks => Work::Checks,
    }
}

impl Notifier for WakeUps {
    fn committed(&self, _: QueueRef, classes: &[EffectClass]) {
        for class in classes {
            self.of(work_of(*class)).ring();
        }
    }

    fn emitted(&self, org: OrgId) {
        self.events.ring(org);
        self.fan_out.ring();
    }

    fn received(&self) {
        self.uploads.ring();
    }
}
