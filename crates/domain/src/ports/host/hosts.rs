//! The adapters of all hosts that organizations are connected to.

use std::sync::Arc;

use crate::ids::{HostId, OrgId};
use crate::ports::{ChecksRunner, Forge, GitHost, WebhookDecoder};

/// Finds the adapters for a host.
pub trait Hosts: Send + Sync {
    /// The git host of this name, if the organization is connected to it.
    fn git_host(&self, org: OrgId, host: &HostId) -> Option<Arc<dyn GitHost>>;

    /// Whether names of owners and repositories on this host are case-insensitive, by its
    /// [`Abilities`](crate::ports::Abilities). A host that the organization is not connected to counts as case-insensitive,
    /// as GitHub, GitLab and Gitea are.
    fn any_case(&self, org: OrgId, host: &HostId) -> bool {
        self.git_host(org, host).is_none_or(|host| host.abilities().case_insensitive_names)
    }

    /// The checks runner of the host, if it has one.
    fn checks_runner(&self, org: OrgId, host: &HostId) -> Option<Arc<dyn ChecksRunner>>;

    /// The forge of the host, if it has pull requests and users.
    fn forge(&self, _org: OrgId, _host: &HostId) -> Option<Arc<dyn Forge>> {
        None
    }

    /// The webhook decoders of a host of this name, one for each organization that is connected to
    /// it.
    fn webhook_decoders(&self, _host: &HostId) -> Vec<(OrgId, Arc<dyn WebhookDecoder>)> {
        Vec::new()
    }
}
