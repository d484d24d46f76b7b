//! Deletion of old history.

use async_trait::async_trait;
use diesel::prelude::*;
use diesel_async::RunQueryDsl;
use futures_util::FutureExt;
use signalbox_domain::ids::QueueId;
use signalbox_domain::ports::{Retention, StoreError};
use signalbox_domain::time::Timestamp;

use super::Store;
use crate::reach::Reach;
use crate::schema::{entry_moves, journal};
use crate::sql_types::Sql;

/// The key of a journal record: queue and number.
type Key = (QueueId, i64);

#[async_trait]
impl Retention for Store {
    async fn prune_journal(&self, before: Timestamp, limit: u32) -> Result<u64, StoreError> {
        let job = self.write(
            Reach::ALL,
            Box::new(move |conn| {
                async move {
                    let old: Vec<Key> = journal::table
                        .filter(journal::at.lt(Sql(before)))
                        .order(journal::at)
                        .limit(i64::from(limit))
                        .select((journal::queue_id, journal::number))
                        .load(conn)
                        .await?;
                    for (queue, number) in &old {
                        let moves = entry_moves::table
                            .filter(entry_moves::queue_id.eq(Sql(queue)))
                            .filter(entry_moves::number.eq(number));
                        diesel::delete(moves).execute(conn).await?;
                        let record = journal::table.find((Sql(queue), number));
                        diesel::delete(record).execute(conn).await?;
                    }
                    Ok(u64::try_from(old.len()).unwrap_or(0))
                }
                .boxed()
            }),
        );
        Ok(job.await?)
    }
}
