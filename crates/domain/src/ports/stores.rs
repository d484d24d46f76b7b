//! All stores together, as one database provides them.

use std::sync::Arc;

use super::{
    AgendaStore, AnnouncementStore, AuditLog, CheckLog, EventLog, FlakyReads, FlakyStore,
    HeardStore, HistoryStore, JobStore, OrgStore, Outbox, PullRequestStore, QueueStore, ReadStore,
    RepoStore, Retention, SessionStore, TokenStore, UploadStore, WebhookStore,
};

/// Every store of one database.
#[derive(Clone)]
pub struct Stores {
    /// Queues.
    pub queues: Arc<dyn QueueStore>,
    /// Effects waiting to be run.
    pub outbox: Arc<dyn Outbox>,
    /// Reads for replies and pages.
    pub reads: Arc<dyn ReadStore>,
    /// Lists and histories.
    pub history: Arc<dyn HistoryStore>,
    /// Organizations.
    pub orgs: Arc<dyn OrgStore>,
    /// API tokens.
    pub tokens: Arc<dyn TokenStore>,
    /// Sessions of the pages.
    pub sessions: Arc<dyn SessionStore>,
    /// Repositories.
    pub repos: Arc<dyn RepoStore>,
    /// Pull requests of hosts that keep none.
    pub pull_requests: Arc<dyn PullRequestStore>,
    /// What checks printed.
    pub check_log: Arc<dyn CheckLog>,
    /// Uploads of test results.
    pub uploads: Arc<dyn UploadStore>,
    /// Flaky tests.
    pub flaky: Arc<dyn FlakyStore>,
    /// Events that hosts have told.
    pub heard: Arc<dyn HeardStore>,
    /// What hosts were last shown of pull requests.
    pub announcements: Arc<dyn AnnouncementStore>,
    /// Reads of flaky tests.
    pub flaky_reads: Arc<dyn FlakyReads>,
    /// Webhooks.
    pub webhooks: Arc<dyn WebhookStore>,
    /// Public events.
    pub event_log: Arc<dyn EventLog>,
    /// The audit log.
    pub audit: Arc<dyn AuditLog>,
    /// Forgetting what is old.
    pub retention: Arc<dyn Retention>,
    /// Periodic jobs.
    pub jobs: Arc<dyn JobStore>,
    /// When work is next due.
    pub agenda: Arc<dyn AgendaStore>,
}
