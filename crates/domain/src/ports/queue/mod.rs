//! Ports of the merge queue.

mod announcement_store;
mod check_log;
mod history_store;
mod outbox;
mod queue_store;
mod read_store;

use std::sync::Arc;

pub use announcement_store::{AnnouncementStore, LeasedAnnouncement, SHOWN_AFTER, Shown};
pub use check_log::{CheckLog, CheckOutput, MAX_CHECK_OUTPUT, is_omission, omission};
pub use history_store::{EntryFilter, HistoryStore, SubmissionPlace, TestEnds};
pub use outbox::{Backlog, Failing, FailingEffect, LeaseToken, Leased, Outbox};
pub use queue_store::{
    Commit, CommitError, CreateError, Loaded, Located, QueueKey, QueueRef, QueueStore, Version,
};
pub use read_store::{MetricsScope, MoveRecord, QueueDepth, ReadStore};

/// The stores of the merge queue in one database.
#[derive(Clone)]
pub struct QueueStores {
    /// Queues.
    pub queues: Arc<dyn QueueStore>,
    /// Effects waiting to run.
    pub outbox: Arc<dyn Outbox>,
    /// Reads for API replies and pages.
    pub reads: Arc<dyn ReadStore>,
    /// Lists and histories.
    pub history: Arc<dyn HistoryStore>,
    /// Announcements on pull requests.
    pub announcements: Arc<dyn AnnouncementStore>,
    /// Output of checks.
    pub check_log: Arc<dyn CheckLog>,
}
