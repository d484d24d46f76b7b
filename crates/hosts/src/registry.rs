//! The registry of hosts: the connection for each host of each organization.

use std::collections::BTreeMap;
use std::sync::Arc;

use signalbox_domain::ids::{HostId, OrgId};
use signalbox_domain::ports::{
    ChecksRunner, Clock, Forge, GitHost, Hosts, Observer, WebhookDecoder,
};
use signalbox_domain::time::Span;

use crate::measured::Measured;
use crate::{ConnectError, ConnectedHost, HostParts, HostSettings, Kinds, LocalRepositories};

/// The default interval at which hosts are read again.
const REREAD: Span = Span::from_micros(60_000_000);

/// The settings of one host of one organization.
pub struct NamedSettings {
    /// The organization.
    pub org: OrgId,
    /// The name of the host in the API.
    pub host: HostId,
    /// A name for its folder: unique, and valid as a file name.
    pub folder: String,
    /// The settings.
    pub settings: Arc<dyn HostSettings>,
}

/// The hosts that are configured. Every other name maps to the host of `Kinds::unconfigured`,
/// which has only repositories that were registered with a path.
pub struct ConnectedHosts {
    configured: BTreeMap<(OrgId, HostId), ConnectedHost>,
    other: ConnectedHost,
    /// `other`, which always is a host of repositories on this server's disk.
    other_local: Arc<dyn LocalRepositories>,
    observer: Arc<dyn Observer>,
    clock: Arc<dyn Clock>,
}

impl ConnectedHosts {
    /// Connects all hosts. The folder of `parts` is the one that has theirs.
    pub fn connect(
        kinds: Kinds,
        hosts: Vec<NamedSettings>,
        parts: &HostParts,
        observer: Arc<dyn Observer>,
    ) -> Result<Self, ConnectError> {
        let own = |folder: &str| HostParts { folder: parts.folder.join(folder), ..parts.clone() };
        let mut configured = BTreeMap::new();
        for NamedSettings { org, host, folder, settings } in hosts {
            configured.insert((org, host), settings.connect(own(&folder))?);
        }
        let missing = || ConnectError {
            host: "other".to_owned(),
            problem: "this program has no host for repositories with a path".to_owned(),
        };
        let other = kinds.unconfigured().ok_or_else(missing)?.connect(own("other"))?;
        let other_local = other.local.clone().ok_or_else(missing)?;
        let clock = parts.clock.clone();
        Ok(Self { configured, other, other_local, observer, clock })
    }

    fn of(&self, org: OrgId, host: &HostId) -> &ConnectedHost {
        self.configured.get(&(org, host.clone())).unwrap_or(&self.other)
    }

    /// The host of that name if its repositories are on this server's disk; otherwise the host for
    /// unconfigured names.
    pub fn plain(&self, org: OrgId, host: &HostId) -> Arc<dyn LocalRepositories> {
        self.of(org, host).local.as_ref().unwrap_or(&self.other_local).clone()
    }

    /// Kills and removes the left-overs of checks after a crash of their server.
    pub fn sweep_leftovers(&self) {
        for local in self.all().filter_map(|it| it.local.as_ref()) {
            local.sweep_leftovers();
        }
    }

    /// How many candidates are checked at the same time: what the configured hosts allow together,
    /// or, when none is configured, what the host for other names allows.
    pub fn concurrent_checks(&self) -> usize {
        let configured = self.configured.values().map(|it| it.concurrent_checks);
        together(configured, self.other.concurrent_checks)
    }

    /// The shortest time after which a host is read again for changes that it has not reported.
    pub fn shortest_reread(&self) -> Span {
        self.configured.values().filter_map(|it| it.reread_after).min().unwrap_or(REREAD)
    }

    fn all(&self) -> impl Iterator<Item = &ConnectedHost> {
        self.configured.values().chain([&self.other])
    }
}

/// The sum, or `otherwise` when there is nothing to sum up.
fn together(numbers: impl Iterator<Item = usize>, otherwise: usize) -> usize {
    match numbers.fold(0, usize::saturating_add) {
        0 => otherwise,
        sum => sum,
    }
}

impl Hosts for ConnectedHosts {
    fn git_host(&self, org: OrgId, host: &HostId) -> Option<Arc<dyn GitHost>> {
        let known = self.configured.contains_key(&(org, host.clone()));
        Some(Arc::new(Measured {
            host: self.of(org, host).git.clone(),
            // Unconfigured names are chosen by callers, and must not become series.
            name: if known { host.to_string() } else { "other".to_owned() },
            observer: self.observer.clone(),
            clock: self.clock.clone(),
        }))
    }

    fn any_case(&self, org: OrgId, host: &HostId) -> bool {
        // The host for all other names does not distinguish upper and lower case.
        let configured = self.configured.get(&(org, host.clone()));
        configured.is_none_or(|it| it.git.abilities().case_insensitive_names)
    }

    fn checks_runner(&self, org: OrgId, host: &HostId) -> Option<Arc<dyn ChecksRunner>> {
        Some(self.of(org, host).checks.clone())
    }

    fn forge(&self, org: OrgId, host: &HostId) -> Option<Arc<dyn Forge>> {
        self.of(org, host).forge.clone()
    }

    fn webhook_decoders(&self, host: &HostId) -> Vec<(OrgId, Arc<dyn WebhookDecoder>)> {
        let named = self.configured.iter().filter(|((_, name), _)| name == host);
        named.filter_map(|((org, _), it)| Some((*org, it.decoder.clone()?))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_checks_run_as_the_hosts_allow() {
        assert_eq!(together([1].into_iter(), 2), 1);
        assert_eq!(together([3, 4].into_iter(), 2), 7);
        assert_eq!(together([usize::MAX, 4].into_iter(), 2), usize::MAX);
        assert_eq!(together([].into_iter(), 2), 2);
    }
}
