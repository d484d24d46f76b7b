//! Which adapter serves which git host of which organization.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use signalbox_domain::ids::{HostId, OrgId};
use signalbox_domain::ports::{
    CheckReports, ChecksRunner, Clock, GitHost, Hosts, Observer, PullRequestStore,
};
use signalbox_git::{ChecksConfig, HostConfig, LocalChecksRunner, PlainGitHost};

use crate::config::{Checks, Config, Host};
use crate::measured::Measured;

/// A plain git host and its runner.
struct Plain {
    host: Arc<PlainGitHost>,
    runner: Arc<LocalChecksRunner>,
}

/// The hosts that are configured, and for every other name a plain one that knows only the
/// repositories whose path was given.
pub(crate) struct ConnectedHosts {
    configured: BTreeMap<(OrgId, HostId), Plain>,
    other: Plain,
    observer: Arc<dyn Observer>,
    clock: Arc<dyn Clock>,
}

/// What hosts are made of.
pub(crate) struct Parts {
    pub(crate) pull_requests: Arc<dyn PullRequestStore>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) reports: Arc<dyn CheckReports>,
    pub(crate) observer: Arc<dyn Observer>,
}

impl ConnectedHosts {
    /// The hosts of a configuration whose organizations have these ids, in the same order.
    pub(crate) fn new(config: &Config, orgs: &[OrgId], parts: &Parts) -> Self {
        let plain = |root: Option<&Path>, checks: &Checks, name: &str| {
            let public_url = config.public_url();
            let host =
                HostConfig { root: root.map(Path::to_owned), public_url: public_url.clone() };
            let host = PlainGitHost::new(host, parts.pull_requests.clone(), parts.clock.clone());
            let host = Arc::new(host);
            let runner = ChecksConfig {
                work_dir: config.data_dir().join("checks").join(name),
                timeout_minutes: checks.timeout_minutes,
                pass_env: checks.pass_env.clone(),
                public_url,
            };
            let (clock, reports) = (parts.clock.clone(), parts.reports.clone());
            let runner = LocalChecksRunner::new(runner, host.clone(), clock, reports);
            Plain { host, runner: Arc::new(runner) }
        };
        let mut configured = BTreeMap::new();
        for (organization, id) in config.organizations.iter().zip(orgs) {
            for host in &organization.hosts {
                let Host::Git { host, root, checks } = host;
                let Ok(name) = HostId::new(host.as_str()) else { continue };
                let folder = format!("{}-{host}", organization.slug);
                configured.insert((*id, name), plain(root.as_deref(), checks, &folder));
            }
        }
        let (observer, clock) = (parts.observer.clone(), parts.clock.clone());
        Self { configured, other: plain(None, &Checks::default(), "other"), observer, clock }
    }

    fn of(&self, org: OrgId, host: &HostId) -> &Plain {
        self.configured.get(&(org, host.clone())).unwrap_or(&self.other)
    }

    /// The plain git host of that name.
    pub(crate) fn plain(&self, org: OrgId, host: &HostId) -> Arc<PlainGitHost> {
        self.of(org, host).host.clone()
    }

    /// Kills and removes what a server that died has left behind.
    pub(crate) fn sweep_leftovers(&self) {
        for plain in self.configured.values().chain([&self.other]) {
            plain.runner.sweep_leftovers();
        }
    }
}

impl Hosts for ConnectedHosts {
    fn git_host(&self, org: OrgId, host: &HostId) -> Option<Arc<dyn GitHost>> {
        // Names that are not configured are the callers' choice, and must not become series.
        let known = self.configured.contains_key(&(org, host.clone()));
        Some(Arc::new(Measured {
            host: self.of(org, host).host.clone(),
            name: if known { host.to_string() } else { "other".to_owned() },
            observer: self.observer.clone(),
            clock: self.clock.clone(),
        }))
    }

    fn checks_runner(&self, org: OrgId, host: &HostId) -> Option<Arc<dyn ChecksRunner>> {
        Some(self.of(org, host).runner.clone())
    }
}
