//! The store of processed webhook deliveries.

use async_trait::async_trait;
use diesel::dsl::exists;
use diesel::prelude::*;
use diesel_async::RunQueryDsl;
use futures_util::FutureExt;
use signalbox_domain::ids::{HostId, OrgId};
use signalbox_domain::ports::{InboundDeliveryStore, StoreError};
use signalbox_domain::time::Timestamp;

use super::Store;
use crate::error::DbError;
use crate::reach::Reach;
use crate::schema::heard_events;
use crate::sql_types::Sql;

#[async_trait]
impl InboundDeliveryStore for Store {
    async fn was_taken(&self, org: OrgId, host: &HostId, id: &str) -> Result<bool, StoreError> {
        let mut conn = self.connection(org).await?;
        let row = heard_events::table.find((Sql(org), host.as_str(), id));
        let known = diesel::select(exists(row)).get_result(&mut conn).await;
        Ok(known.map_err(DbError::from)?)
    }

    async fn taken(
        &self,
        org: OrgId,
        host: &HostId,
        id: &str,
        at: Timestamp,
    ) -> Result<bool, StoreError> {
        let row = (
            heard_events::org_id.eq(Sql(org)),
            heard_events::host.eq(host.as_str().to_owned()),
            heard_events::event_id.eq(id.to_owned()),
            heard_events::at.eq(Sql(at)),
        );
        let job = Store::write(
            self,
            org,
            Box::new(move |conn| {
                async move {
                    let written = diesel::insert_into(heard_events::table)
                        .values(row)
                        .on_conflict_do_nothing()
                        .execute(conn)
                        .await?;
                    Ok(written == 1)
                }
                .boxed()
            }),
        );
        Ok(job.await?)
    }

    async fn forget(&self, before: Timestamp, limit: u32) -> Result<u64, StoreError> {
        let job = Store::write(
            self,
            Reach::ALL,
            Box::new(move |conn| {
                async move {
                    let old: Vec<(OrgId, String, String)> = heard_events::table
                        .filter(heard_events::at.lt(Sql(before)))
                        .order(heard_events::at)
                        .limit(i64::from(limit))
                        .select((heard_events::org_id, heard_events::host, heard_events::event_id))
                        .load(conn)
                        .await?;
                    for key in &old {
                        let row = heard_events::table.find((Sql(key.0), &key.1, &key.2));
                        diesel::delete(row).execute(conn).await?;
                    }
                    Ok(u64::try_from(old.len()).unwrap_or(0))
                }
                .boxed()
            }),
        );
        Ok(job.await?)
    }
}
