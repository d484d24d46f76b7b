//! Organizations.

use async_trait::async_trait;

use crate::ids::{OrgId, OrgSlug};
use crate::ports::StoreError;
use crate::time::Timestamp;

/// An organization.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Org {
    /// Its id.
    pub id: OrgId,
    /// Its slug, unique on the server.
    pub slug: OrgSlug,
    /// When it was created.
    pub created_at: Timestamp,
}

/// Stores organizations.
#[async_trait]
pub trait OrgStore: Send + Sync {
    /// Writes an organization unless its slug is taken; returns the organization that has the slug.
    async fn create(&self, org: &Org) -> Result<Org, StoreError>;

    /// The organization with this slug.
    async fn find_by_slug(&self, slug: &OrgSlug) -> Result<Option<Org>, StoreError>;

    /// The organization with this id.
    async fn find(&self, id: OrgId) -> Result<Option<Org>, StoreError>;

    /// All organizations, ordered by slug.
    async fn list(&self) -> Result<Vec<Org>, StoreError>;
}
