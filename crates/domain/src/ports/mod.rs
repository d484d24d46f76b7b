//! What the domain needs from outside, one trait per file. The contracts are in the docs of the
//! traits; `signalbox-testkit` has a conformance suite for each store and for git hosts.
//!
//! To add an adapter: implement the trait in a crate of its own that depends on this one only,
//! run the suite on it, and name it in the app crate's wiring.

mod agenda;
mod announcement_store;
mod audit_log;
mod blob_store;
mod check_log;
mod check_reports;
mod checks_runner;
mod clock;
mod error;
mod event_log;
mod event_writer;
mod exposition;
mod flaky_reads;
mod flaky_store;
mod forge;
mod git_host;
mod heard_store;
mod history_store;
mod id_source;
mod identity_provider;
mod job_store;
mod notifier;
mod observer;
mod org_store;
mod outbox;
mod pull_request_store;
mod queue_store;
mod read_store;
mod repo_store;
mod report_reader;
mod retention;
mod session_store;
mod stores;
mod token_store;
mod upload_store;
mod webhook_decoder;
mod webhook_sender;
mod webhook_store;

pub use agenda::{Agenda, AgendaStore, Work};
pub use announcement_store::{AnnouncementStore, LeasedAnnouncement, SHOWN_AFTER, Shown};
pub use audit_log::{AuditFilter, AuditLog, AuditPlace};
pub use blob_store::{Blob, BlobError, BlobStore, BlobWriter};
pub use check_log::{CheckLog, CheckOutput, MAX_CHECK_OUTPUT};
pub use check_reports::{CheckReports, LeftReports};
pub use checks_runner::{ChecksJob, ChecksRunner, ChecksSink, SinkClosed};
pub use clock::Clock;
pub use error::StoreError;
pub use event_log::{EventLog, PublicEvent};
pub use event_writer::{EventWriter, QueuePlace, TestSnapshot, ToldEvent};
pub use exposition::Exposition;
pub use flaky_reads::{FlakyReads, MAX_CLUSTERS, Seek, TestList, TestNumbers};
pub use flaky_store::{
    CiRun, FlakyCommit, FlakyRepo, FlakyStore, RepoRef, SettingsStep, TestRecord, TestStep,
};
pub use forge::{
    Announcement, Comment, Finding, Forge, LandedNote, Permission, Severity, StatusNote,
    StatusState, TestPullRequest, WorkflowRun,
};
pub use git_host::{
    Abilities, Built, GitHost, Head, HostError, Hosts, LandAnswer, Landed, PullRequestQuery,
    Snapshot, TestBranch,
};
pub use heard_store::HeardStore;
pub use history_store::{EntryFilter, HistoryStore, SubmissionPlace, TestEnds};
pub use id_source::IdSource;
pub use identity_provider::{IdentityError, IdentityProvider, Leaving};
pub use job_store::{JOB_GRACE, JobLease, JobStore, LeasedJob};
pub use notifier::Notifier;
pub use observer::{Observed, Observer};
pub use org_store::{Org, OrgStore};
pub use outbox::{Backlog, Failing, FailingEffect, LeaseToken, Leased, Outbox};
pub use pull_request_store::{
    NewPullRequest, OpenPullRequest, PullRequestStore, StoredPullRequest,
};
pub use queue_store::{
    Commit, CommitError, CreateError, Loaded, QueueKey, QueueRef, QueueStore, Version,
};
pub use read_store::{MetricsScope, MoveRecord, QueueDepth, ReadStore};
pub use repo_store::{RepoStore, Repository};
pub use report_reader::{ReadError, ReportFile, ReportReader};
pub use retention::Retention;
pub use session_store::SessionStore;
pub use stores::Stores;
pub use token_store::TokenStore;
pub use upload_store::{LeasedUpload, UploadStore};
pub use webhook_decoder::{DecodeError, Hint, HostEvent, WebhookDecoder};
pub use webhook_sender::{
    EventCatalogue, NewSecret, Outgoing, Posted, SecretError, WebhookSecrets, WebhookSender,
};
pub use webhook_store::{EndpointLease, LeasedEndpoint, MessageFilter, WebhookStore};
