//! The kinds of git hosts that this program supports, and the hosts of its configuration.

use signalbox_config::{Config, Host};
use signalbox_domain::ids::{HostId, OrgId};
use signalbox_hosts::{ConnectError, Kinds, NamedSettings};

/// One line for each crate of a git host.
pub(crate) const KINDS: Kinds = Kinds(&[signalbox_git::KIND, signalbox_github::KIND]);

/// The settings of all hosts of a configuration whose organizations have these ids, in the same
/// order.
pub(crate) fn settings(
    config: &Config,
    orgs: &[OrgId],
) -> Result<Vec<NamedSettings>, ConnectError> {
    let mut found = Vec::new();
    for (organization, org) in config.organizations.iter().zip(orgs) {
        for host in &organization.hosts {
            let failed = |problem: String| ConnectError { host: host.name().to_owned(), problem };
            let Host(table) = host;
            found.push(NamedSettings {
                org: *org,
                host: HostId::new(host.name()).map_err(|error| failed(error.to_string()))?,
                folder: format!("{}-{}", organization.slug, host.name()),
                settings: KINDS.read(table.clone()).map_err(|error| failed(error.to_string()))?,
            });
        }
    }
    Ok(found)
}
