//! Which organizations' rows a statement may see.

use signalbox_domain::ids::OrgId;
use signalbox_domain::ports::{QueueRef, RepoRef};

/// One organization, or all of them. On PostgreSQL the database itself keeps to it, whatever a
/// query says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reach(Option<OrgId>);

impl Reach {
    /// For work of the server that belongs to no organization, and to find out which one a caller
    /// belongs to.
    pub(crate) const ALL: Self = Self(None);

    /// The organization, unless it is all of them.
    pub(crate) const fn org(self) -> Option<OrgId> {
        self.0
    }
}

impl From<OrgId> for Reach {
    fn from(org: OrgId) -> Self {
        Self(Some(org))
    }
}

impl From<Option<OrgId>> for Reach {
    fn from(org: Option<OrgId>) -> Self {
        Self(org)
    }
}

impl From<QueueRef> for Reach {
    fn from(queue: QueueRef) -> Self {
        queue.org.into()
    }
}

impl From<RepoRef> for Reach {
    fn from(repo: RepoRef) -> Self {
        repo.org.into()
    }
}
