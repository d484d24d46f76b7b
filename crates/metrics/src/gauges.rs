//! Gauges that are sampled at each scrape: waiting work, and database connections.

use std::sync::atomic::{AtomicU64, Ordering};

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};
use signalbox_domain::ports::{Backlog, Failing};
use signalbox_domain::time::Timestamp;

use crate::labels::{ShareLabels, StateLabels, WorkLabels};

/// The values that are sampled at a scrape.
#[derive(Clone, Debug)]
pub struct Sample {
    /// The time of the sample.
    pub at: Timestamp,
    /// Waiting work, by kind of work; `None` when the database did not respond.
    pub backlogs: Vec<(&'static str, Option<Backlog>)>,
    /// Effects that keep failing; `None` when the database did not respond.
    pub failing: Option<Failing>,
    /// Database connections, in use and idle.
    pub connections: (u64, u64),
    /// The most connections of the pool.
    pub max_connections: u64,
    /// Callers that wait for a connection.
    pub waiting: u64,
    /// How often a connection was taken from the pool since the server started.
    pub uses: u64,
    /// Active requests, by share.
    pub in_flight: Vec<(&'static str, u64)>,
    /// Whether this server has the keys to sign webhook messages.
    pub webhooks_on: bool,
}

impl Default for Sample {
    fn default() -> Self {
        Self {
            at: Timestamp::from_unix_micros(0),
            backlogs: Vec::new(),
            failing: Some(Failing::default()),
            connections: (0, 0),
            max_connections: 0,
            waiting: 0,
            uses: 0,
            in_flight: Vec::new(),
            webhooks_on: true,
        }
    }
}

#[derive(Default)]
pub(crate) struct Gauges {
    due: Family<WorkLabels, Gauge>,
    oldest: Family<WorkLabels, Gauge<f64, AtomicU64>>,
    failing: Family<NoLabels, Gauge>,
    failing_oldest: Family<NoLabels, Gauge<f64, AtomicU64>>,
    up: Gauge,
    connections: Family<StateLabels, Gauge>,
    max_connections: Gauge,
    waiting: Gauge,
    uses: Counter,
    in_flight: Family<ShareLabels, Gauge>,
    webhooks_on: Gauge,
}

/// A family without labels, so that its only sample can be omitted.
type NoLabels = Vec<(String, String)>;

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

impl Gauges {
    pub(crate) fn register(&self, registry: &mut Registry) {
        registry.register(
            "backlog",
            "Due work that no server has leased, by kind of work",
            self.due.clone(),
        );
        registry.register_with_unit(
            "backlog_oldest_age",
            "Age of the oldest due work that no server has leased; 0 when there is none",
            Unit::Seconds,
            self.oldest.clone(),
        );
        registry.register(
            "effects_failing",
            "Effects that have been failing for more than a minute and are retried",
            self.failing.clone(),
        );
        registry.register_with_unit(
            "effects_failing_oldest_age",
            "Time for which the longest failing effect has been failing; 0 when there is none",
            Unit::Seconds,
            self.failing_oldest.clone(),
        );
        registry.register(
            "database_up",
            "Whether the database responded to this scrape",
            self.up.clone(),
        );
        registry.register(
            "database_connections",
            "Connections of this server to its database",
            self.connections.clone(),
        );
        registry.register(
            "database_connections_max",
            "Maximum number of connections of this server",
            self.max_connections.clone(),
        );
        registry.register(
            "database_connection_waiters",
            "Callers that wait for a connection",
            self.waiting.clone(),
        );
        registry.register(
            "database_uses",
            "Uses of a connection, for a transaction or for a few reads",
            self.uses.clone(),
        );
        registry.register(
            "requests_in_flight",
            "Active requests, by share; event streams and probes are not counted",
            self.in_flight.clone(),
        );
        registry.register(
            "webhooks_on",
            "Whether this server delivers webhooks; 0 if it lacks the key of their secrets",
            self.webhooks_on.clone(),
        );
    }

    pub(crate) fn set(&self, sample: &Sample) {
        let mut up = true;
        for (work, backlog) in &sample.backlogs {
            let labels = WorkLabels { work };
            let Some(backlog) = backlog else {
                // An old value would look like a new one.
                self.due.remove(&labels);
                self.oldest.remove(&labels);
                up = false;
                continue;
            };
            self.due.get_or_create(&labels).set(signed(backlog.due));
            let age =
                backlog.oldest.map_or(0.0, |oldest| sample.at.since(oldest).to_std().as_secs_f64());
            self.oldest.get_or_create(&labels).set(age);
        }
        if let Some(failing) = &sample.failing {
            let since = failing.longest.first().map(|it| it.since);
            let age = since.map_or(0.0, |since| sample.at.since(since).to_std().as_secs_f64());
            self.failing.get_or_create(&Vec::new()).set(signed(failing.count));
            self.failing_oldest.get_or_create(&Vec::new()).set(age);
        } else {
            self.failing.remove(&Vec::new());
            self.failing_oldest.remove(&Vec::new());
            up = false;
        }
        self.up.set(i64::from(up));
        let (used, idle) = sample.connections;
        for (state, count) in [("used", used), ("idle", idle)] {
            self.connections.get_or_create(&StateLabels { state }).set(signed(count));
        }
        self.max_connections.set(signed(sample.max_connections));
        self.waiting.set(signed(sample.waiting));
        // It is counted elsewhere.
        self.uses.inner().store(sample.uses, Ordering::Relaxed);
        self.webhooks_on.set(i64::from(sample.webhooks_on));
        for (share, count) in &sample.in_flight {
            self.in_flight.get_or_create(&ShareLabels { share }).set(signed(*count));
        }
    }
}
