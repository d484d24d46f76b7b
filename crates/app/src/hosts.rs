//! Which adapter serves which git host of which organization.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use signalbox_domain::ids::{HostId, OrgId};
use signalbox_domain::ports::{
    CheckReports, ChecksRunner, Clock, Forge, GitHost, Hosts, Observer, PullRequestStore,
    WebhookDecoder,
};
use signalbox_git::{ChecksConfig, HostConfig, LocalChecksRunner, PlainGitHost};

use crate::config::{Checks, Config, Host};
use crate::github::GitHub;
use crate::limited::Limited;
use crate::measured::Measured;

/// A plain git host and its runner.
struct Plain {
    host: Arc<PlainGitHost>,
    runner: Limited,
}

/// The hosts that are configured, and for every other name a plain one that knows only the
/// repositories whose path was given.
pub(crate) struct ConnectedHosts {
    configured: BTreeMap<(OrgId, HostId), Plain>,
    github: BTreeMap<(OrgId, HostId), GitHub>,
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
    pub(crate) fn new(config: &Config, orgs: &[OrgId], parts: &Parts) -> Result<Self, String> {
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
                // Also when its file was replaced meanwhile, this is the program that runs.
                supervisor: PathBuf::from("/proc/self/exe"),
            };
            let (clock, reports) = (parts.clock.clone(), parts.reports.clone());
            let runner = LocalChecksRunner::new(runner, host.clone(), clock, reports);
            let limited = Limited::new(Arc::new(runner), checks.concurrency);
            Plain { host, runner: limited }
        };
        let (mut configured, mut github) = (BTreeMap::new(), BTreeMap::new());
        for (organization, id) in config.organizations.iter().zip(orgs) {
            for host in &organization.hosts {
                let Ok(name) = HostId::new(host.name()) else { continue };
                match host {
                    Host::Git { host, root, checks } => {
                        let folder = format!("{}-{host}", organization.slug);
                        configured.insert((*id, name), plain(root.as_deref(), checks, &folder));
                    }
                    Host::GitHub(host) => {
                        let host = GitHub::new(host, config.public_url(), parts.clock.clone())?;
                        github.insert((*id, name), host);
                    }
                }
            }
        }
        let (observer, clock) = (parts.observer.clone(), parts.clock.clone());
        let other = plain(None, &Checks::default(), "other");
        Ok(Self { configured, github, other, observer, clock })
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
            plain.runner.inner().sweep_leftovers();
        }
    }
}

impl Hosts for ConnectedHosts {
    fn git_host(&self, org: OrgId, host: &HostId) -> Option<Arc<dyn GitHost>> {
        let key = (org, host.clone());
        let (adapter, known): (Arc<dyn GitHost>, bool) = match self.github.get(&key) {
            Some(github) => (github.host.clone(), true),
            // Names that are not configured are the callers' choice, and must not become series.
            None => (self.of(org, host).host.clone(), self.configured.contains_key(&key)),
        };
        Some(Arc::new(Measured {
            host: adapter,
            name: if known { host.to_string() } else { "other".to_owned() },
            observer: self.observer.clone(),
            clock: self.clock.clone(),
        }))
    }

    fn any_case(&self, org: OrgId, host: &HostId) -> bool {
        let key = (org, host.clone());
        // The adapter for all other names is no connection to a host that tells cases apart.
        match (self.github.get(&key), self.configured.get(&key)) {
            (Some(github), _) => github.host.abilities().case_insensitive_names,
            (None, Some(plain)) => plain.host.abilities().case_insensitive_names,
            (None, None) => true,
        }
    }

    fn checks_runner(&self, org: OrgId, host: &HostId) -> Option<Arc<dyn ChecksRunner>> {
        if let Some(github) = self.github.get(&(org, host.clone())) {
            return Some(github.checks.clone());
        }
        Some(Arc::new(self.of(org, host).runner.clone()))
    }

    fn forge(&self, org: OrgId, host: &HostId) -> Option<Arc<dyn Forge>> {
        let github = self.github.get(&(org, host.clone()))?;
        Some(github.host.clone())
    }

    fn webhook_decoders(&self, host: &HostId) -> Vec<(OrgId, Arc<dyn WebhookDecoder>)> {
        let named = self.github.iter().filter(|((_, name), _)| name == host);
        named
            .map(|((org, _), github)| {
                let decoder: Arc<dyn WebhookDecoder> = github.host.clone();
                (*org, decoder)
            })
            .collect()
    }
}
