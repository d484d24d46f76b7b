//! Named values that all servers on a database share.

use diesel::prelude::*;
use diesel_async::RunQueryDsl;
use futures_util::FutureExt;

use super::Store;
use crate::error::DbError;
use crate::reach::Reach;
use crate::schema::server_keys;

impl Store {
    /// The value of this name.
    pub(crate) async fn server_value(&self, name: &str) -> Result<Option<String>, DbError> {
        let mut conn = self.connection(Reach::ALL).await?;
        let found = server_keys::table.find(name).select(server_keys::value);
        Ok(found.first(&mut conn).await.optional()?)
    }

    /// Writes a value unless there is one; returns the stored value.
    pub(crate) async fn keep_server_value(
        &self,
        name: &'static str,
        value: String,
    ) -> Result<String, DbError> {
        let job = self.write(
            Reach::ALL,
            Box::new(move |conn| {
                async move {
                    diesel::insert_into(server_keys::table)
                        .values((server_keys::name.eq(name), server_keys::value.eq(value)))
                        .on_conflict_do_nothing()
                        .execute(conn)
                        .await?;
                    let kept = server_keys::table.find(name).select(server_keys::value);
                    Ok(kept.first(conn).await?)
                }
                .boxed()
            }),
        );
        job.await
    }

    /// Replaces a value, or removes it for `None`, if it equals the expected one.
    pub(crate) async fn replace_server_value(
        &self,
        name: &'static str,
        old: String,
        new: Option<String>,
    ) -> Result<(), DbError> {
        let job = self.write(
            Reach::ALL,
            Box::new(move |conn| {
                async move {
                    let known = server_keys::table
                        .filter(server_keys::name.eq(name))
                        .filter(server_keys::value.eq(old));
                    match new {
                        Some(new) => {
                            let set = server_keys::value.eq(new);
                            diesel::update(known).set(set).execute(conn).await?;
                        }
                        None => {
                            diesel::delete(known).execute(conn).await?;
                        }
                    }
                    Ok(())
                }
                .boxed()
            }),
        );
        job.await
    }
}
