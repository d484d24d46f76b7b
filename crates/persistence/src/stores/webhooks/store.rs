//! The store of webhooks.

use async_trait::async_trait;
use futures_util::FutureExt;
use signalbox_domain::audit::AuditRecord;
use signalbox_domain::ids::OrgId;
use signalbox_domain::ports::{
    EndpointLease, LeasedEndpoint, MessageFilter, StoreError, WebhookStore,
};
use signalbox_domain::time::Timestamp;
use signalbox_domain::webhook::{Attempt, Endpoint, EndpointId, Jitter, Message, Verdict};
use uuid::Uuid;

use super::super::Store;
use super::super::audit_log::noted;
use super::{endpoints, leases, messages};
use crate::reach::Reach;

#[async_trait]
impl WebhookStore for Store {
    async fn create(
        &self,
        endpoint: &Endpoint,
        most: u32,
        record: Option<&AuditRecord>,
    ) -> Result<bool, StoreError> {
        let (endpoint, note) = (endpoint.clone(), noted(record)?);
        let job = self.write(
            endpoint.org,
            Box::new(move |conn| {
                async move {
                    let done = endpoints::create(conn, endpoint, most).await?;
                    note.when(done, conn).await
                }
                .boxed()
            }),
        );
        Ok(job.await?)
    }

    async fn endpoint(&self, org: OrgId, id: EndpointId) -> Result<Option<Endpoint>, StoreError> {
        let mut conn = self.connection(org).await?;
        Ok(endpoints::find(&mut conn, org, id).await?)
    }

    async fn endpoints(&self, org: OrgId) -> Result<Vec<Endpoint>, StoreError> {
        let mut conn = self.connection(org).await?;
        Ok(endpoints::list(&mut conn, org).await?)
    }

    async fn every(
        &self,
        after: Option<EndpointId>,
        limit: u32,
    ) -> Result<Vec<Endpoint>, StoreError> {
        let mut conn = self.connection(Reach::ALL).await?;
        Ok(endpoints::every(&mut conn, after, limit).await?)
    }

    async fn save(
        &self,
        endpoint: &Endpoint,
        record: Option<&AuditRecord>,
    ) -> Result<bool, StoreError> {
        let (endpoint, note) = (endpoint.clone(), noted(record)?);
        let job = self.write(
            endpoint.org,
            Box::new(move |conn| {
                async move {
                    let done = endpoints::save(conn, endpoint).await?;
                    note.when(done, conn).await
                }
                .boxed()
            }),
        );
        Ok(job.await?)
    }

    async fn delete(
        &self,
        org: OrgId,
        id: EndpointId,
        record: Option<&AuditRecord>,
    ) -> Result<bool, StoreError> {
        let note = noted(record)?;
        let job = self.write(
            org,
            Box::new(move |conn| {
                async move {
                    let done = endpoints::delete(conn, org, id).await?;
                    note.when(done, conn).await
                }
                .boxed()
            }),
        );
        Ok(job.await?)
    }

    async fn waiting(&self, org: OrgId, id: EndpointId) -> Result<u64, StoreError> {
        let mut conn = self.connection(org).await?;
        Ok(endpoints::waiting(&mut conn, org, id).await?)
    }

    async fn enqueue(
        &self,
        org: OrgId,
        id: EndpointId,
        cursor: (i64, i64),
        messages: &[Message],
        record: Option<&AuditRecord>,
    ) -> Result<bool, StoreError> {
        let (messages, note) = (messages.to_vec(), noted(record)?);
        let job = self.write(
            org,
            Box::new(move |conn| {
                async move {
                    let done = endpoints::enqueue(conn, (org, id), cursor, messages).await?;
                    note.when(done, conn).await
                }
                .boxed()
            }),
        );
        Ok(job.await?)
    }

    async fn lease(
        &self,
        limit: u32,
        failing: bool,
        holder: Uuid,
        times: (Timestamp, Timestamp),
    ) -> Result<Vec<LeasedEndpoint>, StoreError> {
        let mut conn = self.connection(Reach::ALL).await?;
        if limit == 0 || !leases::any_due(&mut conn, failing, times.0).await? {
            // The usual case needs no write transaction.
            return Ok(Vec::new());
        }
        drop(conn);
        let job = self.write(
            Reach::ALL,
            Box::new(move |conn| leases::lease(conn, (limit, failing), holder, times).boxed()),
        );
        Ok(job.await?)
    }

    async fn due(
        &self,
        token: EndpointLease,
        now: Timestamp,
        limit: u32,
    ) -> Result<Vec<Message>, StoreError> {
        let mut conn = self.connection(token.org).await?;
        Ok(leases::due(&mut conn, token, now, limit).await?)
    }

    async fn record(
        &self,
        token: EndpointLease,
        attempt: &Attempt,
        verdict: Verdict,
        jitter: Jitter,
    ) -> Result<bool, StoreError> {
        let attempt = attempt.clone();
        let job = self.write(
            token.org,
            Box::new(move |conn| leases::record(conn, token, attempt, (verdict, jitter)).boxed()),
        );
        Ok(job.await?)
    }

    async fn release(&self, token: EndpointLease, now: Timestamp) -> Result<(), StoreError> {
        let job =
            self.write(token.org, Box::new(move |conn| leases::release(conn, token, now).boxed()));
        Ok(job.await?)
    }

    async fn hand_back(&self, holder: Option<Uuid>) -> Result<u64, StoreError> {
        let job =
            self.write(Reach::ALL, Box::new(move |conn| leases::hand_back(conn, holder).boxed()));
        Ok(job.await?)
    }

    async fn messages(
        &self,
        org: OrgId,
        id: EndpointId,
        filter: &MessageFilter,
        after: Option<(Timestamp, Uuid)>,
        limit: u32,
    ) -> Result<Vec<Message>, StoreError> {
        let mut conn = self.connection(org).await?;
        Ok(messages::list(&mut conn, (org, id), filter, after, limit).await?)
    }

    async fn message(
        &self,
        org: OrgId,
        id: EndpointId,
        message: Uuid,
    ) -> Result<Option<Message>, StoreError> {
        let mut conn = self.connection(org).await?;
        Ok(messages::find(&mut conn, (org, id), message).await?)
    }

    async fn attempts(
        &self,
        org: OrgId,
        id: EndpointId,
        messages: &[Uuid],
    ) -> Result<Vec<Attempt>, StoreError> {
        let mut conn = self.connection(org).await?;
        Ok(messages::attempts(&mut conn, (org, id), messages).await?)
    }

    async fn replay(
        &self,
        org: OrgId,
        id: EndpointId,
        filter: &MessageFilter,
        (now, limit): (Timestamp, u32),
        record: Option<&AuditRecord>,
    ) -> Result<u64, StoreError> {
        let (filter, note) = (filter.clone(), noted(record)?);
        let job = self.write(
            org,
            Box::new(move |conn| {
                async move {
                    let count = messages::replay(conn, (org, id), &filter, now, limit).await?;
                    note.when(count > 0, conn).await?;
                    Ok(count)
                }
                .boxed()
            }),
        );
        Ok(job.await?)
    }

    async fn replay_one(
        &self,
        org: OrgId,
        id: EndpointId,
        message: Uuid,
        now: Timestamp,
        record: Option<&AuditRecord>,
    ) -> Result<bool, StoreError> {
        let note = noted(record)?;
        let job = self.write(
            org,
            Box::new(move |conn| {
                async move {
                    let done = messages::replay_one(conn, (org, id), message, now).await?;
                    note.when(done, conn).await
                }
                .boxed()
            }),
        );
        Ok(job.await?)
    }

    async fn prune(&self, before: Timestamp, limit: u32) -> Result<u64, StoreError> {
        let job = self
            .write(Reach::ALL, Box::new(move |conn| messages::prune(conn, before, limit).boxed()));
        Ok(job.await?)
    }
}
