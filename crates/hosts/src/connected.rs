//! A connection to a git host, and its parts.

use std::path::PathBuf;
use std::sync::Arc;

use signalbox_domain::ports::{
    CheckReports, ChecksRunner, Clock, Forge, GitHost, PullRequestStore, WebhookDecoder,
};
use signalbox_domain::time::Span;
use signalbox_sandbox::Sandbox;

use crate::{LocalRepositories, Recomputer};

/// What the server provides to every host.
#[derive(Clone)]
pub struct HostParts {
    /// The store of pull requests, for hosts that have none.
    pub pull_requests: Arc<dyn PullRequestStore>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// Receives the reports of checks that run on this server.
    pub reports: Arc<dyn CheckReports>,
    /// The server's own address, for links; without a slash at its end.
    pub public_url: String,
    /// A folder for this host only. It may not exist yet.
    pub folder: PathBuf,
    /// Runs the checks of a host that runs them on this server.
    pub sandbox: Arc<dyn Sandbox>,
    /// Composes the candidates of a host again that composes them itself.
    pub recomputer: Option<Arc<dyn Recomputer>>,
}

/// A connection to a git host.
#[derive(Clone)]
pub struct ConnectedHost {
    /// Branches, candidates and landings.
    pub git: Arc<dyn GitHost>,
    /// Runs the checks of a candidate, or follows the checks that the host runs.
    pub checks: Arc<dyn ChecksRunner>,
    /// How many candidates are checked at the same time, at least 1.
    pub concurrent_checks: usize,
    /// Comments, labels and permissions, for a host that has them.
    pub forge: Option<Arc<dyn Forge>>,
    /// Reads the host's webhook deliveries, for a host that sends them.
    pub decoder: Option<Arc<dyn WebhookDecoder>>,
    /// The repositories themselves, for a host that is a folder of this server.
    pub local: Option<Arc<dyn LocalRepositories>>,
    /// How long after the last look the host is read again for changes that it has not reported;
    /// `None` for a host that reports none and is polled.
    pub reread_after: Option<Span>,
}
