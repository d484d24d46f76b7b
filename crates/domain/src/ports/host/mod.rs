//! Ports of git hosts: their adapters, and the stores of pull requests and deliveries.

mod check_reports;
mod checks_runner;
mod checks_sink;
mod forge;
mod git_host;
mod hosts;
mod inbound_delivery_store;
mod pull_request_store;
mod webhook_decoder;

use std::sync::Arc;

pub use check_reports::{CheckReports, LeftReports};
pub use checks_runner::{ChecksJob, ChecksRunner};
pub use checks_sink::{ChecksSink, SinkClosed};
pub use forge::{
    Announcement, Comment, Finding, Forge, LandedNote, Permission, Severity, StatusNote,
    StatusState, TestPullRequest, WorkflowRun,
};
pub use git_host::{
    Abilities, Built, GitHost, Head, HostError, LandAnswer, Landed, PastLanding, PullRequestQuery,
    Snapshot, TestBranch,
};
pub use hosts::Hosts;
pub use inbound_delivery_store::InboundDeliveryStore;
pub use pull_request_store::{
    NewPullRequest, OpenPullRequest, PullRequestStore, StoredPullRequest,
};
pub use webhook_decoder::{DecodeError, Hint, HostEvent, WebhookDecoder};

/// The stores for git hosts in one database.
#[derive(Clone)]
pub struct HostStores {
    /// Pull requests of plain git hosts.
    pub pull_requests: Arc<dyn PullRequestStore>,
    /// Processed webhook deliveries.
    pub inbound_deliveries: Arc<dyn InboundDeliveryStore>,
}
