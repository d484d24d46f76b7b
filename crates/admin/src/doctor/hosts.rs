//! Checks that repositories on this server's disk can be read, and that they accept pushes for
//! review.

use std::sync::Arc;

use async_trait::async_trait;
use signalbox_config::{Config, Host};
use signalbox_domain::flaky::Excuse;
use signalbox_domain::ports::{CheckReports, ChecksJob, LeftReports, Repository, Severity, Stores};
use signalbox_hosts::{ConnectError, ConnectedHost, HostParts, LocalRepositories};
use signalbox_terminal::chain;

use super::Finding;
use crate::Program;

/// A host of the configuration, or why it cannot be connected.
pub(super) struct Tried {
    /// The slug of its organization.
    pub(super) slug: String,
    /// Its name in the API.
    pub(super) host: String,
    pub(super) connected: Result<ConnectedHost, ConnectError>,
}

/// The hosts of a configuration.
pub(super) struct Connections {
    pub(super) configured: Vec<Tried>,
    /// Reads repositories on this server's disk.
    local: Option<Arc<dyn LocalRepositories>>,
}

/// No checks run here, so there are no reports.
struct NoReports;

#[async_trait]
impl CheckReports for NoReports {
    async fn collected(
        &self,
        _: &ChecksJob,
        _: &str,
        _: LeftReports,
    ) -> Result<Option<Excuse>, String> {
        Ok(None)
    }
}

/// Connects each host separately, so that the failure of one does not hide others.
pub(super) fn connect(program: &dyn Program, config: &Config, stores: &Stores) -> Connections {
    let sandbox = super::sandbox(config);
    let parts = |folder: &str| HostParts {
        pull_requests: stores.host.pull_requests.clone(),
        clock: program.clock(),
        reports: Arc::new(NoReports),
        public_url: config.public_url(),
        folder: config.data_dir().join("checks").join(folder),
        sandbox: sandbox.clone(),
        recomputer: program.kinds().recomputer(),
    };
    let mut configured = Vec::new();
    for organization in &config.organizations {
        for host in &organization.hosts {
            let (Host(table), name) = (host, host.name().to_owned());
            let settings = program.kinds().read(table.clone());
            let settings = settings
                .map_err(|error| ConnectError { host: name.clone(), problem: error.to_string() });
            let folder = format!("{}-{name}", organization.slug);
            configured.push(Tried {
                slug: organization.slug.clone(),
                host: name,
                connected: settings.and_then(|settings| settings.connect(parts(&folder))),
            });
        }
    }
    let other = program.kinds().unconfigured();
    let other = other.and_then(|settings| settings.connect(parts("other")).ok());
    Connections { configured, local: other.and_then(|it| it.local) }
}

pub(super) async fn repositories(hosts: &Connections, stores: &Stores) -> Vec<Finding> {
    let local = |it: &Tried| it.connected.as_ref().ok().and_then(|it| it.local.clone());
    let roots = hosts.configured.iter().filter_map(|it| local(it)?.missing_root());
    let mut found: Vec<Finding> = roots.map(|words| Finding::bad("hosts", words)).collect();
    let listed = match stores.account.repos.list(None).await {
        Ok(listed) => listed,
        Err(error) => {
            found.push(Finding::bad("repositories", chain("repositories", &error)));
            return found;
        }
    };
    let elsewhere = |it: &Repository| {
        let named = |host: &&Tried| host.host == it.name.host.as_str();
        hosts.configured.iter().filter(named).any(|host| local(host).is_none())
    };
    let is_local = |it: &&Repository| it.path.is_some() && !elsewhere(it);
    let listed: Vec<&Repository> = listed.iter().filter(is_local).collect();
    let problem = |it: &&Repository| hosts.local.as_ref()?.problem(it);
    let problems: Vec<_> = listed.iter().filter_map(problem).collect();
    if problems.is_empty() {
        let words = format!("{} readable", listed.len());
        found.push(Finding::good("repositories", words));
    }
    for problem in problems {
        let stops = problem.severity == Severity::Problem;
        let finding = if stops { Finding::bad } else { Finding::warning };
        found.push(finding("repositories", problem.sentence));
    }
    found
}
