//! Organizations.

use async_trait::async_trait;
use signalbox_domain::ids::{OrgId, OrgSlug};
use signalbox_domain::ports::{Org, OrgStore, StoreError};

use super::MemoryDatabase;

#[async_trait]
impl OrgStore for MemoryDatabase {
    async fn create(&self, org: &Org) -> Result<Org, StoreError> {
        Ok(self.tables().orgs.entry(org.slug.clone()).or_insert_with(|| org.clone()).clone())
    }

    async fn find_by_slug(&self, slug: &OrgSlug) -> Result<Option<Org>, StoreError> {
        Ok(self.tables().orgs.get(slug).cloned())
    }

    async fn find(&self, id: OrgId) -> Result<Option<Org>, StoreError> {
        Ok(self.tables().orgs.values().find(|org| org.id == id).cloned())
    }

    async fn list(&self) -> Result<Vec<Org>, StoreError> {
        Ok(self.tables().orgs.values().cloned().collect())
    }
}
