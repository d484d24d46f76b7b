#![doc = include_str!("../README.md")]
//!
//! ## Services
//!
//! | service | use cases |
//! |---|---|
//! | [`QueueService`] | create, change and delete queues; submit, cancel and restart pull requests; read queues, entries, runs, history and metrics |
//! | [`EffectRunner`] | lease effects from the outbox and run them on git hosts and checks runners |
//! | [`Sweeper`], [`Watch`] | deadlines, polling of hosts, orphaned branches; the check that every wait is justified |
//! | [`LandingAudit`] | the daily proof of the newest landings |
//! | [`HintService`] | webhook deliveries from git hosts, commands in comments and labels |
//! | [`StatusReporter`] | statuses, comments and labels on pull requests |
//! | [`FlakyService`], [`QuarantineLookup`] | test results, monitors, quarantine |
//! | [`UploadService`] | uploads of test results |
//! | [`WebhookService`], [`EventService`] | webhook endpoints and deliveries; reads of public events |
//! | [`TokenService`], [`Sessions`], [`Authenticator`] | API tokens, sign-in, authentication |
//! | [`AuditService`] | the audit log |
//! | [`JobService`] | leases of periodic jobs among several servers |
//! | [`FailureReads`] | why pull requests failed: checks, output, tests, the next step |
//! | [`WhatIf`] | the last days of a queue, simulated with other settings |
//! | [`PageReads`], [`Repositories`] | reads for pages; lookup of repositories by name |
//!
//! A service takes the part of [`Context`] that it needs. Methods with a
//! [`Caller`](signalbox_domain::token::Caller) check its scopes and repositories and fail with
//! [`Error`]; the others are background work of the server itself.

#![warn(missing_docs)]
#![warn(
    clippy::wildcard_enum_match_arm,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::as_conversions
)]

mod access;
mod announcement_words;
mod announcements;
mod audit;
mod bisections;
mod candidate;
mod checks_sink;
mod comment_command;
mod context;
mod dependencies;
mod effect_runner;
mod entry_reads;
mod error;
mod events;
mod external_checks;
pub mod failing;
mod failure_causes;
mod failure_reads;
mod flaky;
mod fork_reports;
mod hints;
mod history;
mod idempotency;
mod jobs;
mod landing_audit;
mod landings;
mod page_reads;
mod quarantine_lookup;
mod queue;
mod queue_reads;
mod refusal_reports;
mod refusals;
mod repositories;
mod results_sink;
mod sessions;
mod step;
mod submit;
mod sweep;
mod targets;
mod tokens;
mod undecided;
mod uploads;
mod watch;
mod webhooks;
mod what_if;

pub use access::Authenticator;
pub use announcements::StatusReporter;
pub use audit::{AuditEntryBuilder, AuditService};
pub use bisections::Bisection;
pub use checks_sink::QueueSink;
pub use comment_command::CommentCommand;
pub use context::{AccountContext, Context, FlakyContext, QueueContext, WebhookContext};
pub use effect_runner::EffectRunner;
pub use entry_reads::{EntryDetails, Extras};
pub use error::Error;
pub use events::{EventService, EventsRead};
pub use external_checks::CheckResult;
pub use failure_reads::{Explanation, FailedCheck, FailureReads, OutputTail, without_sequences};
pub use flaky::{
    FlakyService, ListKind, ListedTests, Preview, PreviewedTest, RunFailure, TestDetails,
};
pub use fork_reports::ForkReport;
pub use hints::{HintService, HookError};
pub use history::{EntryPage, FoundEntries, ResultsPage};
pub use idempotency::{IdempotencyService, KEPT_HOURS};
pub use jobs::JobService;
pub use landing_audit::LandingAudit;
pub use page_reads::{HourlyMerges, PageReads, RecentPast, Topic};
pub use quarantine_lookup::{QuarantineAnswer, QuarantineLookup};
pub use queue::{QueueChange, QueueService};
pub use queue_reads::{EntrySnapshot, RunSnapshot, SeenQueue};
pub use refusal_reports::RefusalReports;
pub use refusals::{Attempt, MAX_REFUSALS, MinuteCounts, RefusalReason, network_of};
pub use repositories::Repositories;
pub use results_sink::ResultsSink;
pub use sessions::Sessions;
pub use submit::SubmitOptions;
pub use sweep::Sweeper;
pub use tokens::{MAX_TOKEN_DAYS, MAX_TOKEN_NAME, NewToken, TokenError, TokenService};
pub use uploads::{
    Announced, DeferredReports, ImportRefusal, ImportedLines, Intake, PublicRepository, Reception,
    RefusedLine, Sender, Taken, UPLOAD_RENEWAL_SECONDS, UploadError, UploadLimits, UploadParts,
    UploadService,
};
pub use watch::{Looked, Unexplained, Watch};
pub use webhooks::{
    CreatedEndpoint, DeliveryPage, EndpointChange, Replay, Replayed, WebhookError, WebhookLimits,
    WebhookParts, WebhookService,
};
pub use what_if::{Question, WhatIf};
