//! The adapters of every host that organizations are connected to.

use std::sync::Arc;

use crate::ids::{HostId, OrgId};
use crate::ports::{ChecksRunner, Forge, GitHost, WebhookDecoder};

/// Finds the adapters for a host.
pub trait Hosts: Send + Sync {
    /// The host of that name, when the organization is connected to it.
    fn git_host(&self, org: OrgId, host: &HostId) -> Option<Arc<dyn GitHost>>;

    /// Whether a repository on this host has one name in every case of owner and name: what the
    /// host says of itself when the organization is connected to it. A host that is not connected
    /// is taken for one that does not tell cases apart, as GitHub, GitLab and Gitea do not.
    fn any_case(&self, org: OrgId, host: &HostId) -> bool {
        self.git_host(org, host).is_none_or(|host| host.abilities().case_insensitive_names)
    }

    /// Its checks runner, when checks are run here.
    fn checks_runner(&self, org: OrgId, host: &HostId) -> Option<Arc<dyn ChecksRunner>>;

    /// What it can do beyond git, when there are people on it.
    fn forge(&self, _org: OrgId, _host: &HostId) -> Option<Arc<dyn Forge>> {
        None
    }

    /// Who reads what a host of that name tells, for each organization that is connected to it.
    fn webhook_decoders(&self, _host: &HostId) -> Vec<(OrgId, Arc<dyn WebhookDecoder>)> {
        Vec::new()
    }
}
