#![doc = include_str!("../README.md")]
//!
//! ## Operations
//!
//! | topic | methods |
//! |---|---|
//! | queues | [`create_queue`](Client::create_queue), [`update_queue`](Client::update_queue), [`delete_queue`](Client::delete_queue), [`queue`](Client::queue), [`list_queues`](Client::list_queues) |
//! | pull requests | [`submit`](Client::submit), [`cancel`](Client::cancel), [`restart`](Client::restart), [`entry`](Client::entry), [`passages`](Client::passages), [`explain_failure`](Client::explain_failure) |
//! | test results | [`upload`](Client::upload) |
//! | flaky tests | [`unhealthy_tests`](Client::unhealthy_tests), [`quarantined_tests`](Client::quarantined_tests), [`override_quarantine`](Client::override_quarantine), [`flag_test`](Client::flag_test) |
//! | imports | [`import`](Client::import), [`upload_progress`](Client::upload_progress), [`finish_import`](Client::finish_import) |
//! | events | [`events`](Client::events) |
//! | webhooks | [`webhooks`](Client::webhooks), [`create_webhook`](Client::create_webhook), [`update_webhook`](Client::update_webhook), [`delete_webhook`](Client::delete_webhook), [`rotate_webhook_secret`](Client::rotate_webhook_secret), [`test_webhook`](Client::test_webhook), [`deliveries`](Client::deliveries), [`replay`](Client::replay) |
//! | all pages of a list | [`all_entries`](Client::all_entries), [`all_unhealthy_tests`](Client::all_unhealthy_tests), [`all_quarantined_tests`](Client::all_quarantined_tests), [`all_events`](Client::all_events), [`all_deliveries`](Client::all_deliveries) |
//! | events as they happen | [`follow_events`](Client::follow_events) |
//! | any other | [`post`](Client::post) |

mod ci;
mod client;
mod error;
mod events;
mod failures;
mod flaky_tests;
mod follow;
mod imports;
mod paging;
mod queues;
mod reply;
mod retry;
mod webhooks;

pub use ci::GitHubTokens;
pub use client::{Client, MOST_FILES, Receipt, TestedRun, Upload};
pub use error::ClientError;
pub use events::{Event, EventsPage, EventsQuery, NamedTest, Payload};
pub use failures::{FailedCheck, FailedTest, Failure, NextStep};
pub use flaky_tests::{
    AskedTest, CurrentStatus, PageInfo, QuarantineAnswer, QuarantineDecision, QuarantineSetting,
    QuarantinedTest, QuarantinedTests, TestFlag, UnhealthyStatus, UnhealthyTest, UnhealthyTests,
};
pub use follow::{FollowQuery, Heard};
pub use futures_util::{Stream, StreamExt, TryStreamExt, stream};
pub use imports::{
    FinishedImport, ImportReceipt, ImportedRun, PastForm, PastRun, RefusedRun, UploadProgress,
};
pub use queues::{
    BatchingRule, EntriesPage, EntriesQuery, Entry, Exit, Freeze, LandedChange, ListedQueue,
    PartialFreeze, Passage, PassageStep, Priority, Proof, QueueChange, QueueList, QueueRef,
    QueueStatus, Repo, RequestedState, Setting,
};
pub use reply::{Done, Reply};
pub use reqwest::StatusCode;
pub use webhooks::{
    Attempt, Deliveries, DeliveriesQuery, Delivery, NewWebhook, ReplayQuery, Replayed, TestMessage,
    Webhook, WebhookChange, WebhookSecret, Webhooks,
};
