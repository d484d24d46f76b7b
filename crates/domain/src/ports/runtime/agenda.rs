//! The agenda: when each kind of background work is next due, in one read of the database.

use std::collections::BTreeMap;

use async_trait::async_trait;
use uuid::Uuid;

use crate::ids::OrgId;
use crate::ports::StoreError;
use crate::time::Timestamp;
use crate::words::words;

words!(
    /// The kinds of background work.
    Work {
        /// Deadlines of queues.
        Deadlines = "DEADLINES",
        /// Effects of the class for short calls to git hosts.
        HostEffects = "HOST_EFFECTS",
        /// Effects of the class for checks.
        Checks = "CHECKS",
        /// Announcements on pull requests.
        Announcements = "ANNOUNCEMENTS",
        /// Uploads to process.
        Uploads = "UPLOADS",
        /// Events without webhook messages yet.
        FanOut = "FAN_OUT",
        /// Webhook messages to deliver.
        Deliveries = "DELIVERIES",
        /// Periodic jobs.
        Jobs = "JOBS",
    }
);

/// When each kind of work is next due, and the newest positions of the event logs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Agenda {
    /// The earliest due time of each kind of work; a kind without work is omitted. Leased work is
    /// due when its lease ends.
    pub due: BTreeMap<Work, Timestamp>,
    /// The newest position in the event log of each organization that has events.
    pub newest_events: BTreeMap<OrgId, i64>,
}

impl Agenda {
    /// The kinds of work that are due at `now`.
    pub fn due_at(&self, now: Timestamp) -> impl Iterator<Item = Work> {
        self.due.iter().filter(move |(_, at)| **at <= now).map(|(work, _)| *work)
    }

    /// The earliest due time after `now`.
    pub fn next_after(&self, now: Timestamp) -> Option<Timestamp> {
        self.due.values().copied().filter(|at| *at > now).min()
    }
}

/// Reads the agenda.
#[async_trait]
pub trait AgendaStore: Send + Sync {
    /// When work is next due for `server`, by one statement whose cost does not grow with the
    /// number of queues.
    async fn agenda(&self, server: Uuid) -> Result<Agenda, StoreError>;
}
