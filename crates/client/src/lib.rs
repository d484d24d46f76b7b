#![doc = include_str!("../README.md")]

mod client;
mod error;
mod events;
mod flaky_tests;
mod queues;
mod reply;
mod webhooks;

pub use client::{Client, Receipt, TestedRun, Upload};
pub use error::ClientError;
pub use events::{Event, EventsPage, EventsQuery, NamedTest, Payload};
pub use flaky_tests::{
    CurrentStatus, PageInfo, QuarantineDecision, QuarantineSetting, QuarantinedTest,
    QuarantinedTests, TestFlag, UnhealthyStatus, UnhealthyTest, UnhealthyTests,
};
pub use queues::{
    BatchingRule, Entry, Priority, QueueChange, QueueRef, QueueStatus, Repo, RequestedState,
    Setting,
};
pub use reply::{Done, Reply};
pub use reqwest::StatusCode;
pub use webhooks::{
    Attempt, Deliveries, DeliveriesQuery, Delivery, NewWebhook, ReplayQuery, Replayed, TestMessage,
    Webhook, WebhookChange, WebhookSecret, Webhooks,
};
